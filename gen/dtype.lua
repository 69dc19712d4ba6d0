-- The list of types an element of the tables may have: one row a type, everything else loops over it.
--
--   name, bytes    of an element
--   storage        its type in C
--   scaled         an element is an integer in units of its row's scale, which kernels fold into the score
--   doc            one line for help
-- Whatever an instruction set lacks it converts itself: one blob serves all of them.
local dtype = {}

dtype.list = {
    { name = "f32", bytes = 4, storage = "float", scaled = false, doc = "float32" },
    { name = "bf16", bytes = 2, storage = "uint16_t", scaled = false, doc = "the upper half of a float32" },
    { name = "f16", bytes = 2, storage = "uint16_t", scaled = false, doc = "IEEE half precision" },
    { name = "i8", bytes = 1, storage = "int8_t", scaled = true, doc = "integers from -127 to 127 and a float32 scale a row" },
}

dtype.names = {}
for i, row in ipairs(dtype.list) do dtype.names[i] = row.name end

-- The row of that name, f32 if absent; raises one line for an unknown name.
function dtype.get(name)
    for _, row in ipairs(dtype.list) do
        if row.name == (name or "f32") then return row end
    end
    error('--tables: "' .. tostring(name) .. '": must be one of ' .. table.concat(dtype.names, ", "), 0)
end

-- The names in a list such as "f32,i8"; raises one line for an unknown one and for one that comes twice.
function dtype.select(text)
    local list, seen = {}, {}
    for word in (text .. ","):gmatch("([^,]*),") do
        local name = dtype.get(word).name
        if seen[name] then error('--tables: "' .. name .. '": given twice', 0) end
        seen[name] = true
        list[#list + 1] = name
    end
    return list
end

return dtype
