-- The log of a run: lines of JSON beside the weights. The first one says what runs, the others what came of steps.
local host = require "host"
local json = require "json"

local log = {}

local most_bytes = 1 << 30

-- The lines of the log `path`, decoded; a last line that a crash has cut off is left out.
local function lines_of(path)
    local list = {}
    local text = assert(host.read(path, most_bytes))
    for line in text:gmatch "([^\n]*)\n" do
        local record = json.decode(line)
        if type(record) == "table" then list[#list + 1] = record end
    end
    return list
end

-- Starts a log with `first`, or, where a run is resumed, goes on behind the step `done`: what came later is forgotten.
-- Returns { records, add(record) }.
function log.open(path, first, done)
    local records = {}
    if done and host.kind(path) then
        for _, record in ipairs(lines_of(path)) do
            if record.step and record.step <= done then records[#records + 1] = record end
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
