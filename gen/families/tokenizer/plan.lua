-- The plan of a model that is a tokenizer and nothing else.
local blob = require "gen.plan.blob"
local names = require "gen.model.names"
local read = require "gen.tokenizer.read"
local tokenizer_plan = require "gen.tokenizer.plan"
local validated = require "gen.model.validated"

local plan = {}

-- The path `path` of the model file, from its folder on.
local function beside(m, path)
    if not path or path:find "^/" then return path end
    return (validated.path(m):match "^(.*/)[^/]*$" or "") .. path
end

-- The plan of model `m`. `facts`: those of an earlier plan, for C without its blob; nil: from the tokenizer's file.
function plan.build(m, facts)
    local t, contents = m.tokenizer, nil
    if facts then
        tokenizer_plan.check(facts)
    else
        local record = read.record(beside(m, t.file), { kind = t.kind, merges = beside(m, t.merges), lower = t.lower })
        facts, contents = tokenizer_plan.build(record)
    end
    local p = {
        family = "tokenizer",
        model = m,
        shape = { kind = "tokenizer" },
        names = names.public(m.name),
        facts = facts,
        sections = tokenizer_plan.sections(facts, contents),
        variants = {},
        options = { facts = facts },
        tensors = {},
        scratch_bytes = 0,
        digest = facts.digest,
    }
    p.packed_bytes = blob.place(p.sections)
    p.weights_struct_bytes = 8 * #p.sections
    return p
end

return plan
