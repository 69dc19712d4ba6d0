-- Records for tests: a key and a measurement that are right, and others with a few fields changed.
local changed = require "tests.support.changed"
local record = require "harness.tune.record"

local records = {}

function records.key(changes)
    return changed({
        arch = "x86_64",
        cpu_vendor = "AuthenticAMD",
        cpu_family = 25,
        cpu_model = 17,
        cpu_stepping = 1,
        cpu_name = "AMD EPYC",
        isa_usable = "scalar,avx2,avx512",
        l1d = 32768,
        l1i = 32768,
        l2 = 1048576,
        l3_share = 16777216,
        virtual = true,
        threads = 1,
        compiler = "gcc (Debian 12.2.0-14) 12.2.0",
        flags = "-O2",
        generator = "0.1.0",
        templates = ("a"):rep(64),
        model = ("b"):rep(64),
        tables = "f32",
        projection = "f32",
        isa = "avx512",
    }, changes)
end

function records.fields(changes)
    return changed({
        key = records.key(),
        candidate = "tile.vectors=2,gather.group=8",
        regime = "many",
        batch = 4096,
        cc = "gcc",
        status = "ok",
        samples_us = { 5.5, 5.25, 6 },
        codes = "uniform",
        tables = "warm",
        object_bytes = 12345,
        run = "run1",
        host = "host1",
        time = 1700000000,
    }, changes)
end

function records.make(changes) return record.make(records.fields(changes)) end

-- A candidate that verification has rejected.
function records.rejected(reason)
    return record.make {
        key = records.key(),
        candidate = "tile.vectors=1,gather.group=4",
        regime = "many",
        cc = "gcc",
        status = "rejected",
        reason = reason,
        run = "run1",
        host = "host1",
        time = 1700000000,
    }
end

-- `count` records that differ in candidate, samples and time.
function records.many(count, changes)
    local list = {}
    for i = 1, count do
        list[i] = records.make(changed({
            candidate = "tile.vectors=" .. i % 4 + 1 .. ",gather.group=" .. i,
            samples_us = { 5 + i / 7, 6 + i / 3 },
            time = 1700000000 + i,
        }, changes))
    end
    return list
end

-- The text of a log.
function records.text(list)
    local lines = {}
    for i, r in ipairs(list) do
        lines[i] = record.line(r) .. "\n"
    end
    return table.concat(lines)
end

-- The text with one bit of byte `index` changed.
function records.flipped(text, index, bit)
    return text:sub(1, index - 1) .. string.char(text:byte(index) ~ (1 << bit)) .. text:sub(index + 1)
end

return records
