-- The family of transformers in the harness; harness/families/list.lua says what its fields mean.
local bench = require "harness.families.model.blocks.bench"
local execute = require "harness.families.model.blocks.execute"

return {
    name = "transformer",
    run = execute.run,
    unsaid = execute.unsaid,
    verify = execute.verify,
    lookup_inputs = execute.lookup_inputs,
    bench = bench.run,
    bench_batches = bench.batches,
    tuning = require "harness.families.model.blocks.tuning",
}
