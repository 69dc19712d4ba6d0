-- The family of LookupFFNs in the harness; harness/families/list.lua says what its fields mean.
local execute = require "harness.families.lookup.execute"

return {
    name = "lookup",
    run = execute.run,
    not_in_checkpoints = {
        "score",
        "projection.decay",
        "scale",
        "neighbours",
        "norm.eps",
        "integer.input",
        "integer.fraction",
    },
    verify = execute.verify,
    bench = execute.bench,
    bench_batches = function() return "1,8,64,512,4096" end,
    tuning = require "harness.families.lookup.tuning",
    firmware = require "harness.families.lookup.firmware",
}
