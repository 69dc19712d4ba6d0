-- Jobs of the measuring process (harness/measure/rows.h): what all of them say, and their rows of libraries.
local json = require "json"
local setting = require "harness.measure.setting"

local job = {}

-- A job with the fields `own`, at least model, seed and repetitions. The others are as usual: one thread, an order that
-- is drawn anew in each repetition.
function job.of(own)
    local made = {
        threads = 1,
        min_time = setting.min_time(own.repetitions),
        slices = 0,
        draw_order = true,
        order_seed = own.seed,
        sweep_bytes = 0,
        limits = false,
        memory = {},
        libraries = {},
        setup = json.array {},
        calls = json.array {},
    }
    for key, value in pairs(own) do
        made[key] = value
    end
    return made
end

-- The row `name` of a compiled library: `of` has its path, the blob that `bind` binds, and the bytes of the weights.
function job.library(name, of)
    return {
        name = name,
        library = of.library,
        blob = of.blob,
        bind = of.bind,
        weights_struct_bytes = of.weights_struct_bytes,
    }
end

return job
