-- The list of instruction sets, slowest first. Each is one file that gives the vocabulary templates are written in.
--
-- An instruction set has
--   name, lanes, registers   float32 lanes of a vector, vector registers
--   l2_bytes                 nominal L2 cache of the CPUs that have it: the default schedule is made for it
--   any_alignment            load and store take any alignment of floats, nil: that of a vector
--   sizeless                 its vectors have no size for the compiler and cannot lie in arrays, nil: they have
--   flags, guard             compiler flags of its files; the preprocessor condition that says they were given
--   includes                 headers of its files
--   cpu                      CPUID and XGETBV bits that must be set to run it, nil: any CPU
--   vector, index, mask      C types of a vector of floats, of a vector of row numbers, and of a comparison of two
--                            vectors
--   register_barrier         whether gcc must be kept from copying sums of integers (templates/bundle/runtime.h)
--   functions                C lines that its words need in <model>_runtime.h, nil: none; $name becomes <model>_name
--   type_functions           those of one type of gen/plan/dtype.lua; kept_functions: of words that round to it
--   type_needs               what one type of gen/plan/dtype.lua needs beside: { flags, guard, leaf1_ecx, leaf7_ecx,
--                            feature of harness/base/cpu.c, gather_i8 }
--   features                 those features of harness/base/cpu.c that its types need
--   gather_i8                words of an integer dot product (gen/isa/avx512.lua), if the tables' type has one: rows of
--                            tables at a time,
--                            columns of a step, vectors that their sums take
-- and the words below: C expressions over C expressions. `base, offset` is an address: offset 0 is `base` itself.
--   zero() broadcast(s) load(base, offset) load_unaligned load_partial(base, offset, n) store(base, offset, v)
--   store_unaligned store_partial(base, offset, n, v) add sub mul div max(a, b: b if either is NaN) abs
--   fma(a, b, c) = a b + c    reciprocal_root(v) = 1/sqrt(v)
--   round_negative(v): nearest integer, v <= 0, anything for NaN, and power_of_two(n) = 2^n, n an integer from -126 to
--   0, any power of two for NaN; or
--   shifted_power(v) = 2^n, where v = 1.5 2^23 + 127 + n, anything for NaN
--   less(a, b): a mask, not set where a or b is NaN    select(mask, a, b): a where it is set, else b    any(mask):
--                                                      whether a lane is set
--   index_zero() index_or_if_positive(index, z, bit) index_store(base, offset, index): stores uint16_t
--   index_broadcast(n) index_add index_xor index_select(mask, a, b)
--   prefetch_l2(base, offset): asks for a cache line; nil where there is none; prefetch_l1: one that is soon read, and
--   once, into L1; prefetch_nta: one that is copied
--   stream(base, v): stores past the caches, base aligned to v, nil where there is none; stream_fence(): what makes
--   such stores precede later ones
--   load_bf16 load_f16 load_i8(base): as many elements of a table (gen/plan/dtype.lua) as lanes, as floats;
--   load_partial_bf16 …(base, n): n of them, reading not a byte more
--   store_f16 store_i8(base, offset, v): rounds as many floats as lanes to it, those of i8 between -127.5 and 127.5 or
--   NaN, which becomes any
--   load_words(base, offset) load_words_partial(base, offset, n): 32-bit words of a projection, an `index`
--   store_words(base, offset, words): a whole vector of them
--   dot_i16(sum, a, b): the products of both 16-bit integers in each word of a and of b added to the integers `sum`,
--   all of them an `index`
--   float_of(index): signed integers as floats
--   pack_i16(a, b): words of a and b, rounded to 16-bit integers, a in the low bits
--   store_i16(base, offset, a, b): twice as many floats as lanes, the first ones in a, rounded to 16-bit integers,
--   two to a word
--   unpack_bf16(words): the list of what the parts of such words are as floats, the lowest first
--   reduce(v, "max" or "add"): the list of { type, name, value } that makes one float of all lanes, and the C
--   expression of that float
--   max_magnitude(most, v): the larger one of |v| and `most`, an `index` of the bits of such floats, where NaN and infinity
--   are the largest;
--   reduce_magnitudes(most): as reduce, the largest lane as a float; nil where floats are compared as fast
--   transpose(rows): the list of { name, value } that transposes lanes x lanes values, and the names of the results
local isa = {}

isa.names = { "scalar", "avx2", "avx512" }

-- Those of other CPUs, for the targets of gen/plan/target.lua. They have the words of kernels for few tokens.
isa.foreign = { "neon", "sve", "mve", "rvv", "wasm" }

function isa.get(name) return (require("gen.isa." .. name)) end

local function contains(list, wanted)
    for _, item in ipairs(list) do
        if item == wanted then return true end
    end
    return false
end

-- The instruction set `set` with what it needs for weights of one type.
local function with_type(set, type)
    local needs = set.type_needs and set.type_needs[type.name]
    if not needs then return set end
    local copy = {}
    for key, value in pairs(set) do
        copy[key] = value
    end
    copy.gather_i8 = needs.gather_i8 or set.gather_i8
    if not contains(set.features or {}, needs.feature) then
        copy.features = { needs.feature, table.unpack(set.features or {}) }
        copy.flags = table.move(needs.flags, 1, #needs.flags, #set.flags + 1, { table.unpack(set.flags) })
        copy.guard = set.guard .. " && " .. needs.guard
        copy.cpu = {
            leaf1_ecx = set.cpu.leaf1_ecx | (needs.leaf1_ecx or 0),
            leaf7_ebx = set.cpu.leaf7_ebx,
            leaf7_ecx = needs.leaf7_ecx or set.cpu.leaf7_ecx,
            xcr0 = set.cpu.xcr0,
        }
    end
    return copy
end

-- Raises one line for a name that is none, also none of other CPUs.
function isa.check(name)
    if contains(isa.names, name) or contains(isa.foreign, name) then return end
    error(
        '"'
            .. name
            .. '": must be an instruction set, of '
            .. table.concat(isa.names, ", ")
            .. ", "
            .. table.concat(isa.foreign, ", "),
        0
    )
end

-- The instruction set `set` with what it needs for weights of the types in the list.
function isa.with_types(set, types)
    for _, type in ipairs(types) do
        set = with_type(set, type)
    end
    return set
end

-- The instruction sets named in "scalar,avx2", in the order of the list; raises one line for an unknown name.
function isa.select(text)
    local wanted = {}
    for name in (text .. ","):gmatch("([^,]*),") do
        if not contains(isa.names, name) then
            error('--isa: "' .. name .. '": must be of ' .. table.concat(isa.names, ", "), 0)
        end
        wanted[name] = true
    end
    local list = {}
    for _, name in ipairs(isa.names) do
        if wanted[name] then list[#list + 1] = isa.get(name) end
    end
    return list
end

return isa
