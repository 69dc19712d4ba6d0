-- Reads a SentencePiece model, unigram or BPE, with its rules of normalisation.
local protobuf = require "gen.tokenizer.protobuf"
local record = require "gen.tokenizer.record"

local sentencepiece = {}

local types = { [1] = "normal", [2] = "unknown", [3] = "control", [4] = "user defined", [5] = "unused", [6] = "byte" }
local space = "\u{2581}"

local function type_of(value) return math.type(value) or type(value) end

-- The step of a precompiled map (gen/tokenizer/record.lua): a double array of Darts-clone's, then the texts that it
-- leads to, each ended by a zero byte. nil: it is damaged.
function sentencepiece.charsmap(bytes)
    if #bytes < 4 then return nil end
    local size = string.unpack("<I4", bytes)
    if size % 4 ~= 0 or size < 4 or size + 4 >= #bytes or bytes:byte(-1) ~= 0 then return nil end
    local units, last = {}, size // 4 - 1
    for i = 0, last do
        units[i] = string.unpack("<I4", bytes, 5 + 4 * i)
    end
    local texts = bytes:sub(5 + size)
    local function offset(unit) return unit >> 10 << ((unit & 0x200) >> 6) end
    -- Breadth first, and each node once though branches share their ends: with the shortest key that leads there.
    local start = offset(units[0])
    local reached, nodes, depths, longest = { [start] = true }, { start }, { 1 }, {}
    local next_node = 1
    while nodes[next_node] do
        local node, depth = nodes[next_node], depths[next_node]
        next_node = next_node + 1
        for byte = 1, 255 do
            local at = node ~ byte
            local unit = units[at]
            if unit and unit & 0x800000ff == byte then
                local below = at ~ offset(unit)
                if not reached[below] and below <= last then
                    reached[below] = true
                    nodes[#nodes + 1], depths[#depths + 1] = below, depth + 1
                    if unit & 0x100 ~= 0 then
                        local text = texts:match("^([^\0]*)\0", (units[below] & 0x7fffffff) + 1)
                        if not text or not utf8.len(text) then return nil end
                        longest[#longest + 1] = { ("?"):rep(depth), text }
                    end
                end
            end
        end
    end
    return { op = "charsmap", units = bytes:sub(5, 4 + size), texts = texts, longest = longest }
end

-- The merges that a BPE model stands for: two pieces whose texts together are a piece, ranked by its score.
function sentencepiece.merges(pieces, path)
    local ids, order, rank_of = {}, {}, {}
    for i, piece in ipairs(pieces) do
        if piece.type == "normal" then
            ids[piece.text], order[#order + 1] = i - 1, piece
        end
    end
    table.sort(order, function(a, b)
        if a.score ~= b.score then return a.score > b.score end
        return a.text < b.text
    end)
    local rank = -1
    for i, piece in ipairs(order) do
        if i == 1 or piece.score ~= order[i - 1].score then rank = rank + 1 end
        rank_of[piece.text] = rank
    end
    local merges = {}
    for i, piece in ipairs(pieces) do
        local text = piece.text
        if piece.type == "normal" then
            for at = 2, #text do
                if text:byte(at) & 0xc0 ~= 0x80 then
                    local left, right = ids[text:sub(1, at - 1)], ids[text:sub(at)]
                    if left and right then merges[#merges + 1] = { left, right, rank_of[text], i - 1 } end
                end
            end
            for _, code in utf8.codes(text) do
                if utf8.len(text) > 1 and not ids[utf8.char(code)] then
                    record.refuse(path, { "pieces", tostring(i - 1) }, text, "has a character that is no piece itself")
                end
            end
        end
    end
    return merges
end

-- Reads the messages of the file `path`; each function raises one line for what is none.
local function reader(path)
    local r = {}
    function r.refuse(chain, value, rule) record.refuse(path, chain, value, rule) end
    -- The fields of the message `text`.
    function r.message(text, chain)
        local fields = type(text) == "string" and protobuf.fields(text)
        if not fields then r.refuse(chain, nil, "is no message of a SentencePiece model") end
        fields.chain = chain
        return fields
    end
    -- The last value of field `number` in a list of fields, or `otherwise`, which is of the type that it must have.
    function r.last(fields, number, otherwise)
        for _, field in ipairs(fields) do
            local value = field[2]
            if field[1] == number then
                if type_of(value) ~= type_of(otherwise) then
                    local chain = table.move(fields.chain, 1, #fields.chain, 1, {})
                    chain[#chain + 1] = "field " .. number
                    local rule = "is of type " .. type_of(value) .. ": must be of type " .. type_of(otherwise)
                    r.refuse(chain, nil, rule)
                end
                otherwise = value
            end
        end
        return otherwise
    end
    return r
end

-- The piece of the message `text`, number `number` from 0.
local function piece_of(r, text, number)
    local where = { "pieces", tostring(number) }
    local piece = r.message(text, where)
    local content, word = r.last(piece, 1, ""), types[r.last(piece, 3, 1)]
    if not word or word == "user defined" or word == "unused" then
        r.refuse(where, word or r.last(piece, 3, 1), "must be of type normal, unknown, control or byte")
    end
    if not utf8.len(content) then r.refuse(where, nil, "must be UTF-8") end
    if word == "byte" then
        local hex = content:match "^<0x(%x%x)>$"
        if not hex then r.refuse(where, content, "must be a byte such as <0x0A>") end
        content = string.char(tonumber(hex, 16))
    end
    return { text = content, score = r.last(piece, 2, 0.0), type = word }
end

-- The steps of normalisation that the message says.
local function steps_of(r, normalizer)
    local steps, charsmap = {}, r.last(normalizer, 2, "")
    if charsmap ~= "" then
        steps[1] = sentencepiece.charsmap(charsmap)
        if not steps[1] then r.refuse({ "normalizer_spec", "precompiled_charsmap" }, nil, "is damaged") end
    end
    steps[#steps + 1] = {
        op = "spaces",
        wide = false,
        collapse = r.last(normalizer, 4, 1) ~= 0,
        prefix = r.last(normalizer, 3, 1) ~= 0 and "always" or "never",
        once = false,
        to = r.last(normalizer, 5, 1) ~= 0 and space or " ",
    }
    return steps
end

-- The record of the model `bytes`, the contents of the file `path`.
function sentencepiece.read(path, bytes)
    local r = reader(path)
    local model = r.message(bytes, { "model" })
    local trainer = r.message(r.last(model, 2, ""), { "trainer_spec" })
    local normalizer = r.message(r.last(model, 3, ""), { "normalizer_spec" })
    local number = r.last(trainer, 3, 1)
    local kind = ({ [1] = "unigram", [2] = "bpe" })[number]
    if not kind then r.refuse({ "trainer_spec", "model_type" }, number, "must be 1 (unigram) or 2 (bpe)") end
    if r.last(trainer, 24, 0) ~= 0 then
        r.refuse({ "trainer_spec", "treat_whitespace_as_suffix" }, true, "is not supported")
    end
    local denormalizer = r.message(r.last(model, 5, ""), { "denormalizer_spec" })
    if r.last(denormalizer, 2, "") ~= "" then
        r.refuse({ "denormalizer_spec", "precompiled_charsmap" }, nil, "is not supported")
    end
    local pieces, unknown = {}, nil
    for _, field in ipairs(model) do
        if field[1] == 1 then
            pieces[#pieces + 1] = piece_of(r, field[2], #pieces)
            if pieces[#pieces].type == "unknown" then unknown = #pieces - 1 end
        end
    end
    if not unknown then r.refuse({ "pieces" }, nil, "has no piece of type unknown") end
    return record.check(path, {
        kind = kind,
        pieces = pieces,
        spelt = "spaces",
        unknown = unknown,
        fuse = true,
        byte_fallback = r.last(trainer, 35, 0) ~= 0,
        byte_level = false,
        whole_words = false,
        merges = kind == "bpe" and sentencepiece.merges(pieces, path) or nil,
        real = "f32",
        penalty = 10.0,
        broken = "byte",
        steps = steps_of(r, normalizer),
        split = "none",
        added = {},
        first = {},
        last = {},
    })
end

return sentencepiece
