-- Reads the wire format of protocol buffers, as far as a SentencePiece model needs it.
local protobuf = {}

-- A variable-length integer at `at`: its value and the place behind it; nil: it is cut off or too long.
local function varint(bytes, at)
    local value, shift = 0, 0
    while shift < 64 do
        local byte = bytes:byte(at)
        if not byte then return nil end
        value, at = value | (byte & 127) << shift, at + 1
        if byte < 128 then return value, at end
        shift = shift + 7
    end
    return nil
end

-- The fields of a message in their order, { {number, value} }: integers, floats (of 4 or 8 bytes) or strings; nil for
-- bytes that are no message.
function protobuf.fields(bytes)
    local list, at = {}, 1
    while at <= #bytes do
        local key, value
        key, at = varint(bytes, at)
        if not key or key >> 3 == 0 then return nil end
        local wire = key & 7
        if wire == 0 then
            value, at = varint(bytes, at)
            if not value then return nil end
        elseif wire == 1 or wire == 5 then
            local format, size = "<f", 4
            if wire == 1 then
                format, size = "<d", 8
            end
            if at + size - 1 > #bytes then return nil end
            value, at = string.unpack(format, bytes, at), at + size
        elseif wire == 2 then
            local length
            length, at = varint(bytes, at)
            if not length or length < 0 or length > #bytes - at + 1 then return nil end
            value, at = bytes:sub(at, at + length - 1), at + length
        else
            return nil
        end
        list[#list + 1] = { key >> 3, value }
    end
    return list
end

return protobuf
