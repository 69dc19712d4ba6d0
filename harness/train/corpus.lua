-- Text as ids: files tokenised one behind the other, and the part of them that is kept for validation.
local host = require "host"
local text_file = require "harness.base.text_file"

local corpus = {}

local piece_bytes = 1 << 16 -- of a text that is tokenised in one call, about
local documents = 20 -- with so many files every so many-th is for validation; with fewer the end of each
local held_out = 0.1 -- of the text of a file, then

-- The place of the last byte of a line near `at`, or of a character.
local function line_end(bytes, at)
    local found = bytes:find("\n", at, true)
    if found then return found end
    while at < #bytes and bytes:byte(at + 1) & 0xc0 == 0x80 do
        at = at + 1
    end
    return at
end

-- The ids of `bytes` as a string of int32, without those that the tokenizer puts around a text.
local function ids_of(tokenizer, facts, bytes, where)
    local list, at = {}, 1
    local first, last = 4 * #facts.first, 4 * #facts.last
    while at <= #bytes do
        local stop = #bytes
        if stop - at > piece_bytes then stop = math.min(line_end(bytes, at + piece_bytes), at + 4 * piece_bytes) end
        while stop < #bytes and bytes:byte(stop + 1) & 0xc0 == 0x80 do
            stop = stop + 1
        end
        local ids, message = tokenizer:packed(bytes:sub(at, stop))
        if not ids then error(where .. ": " .. message, 0) end
        list[#list + 1] = ids:sub(1 + first, #ids - last)
        at = stop + 1
        host.status(string.format("%s: %3.0f %% in tokens", where, 100 * stop / #bytes))
    end
    return table.concat(list)
end

-- The ids of the files in options.text, and of those in options.valid, or of a part of the first. `ends`: the id that
-- ends a text, nil: there is none. Returns { train, valid (strings of int32), bytes (of the text of valid) }.
function corpus.read(tokenizer, facts, ends, options)
    local train, valid = {}, {}
    local valid_bytes = 0
    local function add(list, bytes, where)
        if bytes == "" then return end
        list[#list + 1] = ids_of(tokenizer, facts, bytes, where) .. (ends and string.pack("<i4", ends) or "")
        if list == valid then valid_bytes = valid_bytes + #bytes end
    end
    for i, path in ipairs(options.text) do
        local bytes = text_file.read("--text", path)
        local cut = #bytes
        if not options.valid and #options.text < documents then
            cut = line_end(bytes, math.max(1, math.floor((1 - held_out) * #bytes)))
        end
        local list = not options.valid and #options.text >= documents and i % documents == 0 and valid or train
        add(list, bytes:sub(1, cut), path)
        add(valid, bytes:sub(cut + 1), path)
    end
    for _, path in ipairs(options.valid or {}) do
        add(valid, text_file.read("--valid", path), path)
    end
    host.status ""
    return { train = table.concat(train), valid = table.concat(valid), bytes = valid_bytes }
end

return corpus
