-- A whole model as the commands for text want it: compiled, bound, and checked for what the command needs.
local compiled_model = require "harness.calls.compiled_model"
local execute = require "harness.families.model.execute"

local text_model = {}

local function refuse(path, key, rule) error(string.format("%s: %s: %s", path, key, rule), 0) end

-- One row a kind of model that commands want: which key another one has, and the rule.
local kinds = {
    vectors = {
        {
            holds = function(p) return not p.causal end,
            key = "attention.causal = true",
            rule = "is a decoder: vectors of texts come from an encoder with output.pool",
        },
        {
            holds = function(p) return p.output.pool end,
            key = "output.pool",
            rule = 'is missing: a text has one vector where its tokens are pooled, such as output = { pool = "mean" }',
        },
    },
    next_token = {
        {
            holds = function(p) return p.causal end,
            key = "attention.causal = false",
            rule = "is an encoder, whose tokens see each other: only a decoder predicts the next one",
        },
        {
            holds = function(p) return p.model.output and p.model.output.head end,
            key = "output.head",
            rule = "is missing: the next token is predicted by the logits of a head",
        },
    },
}

-- Raises one line: the model `m` of the file `path` has no tokenizer. `more`: a further remark.
function text_model.refuse_text(path, m, more)
    local how = 'such as tokenizer = { file = "tokenizer.json" } or --tokenizer FILE'
    if m.checkpoint == "use" then
        how = "and ./build.sh models makes build/models/sentence_encoder.lua with it; --tokenizer FILE names one"
    end
    refuse(path, "tokenizer", "is missing: text needs one, " .. how .. more)
end

-- The model of the file `path` and its plan. `kind`: "vectors" or "next_token"; `takes`: "text" or "ids". Raises one
-- line for a model of another kind, or without the tokenizer that text needs.
function text_model.open(path, options, kind, takes)
    local p = execute.plan(path, options)
    for _, row in ipairs(kinds[kind]) do
        if not row.holds(p) then refuse(path, row.key, row.rule) end
    end
    if takes == "text" and not p.facts then
        text_model.refuse_text(path, p.model, kind == "next_token" and "; --ids takes ids" or "")
    end
    return compiled_model.of(p, options), p
end

-- Whether `ids` end with the list `last`.
local function ends_with(ids, last)
    for i, id in ipairs(last) do
        if ids[#ids - #last + i] ~= id then return false end
    end
    return #ids >= #last
end

-- The ids of `text`, which `where` names in messages. `open_end`: without those that the tokenizer puts behind a text.
function text_model.ids(model, p, text, where, open_end)
    local ids, message = model:ids(text)
    if not ids then error(where .. ": " .. message, 0) end
    if open_end and ends_with(ids, p.facts.last) then
        for _ = 1, #p.facts.last do
            ids[#ids] = nil
        end
    end
    return ids
end

-- The first ids that the context holds, and those that the tokenizer puts behind every text.
function text_model.truncated(p, ids)
    if #ids <= p.context then return ids end
    local last = ends_with(ids, p.facts.last) and p.facts.last or {}
    local list = table.move(ids, 1, math.max(p.context - #last, 0), 1, {})
    table.move(last, math.max(#last - p.context, 0) + 1, #last, #list + 1, list)
    return list
end

return text_model
