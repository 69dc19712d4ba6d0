-- The file of a CPU in gen/machines/, read and written; the same numbers are the same bytes.
local host = require "host"
local lua_text = require "gen.schema.lua_text"
local machines = require "gen.machines.list"

local machine_file = {}

-- The CPU of the file `path`, and the comment on top of it; raises one line.
function machine_file.load(path)
    local text = assert(host.read(path, 1 << 16))
    local chunk, message = load(text, "=" .. path, "t", { math = { huge = math.huge } })
    local good, cpu = pcall(chunk or error, message)
    if not good then error(cpu, 0) end
    for _, group in ipairs(machines.fields) do
        for _, field in ipairs(group) do
            local kind = type(machines.get(machines.nominal)[field])
            if type(cpu) ~= "table" or kind ~= "nil" and type(cpu[field]) ~= kind then
                error(string.format("%s: is no file of a CPU: %s must be a %s", path, field, kind), 0)
            end
        end
    end
    return cpu, text:match "^%-%- ([^\n]*)" or ""
end

-- A value of a field as it is written: sizes from 64 KiB on are shifted.
function machine_file.value(value)
    if math.type(value) ~= "integer" or value < 1 << 16 or value % 1024 ~= 0 then return lua_text.value(value) end
    local shift = value % (1 << 20) == 0 and 20 or 10
    return string.format("%d << %d", value >> shift, shift)
end

-- The text of the file of `cpu` with a comment on top.
function machine_file.text(cpu, comment)
    local lines = { "-- " .. comment, "return {" }
    for i, group in ipairs(machines.fields) do
        if i > 1 then lines[#lines + 1] = "" end
        for _, field in ipairs(group) do
            local value = cpu[field]
            if value ~= nil then lines[#lines + 1] = "    " .. field .. " = " .. machine_file.value(value) .. "," end
        end
    end
    lines[#lines + 1] = "}\n"
    return table.concat(lines, "\n")
end

return machine_file
