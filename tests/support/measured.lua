-- In place of harness/measure/measure.lua in the checkout of a test (program.quiet_tree): times without measuring, the
-- same on every machine. In each job the default, which is there twice, takes 10 µs a token and other candidates 9.
--
-- The environment may say: LOOKUPC_TEST_DEFAULT_US, another time of the default; LOOKUPC_TEST_LOAD, factors by which
-- other work slows the samples down, one after the other; LOOKUPC_TEST_RECORDS, after how many records of a log, or
-- that go into the store one by one, the process kills itself, or with LOOKUPC_TEST_WAITS waits for being killed.
local log = require "harness.tune.log"
local process = require "process"
local store = require "harness.tune.store"

local measure = {}

function measure.program() end

local load, turn = {}, 0
for factor in (process.variable "LOOKUPC_TEST_LOAD" or "1"):gmatch "%S+" do
    load[#load + 1] = tonumber(factor)
end

-- Samples of `us` µs by a clock with a resolution of a thousandth.
local function samples(us, count)
    local sample = { cpu = {}, wall = {}, share = {} }
    for i = 1, count do
        turn = turn + 1
        local time = us * (1 + 0.001 * (i % 3)) * load[turn % #load + 1]
        sample.cpu[i], sample.wall[i], sample.share[i] = time, time, 1
    end
    return sample
end

-- The time a token of each runner of a job.
local function times_of(runners)
    local libraries, times = {}, {}
    for _, runner in ipairs(runners) do
        libraries[runner.library] = (libraries[runner.library] or 0) + 1
    end
    for i, runner in ipairs(runners) do
        local default_us = tonumber(process.variable "LOOKUPC_TEST_DEFAULT_US" or "10")
        times[i] = libraries[runner.library] > 1 and default_us or 9
    end
    return times
end

function measure.run(job)
    local found, times = {}, times_of(job.libraries)
    for _, call in ipairs(job.calls) do
        local runner = call.name:match "^ffn/r(%d+)/"
        local turns = call.turns or 1
        local count = (job.repetitions - (call.turn or 0) - 1) // turns + 1
        found[call.name] = samples(call.tokens * (runner and times[tonumber(runner)] or 20), count)
    end
    return found, { timed_seconds = 0.001, whole_seconds = 0.001 }
end

local append, merge, most = log.append, store.merge, math.tointeger(tonumber(process.variable "LOOKUPC_TEST_RECORDS"))
local kept = 0
local function count()
    kept = kept + 1
    if kept ~= most then return end
    if process.variable "LOOKUPC_TEST_WAITS" then process.run { "sleep", "600" } end
    process.run { "kill", "-KILL", tostring(process.id()) }
end

function log.append(...)
    append(...)
    count()
end

function store.merge(opened, records)
    local added, keys = merge(opened, records)
    if #records == 1 then count() end
    return added, keys
end

return measure
