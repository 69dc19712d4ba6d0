-- The list of types that weights may be stored in: one row a type, everything else loops over it.
--
--   name, bytes    of an element
--   storage        its type in C
--   scaled         an element is an integer in units of its row's scale, which kernels fold into the score
--   word           how a projection packs it, nil: no type of a projection. Weights of the same output fill a 32-bit
--                  word, of C type
--                  `storage`: `rows` of them, the first in the low bits. With `integers` the inputs are rounded to such
--                  words, too, and
--                  sums are integers
--   only           "projection": of nothing else
--   cache          whether keys and values of a transformer may be kept in it: kernels round to it (isa.store_f16 …)
--   doc            one line for help
-- Whatever an instruction set lacks it converts itself: one blob serves all of them.
local dtype = {}

dtype.list = {
    {
        name = "f32",
        bytes = 4,
        storage = "float",
        scaled = false,
        word = { storage = "float", rows = 1 },
        cache = true,
        doc = "float32",
    },
    {
        name = "bf16",
        bytes = 2,
        storage = "uint16_t",
        scaled = false,
        word = { storage = "uint32_t", rows = 2 },
        doc = "the upper half of a float32",
    },
    { name = "f16", bytes = 2, storage = "uint16_t", scaled = false, cache = true, doc = "IEEE half precision" },
    {
        name = "i16",
        bytes = 2,
        storage = "int16_t",
        scaled = true,
        only = "projection",
        word = { storage = "uint32_t", rows = 2, integers = true },
        doc = "integers of 16 bits and a float32 scale a row, inputs rounded likewise",
    },
    {
        name = "i8",
        bytes = 1,
        storage = "int8_t",
        scaled = true,
        cache = true,
        doc = "integers from -127 to 127 and a float32 scale a row",
    },
}

local function serves(row, use)
    if use == "projection" then return row.word ~= nil end
    if use == "cache" then return row.cache == true end
    return row.only == nil
end

-- The names of the types that tables may have, and of those that a projection and a cache may have.
dtype.names, dtype.projection_names, dtype.cache_names = {}, {}, {}
for _, row in ipairs(dtype.list) do
    if serves(row, "tables") then table.insert(dtype.names, row.name) end
    if serves(row, "projection") then table.insert(dtype.projection_names, row.name) end
    if serves(row, "cache") then table.insert(dtype.cache_names, row.name) end
end

-- The row of that name, f32 if absent; raises one line for a name that the option --`use` cannot have: "tables" (if
-- absent), "type", "projection" or "cache".
function dtype.get(name, use)
    local names = use == "projection" and dtype.projection_names or use == "cache" and dtype.cache_names or dtype.names
    for _, row in ipairs(dtype.list) do
        if row.name == (name or "f32") and serves(row, use) then return row end
    end
    error("--" .. (use or "tables") .. ': "' .. tostring(name) .. '": must be one of ' .. table.concat(names, ", "), 0)
end

-- The names in a list such as "f32,i8" that the option --`use` has; raises one line for an unknown one and for one that
-- comes twice.
function dtype.select(text, use)
    local list, seen = {}, {}
    for word in (text .. ","):gmatch("([^,]*),") do
        local name = dtype.get(word, use).name
        if seen[name] then error("--" .. use .. ': "' .. name .. '": given twice', 0) end
        seen[name] = true
        list[#list + 1] = name
    end
    return list
end

return dtype
