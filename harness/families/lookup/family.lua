-- The family of LookupFFNs in the harness; harness/families/list.lua says what its fields mean.
local check = require "harness.families.lookup.check"
local execute = require "harness.families.lookup.execute"

local fewer_tables = require "harness.families.lookup.fewer_tables"
local packed = require "harness.families.lookup.packed"

return {
    name = "lookup",
    run = execute.run,
    unsaid = { "score", "projection.decay", "scale", "neighbours", "norm.eps" },
    verify = execute.verify,
    bench = execute.bench,
    bench_batches = function() return "1,8,64,512,4096" end,
    tuning = require "harness.families.lookup.tuning",
    firmware = {
        smaller_options = { { tables = "i8", projection = "f32" }, { tables = "i8", projection = "bf16" } },
        smaller_schedules = { "butterfly.radix=2", "few.accumulators=1", "butterfly.radix=2,few.accumulators=1" },
        fewer = fewer_tables,
        vectors = check.vectors,
        stand_ins = packed.stand_ins,
    },
}
