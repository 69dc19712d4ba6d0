-- Calls of compiled functions with memory of exactly its size, between guard pages.
--
--   guarded(own, name, ...) -> the int that the function returns, fault, results: of a model of the module `compiled`
-- Arguments are those of own:call, or describe memory made for this call: { name, text = what it holds, not to
-- be written, but with `written`; or bytes = its size; or memory = there already, and kept; place = "end", "start" or
-- "unaligned", alignment, 64 if absent; result = true: what it holds after the call is a result }. fault: the name of
-- such memory that bytes were written around, nil: of none. Whoever finds that the process crashed is told the name of
-- the function, and words that may stand behind it and a comma.
local compiled = require "compiled"
local process = require "process"

local function memory_of(row)
    if row.memory then return row.memory end
    local memory = compiled.memory(row.bytes or #row.text, row.place or "end", row.alignment)
    if row.text then memory:write(row.text) end
    if row.text and not row.written then memory:read_only() end
    return memory
end

return function(own, name, ...)
    process.stage(name)
    local words, rows, memories, results, fault = { ... }, {}, {}, {}, nil
    for i = 1, select("#", ...) do
        local row = words[i]
        if type(row) == "table" then
            if not memories[row] then
                rows[#rows + 1], memories[row] = row, memory_of(row)
            end
            words[i] = memories[row]
        end
    end
    local _, status = own:call(name:match "^[%w_]+", table.unpack(words, 1, select("#", ...)))
    for _, row in ipairs(rows) do
        local memory = memories[row]
        if row.result then results[#results + 1] = memory:read() end
        fault = fault or not memory:intact() and (row.name or "memory") or nil
        if not row.memory then memory:free() end
    end
    return status, fault, table.unpack(results)
end
