-- The command tokenize of a whole model: its tokenizer alone, without weights.
local request = require "gen.bundle.request"
local tokenizer = require "harness.families.tokenizer.family"
local tokenizer_plan = require "gen.families.tokenizer.plan"
local validated = require "gen.model.validated"

return function(path, texts, options)
    local m = request.model(path, options)
    if not m.tokenizer then error(path .. ": tokenizer: is missing: only models that have one take text", 0) end
    local alone = validated.note_part({ name = m.name, tokenizer = m.tokenizer }, m)
    return tokenizer.print_ids(path, tokenizer_plan.build(alone), texts, options)
end
