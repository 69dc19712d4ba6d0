-- The log of a run: lines of JSON beside the weights. The first one says what runs, the others what came of steps.
local dropped_lines = require "harness.base.dropped_lines"
local host = require "host"
local json = require "json"

local log = {}

local largest_log = 1 << 30 -- bytes

-- What a record has, and what the tables of a layer have: numbers. The page draws them.
local needed = { "step", "tokens", "loss" }
local optional = { "share", "seconds", "tokens_per_second", "rate", "validation" }
local of_tables = { "layer", "tables", "rows", "used", "least", "entropy", "lowest", "collapsed" }
local of_every_table = { "rows_used", "entropies" } -- lists of them

local function has_numbers(value, names)
    for _, name in ipairs(names) do
        if type(value[name]) ~= "number" then return false end
    end
    return true
end

-- Whether `row` is what harness/train/table_usage.lua says of a layer.
local function is_of_tables(row)
    if type(row) ~= "table" or not has_numbers(row, of_tables) then return false end
    for _, name in ipairs(of_every_table) do
        local list = row[name]
        if type(list) ~= "table" or #list ~= row.tables then return false end
        for _, value in ipairs(list) do
            if type(value) ~= "number" then return false end
        end
    end
    return true
end

-- What is wrong with the decoded line `value`, whose tables are of so many layers (nil: of as many as there are); nil:
-- it is a record.
local function fault(value, layers)
    if type(value) ~= "table" then return "is cut off or no JSON" end
    if not has_numbers(value, needed) or math.type(value.step) ~= "integer" then return "is no record" end
    for _, name in ipairs(optional) do
        if value[name] ~= nil and type(value[name]) ~= "number" then return "is no record" end
    end
    if value.tables ~= nil and type(value.tables) ~= "table" then return "is no record" end
    for _, row in ipairs(value.tables or {}) do
        if not is_of_tables(row) then return "is no record" end
    end
    if layers and value.tables and #value.tables > 0 and #value.tables ~= layers then return "is of another model" end
    return nil
end

-- Whether a decoded line is the first one of a log.
local function is_first(value) return type(value) == "table" and type(value.settings) == "table" end

-- The records of the log at `path`, its lines that are none, { {line, reason} }, and whether there is any of a
-- training.
local function lines_of(path)
    local records, dropped, known, number, layers = {}, {}, false, 0, nil
    local text = assert(host.read_regular(path, largest_log))
    for line in text:gmatch "[^\n]+" do
        number = number + 1
        local value = json.decode(line)
        local reason = fault(value, layers)
        if not reason then
            records[#records + 1] = value
            if not layers and value.tables and #value.tables > 0 then layers = #value.tables end
        elseif not (number == 1 and is_first(value)) then
            dropped[#dropped + 1] = { line = number, reason = reason }
        end
        known = known or not reason or is_first(value)
    end
    return records, dropped, known or text == ""
end

-- Raises one line if there is a file at `path` that is no log of a training: it is not overwritten.
function log.check(path)
    if host.kind(path) and not select(3, lines_of(path)) then
        error(path .. ": exists and is no log of a training: choose another --log", 0)
    end
end

-- Starts a log with `first`, or, where a run is resumed, goes on behind the step `done`: what came later is forgotten,
-- and one line says which lines were no records. Returns { records, add(record) }.
function log.open(path, first, done)
    local records = {}
    if done and host.kind(path) then
        local found, dropped = lines_of(path)
        local problem = dropped_lines.line(path, dropped)
        if problem then host.note("lookupc train: " .. problem) end
        for _, record in ipairs(found) do
            if record.step <= done then records[#records + 1] = record end
        end
    end
    local lines = { assert(json.encode(first, "compact")) }
    for i, record in ipairs(records) do
        lines[i + 1] = assert(json.encode(record, "compact"))
    end
    assert(host.write_file(path, table.concat(lines, "\n") .. "\n"))
    local function add(record)
        records[#records + 1] = record
        assert(host.append_line(path, assert(json.encode(record, "compact"))))
    end
    return { records = records, add = add, first = first }
end

return log
