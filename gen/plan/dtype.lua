-- The list of types that weights may be stored in: one row a type, everything else loops over it.
--
--   name, bytes    of an element; half a byte: two elements to a byte, the first one in the low bits. Each row then
--                  begins with a byte of its own, and kernels count bytes (dtype.units)
--   storage        its type in C
--   plain          kernels load elements as they are, nil: by the words load_<name> and load_partial_<name>
--   scaled         an element is in units of its row's scale, which kernels fold into the score
--   needs          what instruction sets know it by (type_needs and `serves` of gen/isa/list.lua), nil: its name
--   integer_gather sums of a table's rows may be made of integers, where an instruction set has words for that
--   word           how a projection packs it, nil: no type of a projection. Weights of the same output fill a 32-bit
--                  word, of C type `storage`: `rows` of them, the first in the low bits. With `integers` the inputs
--                  are rounded to such words, too, to whole numbers up to `levels`, and sums are integers. With
--                  `offset` weights are packed that much larger, as numbers without a sign, and inputs have a unit for
--                  each block of a product and token, not for each token
--   groups         inputs of an output that share a scale, nil: they do not. Words of `weights` elements each, of
--                  `bits` and `offset` more than their numbers, of the C type `storage`, lie behind the scales of a
--                  panel's group (gen/families/model/blocks/layout.lua), and with `minimum` behind what is added to
--                  each weight. `gguf`: the type of GGUF files that has
--                  the same scales, minima and integers, which are packed as they are
--   rows           the type of what is read row by row where weights are of this one, nil: this one, too
--   activations    the type that inputs may be rounded to beside such weights, which are packed as ever
--   packed         what a section of such weights calls them, nil: `name`
--   only           "products": of these alone, a projection's or rounded inputs', and of nothing else but for `cache`;
--                  "tables": of a LookupFFN; "weights": of --type alone. Rows of one name differ in it
--   cache          keys and values of a transformer may be cached in it, nil: they may not. Kernels round to it (words
--                  store_f16 …): `tolerance` is the largest relative error that emitted code may have of a token, as a
--                  key or value in the middle of two numbers may become either. In the type of the activations they
--                  are cached as words of attention's dot products; `words_only`: in no other way
--   products       a token's inputs may be rounded to it, too (--activations NAME), nil: they may not. Weights are
--                  then packed as the type `packed`, `rows` inputs of an output in a word of C type `storage`. With
--                  `integers` both are whole numbers up to `levels`, weights as unsigned bytes that are `offset` more,
--                  and products are sums of integers, of which `most_inputs` at most stay below 2^31.
--                  `weights`: their type; `tiers`: of the words that kernels need; `tiles`: the word that multiplies
--                  them by a matrix engine; `needs`: as above
--   doc            one line for help
-- Packing and the reference have one row a type of their own: gen/weights/quantise.c, harness/reference/type.c.
-- Whatever an instruction set lacks it converts itself: one blob serves all of them.
local misuse = require "gen.schema.misuse"
local one_of = require "gen.schema.one_of"

local dtype = {}

-- Products of bytes: weights of the type i8, packed as the type `packed`, and inputs are whole numbers up to `levels`.
local function bytes(name, packed, levels)
    return {
        name = name,
        weights = "i8",
        needs = "i8",
        packed = packed,
        rows = 4,
        storage = "uint32_t",
        integers = true,
        levels = levels,
        offset = levels + 1,
        most_inputs = 130000 * 127 // levels,
        tiers = { "integer", "quads" },
        tiles = "tile_dot_i8",
    }
end

-- The row `own` of a type of weights in groups. Their scales are why a CPU needs F16C.
local function in_groups(own)
    own.bytes, own.weights, own.storage, own.scaled = 4, own.weights or 8, "uint32_t", false
    own.bits = 32 // own.weights
    own.offset = own.minimum and 0 or 1 << own.bits - 1
    own.only, own.needs, own.groups, own.rows, own.activations = "weights", "f16", 32, "i8", "i8"
    return own
end

