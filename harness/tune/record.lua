-- A record: one measured or rejected candidate, as a table and as one line of JSON that carries its own check.
local copied = require "gen.schema.copied"
local host = require "host"
local json = require "json"
local key = require "harness.tune.key"
local shortened = require "gen.schema.shortened"

local record = {}

local function one_of(...)
    local words = { ... }
    return {
        function(value)
            for _, word in ipairs(words) do
                if value == word then return true end
            end
            return false
        end,
        "must be one of " .. table.concat(words, ", "),
    }
end

local function is_samples(value)
    if type(value) ~= "table" or #value == 0 then return false end
    for _, sample in ipairs(value) do
        if type(sample) ~= "number" or not (sample > 0 and sample < math.huge) then return false end
    end
    return true
end

local kinds = key.kinds
local samples = { is_samples, "must be a list of positive numbers" }

local positive = {
    function(value) return type(value) == "number" and value > 0 and value < math.huge end,
    "must be a positive number",
}
local texts = {
    function(value)
        if type(value) ~= "table" or #value == 0 then return false end
        for _, text in ipairs(value) do
            if not kinds.text[1](text) then return false end
        end
        return true
    end,
    "must be a list of texts",
}

-- A record says one of four things of a candidate: its times ("ok"), why it has none ("rejected"), that it is the
-- default of a race among `field` ("entered"), or that it is what a race or a whole tuning chose ("chosen").
--
-- One row a field; `of`: the status of the records that must have it, nil: all; `only`: no others may; `optional`: none
-- must.
record.fields = {
    { name = "candidate", kind = kinds.text },
    { name = "regime", kind = one_of("many", "few", "both") },
    { name = "cc", kind = kinds.text },
    { name = "status", kind = one_of("ok", "rejected", "entered", "chosen") },
    { name = "reason", kind = kinds.text, of = "rejected", only = true },
    { name = "batch", kind = kinds.count, of = "ok" },
    { name = "samples_us", kind = samples, of = "ok", only = true },
    { name = "codes", kind = one_of("uniform", "skewed"), of = "ok", only = true },
    { name = "tables", kind = one_of("warm", "cold"), of = "ok", only = true },
    { name = "object_bytes", kind = kinds.natural, of = "ok" },
    -- of the race that took the samples (harness/tune/race.lua),
    { name = "round", kind = kinds.text, of = "ok", only = true, optional = true },
    { name = "place", kind = kinds.count, of = "ok", only = true, optional = true }, -- its place in that
    { name = "seconds", kind = positive, of = "ok", only = true, optional = true }, -- and how long all of that took
    { name = "field", kind = texts, of = "entered", only = true }, -- candidates in their order, the default first
    { name = "batches", kind = kinds.text, of = "chosen" }, -- that the tuning was for; also of "entered"
    -- time over the default's, with its 95 % interval from so many pairs
    { name = "ratio", kind = positive, of = "chosen", only = true },
    { name = "low", kind = positive, of = "chosen", only = true },
    { name = "high", kind = positive, of = "chosen", only = true },
    { name = "pairs", kind = kinds.natural, of = "chosen", only = true },
    { name = "decided", kind = one_of("winner", "tie", "too noisy", "no time"), of = "chosen", only = true },
    { name = "shard", kind = kinds.text, of = "chosen" }, -- "1/1": the whole field; also of "entered"
    { name = "model", kind = kinds.text, of = "entered", optional = true }, -- its name, for people
    { name = "run", kind = kinds.text },
    { name = "host", kind = kinds.text },
    { name = "time", kind = kinds.natural },
}

-- The race for calls of `batches` tokens that the record `r` has chosen in, as harness/tune/race.lua has its result.
function record.race(r, batches)
    return {
        regime = r.regime,
        batches = batches,
        winner = r.candidate,
        bytes = r.object_bytes,
        ratio = r.ratio,
        low = r.low,
        high = r.high,
        samples = r.pairs,
        decided = r.decided,
    }
end

-- A value in a message.
local function shown_of(value) return shortened((tostring(value):gsub("%c", "?")), 80) end

-- What is wrong with the fields of `rows` in `values` beside those in `known`, in one line; nil: nothing.
local function problem(rows, values, known, prefix)
    local names = { table.unpack(known) }
    for _, name in ipairs(known) do
        names[name] = true
    end
    for _, row in ipairs(rows) do
        names[row.name] = true
        local value, kind = values[row.name], type(row.kind) == "string" and kinds[row.kind] or row.kind
        local needed = not row.optional and (not row.of or row.of == values.status)
        if value == nil and needed then return string.format('field "%s%s": is missing', prefix, row.name) end
        if value ~= nil and row.only and row.of ~= values.status then
            return string.format('field "%s%s": only a record with status %s has it', prefix, row.name, row.of)
        end
        local shown = type(value) == "table" and "{…}" or shown_of(value)
        if value ~= nil and not kind[1](value) then
            return string.format('field "%s%s": %s: %s', prefix, row.name, shown, kind[2])
        end
    end
    local unknown = {}
    for name in pairs(values) do
        if not names[name] then unknown[#unknown + 1] = shown_of(name) end
    end
    table.sort(unknown)
    return unknown[1] and string.format('field "%s%s": is unknown', prefix, unknown[1])
end

-- What is wrong with record `r`, in one line; nil: nothing.
local function fault(r)
    if type(r) ~= "table" then return "is no object" end
    if type(r.key) ~= "table" then return 'field "key": must be an object' end
    return problem(key.fields, r.key, {}, "key.") or problem(record.fields, r, { "key", "check" }, "")
end

local function check_of(body) return host.sha256(body):sub(1, 16) end

-- The line of a record: sorted JSON without spaces.
function record.line(r) return assert(json.encode(r, "compact")) end

-- Whether a line is as it was written: its check is the digest of the rest of it. "check" cannot be the last field,
-- "time" follows, and quotes inside texts are escaped.
function record.intact(line)
    local before, check, after = line:match('^(.-)"check":"(%x+)",(.*)$')
    return check ~= nil and #check == 16 and check == check_of(before .. after)
end

-- The record of a line | nil, what is wrong with it.
function record.parse(line)
    if not line:find("^{.*}$") then return nil, "is cut off or no record" end
    if not record.intact(line) then return nil, "does not match its check" end
    local r, message = json.decode(line)
    if not r then return nil, message end
    local found = fault(r)
    if found then return nil, found end
    return r
end

-- A record of `fields`, with its check; numbers as they will be read back. Raises one line for a field that breaks a
-- rule.
function record.make(fields)
    local r = copied(fields)
    r.check = nil
    local found = fault(r)
    if found then error("record: " .. found, 0) end
    r.check = check_of(record.line(r))
    return assert(record.parse(record.line(r)))
end

local longest = 1 << 16 -- bytes of a line that `record.find` looks at

-- All whole records in `bytes`, whatever lies between them: the lines of those that a damaged file still holds.
function record.find(bytes)
    local lines, seen, start = {}, {}, 1
    while true do
        start = bytes:find('{"[bc]a', start) -- "batch" or "candidate", the first in order
        if not start then return lines end
        local _, stop = bytes:sub(start, start + longest):find('"time":%d+}')
        local line = stop and bytes:sub(start, start + stop - 1)
        local r = line and record.parse(line)
        if r and not seen[r.check] then lines[#lines + 1] = line end
        if r then seen[r.check] = true end
        start = r and start + stop or start + 1
    end
end

return record
