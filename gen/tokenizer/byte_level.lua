-- The alphabet of byte-level BPE: each byte is written as one printable character in its files.
local byte_level = {}

local to_byte, from_byte = {}, {}

do
    local next_character = 256
    for byte = 0, 255 do
        local printable = byte >= 0x21 and byte <= 0x7e or byte >= 0xa1 and byte <= 0xac or byte >= 0xae
        local character = utf8.char(printable and byte or next_character)
        if not printable then next_character = next_character + 1 end
        to_byte[character], from_byte[byte] = string.char(byte), character
    end
end

-- The bytes that `text` stands for, nil: it has characters that stand for none.
function byte_level.bytes(text)
    if not utf8.len(text) then return nil end
    local good = true
    local bytes = text:gsub(utf8.charpattern, function(character)
        good = good and to_byte[character] ~= nil
        return to_byte[character] or ""
    end)
    return good and bytes or nil
end

-- The character that stands for a byte.
function byte_level.character(byte) return from_byte[byte] end

return byte_level