dtype.list = {
    {
        name = "f32",
        bytes = 4,
        storage = "float",
        plain = true,
        scaled = false,
        word = { storage = "float", rows = 1 },
        cache = { tolerance = 1e-5 },
        doc = "float32",
    },
    {
        name = "bf16",
        bytes = 2,
        storage = "uint16_t",
        scaled = false,
        word = { storage = "uint32_t", rows = 2 },
        products = {
            name = "bf16",
            weights = "bf16",
            needs = "bf16_products",
            packed = "bf16",
            rows = 2,
            storage = "uint32_t",
            tiers = { "bf16", "bf16_products" },
            tiles = "tile_dot_bf16",
        },
        cache = { tolerance = 8e-3, words_only = true },
        doc = "the upper half of a float32",
    },
    {
        name = "f16",
        bytes = 2,
        storage = "uint16_t",
        scaled = false,
        cache = { tolerance = 1e-3 },
        doc = "IEEE half precision",
    },
    {
        name = "i16",
        bytes = 2,
        storage = "int16_t",
        scaled = true,
        only = "products",
        word = { storage = "uint32_t", rows = 2, integers = true, levels = 32767 },
        doc = "integers of 16 bits and a float32 scale a row, inputs rounded likewise",
    },
    {
        name = "i8",
        bytes = 1,
        storage = "int8_t",
        scaled = true,
        integer_gather = true,
        word = { storage = "uint32_t", rows = 4, integers = true, levels = 127, offset = 128 },
        cache = { tolerance = 3e-2 },
        products = bytes("i8", "u8", 127),
        doc = "integers from -127 to 127 and a float32 scale a row",
    },
    {
        -- Four products of such inputs and weights stay below 2^15 together: SSE4 and AVX2 sum 16-bit integers first.
        name = "i7",
        bytes = 1,
        storage = "int8_t",
        scaled = true,
        only = "products",
        needs = "i8",
        word = { storage = "uint32_t", rows = 4, integers = true, levels = 63, offset = 64 },
        cache = { tolerance = 6e-2, words_only = true },
        products = bytes("i7", "u7", 63),
        doc = "integers from -63 to 63 and a float32 scale a row",
    },
    {
        -- 4 bits of exponent, 3 of fraction, no infinity (OCP's E4M3). Kernels read a byte as 1/256 of its number, a
        -- half precision number with the same fraction and a larger exponent bias; the row's scale makes up for it.
        name = "e4m3",
        bytes = 1,
        storage = "uint8_t",
        scaled = true,
        doc = "fp8 with 4 bits of exponent and 3 of fraction, and a float32 scale a row",
    },
    {
        name = "i4",
        bytes = 0.5,
        storage = "uint8_t",
        scaled = true,
        integer_gather = true,
        needs = "i8",
        only = "tables",
        doc = "integers from -7 to 7, two to a byte, and a float32 scale a row",
    },
    in_groups {
        name = "i4",
        packed = "q4",
        gguf = "Q4_0",
        doc = "integers from -8 to 7 and a half precision scale for each 32 inputs of an output",
    },
    in_groups {
        name = "u4",
        minimum = true,
        gguf = "Q4_1",
        doc = "integers from 0 to 15, a half precision scale and a minimum for each 32 inputs of an output",
    },
    in_groups {
        name = "q8",
        weights = 4,
        gguf = "Q8_0",
        doc = "integers from -128 to 127 and a half precision scale for each 32 inputs of an output",
    },
}

local function serves(row, use)
    if use == "projection" then return row.word ~= nil end
    if use == "cache" then return row.cache ~= nil end
    if use == "activations" then return row.plain or row.products ~= nil end
    return row.only == nil or row.only == (use == "type" and "weights" or "tables")
end

-- Bytes of so many elements; elements in so many bytes.
function dtype.size(row, elements) return math.ceil(elements * row.bytes) end
function dtype.held(row, bytes) return math.floor(bytes / row.bytes) end

-- How far apart in memory, in units of `storage`, elements are that lie so many apart in a row, whole bytes.
function dtype.units(row, elements) return row.bytes < 1 and dtype.size(row, elements) or elements end

-- The names of the types that tables may have, and of those that --type, a projection, a cache and activations may
-- have; and of the first ones those that words load.
dtype.names, dtype.projection_names, dtype.cache_names, dtype.loaded_names = {}, {}, {}, {}
dtype.type_names, dtype.activation_names = {}, {}
for _, row in ipairs(dtype.list) do
    if serves(row, "tables") then table.insert(dtype.names, row.name) end
    if serves(row, "type") then table.insert(dtype.type_names, row.name) end
    if serves(row, "projection") then table.insert(dtype.projection_names, row.name) end
    if serves(row, "cache") then table.insert(dtype.cache_names, row.name) end
    if serves(row, "activations") then table.insert(dtype.activation_names, row.name) end
    if serves(row, "tables") and not row.plain then table.insert(dtype.loaded_names, row.name) end
end

-- The row of that name, f32 if absent; raises one line for a name that the option --`use` cannot have: "tables" (if
-- absent), "type", "projection", "cache" or "activations".
function dtype.get(name, use)
    local names = use == "projection" and dtype.projection_names
        or use == "cache" and dtype.cache_names
        or use == "activations" and dtype.activation_names
        or use == "type" and dtype.type_names
        or dtype.names
    for _, row in ipairs(dtype.list) do
        if row.name == (name or "f32") and serves(row, use) then return row end
    end
    one_of.check("--" .. (use or "tables"), name, names)
end

-- The parts of a model that --type may give a type of their own: products of blocks, all other products, and rows of
-- the embedding.
dtype.parts = { "blocks", "head", "embedding" }

-- The types that the option --type says, a type for all parts, PART=TYPE, or both, as in "i4,head=i8": rows of the list
-- by part, and `given`, the names of those that it says by part. Raises one line for anything else.
function dtype.of_parts(text)
    text = text or "f32"
    local all, given = not text:find "=" and dtype.get(text, "type") or nil, {}
    for word in (all and "" or text .. ","):gmatch "([^,]*)," do
        local part, name = word:match "^([^=]*)=(.*)$"
        if part then
            one_of.check('--type: "' .. text .. '"', part, dtype.parts)
        elseif all or next(given) then
            misuse(string.format('--type: "%s": "%s": must be PART=TYPE, or stand first alone', text, word))
        end
        if part and given[part] then misuse(string.format('--type: "%s": %s: given twice', text, part)) end
        local row = dtype.get(name or word, "type")
        if part then
            given[part] = row.name
        else
            all = row
        end
    end
    all = all or dtype.get()
    local function of(part) return given[part] and dtype.get(given[part], "type") end
    return {
        blocks = of "blocks" or all,
        head = of "head" or all,
        embedding = of "embedding" or dtype.of_rows(all),
        given = given,
    }
end

-- The type of what is read row by row where weights are of the type `type`.
function dtype.of_rows(type) return type.rows and dtype.get(type.rows) or type end

-- Whether products may round inputs to the type `row` beside weights of the type `type`.
function dtype.go_together(row, type)
    return row.plain or row.products.weights == type.name or type.activations == row.name
end

-- The type that products round a token's inputs to, with weights of the type `type`, or nil: they do not; raises one
-- line for a type that needs other weights.
function dtype.activations(name, type)
    local row = dtype.get(name, "activations")
    if not dtype.go_together(row, type) then
        local form, needed = '--activations: "%s": needs --type %s, not %s', row.products.weights
        for _, other in ipairs(dtype.list) do
            if other.activations == row.name then needed = needed .. " or " .. other.name end
        end
        misuse(form:format(row.name, needed, type.name))
    end
    return not row.plain and row or nil
end

-- The type that keys and values are cached in: of that name, or, if it is nil, that of the activations (a row of
-- `activations`, or nil), or float32. Raises one line for a type that needs other activations. plain: it is float32
-- unless there is a name.
function dtype.cached(name, activations, plain)
    if not name then return activations and activations.cache and not plain and activations or dtype.get "f32" end
    local row = dtype.get(name, "cache")
    if row.cache.words_only and row ~= activations then
        misuse(string.format('--cache: "%s": needs --activations %s', row.name, row.name))
    end
    return row
end

return dtype
