-- The family of whole models in the harness; harness/families/list.lua says what its fields mean.
local bench = require "harness.families.whole.bench"
local embed = require "harness.families.whole.embed"
local execute = require "harness.families.whole.execute"
local firmware = require "harness.families.whole.firmware"
local lookup_inputs = require "harness.families.whole.lookup_inputs"
local generate = require "harness.families.whole.generate"
local opened = require "harness.families.whole.opened"
local perplexity = require "harness.families.whole.perplexity"
local similar = require "harness.families.whole.similar"
local request = require "gen.bundle.request"
local tokenizer = require "harness.families.tokenizer.family"
local tuning = require "harness.families.whole.tuning"
local verify = require "harness.families.whole.verify"

local function tokenize(path, texts, options)
    local m = request.model(path, options)
    if not m.tokenizer then opened.refuse_text(path, m, "") end
    return tokenizer.tokenize(path, texts, options)
end

return {
    name = "whole",
    bench = bench.run,
    bench_batches = bench.batches,
    tokenize = tokenize,
    run = execute.run,
    unsaid = execute.unsaid,
    run_option = "ids",
    lookup_inputs = lookup_inputs,
    text = { embed = embed.run, similar = similar.run, generate = generate.run, perplexity = perplexity.run },
    verify = verify.run,
    firmware = firmware,
    tuning = tuning,
}
