-- A store of measurements with changed bytes: it opens, or is repaired, or is refused; no record is read that was never
-- written. The input is a list of changes, of 4 bytes each: where, in 3 bytes, and the new byte.
local host = require "host"
local records = require "tests.support.records"
local record = require "harness.tune.record"
local rules = require "tests.libfuzzer.rules"
local store = require "harness.tune.store"

local whole, written

-- Removes the store and what lies beside it.
local function clear(folder)
    for _, name in ipairs(assert(host.list(folder))) do
        if name:find "^store" then assert(host.remove(folder .. "/" .. name)) end
    end
end

-- The bytes of a store, made once.
local function make(folder, path)
    local list = records.many(3, { key = records.key { isa = "avx2" } })
    list[#list + 1] = records.rejected "too slow"
    written = {}
    for _, r in ipairs(list) do
        written[record.line(r)] = true
    end
    local opened = store.open(path)
    opened:merge(list)
    opened:close()
    whole = assert(host.read(path))
    clear(folder)
end

local function changed(changes)
    local at, bytes = {}, {}
    for i = 1, math.min(#changes, 400) - 3, 4 do
        local place, byte = string.unpack("<I3I1", changes, i)
        place = place % #whole + 1
        if not bytes[place] then at[#at + 1] = place end
        bytes[place] = string.char(byte)
    end
    table.sort(at)
    local list, start = {}, 1
    for _, place in ipairs(at) do
        list[#list + 1] = whole:sub(start, place - 1)
        list[#list + 1] = bytes[place]
        start = place + 1
    end
    return table.concat(list) .. whole:sub(start)
end

local function read(path)
    local opened <close>, problem = store.open(path)
    if problem then rules.try(path, error, problem, 0) end
    for _, row in ipairs(opened:keys()) do
        for _, r in ipairs(opened:records(row.id)) do
            if not written[record.line(r)] then error("a record that nobody wrote", 0) end
        end
    end
end

return function(path)
    local folder = path:match "^(.*)/"
    local file = folder .. "/store.sqlite"
    if not whole then make(folder, file) end
    clear(folder)
    assert(host.write_file(file, changed(assert(host.read(path)))))
    rules.try(file, read, file)
end
