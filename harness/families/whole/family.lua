-- The family of whole models in the harness; harness/families/list.lua says what its fields mean.
local execute = require "harness.families.whole.execute"
local request = require "gen.bundle.request"
local tokenizer = require "harness.families.tokenizer.family"
local verify = require "harness.families.whole.verify"
local function tokenize(path, texts, options)
    if not request.model(path, options).tokenizer then
        error(path .. ": tokenizer: is missing: only models that have one take text", 0)
    end
    return tokenizer.tokenize(path, texts, options)
end

local function refused(path) error(path .. ": is a whole model, which lookupc does not time", 0) end

return {
    name = "whole",
    bench = refused,
    bench_batches = function() return "1" end,
    tokenize = tokenize,
    run = execute.run,
    run_option = "ids",
    verify = verify.run,
}
