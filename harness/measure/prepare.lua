-- Makes what a job says: memory, libraries, and the prepared calls of its rows.
--
--   memory     { name; bytes; fill (of inputs.fill; nil: zeros) and its number; sizes: a list of size_t instead;
--              large: in large pages; copies: each caller has one of them }
--   libraries  { name, library, blob (paths), bind, weights_struct_bytes; weights_of: the name of one whose weights it
--              has, too: to read a large blob again would take longer than the timing }
--   setup      rows that are made once, by each caller
--   calls      rows that are timed: { name; steps; places (1 if absent); callers at a time (1) }, and what
--              harness/measure/rounds.lua says
--
-- A step of a row is a call of a function, of the module `inputs` or of the library of that name: { library, function,
-- status (whether it returns one, 0 for success), arguments }; for `tokens` tokens, `chunk` at a time, if it has these
-- fields. An argument is an integer, the name of a memory, "weights", "blob", "tokens" (those of this time), or
-- { memory; at, place, token: bytes behind its beginning, times 1, the number of the place, the first token; value: the
-- int32 there }. How a row walks through its places: compiled.prepare.
--
-- Or it is what another library does: { baseline (a function of the module `baselines`), and what that takes, with
-- names of memories; optional }. A row is left out where the library has no such product for this CPU or, if it is
-- optional, a wrong one. The context has the error of the row under its name, what the library says it is under keys of
-- its own, "none" where it has nothing, and its code as "implementation/" and the name.
local baselines = require "baselines"
local compiled = require "compiled"
local host = require "host"
local inputs = require "inputs"
local one_of = require "gen.schema.one_of"
local setting = require "harness.measure.setting"

local prepare = {}

local function make_memory(row, seed)
    local copies = {}
    for i = 1, row.copies or 1 do
        local made = compiled.memory(row.bytes, row.large and "large" or nil)
        if row.sizes then
            made:write(string.pack("<" .. string.rep("T", #row.sizes), table.unpack(row.sizes)))
        elseif row.fill then
            inputs.fill(made, row.fill, seed, row.number)
        end
        copies[i] = made
    end
    return copies
end

-- The libraries by name: { model, weights (the model that has them) }.
local function open_libraries(job)
    local list, of_blob = {}, {}
    for _, row in ipairs(job.libraries) do
        local of = { library = row.library, stays = true }
        if not row.weights_of then
            of.blob, of.bind, of.weights_struct_bytes = row.blob, row.bind, row.weights_struct_bytes
            of.blob_of = of_blob[row.blob]
        end
        local model = assert(compiled.open(of))
        of_blob[row.blob] = of_blob[row.blob] or model
        list[row.name] = { model = model, weights = row.weights_of and list[row.weights_of].weights or model }
    end
    return list
end

-- The argument of a step for a caller, as compiled.prepare takes it; `first` and `tokens` of this time.
local function argument_of(parts, own, argument, caller, first, tokens)
    if math.type(argument) == "integer" then return argument end
    local name = type(argument) == "table" and argument.memory or argument
    if name == "tokens" then return tokens end
    if own and name == "weights" then return own.weights end
    if own and name == "blob" then return own.weights:blob() end
    local copies = parts.memory[name] or error(tostring(name) .. ": there is no such memory", 0)
    local memory = copies[caller % #copies + 1]
    if name == argument then return memory end
    local at = (argument.at or 0) + first * (argument.token or 0)
    return { memory, at = at, place = argument.place, value = argument.value }
end

local function add_function(parts, step, caller, call)
    local own, tokens = parts.libraries[step.library], step.tokens or 1
    local called = inputs[step["function"]] or own.model:find(step["function"])
    local chunk = step.chunk or tokens
    for first = 0, tokens - 1, chunk do
        local words = {}
        for i, argument in ipairs(step.arguments) do
            words[i] = argument_of(parts, own, argument, caller, first, math.min(chunk, tokens - first))
        end
        call:step(caller, called, step.status or false, table.unpack(words))
    end
end

local memories = { x = true, y = true, weights = true, q = true, keys = true } -- of baselines

-- Returns the relative error of what the library does and the name of its code, or nil.
local function add_baseline(parts, step, caller, call)
    local given = {}
    for key, value in pairs(step) do
        given[key] = memories[key] and argument_of(parts, nil, value, caller, 0, 0) or value
    end
    local called, argument, off, implementation = baselines[step.baseline](given)
    local key, text = baselines.described(step.library, step.type)
    parts.context[key] = called and text or parts.context[key] or "none"
    if called then
        call:step(caller, called, true, argument)
        return off, implementation
    end
    if argument ~= "" and not step.optional then error(argument, 0) end
    if argument ~= "" then host.note("lookupc-measure: " .. argument .. ": left out") end
end

-- The prepared call of a row, which begins at place `first`, or nil.
local function call_of(parts, row, first)
    local callers, names, worst = row.callers or 1, {}, nil
    local call = compiled.prepare(callers, row.places or 1, first)
    for caller = 0, callers - 1 do
        for _, step in ipairs(row.steps) do
            if step.baseline then
                local off, implementation = add_baseline(parts, step, caller, call)
                if not off then return nil end
                worst = math.max(worst or 0.0, off)
                if not one_of.contains(names, implementation) then names[#names + 1] = implementation end
            else
                add_function(parts, step, caller, call)
            end
        end
    end
    if worst then
        parts.context[row.name] = worst
        parts.context["implementation/" .. row.name] = table.concat(names, ", ")
    end
    return call
end

-- Returns { rows, calls (prepared, by the name of their row), context } of a job, whose setup has been called.
function prepare.run(job)
    local parts = { memory = {}, rows = {}, calls = {}, context = {}, libraries = open_libraries(job) }
    for i, row in ipairs(job.memory) do
        parts.memory[row.name] = make_memory(row, job.seed + i - 1)
    end
    for _, row in ipairs(job.setup) do
        if not call_of(parts, row, 0):run() then error(row.name .. ": failed", 0) end
    end
    for i, row in ipairs(job.calls) do
        if parts.calls[row.name] then error(row.name .. ": there is another call of this name", 0) end
        parts.calls[row.name] = call_of(parts, row, setting.first_place(row, i))
        if parts.calls[row.name] then parts.rows[#parts.rows + 1] = row end
    end
    return parts
end

return prepare
