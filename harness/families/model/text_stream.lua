-- Text that is printed as it is made: whole characters at once, and nothing from a stop on.
local text_stream = {}

-- How many bytes of `text` are whole characters; what can no longer become one counts as it is.
local function whole_bytes(text)
    for back = 1, math.min(3, #text) do
        local byte = text:byte(-back)
        if byte >= 0xc2 and byte <= 0xf4 then
            local length = byte >= 0xf0 and 4 or byte >= 0xe0 and 3 or 2
            return back < length and #text - back or #text
        end
        if byte < 0x80 or byte > 0xbf then break end
    end
    return #text
end

-- The length of the longest end of `text` that `stop` begins with.
local function begun(text, stop)
    for length = math.min(#text, #stop - 1), 1, -1 do
        if text:sub(-length) == stop:sub(1, length) then return length end
    end
    return 0
end

-- A stream; stop, optional: a text that ends it. Methods:
--   add(piece)   -> what can be printed now, and whether the stop has come; nothing may be added behind it
--   rest()       -> what is still held back
function text_stream.new(stop)
    local held, s = "", {}
    function s.add(piece)
        held = held .. piece
        local at = stop and held:find(stop, 1, true)
        if at then
            local text = held:sub(1, at - 1)
            held = ""
            return text, true
        end
        local kept = stop and begun(held, stop) or 0
        local ready = whole_bytes(held:sub(1, #held - kept))
        local text = held:sub(1, ready)
        held = held:sub(ready + 1)
        return text, false
    end
    function s.rest()
        local text = held
        held = ""
        return text
    end
    return s
end

return text_stream
