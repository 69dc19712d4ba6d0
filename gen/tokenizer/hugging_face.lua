-- Reads tokenizer.json of Hugging Face: Unigram, BPE (byte-level, or with byte fallback) and WordPiece. Whatever the
-- record cannot say is refused.
local expression = require "gen.tokenizer.expression"
local json = require "json"
local lists = require "gen.tokenizer.word_lists"
local record = require "gen.tokenizer.record"
local sentencepiece = require "gen.tokenizer.sentencepiece"
local splits = require "gen.tokenizer.splits"
local tables = require "gen.tokenizer.unicode_tables"
local untouched = require "gen.tokenizer.untouched"

local hugging_face = {}

local space = "\u{2581}"

-- The split patterns that have a name in the record, as files write them.
local before = "(?i:" .. splits.contractions .. ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
local behind = "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
local patterns = {
    [splits.gpt2] = "gpt2",
    [before .. "\\p{N}{1,3}" .. behind] = "llama3",
    [before .. "\\p{N}" .. behind] = "qwen2",
}

local function there(value) return value ~= nil and value ~= json.null end

-- Reads the object `object` at `chain` of the file `path`: each key once, through the functions below; `done` refuses
-- keys that nobody asked for.
local function reader(path, object, chain)
    local asked = {}
    local r = { path = path, chain = chain }
    function r.at(key)
        local here = table.move(chain, 1, #chain, 1, {})
        here[#here + 1] = key
        return here
    end
    function r.refuse(key, value, rule)
        if value == json.null then value = nil end
        record.refuse(path, r.at(key), value, rule)
    end
    if type(object) ~= "table" then record.refuse(path, chain, nil, "must be an object") end
    -- The value of a key, of the type `kind`; `otherwise` if it is absent or null.
    function r.get(key, kind, otherwise)
        asked[key] = true
        local value = object[key]
        if not there(value) then
            if otherwise == nil then r.refuse(key, nil, "is missing") end
            return otherwise
        end
        if type(value) ~= kind then r.refuse(key, value, "must be a " .. kind) end
        return value
    end
    function r.optional(key, kind)
        asked[key] = true
        return there(object[key]) and r.get(key, kind) or nil
    end
    -- Refuses a key unless it is absent, null, or one of the values given.
    function r.only(key, ...)
        asked[key] = true
        local value = object[key]
        if not there(value) then return end
        for _, good in ipairs { ... } do
            if value == good then return end
        end
        r.refuse(key, value, "is not supported")
    end
    function r.skip(...)
        for _, key in ipairs { ... } do
            asked[key] = true
        end
    end
    function r.inner(key) return reader(path, r.get(key, "table"), r.at(key)) end
    function r.done()
        local keys = {}
        for key in pairs(object) do
            keys[#keys + 1] = tostring(key)
        end
        table.sort(keys)
        for _, key in ipairs(keys) do
            if not asked[key] then r.refuse(key, object[key], "is not supported") end
        end
    end
    return r
end

-- The text of a pattern { String } or { Regex }, and which it is.
local function pattern_of(r)
    local pattern = r.inner "pattern"
    local text, regex = pattern.optional("String", "string"), pattern.optional("Regex", "string")
    pattern.done()
    if not text and not regex then r.refuse("pattern", nil, "must have String or Regex") end
    return text or regex, text and "text" or "regex"
end

local base64_value = {}
for i = 0, 63 do
    base64_value[("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):byte(i + 1)] = i
end

-- The bytes that a base64 text stands for, nil: it is none.
local function base64(text)
    local clean, parts = text:gsub("=+$", ""), {}
    if clean:find "[^%w+/]" or #clean % 4 == 1 then return nil end
    for at = 1, #clean, 4 do
        local a, b, c, d = clean:byte(at, at + 3)
        local word = base64_value[a] << 18 | base64_value[b] << 12
        word = word | (c and base64_value[c] << 6 or 0) | (d and base64_value[d] or 0)
        parts[#parts + 1] = string.pack(">I3", word):sub(1, d and 3 or c and 2 or 1)
    end
    return table.concat(parts)
end

-- Adds an object by the function of its type among `known`; `noun`: what they are.
local function add_by_type(known, noun, path, object, chain, to)
    local r = reader(path, object, chain)
    local kind = r.get("type", "string")
    if not known[kind] then r.refuse("type", kind, "is no " .. noun .. " that is supported") end
    known[kind](r, to)
    r.done()
end

local normalizers = {}

local function add_normalizer(...) add_by_type(normalizers, "normalizer", ...) end

function normalizers.Sequence(r, steps)
    for i, object in ipairs(r.get("normalizers", "table")) do
        add_normalizer(r.path, object, r.at("normalizers." .. i - 1), steps)
    end
end

for _, form in ipairs { "NFC", "NFD", "NFKC", "NFKD" } do
    normalizers[form] = function(_, steps) steps[#steps + 1] = { op = form:lower() } end
end

function normalizers.Lowercase(_, steps) steps[#steps + 1] = { op = "lower" } end

function normalizers.StripAccents(_, steps)
    steps[#steps + 1] = { op = "classes", drop = tables.any_mark, blank = 0, pad = 0 }
end

function normalizers.Strip(r, steps)
    local left, right = r.get("strip_left", "boolean", true), r.get("strip_right", "boolean", true)
    steps[#steps + 1] = { op = "strip", left = left, right = right }
end

function normalizers.Prepend(r, steps)
    steps[#steps + 1] = { op = "prepend", text = r.get("prepend", "string"), unless = false }
end

function normalizers.Replace(r, steps)
    local text, kind = pattern_of(r)
    local to = r.get("content", "string")
    if kind == "text" then
        if text == "" then r.refuse("pattern", text, "is empty") end
        steps[#steps + 1] = { op = "replace", pairs = { { text, to } } }
    elseif text == " {2,}" then
        steps[#steps + 1] = { op = "runs", to = to }
    else
        r.refuse("pattern", text, "is no regular expression that is supported")
    end
end

function normalizers.Precompiled(r, steps)
    local text = r.get("precompiled_charsmap", "string", "")
    if text == "" then return end
    local bytes = base64(text)
    steps[#steps + 1] = bytes and sentencepiece.charsmap(bytes) or r.refuse("precompiled_charsmap", nil, "is damaged")
end

function normalizers.BertNormalizer(r, steps)
    local clean, cjk = r.get("clean_text", "boolean", true), r.get("handle_chinese_chars", "boolean", true)
    local lower = r.get("lowercase", "boolean", true)
    local strip = r.get("strip_accents", "boolean", lower)
    for _, step in ipairs(lists.bert_steps(clean, cjk, strip, lower)) do
        steps[#steps + 1] = step
    end
end

-- What a pre-tokenizer adds to the record: splits, steps behind those of the normalizer, bytes as symbols.
local pre_tokenizers = {}

local function add_pre_tokenizer(...) add_by_type(pre_tokenizers, "pre-tokenizer", ...) end

-- Adds what a pre-tokenizer splits by, { {pattern, behavior, invert} }; `name`: that of all of it in the record, if
-- there is one; `text`: patterns are texts. Behind ByteLevel they see the characters that stand for bytes.
local function add_splits(r, found, name, rows, text)
    found.name, found.times = not found.byte_level and name or nil, found.times + 1
    for _, row in ipairs(rows) do
        local pattern = row[1]
        local function refuse(rule) r.refuse("pattern", pattern, rule) end
        found.splits[#found.splits + 1] = {
            tree = text and expression.text(pattern) or expression.read(pattern, refuse),
            behavior = row[2],
            invert = row[3] or false,
            bytes = found.byte_level,
            refuse = refuse,
        }
    end
end

function pre_tokenizers.Sequence(r, found)
    local list = r.get("pretokenizers", "table")
    local first, second = list[1], list[2]
    -- White space splits, and each word gets a ▁.
    if
        #list == 2
        and type(first) == "table"
        and type(second) == "table"
        and first.type == "WhitespaceSplit"
        and second.type == "Metaspace"
    then
        found.wide = true
        add_pre_tokenizer(r.path, second, r.at "pretokenizers.1", found)
        return
    end
    for i, object in ipairs(list) do
        add_pre_tokenizer(r.path, object, r.at("pretokenizers." .. i - 1), found)
    end
end

-- Reads the behaviour of a split, `otherwise` if it is absent.
local function behavior_of(r, otherwise)
    local behavior = r.get("behavior", "string", otherwise)
    if not splits.behaviors[behavior] then r.refuse("behavior", behavior, "is not supported") end
    return behavior
end

-- Matches of the patterns that have a name are all of a text, side by side. Nothing lies between them, so that each is
-- a word whichever of the others it is merged with, also where what lies between matches counts as the matches.
function pre_tokenizers.Split(r, found)
    local text, kind = pattern_of(r)
    local behavior, invert = behavior_of(r), r.get("invert", "boolean", false)
    local name = kind == "regex" and patterns[text] or nil
    if text == "" or #text > record.longest_piece then
        r.refuse("pattern", text, "must have 1 to " .. record.longest_piece .. " bytes")
    end
    if name and behavior == "Contiguous" then return end -- joins matches side by side
    if name and behavior == "Removed" and not invert then
        r.refuse("behavior", behavior, "leaves nothing of any text by this pattern, unless invert is true")
    end
    add_splits(r, found, name, { { text, behavior, invert } }, kind == "text")
end

function pre_tokenizers.ByteLevel(r, found)
    if found.byte_level then r.refuse("type", nil, "a second ByteLevel is not supported") end
    if r.get("add_prefix_space", "boolean", true) then
        if found.times > 0 then r.refuse("add_prefix_space", true, "is not supported behind a split") end
        found.steps[#found.steps + 1] = { op = "prepend", text = " ", unless = true }
    end
    r.skip "trim_offsets"
    if r.get("use_regex", "boolean", true) then add_splits(r, found, "gpt2", { { splits.gpt2, "Isolated" } }) end
    found.byte_level = true
end

local white_space = { "\\s", "Removed" }

local function punctuation(behavior) return { "[\\p{P}!-/:-@\\[-`{-~]", behavior } end

function pre_tokenizers.BertPreTokenizer(r, found)
    add_splits(r, found, "bert", { white_space, punctuation "Isolated" })
end

function pre_tokenizers.WhitespaceSplit(r, found) add_splits(r, found, "whitespace", { white_space }) end

-- Words have the characters that join others, too.
function pre_tokenizers.Whitespace(r, found)
    add_splits(r, found, nil, { { "[\\w\\u200c\\u200d]+|[^\\w\\u200c\\u200d\\s]+", "Removed", true } })
end

function pre_tokenizers.Digits(r, found)
    local each = r.get("individual_digits", "boolean", false)
    add_splits(r, found, nil, { { "\\p{N}", each and "Isolated" or "Contiguous" } })
end

function pre_tokenizers.Punctuation(r, found)
    add_splits(r, found, nil, { punctuation(behavior_of(r, "Isolated")) })
end

function pre_tokenizers.Metaspace(r, found)
    r.only("replacement", space)
    if found.times > 0 or found.spaces or found.byte_level then
        r.refuse("type", nil, "behind another pre-tokenizer is not supported")
    end
    found.spaces = true
    local scheme = r.optional("prepend_scheme", "string")
    local prefix = r.get("add_prefix_space", "boolean", true)
    r.skip "str_rep"
    scheme = scheme or (prefix and "always" or "never")
    if scheme ~= "always" and scheme ~= "first" and scheme ~= "never" then
        r.refuse("prepend_scheme", scheme, 'must be "always", "first" or "never"')
    end
    if found.wide and scheme ~= "always" then
        r.refuse("prepend_scheme", scheme, 'must be "always" behind WhitespaceSplit')
    end
    found.steps[#found.steps + 1] = {
        op = "spaces",
        wide = found.wide or false,
        collapse = found.wide or false,
        prefix = scheme,
        once = true,
        to = space,
    }
    if r.get("split", "boolean", true) then
        add_splits(r, found, "meta", { { space, "MergedWithNext" } }, true)
    end
end

-- The ids that a post-processor puts before and behind a text.
local function post_process(path, object, chain, result)
    local r = reader(path, object, chain)
    local kind = r.get("type", "string")
    local function pair_id(key)
        local pair = r.get(key, "table")
        if math.type(pair[2]) ~= "integer" then r.refuse(key, nil, "must be a list of a piece and its id") end
        return pair[2]
    end
    if kind == "ByteLevel" then
        r.skip("add_prefix_space", "trim_offsets", "use_regex")
    elseif kind == "BertProcessing" or kind == "RobertaProcessing" then
        r.skip("trim_offsets", "add_prefix_space")
        result.first, result.last = { pair_id "cls" }, { pair_id "sep" }
    elseif kind == "TemplateProcessing" then
        r.skip "pair"
        local special, behind = r.get("special_tokens", "table"), false
        for i, item in ipairs(r.get("single", "table")) do
            local where = "single." .. i - 1
            local name = type(item) == "table" and type(item.SpecialToken) == "table" and item.SpecialToken.id
            if type(item) == "table" and item.Sequence then
                if behind then r.refuse(where, nil, "is a second text") end
                behind = true
            elseif name and type(special[name]) == "table" and type(special[name].ids) == "table" then
                local list = behind and result.last or result.first
                for _, id in ipairs(special[name].ids) do
                    list[#list + 1] = id
                end
            else
                r.refuse(where, nil, "must be Sequence, or SpecialToken of special_tokens")
            end
        end
        if not behind then r.refuse("single", nil, "has no Sequence") end
    elseif kind == "Sequence" then
        for i, inner in ipairs(r.get("processors", "table")) do
            post_process(path, inner, r.at("processors." .. i - 1), result)
        end
    else
        r.refuse("type", kind, "is no post-processor that is supported")
    end
    r.done()
end

-- The added pieces, { {id, text, left, right, single, later} }; `steps`: the normalizer's.
local function added_of(root, steps)
    local added = {}
    for i, object in ipairs(root.get("added_tokens", "table", {})) do
        local r = reader(root.path, object, root.at("added_tokens." .. i - 1))
        local row = { id = r.get("id", "number"), text = r.get("content", "string") }
        row.left, row.right = r.get("lstrip", "boolean", false), r.get("rstrip", "boolean", false)
        row.special = r.get("special", "boolean", false)
        row.single = r.get("single_word", "boolean", false)
        local strips = (row.left or row.right) and #steps > 0 -- what is normalised already
        row.later = r.get("normalized", "boolean", false)
        if row.later and (strips or not untouched.by(steps, row.text)) then
            r.refuse("normalized", true, "is not supported beside a normalizer that may change " .. row.text)
        end
        if row.text == "" then r.refuse("content", row.text, "is empty") end
        r.done()
        added[#added + 1] = row
    end
    return added
end

local models = {}

-- Turns <0x00> to <0xFF> into pieces of bytes.
local function mark_bytes(r)
    for _, piece in ipairs(r.pieces) do
        local hex = piece.text:match "^<0x(%x%x)>$"
        if hex and piece.type == "normal" then
            piece.text, piece.type = string.char(tonumber(hex, 16)), "byte"
        end
    end
end

local function merge_pairs(model)
    local list = {}
    for i, item in ipairs(model.get("merges", "table")) do
        local left, right
        if type(item) == "string" then
            left, right = item:match "^([^ ]+) ([^ ]+)$"
        elseif type(item) == "table" then
            left, right = item[1], item[2]
        end
        if type(left) ~= "string" or type(right) ~= "string" then
            model.refuse("merges." .. i - 1, type(item) == "string" and item or nil, "must be two pieces")
        end
        list[i] = { left, right }
    end
    return list
end

function models.BPE(model, r, added)
    local ids
    r.pieces, ids = lists.pieces(model.path, model.get("vocab", "table"), added)
    r.kind = "bpe"
    model.only "dropout"
    model.only("continuing_subword_prefix", "")
    model.only("end_of_word_suffix", "")
    r.fuse, r.byte_fallback = model.get("fuse_unk", "boolean", false), model.get("byte_fallback", "boolean", false)
    r.whole_words = model.get("ignore_merges", "boolean", false)
    local unknown = model.optional("unk_token", "string")
    if unknown and not ids[unknown] then model.refuse("unk_token", unknown, "is no piece") end
    r.unknown = not r.byte_level and unknown and ids[unknown] or nil
    r.merges = lists.merges(model.path, merge_pairs(model), ids)
    if r.byte_level then
        lists.byte_level(model.path, r.pieces, added)
        if r.byte_fallback then model.refuse("byte_fallback", true, "is not supported with bytes as symbols") end
    end
end

function models.WordPiece(model, r, added)
    r.kind, r.fuse, r.byte_fallback, r.spelt = "wordpiece", false, false, "words"
    local ids
    r.pieces, ids = lists.pieces(model.path, model.get("vocab", "table"), added)
    local unknown = model.get("unk_token", "string")
    if not ids[unknown] then model.refuse("unk_token", unknown, "is no piece") end
    r.unknown = ids[unknown]
    r.prefix, r.longest =
        model.get("continuing_subword_prefix", "string", "##"), model.get("max_input_chars_per_word", "number", 100)
    if math.type(r.longest) ~= "integer" or r.longest < 1 or r.longest > 1 << 20 then
        model.refuse("max_input_chars_per_word", r.longest, "must be an integer from 1 to 1048576")
    end
end

function models.Unigram(model, r, added)
    r.kind, r.fuse, r.real, r.penalty = "unigram", true, "f64", 10.0
    r.byte_fallback = model.get("byte_fallback", "boolean", false)
    r.pieces = {}
    local ids = {}
    for i, row in ipairs(model.get("vocab", "table")) do
        if type(row) ~= "table" or type(row[1]) ~= "string" or type(row[2]) ~= "number" then
            model.refuse("vocab." .. i - 1, nil, "must be a list of a piece and its score")
        end
        r.pieces[i], ids[row[1]] = { text = row[1], score = row[2], type = "normal" }, i - 1
    end
    for _, row in ipairs(added) do
        row.id = ids[row.text] or row.id
        if row.id == #r.pieces then r.pieces[row.id + 1] = { text = row.text, score = 0.0, type = "normal" } end
        local piece = r.pieces[row.id + 1]
        if not piece or piece.text ~= row.text then
            model.refuse("vocab", row.text, "is no piece with the id of its added token, " .. tostring(row.id))
        end
    end
    local unknown = model.optional("unk_id", "number")
    if unknown and not r.pieces[unknown + 1] then model.refuse("unk_id", unknown, "is the id of no piece") end
    r.unknown = unknown
end

-- The record of the file `path`, whose JSON is `object`.
function hugging_face.read(path, object)
    local root = reader(path, object, {})
    root.only("version", "1.0")
    root.skip "decoder"
    local ignored = {}
    for _, key in ipairs { "truncation", "padding" } do
        if root.optional(key, "table") then ignored[#ignored + 1] = key end
    end
    local found, first_steps = { steps = {}, splits = {}, times = 0 }, {}
    local normalizer, pre = root.optional("normalizer", "table"), root.optional("pre_tokenizer", "table")
    if normalizer then add_normalizer(path, normalizer, { "normalizer" }, first_steps) end
    if pre then add_pre_tokenizer(path, pre, { "pre_tokenizer" }, found) end
    local added = added_of(root, first_steps)
    local steps = table.move(found.steps, 1, #found.steps, #first_steps + 1, first_steps)
    local r = {
        spelt = found.byte_level and "plain" or "spaces",
        byte_level = found.byte_level or false,
        whole_words = false,
        broken = found.byte_level and not normalizer and "keep" or "part",
        steps = steps,
        split = found.times == 0 and "none" or found.times == 1 and found.name or "patterns",
        added = added,
        first = {},
        last = {},
        says_all = true,
        ignored = ignored,
    }
    if r.split == "patterns" then
        r.splits, r.classes, r.alphabet = splits.build(found.splits)
    end
    local model = root.inner "model"
    local kind = model.get("type", "string")
    if not models[kind] then model.refuse("type", kind, "must be Unigram, BPE or WordPiece") end
    if r.byte_level and kind ~= "BPE" then model.refuse("type", kind, "must be BPE behind ByteLevel") end
    models[kind](model, r, added)
    model.done()
    if r.byte_fallback then mark_bytes(r) end
    for _, row in ipairs(added) do
        if row.special and not row.symbol then r.pieces[row.id + 1].type = "control" end
    end
    if r.unknown then r.pieces[r.unknown + 1].type = "unknown" end
    local post = root.optional("post_processor", "table")
    if post then post_process(path, post, { "post_processor" }, r) end
    for _, list in ipairs { r.first, r.last } do
        for _, id in ipairs(list) do
            if math.type(id) ~= "integer" or not r.pieces[id + 1] then
                root.refuse("post_processor", id, "is the id of no piece")
            end
        end
    end
    root.done()
    return record.check(path, r)
end

return hugging_face
