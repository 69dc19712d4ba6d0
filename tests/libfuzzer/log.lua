-- A log of measurements: lines that are no records are dropped with a reason, and records are read as they were
-- written, merged and summarised.
local host = require "host"
local json = require "json"
local key = require "harness.tune.key"
local log = require "harness.tune.log"
local record = require "harness.tune.record"
local rules = require "tests.libfuzzer.rules"
local store = require "harness.tune.store"
local summary = require "harness.tune.summary"

local records_store

-- The records that the lines of `text` would be if their checks were right.
local function with_checks(text)
    local list = {}
    for line in text:gmatch "[^\n]+" do
        local fields = json.decode(line)
        if type(fields) == "table" then
            local good, r = pcall(record.make, fields)
            if not good and (type(r) ~= "string" or not r:find "^record: " and not r:find "^JSON: ") then
                error("internal error: " .. tostring(r), 0)
            end
            if good then list[#list + 1] = r end
        end
    end
    return list
end

-- What the commands do with records.
local function use(records)
    records_store:merge(records)
    for _, row in ipairs(records_store:keys()) do
        local list = records_store:records(row.id)
        summary.cases(list)
        summary.rejected(list)
        summary.model(list)
        if key.compare(row.key, row.key) ~= 1 then error("a key is not as near to itself as can be", 0) end
        store.say(records_store:look_up(row.key))
    end
    records_store:prune_older(math.maxinteger)
end

return function(path)
    records_store = records_store or store.open(path:match "^.*/" .. "store.sqlite")
    local records, dropped = rules.try(path, log.read, path)
    if records then
        for _, r in ipairs(records) do
            rules.same("record", record.parse(record.line(r)), r)
        end
        local problem = log.problem(path, dropped)
        if (problem == nil) ~= (#dropped == 0) then error("dropped lines are not mentioned", 0) end
        use(records)
    end
    local list = with_checks(assert(host.read(path)))
    for _, r in ipairs(list) do
        if not record.intact(record.line(r)) then error("a record's line does not match its check", 0) end
    end
    use(list)
end
