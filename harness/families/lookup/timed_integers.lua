-- Times compiled integer kernels in the measuring process (harness/measure/rows.h).
local measure = require "harness.measure.measure"
local setting = require "harness.measure.setting"

-- Microseconds a token and CPU time over wall time of each repetition, of a job of harness/verify/integer.lua: callers
-- at a time, each with `tokens` tokens and scratch of its own; of one CPU time counts, of several wall time.
return function(job, tokens, repetitions, callers)
    local step = { library = "kernels", ["function"] = job.ffn, arguments = { "weights", "x", "y", tokens, "scratch" } }
    local timed = {
        model = "integers",
        seed = 1,
        threads = callers,
        library_threads = 1, -- of each caller
        repetitions = repetitions,
        min_time = setting.min_time(repetitions),
        slices = 0,
        order_seed = 0,
        sweep_bytes = 0,
        memory = {
            { name = "x", bytes = 2 * tokens * job.d, fill = "units" },
            { name = "y", bytes = 4 * tokens * job.d_out, copies = callers },
            { name = "scratch", bytes = job.scratch_bytes, copies = callers },
        },
        libraries = { setting.library("kernels", job) },
        calls = { { name = "ffn", callers = callers, steps = { step } } },
    }
    local samples = measure.run(timed, {})
    local times, shares = samples.ffn[callers > 1 and "wall" or "cpu"], {}
    for i, time in ipairs(times) do
        times[i], shares[i] = time / (tokens * callers), samples.ffn.share[i] / callers
    end
    return times, shares
end
