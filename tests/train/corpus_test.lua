-- Texts become ids in pieces of whole characters, and files of them training and validation.
local check = require "tests.support.check"
local corpus = require "harness.train.corpus"
local host = require "host"
local program = require "tests.support.program"

local test = {}

-- A tokenizer whose ids are bytes, and which gets whole characters only.
local function byte_tokenizer(pieces)
    return {
        packed = function(_, piece)
            if not utf8.len(piece) then error("cut inside a character: " .. #piece, 0) end
            pieces[#pieces + 1] = piece
            return (piece:gsub(".", function(byte) return string.pack("<i4", byte:byte()) end))
        end,
    }
end

local function text_of(ids)
    return (
        ids:gsub("....", function(id)
            local value = string.unpack("<i4", id)
            return value < 256 and string.char(value) or "<" .. value .. ">"
        end)
    )
end

function test.text_is_cut_at_lines_and_characters()
    local folder, facts = program.folder(), { first = {}, last = {} }
    local texts = {
        lines = ("a line of text, é\n"):rep(15000),
        characters = ("é€x"):rep(45000), -- without a line feed
    }
    for name, text in pairs(texts) do
        local path, pieces = folder .. "/" .. name, {}
        assert(host.write_file(path, text))
        local read = corpus.read(byte_tokenizer(pieces), facts, nil, { text = { path } })
        check.equal(text_of(read.train .. read.valid) == text, true)
        check.equal(#pieces > 4, true)
        check.near(#read.valid / #text / 4, 0.1, 0.02)
        check.equal(read.bytes, #read.valid // 4)
    end
    local one = folder .. "/one"
    assert(host.write_file(one, "one\ntwo\n"))
    local apart = corpus.read(byte_tokenizer {}, facts, 300, { text = { one, one }, valid = { one } })
    check.equal(text_of(apart.train), ("one\ntwo\n<300>"):rep(2))
    check.equal(text_of(apart.valid), "one\ntwo\n<300>")
end

function test.of_many_files_whole_ones_are_for_validation()
    local folder, paths = program.folder(), {}
    for i = 1, 45 do
        paths[i] = folder .. "/" .. i
        assert(host.write_file(paths[i], i .. "\n"))
    end
    local read = corpus.read(byte_tokenizer {}, { first = {}, last = {} }, nil, { text = paths })
    check.equal(text_of(read.valid), "20\n40\n")
    check.equal(#read.train // 4, 9 * 2 + 36 * 3 - 6)
end

-- What a tokenizer puts around every text stands in no text to train on.
function test.ids_around_a_text_are_left_off()
    local path = program.folder() .. "/text"
    assert(host.write_file(path, ("line\n"):rep(30)))
    local around = {
        packed = function(_, piece) return string.pack("<i4i4i4", 1, #piece, 2) end,
    }
    local read = corpus.read(around, { first = { 1 }, last = { 2 } }, nil, { text = { path }, valid = { path } })
    check.equal({ string.unpack("<i4", read.valid) }, { 150, 5 })
    check.equal(#read.valid, 4)
end

return test
