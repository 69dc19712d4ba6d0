-- The family of whole models in the harness; harness/families/list.lua says what its fields mean.
local embed = require "harness.families.whole.embed"
local execute = require "harness.families.whole.execute"
local generate = require "harness.families.whole.generate"
local perplexity = require "harness.families.whole.perplexity"
local similar = require "harness.families.whole.similar"
local tokenize = require "harness.families.whole.tokenize"

return {
    name = "whole",
    run = execute.run,
    run_option = "ids",
    tokenize = tokenize,
    text = { embed = embed.run, similar = similar.run, generate = generate.run, perplexity = perplexity.run },
}
