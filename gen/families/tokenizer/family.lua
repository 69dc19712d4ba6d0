-- The family of tokenizers; gen/families/list.lua says what its fields mean.
local figures = require "gen.plan.figures"
local lazy = require "gen.host.lazy"

local plan = lazy "gen.families.tokenizer.plan"
local print_tokenizer = lazy "gen.tokenizer.print"

local family = {
    name = "tokenizer",
    noun = "tokenizer",
    model = require "gen.families.tokenizer.model",
    options = { "facts" }, -- no command has it: a manifest records it, so that C can be checked without the file
    types = {},
    wrapper = "tokenizer",
    input = "char",
    output = "int32_t",
    without_weights = true,
}

function family.build(m, _, options) return plan.build(m, options.facts) end

function family.isa_types() return {} end

function family.sizes(p)
    local scratch = p.names.macro "TOKENIZE_SCRATCH"
    return {
        { "pieces", "of the tokenizer: its ids are 0 to this less 1" },
        { "tokenize_scratch", "enough scratch for a text without bytes", value = scratch .. "(0)" },
        {
            "tokenize_scratch_more",
            "and for each byte so much more",
            value = scratch .. "(1) - " .. scratch .. "(0)",
        },
    }
end

family.print = {
    -- The templates of the model's own files, and what they read beside the plan.
    api = function(p)
        local values = print_tokenizer.values(p.facts)
        values.header, values.source, values.prototypes =
            "templates/tokenizer/model.h", "templates/tokenizer/model.c", "templates/bundle/constants.h"
        values.constants, values.openmp, values.register_barriers = {}, false, false
        values.statuses, values.returns_text = print_tokenizer.statuses, "the functions return"
        return values
    end,
    files = function() return {} end,
}

-- The passes of normalisation in words.
local function passes_of(facts)
    local list = {}
    for i, pass in ipairs(facts.passes) do
        list[i] = pass.kind
    end
    return #list > 0 and table.concat(list, ", ") or "none"
end

function family.describe(m, make)
    local p, lines = make(), {}
    local facts = p.facts
    local function add(name, text) lines[#lines + 1] = string.format("%-18s %s", name, text) end
    add(m.name, string.format("tokenizer, %s, %d pieces, %d of them added", facts.kind, facts.pieces, facts.added))
    add("passes over text", passes_of(facts))
    add("split into words", facts.split)
    add("before, behind", #facts.first .. ", " .. #facts.last .. " ids")
    add("packed tables", figures.bytes(p.packed_bytes))
    add("scratch", string.format("at most %d bytes a byte of text, and %d", facts.scratch.factor, facts.scratch.more))
    return lines
end

function family.summary(m, make)
    local p = make()
    return { model = m, digest = p.digest, packed_bytes = p.packed_bytes, tokenizer = p.facts }
end

function family.packed_text(p) return p.facts.pieces .. " pieces" end

return family
