-- Reads the tokenizer in the metadata of a GGUF file: byte-level BPE ("gpt2"), SentencePiece's BPE ("llama") and
-- WordPiece ("bert"). Whatever the record cannot say is refused.
local ends = require "gen.tokenizer.ends"
local lists = require "gen.tokenizer.word_lists"
local record = require "gen.tokenizer.record"
local sentencepiece = require "gen.tokenizer.sentencepiece"
local splits = require "gen.tokenizer.splits"
local weights = require "weights"

local gguf = {}

local space = "\u{2581}"

-- token_type: of each piece, from 1 on.
local types = { "normal", "unknown", "control", "user defined", "unused", "byte" }

-- What tokenizer.ggml.pre names: the split of byte-level BPE, and what else the models of that name have.
local llama3 = { split = "llama3", whole_words = true, first = true }
local qwen2 = { split = "qwen2", steps = { { op = "nfc" } } }
local each_digit = { patterns = { "\\p{N}", splits.gpt2 } }
local known = {
    ["gpt-2"] = { split = "gpt2" },
    ["phi-2"] = { split = "gpt2" },
    ["llama-bpe"] = llama3,
    ["llama3"] = llama3,
    ["llama-v3"] = llama3,
    ["dbrx"] = { split = "llama3" }, -- of Phi 4, too
    ["qwen2"] = qwen2,
    ["deepseek-r1-qwen"] = qwen2,
    ["smollm"] = each_digit,
    ["starcoder"] = each_digit,
    ["refact"] = each_digit,
    ["command-r"] = each_digit,
}

-- Reads keys of the metadata of the file `path`; each function raises one line for a wrong one.
local function reader(path)
    local metadata, message = weights.metadata(path)
    if not metadata then error(message, 0) end
    local r = { path = path }
    local function full(key) return "tokenizer.ggml." .. key end
    function r.refuse(key, value, rule) record.refuse(path, { full(key) }, value, rule) end
    -- The value of a key, of the type `kind`; `otherwise` if it is absent.
    function r.get(key, kind, otherwise)
        local value = metadata[full(key)]
        if value == nil then
            if otherwise == nil then r.refuse(key, nil, "is missing") end
            return otherwise
        end
        if type(value) ~= kind then r.refuse(key, nil, "must be a " .. kind) end
        return value
    end
    -- A list of as many values as there are pieces, of the type `kind`; nil: it is absent.
    function r.list(key, kind, count)
        local list = r.get(key, "table", false)
        if not list then return nil end
        if count and #list ~= count then r.refuse(key, #list, "must be as many as pieces, " .. count) end
        for i, value in ipairs(list) do
            if type(value) ~= kind then r.refuse(key .. "." .. i - 1, nil, "must be a " .. kind) end
        end
        return list
    end
    -- The id under a key, and whether it is that of one of `count` pieces; nil: there is none.
    function r.id(key, count)
        local id = r.get(key, "number", false)
        if not id then return nil end
        return id, math.type(id) == "integer" and id >= 0 and id < count
    end
    -- The id of a piece under a key, or nil.
    function r.piece(key, count)
        local id, good = r.id(key, count)
        if id and not good then r.refuse(key, id, "is the id of no piece") end
        return id
    end
    -- Whether the architecture or the name of the model, in small letters, has what the pattern `name` finds.
    function r.is_of(name)
        for _, key in ipairs { "general.architecture", "general.name" } do
            local said = metadata[key]
            if type(said) == "string" and said:lower():find(name) then return true end
        end
        return false
    end
    return r
end

