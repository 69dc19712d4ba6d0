-- The plan of a model that is a tokenizer and nothing else.
local blob = require "gen.plan.blob"
local host = require "host"
local names = require "gen.schema.names"
local read = require "gen.tokenizer.read"
local tokenizer_plan = require "gen.tokenizer.plan"
local validated = require "gen.schema.validated"

local plan = {}

-- The path `path` of the model file, from its folder on.
local function beside(m, path)
    if not path or path:find "^/" then return path end
    return (validated.path(m):match "^(.*/)[^/]*$" or "") .. path
end

-- The record `r` with the ids that end a text where the model file says them.
local function with_ends(m, r)
    for _, id in ipairs(m.tokenizer.ends or {}) do
        if id >= #r.pieces then validated.refuse(m, { "tokenizer", "ends" }, id, "is the id of no piece") end
    end
    r.ends = m.tokenizer.ends or r.ends
    return r
end

-- The facts of model `m`'s tokenizer, the contents of its sections, and the ids that end a text. `facts`: those of an
-- earlier plan, for C without its blob; nil: from the tokenizer's file.
function plan.facts(m, facts)
    if facts then
        tokenizer_plan.check(facts)
        return facts
    end
    local t = m.tokenizer
    local options = setmetatable({ merges = beside(m, t.merges) }, { __index = t })
    local path = beside(m, t.file)
    if path and not host.kind(path) then
        validated.refuse(m, { "tokenizer", "file" }, t.file, "there is no file " .. path)
    end
    return tokenizer_plan.build(with_ends(m, read.record(path, options)))
end

-- The plan of model `m`; `facts` as above.
function plan.build(m, facts)
    local contents
    facts, contents = plan.facts(m, facts)
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
