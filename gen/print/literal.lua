-- Writes numbers as C literals that read back to the same bits.

local literal = {}

-- The float32 nearest to x, as a Lua number.
function literal.round32(x) return (string.unpack("<f", string.pack("<f", x))) end

-- 1 / n: compilers compute it, readers see n.
function literal.inverse(n) return ("1.0f / %d.0f"):format(n) end

-- A float literal such as 0.3f: the shortest of %.1g … %.9g that is the same float32. Refuses inf and nan.
function literal.float(x)
    if x ~= x or x == math.huge or x == -math.huge then
        error("a float literal must be finite, got " .. tostring(x), 2)
    end
    local bytes = string.pack("<f", x)
    local rounded = string.unpack("<f", bytes)
    if rounded == math.huge or rounded == -math.huge then
        error("a float literal must fit float32, got " .. tostring(x), 2)
    end
    for digits = 1, 9 do
        local text = string.format("%." .. digits .. "g", rounded)
        if not text:find("[.e]") then text = text .. ".0" end -- also keeps the sign of -0.0 below
        if string.pack("<f", tonumber(text)) == bytes then return text .. "f" end
    end
    error("no literal for " .. tostring(x))
end

-- An unsigned hexadecimal literal with `digits` digits: 0x0000ffffu.
function literal.hex(n, digits) return string.format("0x%0" .. digits .. "xu", n) end

-- The bytes of a hexadecimal string as C initialiser elements, 8 to a line.
function literal.byte_lines(hex)
    local lines, line = {}, {}
    for byte in hex:gmatch("%x%x") do
        line[#line + 1] = "0x" .. byte .. ","
        if #line == 8 then
            lines[#lines + 1], line = table.concat(line, " "), {}
        end
    end
    if #line > 0 then lines[#lines + 1] = table.concat(line, " ") end
    return lines
end

return literal
