-- Small files of tokenizers for the tests: byte-level BPE as tokenizer.json, and parts of SentencePiece models.
local byte_level = require "gen.tokenizer.byte_level"
local json = require "json"

local small = {}

-- The pieces of byte-level BPE, its 256 characters, from the id `first` on.
function small.byte_vocabulary(first)
    local vocabulary = {}
    for byte = 0, 255 do
        vocabulary[byte_level.character(byte)] = first + byte
    end
    return vocabulary
end

-- A good tokenizer.json, with bytes as ids; `changes(object)` makes it another one.
function small.hugging_face(changes)
    local object = {
        version = "1.0",
        added_tokens = json.array { { id = 256, content = "<x>", special = true, normalized = false } },
        pre_tokenizer = { type = "ByteLevel", add_prefix_space = false, use_regex = true },
        post_processor = { type = "ByteLevel" },
        decoder = { type = "ByteLevel" },
        model = { type = "BPE", vocab = small.byte_vocabulary(0), merges = json.array {} },
    }
    changes(object)
    return assert(json.encode(object))
end

-- A field of a protocol buffer.
function small.field(number, text) return string.char(number << 3 | 2, #text) .. text end

-- A piece of a SentencePiece model: of the type 1 (normal), 2 (unknown), 3 (control), …; `score`: nil for none.
function small.piece(text, kind, score)
    local packed = score and "\x15" .. string.pack("<f", score) or ""
    return small.field(1, small.field(1, text) .. packed .. "\x18" .. string.char(kind))
end

return small
