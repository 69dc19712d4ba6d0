-- The records of blocks alone and of whole models in the harness; harness/families/list.lua says what their fields
-- mean.
local bench = require "harness.families.model.bench"
local embed = require "harness.families.model.embed"
local execute = require "harness.families.model.execute"
local firmware = require "harness.families.model.firmware"
local lookup_inputs = require "harness.families.model.lookup_inputs"
local generate = require "harness.families.model.generate"
local text_model = require "harness.families.model.text_model"
local perplexity = require "harness.families.model.perplexity"
local similar = require "harness.families.model.similar"
local request = require "gen.request.request"
local tokenizer = require "harness.families.tokenizer.family"
local tuning = require "harness.families.model.tuning"
local verify = require "harness.families.model.verify"

local function tokenize(path, texts, options)
    local m = request.model(path, options)
    if not m.tokenizer then text_model.refuse_text(path, m, "") end
    return tokenizer.tokenize(path, texts, options)
end

return {
    transformer = {
        name = "transformer",
        bench = bench.run,
        bench_batches = bench.batches,
        run = execute.run_blocks,
        not_in_checkpoints = execute.not_in_checkpoints_of_blocks,
        lookup_inputs = lookup_inputs,
        verify = verify.run,
        tuning = tuning.blocks,
    },
    whole = {
        name = "whole",
        bench = bench.run,
        bench_batches = bench.batches,
        tokenize = tokenize,
        run = execute.run,
        not_in_checkpoints = execute.not_in_checkpoints,
        run_option = "ids",
        lookup_inputs = lookup_inputs,
        text = { embed = embed.run, similar = similar.run, generate = generate.run, perplexity = perplexity.run },
        verify = verify.run,
        firmware = firmware,
        tuning = tuning.whole,
    },
}
