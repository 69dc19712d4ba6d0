-- Times compiled integer kernels in the measuring process (harness/measure/rows.h).
local json = require "json"
local measure = require "harness.measure.measure"
local setting = require "harness.measure.setting"

-- Microseconds a token and CPU time over wall time of each repetition, of a job of harness/verify/integer.lua: callers
-- at a time, each with `tokens` tokens and scratch of its own; of one CPU time counts, of several wall time.
return function(job, tokens, repetitions, callers)
    local samples = measure.run({
        model = "integers",
        seed = 1,
        threads = callers,
        library_threads = 1, -- of each caller
        repetitions = repetitions,
        min_time = setting.min_time(repetitions),
        slices = 0,
        draw_order = false,
        order_seed = 0,
        sweep_bytes = 0,
        limits = false,
        memory = {
            { name = "x", bytes = 2 * tokens * job.d, fill = "units" },
            { name = "y", bytes = 4 * tokens * job.d_out, copies = callers },
            { name = "scratch", bytes = job.scratch_bytes, copies = callers },
        },
        libraries = {
            {
                name = "kernels",
                library = job.library,
                blob = job.blob,
                bind = job.bind,
                weights_struct_bytes = job.weights_struct_bytes,
            },
        },
        setup = json.array {},
        calls = {
            {
                name = "ffn",
                callers = callers,
                steps = {
                    {
                        library = "kernels",
                        ["function"] = job.ffn,
                        arguments = { "weights", "x", "y", tokens, "scratch" },
                    },
                },
            },
        },
    }, {})
    local times, shares = samples.ffn[callers > 1 and "wall" or "cpu"], {}
    for i, time in ipairs(times) do
        times[i], shares[i] = time / (tokens * callers), samples.ffn.share[i] / callers
    end
    return times, shares
end
