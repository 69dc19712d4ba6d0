-- The plan of a tokenizer: from its record to what its C is printed from, the facts, and to the bytes of its part of
-- the blob, the contents.
--
-- Facts are pure data that a manifest can record: `kind` … `last` as in the record (gen/tokenizer/record.lua),
-- `unknown` -1 for none, `passes` of normalisation, `sections` of the blob, `scratch`, `digest` of facts and
-- contents, and `seal` of the facts alone.
local byte_level = require "gen.tokenizer.byte_level"
local ends = require "gen.tokenizer.ends"
local host = require "host"
local json = require "json"
local sets = require "gen.tokenizer.character_sets"
local tables = require "gen.tokenizer.unicode_tables"
local trie = require "gen.tokenizer.trie"

local tokenizer_plan = {}

local types = {}
for _, row in ipairs {
    { name = "u8", bytes = 1, storage = "unsigned char" },
    { name = "u16", bytes = 2, storage = "uint16_t" },
    { name = "u32", bytes = 4, storage = "uint32_t" },
    { name = "f32", bytes = 4, storage = "float" },
    { name = "f64", bytes = 8, storage = "double" },
} do
    types[row.name] = row
end

local none = 0xffffffff

-- A list of integers, packed; `format`: of each, u32 if it is nil.
local function words_of(list, format)
    local parts = {}
    for at = 1, #list, 128 do
        local last = math.min(at + 127, #list)
        parts[#parts + 1] = string.pack("<" .. (format or "I4"):rep(last - at + 1), table.unpack(list, at, last))
    end
    return table.concat(parts)
end

-- Texts one behind the other, and where each begins, and the last one ends.
local function joined(texts)
    local places, at = { 0 }, 0
    for i, text in ipairs(texts) do
        at = at + #text
        places[i + 1] = at
    end
    return words_of(places), table.concat(texts)
end

-- The place of a pair in a table of 2^k entries: templates/tokenizer/pairs.c computes the same.
local function hash(left, right)
    local h = left * 0x9e3779b1 + right * 0x85ebca77 & 0xffffffff
    return h ~ h >> 15
end

-- A table of pairs, open to the next entry: { {left, right, a, b} } as entries of four words, half of them free or
-- more.
local function pair_table(rows)
    local slots = 4
    while slots < 2 * #rows do
        slots = slots * 2
    end
    local words = {}
    for i = 1, 4 * slots do
        words[i] = none
    end
    for _, row in ipairs(rows) do
        local at = hash(row[1], row[2]) & slots - 1
        while words[4 * at + 1] ~= none and not (words[4 * at + 1] == row[1] and words[4 * at + 2] == row[2]) do
            at = at + 1 & slots - 1
        end
        if words[4 * at + 1] == none then -- of a pair that stands twice, the first
            table.move(row, 1, 4, 4 * at + 1, words)
        end
    end
    return words_of(words)
end

-- Collects sections and their contents.
local function collector()
    local c = { sections = {}, contents = {} }
    function c.add(name, type, text, doc)
        if c.contents[name] then return end
        c.sections[#c.sections + 1] = { name = name, type = type, count = #text // types[type].bytes, doc = doc }
        c.contents[name] = text
    end
    function c.paged(name, made, doc)
        c.add(name .. "_pages", "u16", made.pages, "page of each 256 characters: " .. doc)
        c.add(name, "u8", made.values, "pages of 256 characters: " .. doc)
    end
    return c
end

-- The most that a text grows by when each `from` becomes `to` and then each space `space` bytes.
local function growth_of(pairs_of, space)
    local most = 1
    for _, pair in ipairs(pairs_of) do
        local _, spaces = pair[2]:gsub(" ", "")
        most = math.max(most, (#pair[2] + spaces * (space - 1)) / #pair[1])
    end
    return most
end

-- Collects passes over a text, with what each makes of n bytes at most: factor n + more, and their sections in `c`. The
-- first one of those that replace texts also mends what is not UTF-8.
local function passes_for(r, c)
    local b = { passes = {}, mends = r.broken ~= "keep" }
    local maps, wide_space = 0, 1 -- bytes that a space becomes in a later step
    for _, step in ipairs(r.steps) do
        if step.op == "spaces" then wide_space = math.max(wide_space, #step.to) end
    end
    function b.add(pass, factor, more)
        pass.factor, pass.more = factor or 1, more or 0
        b.passes[#b.passes + 1] = pass
    end
    function b.new_name()
        maps = maps + 1
        return "map" .. maps
    end
    -- A pass that replaces texts; pairs_of: what, or as much as counts for its growth.
    function b.add_replacing(kind, name, pairs_of)
        local pass, least = { kind = kind, table = name }, (b.mends or kind == "decompose") and 3 or 1
        b.add(pass, math.max(growth_of(pairs_of, 1), least))
        pass.with_spaces = math.max(growth_of(pairs_of, wide_space), wide_space, pass.factor)
        b.mends = false
    end
    function b.add_map(kind, pairs_of, doc)
        local name, keys, texts = b.new_name(), {}, {}
        for i, pair in ipairs(pairs_of) do
            keys[i], texts[i] = { pair[1], i - 1 }, pair[2]
        end
        local at, text = joined(texts)
        c.add(name .. "_trie", "u32", trie.pack(keys), "nodes of base, parent, value: " .. doc)
        c.add(name .. "_at", "u32", at, "where the text of a value begins")
        c.add(name .. "_text", "u8", text, "those texts")
        b.add_replacing(kind, name, pairs_of)
    end
    return b
end

local function add_classes(c) c.paged("classes", tables.classes(), "bits of their classes") end

local function decompose(compatible)
    return function(b, _, c)
        b.add_map("decompose", tables.decompositions(compatible), compatible and "NFKD" or "NFD")
        c.paged("orders", tables.orders(), "canonical combining class")
        b.add { kind = "order" }
    end
end

local function compose(compatible)
    return function(b, _, c)
        decompose(compatible)(b, nil, c)
        local rows = {}
        for i, row in ipairs(tables.compositions()) do
            rows[i] = { row[1], row[2], row[3], 0 }
        end
        c.add("compositions", "u32", pair_table(rows), "entries of first, second, composite, 0; 2^32 - 1: free")
        b.add({ kind = "compose" }, 1, 8)
    end
end

-- One function a step of the record: adds its passes to `b`, its sections to `c`.
local add = { nfd = decompose(false), nfkd = decompose(true), nfc = compose(false), nfkc = compose(true) }

function add.lower(b) b.add_map("map", tables.lower_case(), "lower case") end

function add.replace(b, step) b.add_map("map", step.pairs, "replacements") end

function add.charsmap(b, step, c)
    local name = b.new_name()
    c.add(name .. "_units", "u32", step.units, "double array of SentencePiece's replacements")
    c.add(name .. "_text", "u8", step.texts, "their texts, each ended by a zero byte")
    b.add_replacing("charsmap", name, step.longest)
end

function add.classes(b, step, c)
    add_classes(c)
    local pass = { kind = "classes", drop = step.drop, blank = step.blank, pad = step.pad }
    b.add(pass, step.pad > 0 and 5 / 3 or 1)
end

function add.spaces(b, step, c)
    if step.wide then add_classes(c) end
    b.add({
        kind = "spaces",
        wide = step.wide,
        collapse = step.collapse,
        prefix = step.prefix,
        once = step.once,
        to = step.to,
    }, #step.to, #step.to)
end

function add.runs(b, step) b.add({ kind = "runs", to = step.to }, math.max(1, #step.to / 2)) end

function add.strip(b, step, c)
    add_classes(c)
    b.add { kind = "strip", left = step.left, right = step.right }
end

function add.prepend(b, step) b.add({ kind = "prepend", text = step.text, unless = step.unless }, 1, #step.text) end

local replaces = { nfd = true, nfkd = true, nfc = true, nfkc = true, replace = true, charsmap = true, lower = true }

-- The passes over a text that the record's steps take.
local function passes_of(r, c)
    local b = passes_for(r, c)
    if b.mends and not (r.steps[1] and replaces[r.steps[1].op]) then b.add_map("map", {}, "nothing") end
    for _, step in ipairs(r.steps) do
        local own = add[step.op] or error("unknown step " .. tostring(step.op))
        own(b, step, c)
    end
    return b.passes
end

-- What `passes` make of n bytes at most: factor n + more, at any time and in the end. Where spaces become longer behind
-- a map, the map's texts are counted with their spaces grown.
local function growth(passes)
    local factor, more, most_factor, most_more = 1, 0, 1, 0
    local grown = false -- spaces are counted in `factor`
    for i, pass in ipairs(passes) do
        local own = pass.factor
        if pass.with_spaces and not grown then
            local behind = i + 1
            while passes[behind] and passes[behind].factor == 1 do
                behind = behind + 1
            end
            if passes[behind] and passes[behind].kind == "spaces" then
                own, grown = pass.with_spaces, true
            end
        elseif pass.kind == "spaces" and grown then
            own, grown = 1, false
        end
        factor, more = factor * own, more * own + pass.more
        most_factor, most_more = math.max(most_factor, factor), math.max(most_more, more)
    end
    return factor, more, most_factor, most_more
end

-- The bytes of working memory that a byte of normalised text takes at most.
local function bytes_a_byte(r)
    if r.kind == "unigram" then return r.real == "f64" and 16 or 12 end
    return r.kind == "bpe" and 36 or 0
end

-- Whether pieces are found byte by byte: by all kinds but bytes, and BPE of bytes without whole words.
local function walks(r) return r.kind ~= "bytes" and (not r.byte_level or r.whole_words) end

-- What the pieces add to a text.
local function spellings(r)
    local texts = {}
    for i, piece in ipairs(r.pieces) do
        local text = piece.text
        if piece.type == "control" then
            text = ""
        elseif piece.type == "byte" or r.spelt == "plain" then
            text = piece.text
        elseif r.spelt == "spaces" then
            text = text:gsub("\u{2581}", " ")
        elseif r.prefix ~= "" and text:sub(1, #r.prefix) == r.prefix then
            text = text:sub(#r.prefix + 1)
        else
            text = " " .. text
        end
        texts[i] = text
    end
    return texts
end

local needs_classes = { gpt2 = true, llama3 = true, qwen2 = true, bert = true, whitespace = true }

-- The digest of facts, without the one that they hold.
local function seal_of(facts)
    local copy = {}
    for key, value in pairs(facts) do
        if key ~= "seal" then copy[key] = value end
    end
    return host.sha256(json.encode(copy, "compact"))
end

-- What a piece of unigram scores.
local function add_scores(r, c)
    local scores, least = {}, math.huge
    for i, piece in ipairs(r.pieces) do
        local score = piece.type == "normal" and piece.score or 0.0
        if r.real == "f32" then score = string.unpack("<f", string.pack("<f", score)) end
        scores[i] = score
        if piece.type == "normal" then least = math.min(least, score) end
    end
    scores[#scores + 1] = least - r.penalty
    for i, score in ipairs(scores) do
        scores[i] = string.pack(r.real == "f64" and "<d" or "<f", score)
    end
    c.add("scores", r.real, table.concat(scores), "of each id; last that of an unknown character")
end

-- Texts and pieces, and what finds them.
local function add_pieces(r, c)
    local at, text = joined(spellings(r))
    c.add("text_at", "u32", at, "where the text of an id begins")
    c.add("text", "u8", text, "those texts")
    local keys, byte_ids = {}, {}
    for i, piece in ipairs(r.pieces) do
        local normal = piece.type == "normal"
        if normal then keys[#keys + 1] = { piece.text, i - 1 } end
        if r.byte_level and normal and #piece.text == 1 or piece.type == "byte" then
            byte_ids[piece.text:byte() + 1] = i - 1
        end
    end
    if walks(r) then c.add("pieces", "u32", trie.pack(keys), "trie of the pieces: nodes of base, parent, id") end
    if r.kind == "unigram" then add_scores(r, c) end
    if r.kind == "bpe" then
        c.add("merges", "u32", pair_table(r.merges), "entries of left, right, rank, merged id; 2^32 - 1: free")
    end
    if r.byte_level or r.byte_fallback then c.add("byte_ids", "u32", words_of(byte_ids), "the id of each byte") end
end

-- A byte for each character, paged, from the `value` of ranges { {first character, value} }.
local function paged(ranges)
    local parts = {}
    for i, range in ipairs(ranges) do
        local behind = ranges[i + 1] and ranges[i + 1][1] or 0x110000
        parts[i] = string.char(range[2]):rep(behind - range[1])
    end
    return tables.paged(table.concat(parts))
end

-- The characters that words consist of: those of \w of Rust's regular expressions.
local function add_word_characters(c)
    local ranges, set = { { 0, 0 } }, sets.union(sets.word(), { 0x200c, 0x200d })
    for i, place in ipairs(set) do
        ranges[i + 1] = { place + (i % 2 == 0 and 1 or 0), i % 2 }
    end
    c.paged("word_characters", paged(ranges), "1: words consist of such")
end

-- Pieces that are found before all others; returns whether one takes white space beside it, and whether one must not
-- be beside a word.
local function add_added(r, c)
    local first, later, rows, takes_space, single = {}, {}, {}, false, nil
    for i, row in ipairs(r.added) do
        table.insert(row.later and later or first, { row.text, i - 1 })
        rows[2 * i - 1] = row.id
        rows[2 * i] = (row.left and 1 or 0) + (row.right and 2 or 0) + (row.single and 4 or 0)
        takes_space = takes_space or row.left or row.right
        single = single or row.single or nil
    end
    if #rows == 0 then return false, nil end
    if #first == 0 then
        first, later = later, {}
    end
    c.add("added", "u32", trie.pack(first), "trie of added pieces: nodes of base, parent, number")
    if #later > 0 then
        c.add("added_later", "u32", trie.pack(later), "the same of those that are found between these")
    end
    local more = single and ", 4: not beside a word" or ""
    c.add("added_rows", "u32", words_of(rows), "id, and 1: takes white space before it, 2: behind it" .. more)
    if single then add_word_characters(c) end
    return takes_space, single
end

-- The classes of the characters that stand for bytes, of the ranges { {first, class} }, as bytes.
local function classes_of_bytes(ranges)
    local list = {}
    for byte = 0, 255 do
        local character = utf8.codepoint(byte_level.character(byte))
        for _, range in ipairs(ranges) do
            if range[1] <= character then list[byte + 1] = range[2] end
        end
    end
    return string.char(table.unpack(list))
end

-- The automata that split text. Returns what of them the facts have: { {drop, join, bytes} }, nil: there are none.
local function add_splits(r, c)
    if not r.splits then return nil end
    local list, kinds = {}, {}
    for _, split in ipairs(r.splits) do
        kinds[split.bytes and "bytes" or "characters"] = true
    end
    if kinds.characters then c.paged("alphabet", paged(r.alphabet), "the class that splits know") end
    if kinds.bytes then c.add("byte_classes", "u8", classes_of_bytes(r.alphabet), "the same of each byte") end
    for i, split in ipairs(r.splits) do
        local entries = {}
        for _, row in ipairs(split.rows) do
            table.move(row, 1, #row, #entries + 1, entries)
        end
        c.add("split" .. i, "u16", words_of(entries, "I2"), "rows of a split's automaton: an entry for each class")
        list[i] = { drop = split.drop, join = split.join, bytes = split.bytes or nil }
    end
    return json.array(list)
end

-- The facts of record `r`, the contents of its sections by name, and the ids that end a text.
function tokenizer_plan.build(r)
    local c = collector()
    add_pieces(r, c)
    local takes_space, added_words = add_added(r, c)
    local passes = passes_of(r, c)
    if needs_classes[r.split] or takes_space then add_classes(c) end
    local splits = add_splits(r, c)
    local factor, more, most_factor, most_more = growth(passes)
    local each = bytes_a_byte(r)
    local facts = {
        kind = r.kind,
        real = r.real == "f64" and "double" or "float",
        pieces = #r.pieces,
        unknown = r.unknown or -1,
        fuse = r.fuse,
        byte_fallback = r.byte_fallback,
        byte_level = r.byte_level or false,
        whole_words = r.whole_words or false,
        prefix = r.prefix or "",
        longest = r.longest or 0,
        broken = r.broken,
        split = r.split,
        splits = splits,
        classes = r.classes,
        added = #r.added,
        leading_space = r.spelt ~= "plain",
        added_spaces = takes_space,
        added_words = added_words,
        first = json.array(table.move(r.first, 1, #r.first, 1, {})),
        last = json.array(table.move(r.last, 1, #r.last, 1, {})),
        passes = json.array(passes),
        sections = json.array(c.sections),
        scratch = {
            factor = math.ceil(
                math.max(#passes > 0 and 2 * most_factor or 0, factor * ((#passes > 0 and 1 or 0) + each))
            ),
            more = 2 * math.ceil(most_more) + each * (math.ceil(more) + 1) + 64,
        },
    }
    for _, pass in ipairs(passes) do -- what only their growth was computed from
        pass.factor, pass.more, pass.with_spaces = nil, nil, nil
    end
    local digests = {}
    for i, section in ipairs(c.sections) do
        digests[i] = host.sha256(c.contents[section.name])
    end
    facts.digest = host.sha256(json.encode(facts, "compact") .. table.concat(digests))
    facts.seal = seal_of(facts)
    return facts, c.contents, r.ends or ends.of(r.pieces, {})
end

-- Raises one line unless `facts` are what `build` made, as read back from JSON.
function tokenizer_plan.check(facts)
    if type(facts) ~= "table" or facts.seal ~= seal_of(facts) then
        error("options.facts: is not what lookupc records", 0)
    end
end

-- The sections of `facts` as a blob has them (gen/plan/blob.lua), with their `contents` if those are known.
function tokenizer_plan.sections(facts, contents)
    local list = {}
    for i, section in ipairs(facts.sections) do
        local type = types[section.type]
        list[i] = {
            name = section.name,
            dtype = type,
            type = type.name,
            storage = type.storage,
            elements = section.count,
            count = section.count,
            doc = section.doc,
            text = contents and contents[section.name],
        }
    end
    return list
end

return tokenizer_plan
