-- The family of LookupFFNs in integers in the harness; harness/families/list.lua says what its fields mean.
local execute = require "harness.families.integer.execute"
local fewer_tables = require "harness.families.lookup.fewer_tables"
local packed = require "harness.families.lookup.packed"

return {
    name = "integer",
    run = execute.run,
    unsaid = { "score", "projection.decay", "scale", "neighbours", "norm.eps", "integer.input", "integer.fraction" },
    verify = execute.verify,
    bench = execute.bench,
    bench_batches = function() return "1,8,64,512,4096" end,
    firmware = {
        smaller_options = { { tables = "i8", projection = "i8" } },
        smaller_schedules = {},
        fewer = fewer_tables,
        vectors = execute.vectors,
        stand_ins = packed.stand_ins,
    },
}
