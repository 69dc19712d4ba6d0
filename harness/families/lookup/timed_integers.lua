-- Times compiled integer kernels in the measuring process (harness/measure/prepare.lua).
local measure = require "harness.measure.measure"
local setting = require "harness.measure.setting"

-- Microseconds a token and CPU time over wall time of each repetition, of a job of harness/verify/integer.lua of the
-- model `name`: options.callers at a time, each with `tokens` tokens and scratch of its own; of one CPU time counts, of
-- several wall time.
return function(name, job, tokens, options)
    local step = { library = "kernels", ["function"] = job.ffn, arguments = { "weights", "x", "y", tokens, "scratch" } }
    local call, callers = "ffn/" .. tokens, options.callers
    local timed = {
        model = name,
        seed = 1,
        threads = callers,
        library_threads = 1, -- of each caller
        repetitions = options.repetitions,
        memory = {
            { name = "x", bytes = 2 * tokens * job.d, fill = "units" },
            { name = "y", bytes = 4 * tokens * job.d_out, copies = callers },
            { name = "scratch", bytes = job.scratch_bytes, copies = callers },
        },
        libraries = { setting.library("kernels", job) },
        calls = { { name = call, tokens = tokens, callers = callers, steps = { step } } },
    }
    local samples = measure.run(timed, { raw = options.raw_file, device = options.device })
    local times, shares = samples[call][callers > 1 and "wall" or "cpu"], {}
    for i, time in ipairs(times) do
        times[i], shares[i] = time / (tokens * callers), samples[call].share[i] / callers
    end
    return times, shares
end
