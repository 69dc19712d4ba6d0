-- The model file of a tokenizer: its keys.
local names = require "gen.schema.names"
local schema = require "gen.schema.schema"

local tokenizer_model = { title = "A tokenizer" }

local piece_rule = {
    words = "must be a piece, without spaces",
    type = "string",
    holds = function(v) return type(v) == "string" and v ~= "" and not v:find "%s" and utf8.len(v) ~= nil end,
}

local pieces_rule = {
    words = "must be pieces with a space between them",
    type = "string",
    holds = function(v)
        return type(v) == "string" and v:find "[^ ]" ~= nil and not v:find "[%c]" and utf8.len(v) ~= nil
    end,
}

local ids_rule = {
    words = "must be a list of ids",
    holds = function(v)
        if type(v) ~= "table" then return false end
        for key, id in pairs(v) do
            if math.type(key) ~= "integer" or key > #v or math.type(id) ~= "integer" or id < 0 then return false end
        end
        return true
    end,
}

local function text_rule(words)
    return { words = words, holds = function(v) return type(v) == "string" and v ~= "" end }
end

local tokenizer_keys = {
    {
        key = "file",
        rule = text_rule "must be a path, from the model file's folder on",
        optional = true,
        doc = "tokenizer.json, vocab.json, vocab.txt, SentencePiece's .model or a GGUF file; none: bytes",
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
    { key = "first", rule = piece_rule, optional = true, doc = "piece before every text" },
    { key = "last", rule = piece_rule, optional = true, doc = "piece behind every text" },
    {
        key = "added",
        rule = pieces_rule,
        optional = true,
        doc = "pieces that are found in text before all else; those that the file lacks get the next ids",
    },
    { key = "mask", rule = piece_rule, optional = true, doc = "one more, which takes the white space before it" },
    { key = "ends", rule = ids_rule, optional = true, doc = "ids that end a text; {}: none does" },
    {
        key = "ids",
        rule = schema.choice "fairseq",
        optional = true,
        doc = "of a .model: ids in fairseq's order, <s>, <pad>, </s>, <unk>, then the others",
    },
    {
        key = "space",
        rule = schema.choice "first",
        optional = true,
        doc = "of a .model that puts a space before texts: only at the start, not behind added pieces",
    },
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
        rule = schema.table("file, merges, kind, lower, first, last, added, mask, ends, ids, space", tokenizer_keys),
        doc = "turns text into ids",
    },
}

-- Raises one line if values that are valid alone do not go together.
function tokenizer_model.check(context, m)
    local t = m.tokenizer
    if not t.file and t.kind ~= "bytes" then
        schema.refuse(context, { "tokenizer", "file" }, nil, 'is missing: only kind = "bytes" has none')
    end
    for _, row in ipairs(tokenizer_keys) do
        local key = row.key
        if not t.file and t[key] ~= nil and key ~= "kind" and key ~= "ends" then
            schema.refuse(context, { "tokenizer", key }, t[key], "needs a file")
        end
    end
    if t.file and t.kind == "bytes" then
        schema.refuse(context, { "tokenizer", "file" }, t.file, 'kind = "bytes" has no file')
    end
end

tokenizer_model.marks = { "tokenizer" }

-- Whether the table of a model file, or a validated model, is a tokenizer.
function tokenizer_model.claims(given) return given.tokenizer ~= nil and given.attention == nil end

return tokenizer_model