-- The pieces, { {text, type} }, where a type is one of the words above.
local function pieces_of(r)
    local texts = r.list("tokens", "string") or r.refuse("tokens", nil, "is missing")
    local kinds, pieces = r.list("token_type", "number", #texts), {}
    for i, text in ipairs(texts) do
        local kind = kinds and kinds[i] or 1
        if not types[kind] then r.refuse("token_type." .. i - 1, kind, "must be an integer from 1 to " .. #types) end
        if not utf8.len(text) then r.refuse("tokens." .. i - 1, nil, "must be UTF-8") end
        pieces[i] = { text = text, type = types[kind] }
    end
    return pieces
end

-- The rows of pieces that are found in text before all else; those that are nothing else become control pieces.
local function take_added(pieces)
    local added = {}
    for i, piece in ipairs(pieces) do
        local matched = piece.type == "normal" or piece.type == "byte"
        if not matched and piece.type ~= "unused" and piece.text ~= "" then
            added[#added + 1] = { id = i - 1, text = piece.text, left = false, right = false }
        end
        if not matched and piece.type ~= "unknown" then piece.type = "control" end
    end
    return added
end

-- White space behind all but some pieces of Phi 3 belongs to them, of which its files say nothing.
local function strip_behind(added)
    local plain = { ["<unk>"] = true, ["<s>"] = true, ["<|endoftext|>"] = true }
    for _, row in ipairs(added) do
        row.right = not plain[row.text]
    end
end

-- The ids that end a text, and what to say of those that are no piece's.
local function take_ends(r, result)
    local said = {}
    result.no_pieces = {}
    for _, role in ipairs(ends.roles) do
        local key = role .. "_token_id"
        local id, good = r.id(key, #result.pieces)
        if good then said[role] = id end
        if id and not good then
            local ignored = "%s: tokenizer.ggml.%s = %s: ignored: is the id of no piece"
            table.insert(result.no_pieces, ignored:format(r.path, key, id))
        end
    end
    result.ends = ends.of(result.pieces, said)
end

-- Ids before and behind a text.
local function add_around(r, result, first)
    for _, row in ipairs { { "first", "bos", first }, { "last", "eos", false } } do
        local key, role, default = table.unpack(row)
        local wanted = r.get("add_" .. role .. "_token", "boolean", default)
        local id = wanted and r.piece(role .. "_token_id", #result.pieces)
        if wanted and not id then r.refuse(role .. "_token_id", nil, "is missing") end
        result[key] = wanted and { id } or {}
    end
    return result
end

local models = {}

function models.gpt2(r)
    local name = r.get("pre", "string")
    local pre = known[name] or r.refuse("pre", name, "is no split that is known here")
    local pieces, ids, merges = pieces_of(r), {}, {}
    for i, piece in ipairs(pieces) do
        ids[piece.text] = ids[piece.text] or i - 1
        if piece.type == "unknown" or piece.type == "byte" then piece.type = "normal" end
    end
    for i, text in ipairs(r.list("merges", "string") or {}) do
        local left, right = text:match "^([^ ]+) ([^ ]+)$"
        merges[i] = left and { left, right } or r.refuse("merges." .. i - 1, text, "must be two pieces")
    end
    local added = take_added(pieces)
    local result = {
        kind = "bpe",
        pieces = pieces,
        spelt = "plain",
        fuse = false,
        byte_fallback = false,
        byte_level = true,
        merges = lists.merges(r.path, merges, ids),
        whole_words = pre.whole_words or false,
        broken = pre.steps and "part" or "keep",
        steps = pre.steps or {},
        split = pre.split,
        added = added,
    }
    if pre.patterns then splits.by_patterns(result, pre.patterns) end
    lists.byte_level(r.path, pieces, added)
    return add_around(r, result, pre.first or false)
end

function models.llama(r)
    local pieces, unknown, fallback = pieces_of(r), nil, false
    local scores = r.list("scores", "number", #pieces) or r.refuse("scores", nil, "is missing")
    for i, piece in ipairs(pieces) do
        piece.score = scores[i]
        if piece.type == "unknown" then unknown = i - 1 end
        if piece.type == "byte" then
            local hex = piece.text:match "^<0x(%x%x)>$"
            if not hex then r.refuse("tokens." .. i - 1, piece.text, "must be a byte such as <0x0A>") end
            piece.text, fallback = string.char(tonumber(hex, 16)), true
        end
    end
    unknown = r.piece("unknown_token_id", #pieces) or unknown
    if not unknown then r.refuse("unknown_token_id", nil, "is missing") end
    pieces[unknown + 1].type = "unknown"
    local added = take_added(pieces)
    if r.is_of "%f[%a]phi[- ]?3%f[%D]" then strip_behind(added) end
    return add_around(r, {
        kind = "bpe",
        pieces = pieces,
        spelt = "spaces",
        unknown = unknown,
        fuse = true,
        byte_fallback = fallback,
        byte_level = false,
        whole_words = false,
        merges = sentencepiece.merges(pieces, r.path),
        broken = "byte",
        steps = {
            {
                op = "spaces",
                wide = false,
                collapse = r.get("remove_extra_whitespaces", "boolean", false),
                prefix = r.get("add_space_prefix", "boolean", true) and "always" or "never",
                once = false,
                to = space,
            },
        },
        split = "none",
        added = added,
    }, true)
end

-- Pieces that begin a word have a ▁ in such files, those inside one nothing. A vocabulary without capital letters is
-- that of a model for lower case.
function models.bert(r)
    local lines, lower = {}, true
    for i, piece in ipairs(pieces_of(r)) do
        local text, starts = piece.text:gsub("^" .. space, "")
        if text:find "[\r\n]" then r.refuse("tokens." .. i - 1, text, "must be one line") end
        local whole = starts == 1 or piece.type ~= "normal" or text:find "^%[.*%]$" or text:find "^##"
        lines[i] = whole and text or "##" .. text
        lower = lower and (starts == 0 or not text:find "%u")
    end
    return lists.wordpiece(r.path, table.concat(lines, "\n"), lower)
end

-- The record of the tokenizer in the file `path`.
function gguf.read(path)
    local r = reader(path)
    local kind = r.get("model", "string")
    local model = models[kind] or r.refuse("model", kind, "must be gpt2, llama or bert")
    local result = model(r)
    take_ends(r, result)
    result.says_all = true
    return record.check(path, result)
end

return gguf
