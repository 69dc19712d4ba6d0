-- What a model file says of a tokenizer whose own file does not: pieces before and behind a text, those that are found
-- in it before all else, and ids in another order.
local record = require "gen.tokenizer.record"

local around = {}

-- The keys of the model file.
around.keys = { "first", "last", "added", "mask", "ids", "space" }

-- The texts that are found before all else, { {text, left} }: those of `options.mask` and `options.added`; nil: the
-- model file says nothing of them.
function around.texts(options)
    if not options.added and not options.mask then return nil end
    local rows, seen = {}, {}
    for text in ((options.mask or "") .. " " .. (options.added or "")):gmatch "[^ ]+" do
        if not seen[text] then rows[#rows + 1] = { text = text, left = text == options.mask } end
        seen[text] = true
    end
    return rows
end

-- Gives the pieces of SentencePiece's record `r` the ids that fairseq gives them.
local function like_fairseq(path, r)
    local first = { "<unk>", "<s>", "</s>" }
    for i, text in ipairs(first) do
        local piece = r.pieces[i]
        if r.kind ~= "unigram" or not piece or piece.text ~= text or piece.type == "normal" then
            record.refuse(path, { "ids" }, "fairseq", "needs unigram pieces that begin with <unk>, <s>, </s>")
        end
    end
    local unknown, start, stop = table.unpack(r.pieces, 1, 3)
    local pieces = { start, { text = "<pad>", score = 0.0, type = "control" }, stop, unknown }
    r.pieces, r.unknown = table.move(r.pieces, 4, #r.pieces, 5, pieces), 3
end

-- Whether `options` has one of the keys.
local function says_something(options)
    for _, key in ipairs(around.keys) do
        if options[key] ~= nil then return true end
    end
    return false
end

-- Changes the record `r` of the file `path` as the keys in `options` say. Returns it.
function around.apply(path, r, options)
    if not says_something(options) then return r end
    if options.ids then like_fairseq(path, r) end
    local ids = {}
    for i, piece in ipairs(r.pieces) do
        if piece.type ~= "byte" then ids[piece.text] = ids[piece.text] or i - 1 end
    end
    local texts = around.texts(options)
    if texts then r.added = {} end
    for i, row in ipairs(texts or {}) do
        if not ids[row.text] then
            ids[row.text] = #r.pieces
            r.pieces[#r.pieces + 1] = { text = row.text, score = 0.0, type = "control" }
        end
        local piece = r.pieces[ids[row.text] + 1]
        if piece.type == "normal" then piece.type = "control" end
        r.added[i] = { id = ids[row.text], text = row.text, left = row.left, right = false }
    end
    for _, key in ipairs { "first", "last" } do
        local text = options[key]
        if text and not ids[text] then record.refuse(path, { key }, text, "is no piece") end
        if text then r[key] = { ids[text] } end
    end
    for _, step in ipairs(options.space and r.steps or {}) do
        if step.op == "spaces" and step.prefix ~= "never" then step.prefix = options.space end
    end
    return record.check(path, r)
end

return around
