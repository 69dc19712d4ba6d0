-- The record of a tokenizer: pure data that all its files are read into, and the rules that each of them keeps.
--
-- A record has
--   kind            "unigram", "bpe", "wordpiece" or "bytes"
--   pieces          { {text, score, type} }, that of id i at i + 1: `text` is what the kind matches in normalised text;
--                   `type` is "normal", "control" (never matched), "unknown" or "byte" (`text` is that byte)
--   spelt           what pieces stand for: "plain"; "spaces": ▁ is a space; "words": a space before all but ## pieces
--   unknown         the id of what no piece matches, nil: such characters are dropped
--   fuse            whether ids `unknown` beside each other become one
--   byte_fallback   whether what no piece matches becomes its bytes, pieces of the type "byte"
--   byte_level      of bpe: the symbols at first are bytes instead of characters
--   merges          of bpe: { {left, right, rank, merged} }, ids; the least rank first, then the leftmost
--   whole_words     of bpe: a word that is a piece is that piece
--   real            of unigram: "f32" or "f64", the type in which scores are summed
--   penalty         of unigram: the score of an unknown character is the least one less this
--   prefix, longest of wordpiece: what stands before pieces inside a word; characters of a longer word are unknown
--   broken          what is not UTF-8 becomes: "byte": U+FFFD for each byte; "part": U+FFFD for each beginning of a
--                   character, as most decoders do; "keep": itself
--   steps           of normalisation, in their order: { {op, …} }
--                     nfd, nfc, nfkd, nfkc, lower
--                     replace   pairs { {from, to} }: the longest `from` at a place, from left to right
--                     charsmap  the same from SentencePiece's own tables, as bytes: `units` of a double array, `texts`;
--                               longest: { {from, to} }, with as many bytes in `from` as in the shortest key of `to`
--                     classes   drop, blank, pad: bits of classes of characters (gen/tokenizer/unicode_tables.lua) that
--                               are removed, become a space, get spaces around them
--                     spaces    wide: all white space instead of spaces; collapse: runs become one, none at the ends;
--                               prefix: "always", "first" (at the start of the text) or "never"; once: no prefix before
--                               what stands there already; to: what a space becomes, and the prefix
--                     runs      to: what two or more spaces become
--                     strip     left, right: white space at the ends is removed
--                     prepend   text, before what is not empty; unless: and does not start with it
--   split           how normalised text becomes words, which the kind sees one by one: "none", "gpt2", "llama3",
--                   "qwen2", "bert", "whitespace", "meta" (a word starts at each ▁), "patterns"
--   splits          of "patterns": { {rows, drop, join, bytes} }, each splits the words of the one before it. rows: of
--                   an automaton (gen/tokenizer/automaton.lua); drop: "nothing", "matches" or "gaps"; join: what is one
--                   word with what follows it, "nothing", "gap to match", "match to gap" or "matches" (side by side);
--                   bytes: what it takes for characters are those that stand for bytes (gen/tokenizer/byte_level.lua)
--   classes         of "patterns": the number of classes of characters that the automata tell apart
--   alphabet        of "patterns": { {first, class} }, the class of the characters from `first` on
--   added           pieces that are found in text before all else: { {id, text, left, right, single, later} }; `left`,
--                   `right`: white space there belongs to them; `single`: not beside a character of a word; `later`:
--                   found in what is between those that are not
--   first, last     lists of ids before and behind those of a text
--   ends            the ids that end a text that a model makes, where the file or the model file says it; nil: those
--                   of gen/tokenizer/ends.lua
--   says_all        whether the file says all of this itself, so that a model file has nothing to add
--   ignored         names of the file's sections that are for batches of texts: where these are cut, or filled up
--   no_pieces       of GGUF: lines about ids that would end a text, are those of no piece, and are ignored
local schema = require "gen.schema.schema"

local record = {}

record.most_pieces = 1 << 21
record.longest_piece = 4096 -- bytes

-- Raises one line: the file, a chain of names, the value and the rule.
function record.refuse(path, chain, value, rule) schema.refuse({ path = path, source = "" }, chain, value, rule) end

-- Checks what all kinds have in common. Returns the record.
function record.check(path, r)
    local function refuse(chain, value, rule) record.refuse(path, chain, value, rule) end
    if #r.pieces == 0 then refuse({ "pieces" }, nil, "there are none") end
    if #r.pieces > record.most_pieces then
        refuse({ "pieces" }, #r.pieces, "at most " .. record.most_pieces .. " are allowed")
    end
    local places = {}
    for i, piece in ipairs(r.pieces) do
        local where = { "pieces", tostring(i - 1) }
        if #piece.text > record.longest_piece then
            refuse(where, piece.text, "is longer than " .. record.longest_piece .. " bytes")
        end
        if piece.type == "normal" then
            if piece.text == "" then refuse(where, nil, "is empty") end
            if places[piece.text] then refuse(where, piece.text, "is piece " .. places[piece.text] .. " already") end
            places[piece.text] = i - 1
        end
        if r.kind == "unigram" and piece.type == "normal" then
            local score = piece.score
            if type(score) ~= "number" or score ~= score or math.abs(score) > 1e30 then
                refuse({ "pieces", tostring(i - 1), "score" }, score, "must be a number")
            end
        end
    end
    if r.byte_fallback then
        local bytes = {}
        for _, piece in ipairs(r.pieces) do
            if piece.type == "byte" then bytes[piece.text] = true end
        end
        for byte = 0, 255 do
            if not bytes[string.char(byte)] then
                refuse({ "pieces" }, string.format("<0x%02X>", byte), "is missing: byte fallback needs it")
            end
        end
    end
    if r.kind == "unigram" and not r.unknown and not r.byte_fallback then
        refuse({ "unknown" }, nil, "is missing: unigram needs a piece for what it does not know")
    end
    return r
end

return record
