-- The log of a run: one record a line, only ever appended to, and readable whatever has happened to it.
local dropped_lines = require "harness.base.dropped_lines"
local host = require "host"
local process = require "process"
local record = require "harness.tune.record"
local sqlite = require "store"

local log = {}

local largest_log = 1 << 30 -- bytes

-- What an interrupt says of the log at `path`, once there is one.
function log.promise(path)
    local words = "\nlookupc tune: interrupted: what was measured is in %s; --resume goes on\n"
    process.last_words(string.format(words, path))
end

-- Keeps the log at `path` to this process until what is returned is closed: rounds of two runs in one log would be
-- taken for one. Raises one line if another process has it.
function log.hold(path)
    local lock = assert(sqlite.lock(path, "alone"))
    return setmetatable({}, {
        __close = function()
            host.remove(path .. ".lock")
            lock:close()
        end,
    })
end

-- Appends a record; it is on the disk when this returns, and an interrupt says so. Raises one line.
function log.append(path, r)
    assert(host.append_line(path, record.line(r)))
    log.promise(path)
end

-- The records of the log at `path` in its order, each once, and the lines that are none: { {line, reason} }. Raises one
-- line for a file that cannot be read or is no log.
function log.read(path)
    local text = assert(host.read(path, largest_log))
    local records, dropped, seen, number = {}, {}, {}, 0
    for line in text:gmatch("([^\n]*)\n?") do
        number = number + 1
        local r, reason = nil, nil
        if line ~= "" then
            r, reason = record.parse(line)
        end
        if r and not seen[r.check] then
            seen[r.check] = true
            records[#records + 1] = r
        elseif reason then
            dropped[#dropped + 1] = { line = number, reason = reason }
        end
    end
    if #records == 0 and #dropped > 0 and not text:find('^{"') then error(path .. ": is no log of lookupc tune", 0) end
    return records, dropped
end

-- One line about the lines that were dropped; nil if none was.
log.problem = dropped_lines.line

return log
