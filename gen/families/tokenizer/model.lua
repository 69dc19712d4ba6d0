-- The model file of a tokenizer: its keys.
local names = require "gen.model.names"
local schema = require "gen.model.schema"

local tokenizer_model = { title = "A tokenizer" }

local function text_rule(words)
    return { words = words, holds = function(v) return type(v) == "string" and v ~= "" end }
end

local tokenizer_keys = {
    {
        key = "file",
        rule = text_rule "must be a path, from the model file's folder on",
        optional = true,
        doc = "tokenizer.json, vocab.json, vocab.txt or SentencePiece's .model; none: bytes",
    },
    {
        key = "merges",
        rule = text_rule "must be a path, from the model file's folder on",
        optional = true,
        doc = "merges.txt of a vocab.json, if it is not beside it",
    },
    {
        key = "kind",
        rule = schema.choice("unigram", "bpe", "wordpiece", "bytes"),
        optional = true,
        doc = "what the file has to be",
    },
    { key = "lower", rule = schema.boolean, optional = true, doc = "of vocab.txt: text becomes lower case" },
}

tokenizer_model.keys = {
    {
        key = "name",
        rule = {
            words = names.rule,
            type = "string",
            holds = function(v) return type(v) == "string" and names.valid(v) end,
        },
        doc = "prefix of every emitted symbol",
    },
    {
        key = "tokenizer",
        rule = schema.table("file, merges, kind, lower", tokenizer_keys),
        doc = "turns text into ids",
    },
}

-- Raises one line if values that are valid alone do not go together.
function tokenizer_model.check(context, m)
    local t = m.tokenizer
    if not t.file and t.kind ~= "bytes" then
        schema.refuse(context, { "tokenizer", "file" }, nil, 'is missing: only kind = "bytes" has none')
    end
    for _, key in ipairs { "merges", "lower" } do
        if not t.file and t[key] ~= nil then schema.refuse(context, { "tokenizer", key }, t[key], "needs a file") end
    end
    if t.file and t.kind == "bytes" then
        schema.refuse(context, { "tokenizer", "file" }, t.file, 'kind = "bytes" has no file')
    end
end

-- Whether the table of a model file, or a validated model, is a tokenizer.
function tokenizer_model.claims(given) return given.tokenizer ~= nil and given.attention == nil end

return tokenizer_model
