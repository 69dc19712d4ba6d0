-- What the program lookupc-measure does: times the calls of a job beside their baselines.
--
-- Its arguments are the job, a JSON file (harness/measure/prepare.lua and rounds.lua say of what), and where the
-- samples go: { samples = { { name, cpu_us, wall_us } … }, context = facts by name }, complete when the exit status is
-- 0. Times are of one call of a whole batch. Of what runs on several threads wall time counts, and CPU time is that of
-- all threads together; else CPU time counts. vector_bytes of the job: how wide vectors may be in loops of its own;
-- raw: the path of a file that Google Benchmark writes of the repetitions.
local baselines = require "baselines"
local host = require "host"
local json = require "json"
local measure = require "measure"
local prepare = require "harness.measure.prepare"
local process = require "process"
local rounds = require "harness.measure.rounds"

local at_once = 16 -- slices that the library is given

-- The engine of rounds.run: prepared calls through Google Benchmark. calls: by the name of their row; prefix: of names
-- in the raw file.
local function engine_of(prefix, calls)
    local engine = { now = process.clock }
    local text = ""
    function engine.show(shown)
        text = shown
        host.status(shown)
    end
    function engine.slices(list)
        local times = {}
        for first = 1, #list, at_once do
            local few = {}
            for i = first, math.min(first + at_once - 1, #list) do
                local s = list[i]
                local row = s.call
                few[#few + 1] = {
                    call = calls[row.name],
                    name = prefix .. row.name,
                    iterations = s.iterations,
                    threads = row.threads,
                    cold = row.cold,
                    tokens = row.tokens,
                    warm = s.warm,
                    pause = s.pause,
                    repetition = s.repetition,
                }
            end
            if #list > at_once then host.status(string.format("%s %s", text, few[1].name)) end
            local some, failed = measure.slices(few)
            if not some then error(failed .. ": the library reports an error", 0) end
            table.move(some, 1, #some, #times + 1, times)
        end
        return times
    end
    return engine
end

-- The raw file of the job, with the facts of its host that are words or numbers; the library has the date.
local function open_raw(job)
    local facts = {}
    for key, value in pairs(job.host or {}) do
        if type(value) ~= "table" and key ~= "date" then facts[key] = tostring(value) end
    end
    if not measure.raw(job.raw, facts) then error(job.raw .. ": could not be written", 0) end
end

return function(arguments)
    local start = process.clock()
    local job = assert(json.decode(assert(host.read(arguments[1]))))
    baselines.vectors(job.vector_bytes)
    local parts = prepare.run(job)
    local limits, others, cold = {}, {}, false
    for _, row in ipairs(parts.rows) do
        table.insert(row.limit and limits or others, row)
        cold = cold or row.cold
    end
    if cold then measure.sweep(job.sweep_bytes) end
    if job.raw then open_raw(job) end
    local engine, samples, seconds = engine_of(job.model .. "/", parts.calls), {}, 0
    -- first what fills all caches and keeps memory busy
    for _, rows in ipairs { limits, others } do
        local some, taken = rounds.run(setmetatable({ calls = rows }, { __index = job }), engine)
        table.move(some, 1, #some, #samples + 1, samples)
        seconds = seconds + taken
    end
    if job.raw and not measure.finish() then error(job.raw .. ": could not be written", 0) end
    local context = parts.context
    context.timed_seconds, context.whole_seconds = seconds, process.clock() - start
    for key, value in pairs(context) do
        context[key] = tostring(value)
    end
    assert(host.write_file(arguments[2], assert(json.encode { context = context, samples = samples })))
    return 0
end
