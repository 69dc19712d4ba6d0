-- The beginning of `text` for a message: at most `most` bytes, and no part of a character.
return function(text, most)
    local last = most
    while last > math.max(0, most - 3) and last < #text and text:byte(last + 1) & 0xc0 == 0x80 do
        last = last - 1
    end
    return text:sub(1, last)
end
