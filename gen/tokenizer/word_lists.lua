-- Reads tokenizers that are plain lists: vocab.txt of BERT, vocab.json and merges.txt of GPT-2, and the scored pieces
-- of JavaScript packages; and makes the one that needs no file, of bytes.
local byte_level = require "gen.tokenizer.byte_level"
local json = require "json"
local record = require "gen.tokenizer.record"
local tables = require "gen.tokenizer.unicode_tables"

local lists = {}

-- The steps of BERT's normalisation.
function lists.bert_steps(clean, cjk, strip_accents, lower)
    local steps = {}
    if clean or cjk then
        steps[1] = {
            op = "classes",
            drop = clean and tables.control or 0,
            blank = clean and tables.space or 0,
            pad = cjk and tables.cjk or 0,
        }
    end
    if strip_accents then
        steps[#steps + 1] = { op = "nfd" }
        steps[#steps + 1] = { op = "classes", drop = tables.mark, blank = 0, pad = 0 }
    end
    if lower then steps[#steps + 1] = { op = "lower" } end
    return steps
end

-- vocab.txt: a piece a line; `lower`: an uncased model.
function lists.wordpiece(path, bytes, lower)
    local pieces, ids = {}, {}
    for line in (bytes:gsub("\r\n", "\n"):gsub("\n$", "") .. "\n"):gmatch "([^\n]*)\n" do
        local id = #pieces
        if not utf8.len(line) then record.refuse(path, { "line", tostring(id + 1) }, nil, "must be UTF-8") end
        if ids[line] then
            record.refuse(path, { "line", tostring(id + 1) }, line, "stands in line " .. ids[line] + 1 .. " already")
        end
        ids[line] = id
        pieces[id + 1] = { text = line, type = "normal" }
    end
    local added = {}
    for _, name in ipairs { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" } do
        local id = ids[name]
        if id then
            added[#added + 1] = { id = id, text = name, left = false, right = false }
            pieces[id + 1].type = name == "[UNK]" and "unknown" or "control"
        elseif name ~= "[PAD]" and name ~= "[MASK]" then
            record.refuse(path, { name }, nil, "is missing")
        end
    end
    return record.check(path, {
        kind = "wordpiece",
        pieces = pieces,
        spelt = "words",
        unknown = ids["[UNK]"],
        fuse = false,
        byte_fallback = false,
        prefix = "##",
        longest = 100,
        broken = "part",
        steps = lists.bert_steps(true, true, lower, lower),
        split = "bert",
        added = added,
        first = { ids["[CLS]"] },
        last = { ids["[SEP]"] },
    })
end

-- The lines of merges.txt as pairs of texts, without its first line if that is a comment.
local function merge_lines(path, bytes)
    local list, number = {}, 0
    for line in (bytes:gsub("\r\n", "\n") .. "\n"):gmatch "([^\n]*)\n" do
        number = number + 1
        if line ~= "" and not (number == 1 and line:find "^#version") then
            local left, right = line:match "^([^ ]+) ([^ ]+)$"
            if not left then
                record.refuse(path, { "line", tostring(number) }, line, "must be two pieces with a space between them")
            end
            list[#list + 1] = { left, right }
        end
    end
    return list
end

-- The merges of `list`, pairs of texts as files write them, with the ids of `ids`.
function lists.merges(path, list, ids)
    local merges = {}
    for rank, pair in ipairs(list) do
        local left, right, merged = ids[pair[1]], ids[pair[2]], ids[pair[1] .. pair[2]]
        if not left or not right or not merged then
            local missing = not left and pair[1] or not right and pair[2] or pair[1] .. pair[2]
            record.refuse(path, { "merges", tostring(rank) }, missing, "is no piece")
        end
        merges[rank] = { left, right, rank - 1, merged }
    end
    return merges
end

-- The pieces of an object { piece = id }: ids must be 0 to n - 1; `more` are { {id, text} } that may stand beside them,
-- and get the id that their text has already. Returns pieces without types, and ids by text.
function lists.pieces(path, object, more)
    local pieces, ids, count = {}, {}, 0
    local function add(text, id)
        if math.type(id) ~= "integer" or id < 0 or id >= record.most_pieces then
            record.refuse(path, { "vocab", text }, id, "must be an integer from 0 to " .. record.most_pieces - 1)
        end
        if pieces[id + 1] then
            if pieces[id + 1].text == text then return end
            record.refuse(path, { "vocab", text }, id, 'is the id of "' .. pieces[id + 1].text .. '", too')
        end
        pieces[id + 1], ids[text], count = { text = text, type = "normal" }, id, count + 1
    end
    local texts = {}
    for text in pairs(object) do
        if type(text) ~= "string" then record.refuse(path, { "vocab" }, nil, "must be an object of ids by piece") end
        texts[#texts + 1] = text
    end
    table.sort(texts)
    for _, text in ipairs(texts) do
        add(text, object[text])
    end
    for _, row in ipairs(more or {}) do
        row.id = ids[row.text] or row.id
        add(row.text, row.id)
    end
    if count == 0 then record.refuse(path, { "vocab" }, nil, "there are no pieces") end
    for id = 0, count - 1 do
        if not pieces[id + 1] then
            record.refuse(path, { "vocab" }, id, "is the id of no piece: ids must be 0 to the number of pieces less 1")
        end
    end
    return pieces, ids
end

-- Turns the texts of byte-level pieces into the bytes that they stand for. Pieces that are `special` stay as they are.
function lists.to_bytes(path, pieces, special)
    for id, piece in ipairs(pieces) do
        if not special[id - 1] then
            local bytes = byte_level.bytes(piece.text)
            if not bytes then
                record.refuse(path, { "vocab", piece.text }, id - 1, "has a character that stands for no byte")
            end
            piece.text = bytes
        end
    end
end

-- Raises one line unless every byte is a piece.
function lists.check_bytes(path, pieces)
    local bytes = {}
    for _, piece in ipairs(pieces) do
        if piece.type == "normal" then bytes[piece.text] = true end
    end
    for byte = 0, 255 do
        if not bytes[string.char(byte)] then
            record.refuse(path, { "vocab" }, byte_level.character(byte), "is missing: byte-level BPE needs every byte")
        end
    end
end

-- Turns the texts of byte-level pieces that are matched into bytes. The rows `added` are not, unless their text is a
-- single byte, a `symbol`.
function lists.byte_level(path, pieces, added)
    local special = {}
    for _, row in ipairs(added) do
        local bytes = byte_level.bytes(row.text)
        row.symbol = bytes and #bytes == 1 -- other texts are made of it, too
        pieces[row.id + 1].type = row.symbol and "normal" or "control"
    end
    for i, piece in ipairs(pieces) do
        special[i - 1] = piece.type == "control"
    end
    lists.to_bytes(path, pieces, special)
    lists.check_bytes(path, pieces)
end

-- vocab.json, decoded, and merges.txt: byte-level BPE as GPT-2 has it. `texts`: { {text} }, of the pieces that are
-- found before all else; nil: GPT-2's.
function lists.gpt2(path, object, merges_path, merges_bytes, texts)
    local pieces, ids = lists.pieces(path, object)
    local merges = lists.merges(merges_path, merge_lines(merges_path, merges_bytes), ids)
    local added, special = {}, {}
    for _, row in ipairs(texts or { { text = "<|endoftext|>" } }) do
        local id = ids[row.text]
        if id then
            added[#added + 1] = { id = id, text = row.text, left = false, right = false }
            pieces[id + 1].type, special[id] = "control", true
        end
    end
    lists.to_bytes(path, pieces, special)
    lists.check_bytes(path, pieces)
    return record.check(path, {
        kind = "bpe",
        pieces = pieces,
        spelt = "plain",
        fuse = false,
        byte_fallback = false,
        byte_level = true,
        merges = merges,
        whole_words = false,
        broken = "keep",
        steps = {},
        split = "gpt2",
        added = added,
        first = {},
        last = {},
    })
end

-- A list of { piece, score }, decoded: the unigram pieces of SentencePiece that TensorFlow.js packages carry. The first
-- ones, up to the first piece with a score other than 0, are reserved; a score of null counts as 0, as JavaScript takes
-- it, and of a piece that stands twice the last one counts; text becomes NFKC, and its spaces ▁.
function lists.scored(path, list)
    local pieces, reserved, places = {}, true, {}
    for i, row in ipairs(list) do
        local where = { "pieces", tostring(i - 1) }
        local score = type(row) == "table" and (row[2] == json.null and 0.0 or row[2])
        if type(score) ~= "number" or type(row[1]) ~= "string" or #row ~= 2 then
            record.refuse(path, where, nil, "must be a list of a piece and its score")
        end
        reserved = reserved and row[2] == 0
        pieces[i] = { text = row[1], score = score, type = reserved and "control" or "normal" }
        local before = places[row[1]]
        if before then pieces[before].type = "control" end
        places[row[1]] = i
    end
    if not pieces[1] or pieces[1].type ~= "control" then
        record.refuse(path, { "pieces", "0", "score" }, list[1] and list[1][2], "must be 0: the piece of the unknown")
    end
    pieces[1].type = "unknown"
    return record.check(path, {
        kind = "unigram",
        pieces = pieces,
        spelt = "spaces",
        unknown = 0,
        fuse = true,
        byte_fallback = false,
        real = "f32",
        penalty = 10.0,
        broken = "part",
        steps = {
            { op = "nfkc" },
            { op = "spaces", wide = false, collapse = false, prefix = "always", once = false, to = "\u{2581}" },
        },
        split = "none",
        added = {},
        first = {},
        last = {},
    })
end

-- Every byte is its own id.
function lists.bytes()
    local pieces = {}
    for byte = 0, 255 do
        pieces[byte + 1] = { text = string.char(byte), type = "byte" }
    end
    return {
        kind = "bytes",
        pieces = pieces,
        spelt = "plain",
        fuse = false,
        byte_fallback = false,
        broken = "keep",
        steps = {},
        split = "none",
        added = {},
        first = {},
        last = {},
    }
end

return lists
