-- Every word of every instruction set does what the portable one does: a C program for each set, written with the words
-- themselves, runs here or in the set's emulator.
local add_loads = require "gen.isa.parts.element_loads"
local check = require "tests.support.check"
local compilers = require "harness.base.compilers"
local cpu = require "harness.base.cpu"
local dtype = require "gen.plan.dtype"
local effort = require "tests.effort"
local expression = require "gen.isa.expression"
local helpers = require "gen.isa.helpers"
local host = require "host"
local isa = require "gen.isa.list"
local process = require "process"
local stand_ins = require "tests.support.stand_ins"
local tiles = require "tests.isa.tiles"
local targets = require "gen.plan.target"
local words = require "gen.isa.words"

local test = {}

local scalar = isa.get "scalar"
local count = 256 -- of the inputs of a word
local types = {} -- those that some words are for
for _, type in ipairs(dtype.list) do
    if not type.plain then types[#types + 1] = type end
end

-- Bits of inputs --

local seed
local function random(below)
    seed = (seed * 1103515245 + 12345) & 0x7fffffff
    return (seed >> 8) % below
end

local function bits_of(x) return (string.unpack("<I4", string.pack("<f", x))) end
local function uniform(low, high) return low + (high - low) * random(1 << 20) / (1 << 20) end
local nan = 0x7fc00000

-- The domain of words of four bytes, each from `first` to `last`.
local function bytes_of(edges, first, last)
    return {
        edges = edges,
        make = function()
            local word = 0
            for at = 0, 24, 8 do
                word = word | (random(last - first + 1) + first & 0xff) << at
            end
            return word
        end,
    }
end

-- Inputs of each domain: edges, then `make`.
local domains = {
    any = {
        edges = { 0, 0x80000000, nan, 0x7f800000, 0xff800000, 0x7f7fffff, 0xff7fffff, bits_of(1), bits_of(-1) },
        make = function() return bits_of(uniform(-4, 4) * 2.0 ^ (random(40) - 20)) end,
    },
    normal = {
        edges = { bits_of(2.0 ^ -120), 0x7f7fffff, bits_of(1) },
        make = function() return bits_of(2.0 ^ uniform(-100, 100)) end,
    },
    exponent = {
        edges = { 0, 0x80000000, nan },
        make = function() return bits_of(-random(126) - uniform(0, 0.49)) end,
    },
    ["whole exponent"] = { edges = { 0, nan, bits_of(-126) }, make = function() return bits_of(-random(127)) end },
    shifted = { edges = { nan }, make = function() return bits_of(12582912 + 127 - random(127)) end },
    byte = {
        edges = { 0, nan, bits_of(127), bits_of(-127) },
        make = function() return bits_of(random(255) - 127 + uniform(-0.49, 0.49)) end,
    },
    short = {
        edges = { 0, nan, bits_of(32767), bits_of(-32767) },
        make = function() return bits_of(random(65535) - 32767 + uniform(-0.4, 0.4)) end,
    },
    half = {
        edges = {
            0,
            0x80000000,
            nan,
            bits_of(65504),
            bits_of(2.0 ^ -24),
            bits_of(2.0 ^ -25),
            bits_of(1 + 2.0 ^ -11),
            bits_of(1 + 3 * 2.0 ^ -11),
        },
        make = function() return bits_of(uniform(-2, 2) * 2.0 ^ (random(41) - 26)) end,
    },
    bf16 = { edges = { 0, 0x8000, 0x7fc0, 0x7f80, 0xff80 }, make = function() return random(0x10000) end },
    f16 = {
        edges = { 0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff },
        make = function() return random(0x7c00) | random(2) << 15 end,
    },
    i8 = { edges = { 0, 127, -127 }, make = function() return random(255) - 127 end },
    e4m3 = { -- every finite one
        edges = { 0, 0x80, 1, 0x81, 7, 8, 0x7e, 0xfe },
        make = function() return random(0x7f) | random(2) << 7 end,
    },
    words = {
        edges = { 0, 0xffffffff, 0x80000000, 0x7fff8001 },
        make = function() return random(0x10000) | random(0x10000) << 16 end,
    },
    ["u8 words"] = bytes_of({ 0x80808080, 0xffffffff, 0x01010101, 0xff0101ff }, 1, 255),
    ["i8 words"] = bytes_of({ 0, 0x7f7f7f7f, 0x81818181, 0x817f7f81 }, -127, 127),
    ["u7 words"] = bytes_of({ 0x40404040, 0x7f7f7f7f, 0x01010101, 0x7f01017f }, 1, 127),
    ["i7 words"] = bytes_of({ 0, 0x3f3f3f3f, 0xc1c1c1c1, 0xc13f3fc1 }, -63, 63),
    ["bf16 words"] = {
        edges = { 0, 0x80008000, 0x3f803f80, 0x3f80bf80, 0x7f803f80, 0x3f807fc0 }, -- zeros, ones, infinity, NaN
        make = function()
            local function half() return bits_of(uniform(-4, 4) * 2.0 ^ (random(20) - 10)) >> 16 end
            return half() | half() << 16
        end,
    },
}

local function inputs(domain)
    local list = {}
    for i = 1, count do
        list[i] = domains[domain].edges[i] or domains[domain].make()
    end
    for i = count, 2, -1 do -- edges meet different others
        local k = random(i) + 1
        list[i], list[k] = list[k], list[i]
    end
    return list
end

-- C types of the elements of domains that are none of floats.
local elements = {}
for _, domain in ipairs { "words", "u8 words", "i8 words", "u7 words", "i7 words", "bf16 words" } do
    elements[domain] = "uint32_t"
end
for _, name in ipairs(dtype.loaded_names) do
    elements[name] = dtype.get(name).storage
end

-- The program of one instruction set --

local Program = {}
Program.__index = Program

function Program:add(text, ...)
    if select("#", ...) > 0 then text = string.format(text, ...) end
    self.lines[#self.lines + 1] = text
end

-- The name of an array of inputs of a domain: floats as numbers, elements as what tables store.
function Program:input(domain, which)
    local name = "in_" .. domain:gsub(" ", "_") .. "_" .. which
    if not self.arrays[name] then
        self.arrays[name] = true
        local element = elements[domain]
        local text = {}
        for i, bits in ipairs(inputs(domain)) do
            if domain == "words" and not self.set.store_words then bits = bits & 0xffff end -- as index_store takes them
            text[i] = string.format(element and "%d," or "{ .bits = 0x%xu },", bits)
        end
        table.insert(
            self.data,
            string.format(
                "static const %s %s[%d] ALIGNED = { %s };",
                element or "number",
                name,
                count,
                table.concat(text, " ")
            )
        )
    end
    return elements[domain] and name or "&" .. name .. "[0].value"
end

function Program:begin(name)
    self.tested[name:match "^[%w_]+"] = true
    self.count = self.count + 1
    self:add("static void test_%d(void) /* %s */", self.count, name)
    self:add "{"
end
function Program:finish() self:add "}" end

-- Statements for each vector of the inputs; `at` is its first lane.
function Program:vectors(...)
    self:add("    for (size_t at = 0; at < COUNT; at += %d) {", self.set.lanes)
    for _, line in ipairs { ... } do
        self:add("        " .. line .. ";")
    end
    self:add "    }"
end

-- Statements for each lane `i`.
function Program:lanes(...)
    self:add "    for (unsigned i = 0; i < COUNT; ++i) {"
    for _, line in ipairs { ... } do
        self:add("        " .. line .. ";")
    end
    self:add "    }"
end

-- A vector of integers to where `got_words` has them: all bits, or the lower 16 where no word stores more.
function Program:store_index(value)
    if self.set.store_words then return self.set.store_words("got_words", "at", value), "0xffffffffu", "got_words" end
    return self.set.index_store("got_halves", "at", value), "0xffffu", "got_halves"
end

-- The operands of a word: C expressions of vectors, and of lanes, and the declarations of the former.
function Program:operands(word)
    local vectors, lanes, declared, floats, integers = {}, {}, {}, 0, 0
    local names = { "a", "b", "c", "d" }
    for kind in word.takes:gmatch "%S+" do
        if kind == "vector" then
            floats = floats + 1
            local name = names[floats]
            local from = self:input(word.domain or "any", floats)
            declared[#declared + 1] =
                string.format("const %s %s = %s", self.set.vector, name, self.set.load_unaligned(from, "at"))
            vectors[#vectors + 1] = name
            lanes[#lanes + 1] = string.format("(%s)[i]", from)
        elseif kind == "index" then
            integers = integers + 1
            local name, from = "n" .. integers, self:input("words", integers)
            declared[#declared + 1] =
                string.format("const %s %s = %s", self.set.index, name, self.set.load_words(from, "at"))
            vectors[#vectors + 1], lanes[#lanes + 1] = name, from .. "[i]"
        elseif kind == "mask" then
            local a, b = self:input("any", 4), self:input("any", 5)
            declared[#declared + 1] = string.format(
                "const %s m = %s",
                self.set.mask,
                self.set.less(self.set.load_unaligned(a, "at"), self.set.load_unaligned(b, "at"))
            )
            vectors[#vectors + 1], lanes[#lanes + 1] = "m", scalar.less("(" .. a .. ")[i]", "(" .. b .. ")[i]")
        elseif kind == "bit" then
            vectors[#vectors + 1], lanes[#lanes + 1] = 4, 4
        else
            return nil
        end
    end
    return vectors, lanes, declared
end

-- Words that make a vector, integers or a mask of such.
local function plain(program, word)
    local set = program.set
    local vectors, lanes, declared = program:operands(word)
    if not vectors then return false end
    -- As exp does: qemu 7.2 stops at a conversion of RISC-V toward 0 that follows no other conversion.
    if word.name == "power_of_two" then vectors[1] = set.round_negative(vectors[1]) end
    local value = set[word.name](table.unpack(vectors))
    program:begin(word.name)
    local statements = { table.unpack(declared) }
    local compare
    local floats = {}
    for _, lane in ipairs(lanes) do
        if type(lane) == "string" and lane:find "^%(&" then floats[#floats + 1] = lane end
    end
    local skip = word.nan == "any" and string.format("if (%s != %s) continue", floats[1], floats[1])
        or word.nan == "b" and string.format("if (%s != %s) continue", floats[1], floats[1])
        or ";"
    if word.gives == "vector" then
        statements[#statements + 1] = set.store_unaligned("got", "at", value)
        if word.name == "fma" then
            compare = string.format('expect_fma("fma", i, %s, %s, %s, got[i])', table.unpack(lanes))
        elseif word.name == "shifted_power" then
            local n = string.format("(%s - %s)", lanes[1], "12583039.0f")
            compare = string.format('expect_float("%s", i, %s, got[i], 0)', word.name, scalar.power_of_two(n))
        else
            compare = string.format(
                'expect_float("%s", i, %s, got[i], %d)',
                word.name,
                scalar[word.name](table.unpack(lanes)),
                word.ulps or 0
            )
        end
    elseif word.gives == "mask" then
        statements[#statements + 1] =
            set.store_unaligned("got", "at", set.select(value, set.broadcast "1.0f", set.zero()))
        compare = string.format(
            'expect_float("%s", i, %s ? 1.0f : 0.0f, got[i], 0)',
            word.name,
            scalar[word.name](table.unpack(lanes))
        )
    else
        local statement, mask, array = program:store_index(value)
        statements[#statements + 1] = statement
        local expected
        if word.name == "max_magnitude" then
            local v =
                string.format("(((const number *) (const void *) %s)[i].bits & 0x7fffffffu)", program:input("any", 1))
            -- As signed integers: the bits of |v| are.
            expected = string.format("((int32_t) %s > (int32_t) %s ? %s : %s)", lanes[1], v, lanes[1], v)
        else
            expected = scalar[word.name](table.unpack(lanes))
        end
        compare = string.format('expect_bits("%s", i, (%s) & %s, %s[i])', word.name, expected, mask, array)
    end
    program:vectors(table.unpack(statements))
    program:lanes(skip, compare)
    program:finish()
    return true
end

local special = tiles(scalar)

function special.zero(p, set)
    p:vectors(set.store_unaligned("got", "at", set.zero()))
    p:lanes 'expect_float("zero", i, 0.0f, got[i], 0)'
end

function special.broadcast(p, set)
    local from = p:input("any", 1)
    p:vectors(set.store_unaligned("got", "at", set.broadcast("(" .. from .. ")[at]")))
    p:lanes(string.format('expect_float("broadcast", i, (%s)[i / %d * %d], got[i], 0)', from, set.lanes, set.lanes))
end

function special.index_zero(p, set)
    local statement, _, array = p:store_index(set.index_zero())
    p:vectors(statement)
    p:lanes(string.format('expect_bits("index_zero", i, 0, %s[i])', array))
end

function special.index_broadcast(p, set)
    local from = p:input("words", 1)
    local statement, mask, array = p:store_index(set.index_broadcast(from .. "[at]"))
    p:vectors(statement)
    p:lanes(
        string.format(
            'expect_bits("index_broadcast", i, %s[i / %d * %d] & %s, %s[i])',
            from,
            set.lanes,
            set.lanes,
            mask,
            array
        )
    )
end

-- Loads of floats: the whole input, from any alignment; `step` elements behind its beginning.
local function load(name, step)
    return function(p, set)
        local from = p:input("any", 1)
        local base = step > 0 and expression.sum("(" .. from .. ")", step) or from
        p:add("    for (size_t at = 0; at + %d <= COUNT; at += %d)", set.lanes + step, set.lanes)
        p:add("        %s;", set.store_unaligned("got", "at", set[name](base, "at")))
        p:add("    for (unsigned i = 0; i + %d <= COUNT; ++i)", set.lanes + step)
        p:add('        expect_float("%s", i, (%s)[i + %d], got[i], 0);', name, from, step)
    end
end
special.load, special.load_unaligned = load("load", 0), load("load_unaligned", 1)

local function store(name, step)
    return function(p, set)
        local from = p:input("any", 1)
        p:add("    for (size_t at = 0; at + %d <= COUNT; at += %d)", set.lanes + step, set.lanes)
        p:add("        %s;", set[name](step > 0 and "got + " .. step or "got", "at", set.load_unaligned(from, "at")))
        p:add("    for (unsigned i = 0; i + %d <= COUNT; ++i)", set.lanes + step)
        p:add('        expect_float("%s", i, (%s)[i], got[i + %d], 0);', name, from, step)
    end
end
special.store, special.store_unaligned = store("store", 0), store("store_unaligned", 1)

function special.stream(p, set)
    p:vectors(set.stream("(got + at)", set.load_unaligned(p:input("any", 1), "at")))
    p:add("    %s;", set.stream_fence())
    p.tested.stream_fence = true
    p:lanes(string.format('expect_float("stream", i, (%s)[i], got[i], 0)', p:input("any", 1)))
end

-- Loads of the first n, into got_words: bits of floats or integers.
local function load_partial(name, domain, whole)
    return function(p, set)
        for n = 1, set.lanes - 1 do
            local from = p:input(domain, 1)
            if name == "load_words_partial" then
                local statement, mask, array = p:store_index(set[name](from, "at", n))
                p:vectors(statement)
                p:lanes(
                    string.format(
                        'expect_bits("%s", i, i %% %d < %d ? %s[i] & %s : 0, %s[i])',
                        name,
                        set.lanes,
                        n,
                        from,
                        mask,
                        array
                    )
                )
            else
                local value = whole and set[name](expression.sum("(" .. from .. ")", "at"), n)
                    or set[name](from, "at", n)
                local element = whole and scalar[whole]("(" .. from .. " + i)") or "(" .. from .. ")[i]"
                p:vectors(set.store_unaligned("got", "at", value))
                p:lanes(
                    string.format(
                        'expect_float("%s", i, i %% %d < %d ? %s : 0.0f, got[i], 0)',
                        name,
                        set.lanes,
                        n,
                        element
                    )
                )
            end
        end
    end
end
special.load_partial = load_partial("load_partial", "any")
special.load_words_partial = load_partial("load_words_partial", "words")
for _, type in ipairs(dtype.loaded_names) do
    special["load_partial_" .. type] = load_partial("load_partial_" .. type, type, "load_" .. type)
    special["load_" .. type] = function(p, set)
        local from = p:input(type, 1)
        p:vectors(set.store_unaligned("got", "at", set["load_" .. type]("(" .. from .. ") + at")))
        p:lanes(
            string.format(
                'expect_float("load_%s", i, %s, got[i], 0)',
                type,
                scalar["load_" .. type]("(" .. from .. " + i)")
            )
        )
    end
end

function special.store_partial(p, set)
    for n = 1, set.lanes - 1 do
        p:lanes "got[i] = 77.0f"
        p:vectors(set.store_partial("got", "at", n, set.load_unaligned(p:input("any", 1), "at")))
        p:lanes(
            string.format(
                'expect_float("store_partial", i, i %% %d < %d ? (%s)[i] : 77.0f, got[i], 0)',
                set.lanes,
                n,
                p:input("any", 1)
            )
        )
    end
end

function special.load_words(p, set)
    local from = p:input("words", 1)
    local statement, mask, array = p:store_index(set.load_words(from, "at"))
    p:vectors(statement)
    p:lanes(string.format('expect_bits("load_words", i, %s[i] & %s, %s[i])', from, mask, array))
end

function special.store_words(p, set)
    local from = p:input("words", 1)
    p:vectors(set.store_words("got_words", "at", set.load_words(from, "at")))
    p:lanes(string.format('expect_bits("store_words", i, %s[i], got_words[i])', from))
end

function special.index_load(p, set)
    local from = p:input("f16", 1) -- as uint16_t
    local statement, mask, array = p:store_index(set.index_load(from, "at"))
    p:vectors(statement)
    p:lanes(string.format('expect_bits("index_load", i, %s[i] & %s, %s[i])', from, mask, array))
end

function special.index_store(p, set)
    local from = p:input("f16", 1) -- as uint16_t
    local value = set.index_zero()
    for bit = 0, 3 do -- no word loads indices: bits of lanes that are positive
        value = set.index_or_if_positive(value, set.load_unaligned(p:input("any", bit + 1), "at"), 1 << 4 * bit)
    end
    local expected = {}
    for bit = 0, 3 do
        expected[bit + 1] = string.format("((%s)[i] > 0.0f ? 0x%xu : 0u)", p:input("any", bit + 1), 1 << 4 * bit)
    end
    p:vectors(set.index_store("got_halves", "at", value))
    p:lanes(
        string.format('expect_bits("index_store", i, %s, got_halves[i])', table.concat(expected, " | ")),
        "(void) " .. from
    )
end

function special.any(p, set)
    local a, b = p:input("any", 4), p:input("any", 5)
    p:add("    for (size_t at = 0; at < COUNT; at += %d) {", set.lanes)
    p:add("        const %s mask = %s;", set.mask, set.less(set.load_unaligned(a, "at"), set.load_unaligned(b, "at")))
    p:add("        const %s none = %s;", set.mask, set.less(set.load_unaligned(a, "at"), set.load_unaligned(a, "at")))
    p:add "        unsigned expected = 0;"
    p:add("        for (unsigned i = 0; i < %d; ++i)", set.lanes)
    p:add("            expected |= (%s)[at + i] < (%s)[at + i];", a, b)
    p:add('        expect_bits("any", (unsigned) at, expected, (%s) ? 1 : 0);', set.any "mask")
    p:add('        expect_bits("any", (unsigned) at, 0, (%s) ? 1 : 0);', set.any "none")
    p:add "    }"
end

function special.unpack_bf16(p, set)
    local from = p:input("words", 1)
    for part = 1, 2 do
        p:vectors(
            string.format("const %s words = %s", set.index, set.load_words(from, "at")),
            set.store_unaligned("got", "at", set.unpack_bf16("words")[part])
        )
        p:lanes(string.format('expect_float("unpack_bf16", i, %s, got[i], 0)', scalar.unpack_bf16(from .. "[i]")[part]))
    end
end

local function store_type(name, domain, array)
    return function(p, set)
        local from = p:input(domain, 1)
        p:vectors(set[name](array, "at", set.load_unaligned(from, "at")))
        p:add "    for (unsigned i = 0; i < COUNT; ++i) {"
        p:add("        %s;", scalar[name](array .. "_expected", "i", "(" .. from .. ")[i]"))
        if name == "store_f16" then
            p:add("        if ((%s)[i] != (%s)[i] && (%s[i] & 0x7fffu) > 0x7c00u) continue;", from, from, array)
        else
            p:add("        if ((%s)[i] != (%s)[i]) continue;", from, from)
        end
        p:add('        expect_bits("%s", i, (uint32_t) %s_expected[i], (uint32_t) %s[i]);', name, array, array)
        p:add "    }"
    end
end
special.store_f16, special.store_i8 =
    store_type("store_f16", "half", "got_halves"), store_type("store_i8", "byte", "got_bytes")

function special.store_i16(p, set)
    local from, n = p:input("short", 1), set.lanes
    p:add("    for (size_t at = 0; at < COUNT; at += %d)", 2 * n)
    p:add(
        "        %s;",
        set.store_i16("got_words", "at / 2", set.load_unaligned(from, "at"), set.load_unaligned(from, "at + " .. n))
    )
    p:add "    for (unsigned i = 0; i < COUNT; ++i) {"
    p:add("        if ((%s)[i] != (%s)[i]) continue;", from, from)
    if n == 1 then
        p:add "        const uint16_t found = (uint16_t) (got_words[i / 2] >> 16 * (i % 2));"
    else
        p:add "        const uint16_t found = ((const uint16_t *) (const void *) got_words)[i];"
    end
    p:add('        expect_bits("store_i16", i, %s & 0xffffu, found);', scalar.pack_i16("(" .. from .. ")[i]", "0.0f"))
    p:add "    }"
end

-- What the dot product `name` makes of words of the domains, and dot_i8 less `offset` times the sum of b's bytes.
local function dot_words(p, set, name, a_domain, b_domain, offset)
    local sum, a, b = p:input("words", 1), p:input(a_domain, 2), p:input(b_domain, 1)
    local value = set[name](set.load_words(sum, "at"), set.load_words(a, "at"), set.load_words(b, "at"))
    p:vectors(set.store_words("got_words", "at", value))
    local from = string.format("%s[i] - %du * %s", sum, offset, scalar.dot_i8("0u", "0x01010101u", b .. "[i]"))
    local expected = scalar.dot_i8("(" .. from .. ")", a .. "[i]", b .. "[i]")
    p:lanes(string.format('expect_bits("%s", i, %s, got_words[i])', name, expected))
end

function special.dot_i7(p, set) dot_words(p, set, "dot_i7", "words", "i7 words", 0) end
function special.dot_two_i7(p, set)
    local sum, loaded, elements = p:input("words", 1), {}, {}
    for pair = 1, 2 do
        for _, domain in ipairs { "u7 words", "i7 words" } do
            local from = p:input(domain, pair)
            loaded[#loaded + 1], elements[#elements + 1] = set.load_words(from, "at"), from .. "[i]"
        end
    end
    p:vectors(set.store_words("got_words", "at", set.dot_two_i7(set.load_words(sum, "at"), table.unpack(loaded))))
    local first = scalar.dot_i8(sum .. "[i]", elements[1], elements[2])
    local expected = scalar.dot_i8(first, elements[3], elements[4])
    p:lanes(string.format('expect_bits("dot_two_i7", i, %s, got_words[i])', expected))
end
function special.dot_s8(p, set) dot_words(p, set, "dot_s8", "u8 words", "i8 words", 128) end

function special.dot_bf16(p, set)
    local sum, a, b = p:input("any", 1), p:input("bf16 words", 1), p:input("bf16 words", 2)
    local value = set.dot_bf16(set.load_unaligned(sum, "at"), set.load_words(a, "at"), set.load_words(b, "at"))
    p:vectors(set.store_unaligned("got", "at", value))
    p:lanes(string.format('expect_dot("dot_bf16", i, (%s)[i], %s[i], %s[i], got[i])', sum, a, b))
end

function special.store_bf16(p, set)
    local from, n = p:input("any", 1), set.lanes
    p:add("    for (size_t at = 0; at < COUNT; at += %d)", 2 * n)
    p:add(
        "        %s;",
        set.store_bf16("got_words", "at / 2", set.load_unaligned(from, "at"), set.load_unaligned(from, "at + " .. n))
    )
    p:add "    for (unsigned i = 0; i < COUNT; ++i) {"
    p:add "        const uint32_t found = got_words[i / 2] >> 16 * (i % 2) & 0xffffu;"
    p:add("        if ((%s)[i] != (%s)[i])", from, from)
    p:add '            expect_bits("store_bf16 of NaN", i, 1, (found & 0x7fffu) > 0x7f80u);'
    p:add "        else"
    p:add('            expect_bits("store_bf16", i, $to_bf16((%s)[i]), found);', from)
    p:add "    }"
end

function special.store_quads(p, set)
    local from, n, vectors = p:input("byte", 1), set.lanes, {}
    for part = 0, 3 do
        vectors[part + 1] = set.load_unaligned(from, part == 0 and "at" or "at + " .. part * n)
    end
    p:add("    for (size_t at = 0; at + %d <= COUNT; at += %d)", 4 * n, 4 * n)
    p:add("        %s;", set.store_quads("got_words", "at / 4", table.unpack(vectors)))
    p:add("    for (unsigned i = 0; i < COUNT - COUNT %% %d; ++i) {", 4 * n)
    p:add("        if ((%s)[i] != (%s)[i]) continue;", from, from)
    p:add "        const uint32_t found = got_words[i / 4] >> 8 * (i % 4) & 0xffu;"
    local expected = scalar.pack_i8("(" .. from .. ")[i]", "0.0f", "0.0f", "0.0f")
    p:add('        expect_bits("store_quads", i, %s & 0xffu, found);', expected)
    p:add "    }"
end

local function steps_of(p, indent, steps)
    for _, step in ipairs(steps) do
        p:add("%sconst %s %s = %s;", indent, step.type or p.set.vector, step.name, step.value)
    end
end

function special.transpose(p, set)
    local n, rows = set.lanes, {}
    local from = p:input("any", 1)
    for r = 1, n do
        rows[r] = "row" .. r
        p:add("    const %s row%d = %s;", set.vector, r, set.load_unaligned(from, (r - 1) * n))
    end
    local steps, columns = set.transpose(rows)
    steps_of(p, "    ", steps)
    for c, column in ipairs(columns) do
        p:add("    %s;", set.store_unaligned("got", (c - 1) * n, column))
    end
    p:add("    for (unsigned i = 0; i < %d; ++i)", n * n)
    p:add('        expect_float("transpose", i, (%s)[i %% %d * %d + i / %d], got[i], 0);', from, n, n, n)
end

function special.reduce(p, set)
    local from = p:input("short", 2) -- sums of them are exact in any order
    for _, kind in ipairs { "max", "add" } do
        p:add("    for (size_t at = 0; at < COUNT; at += %d) {", set.lanes)
        p:add("        const %s value = %s;", set.vector, set.load_unaligned("rounded", "at"))
        local steps, result = set.reduce("value", kind)
        steps_of(p, "        ", steps)
        p:add("        const float found = %s;", result)
        p:add "        float expected = rounded[at];"
        p:add("        for (unsigned i = 1; i < %d; ++i)", set.lanes)
        p:add(
            "            expected = %s;",
            kind == "max" and scalar.max("expected", "rounded[at + i]") or scalar.add("expected", "rounded[at + i]")
        )
        p:add('        expect_float("reduce %s", (unsigned) at, expected, found, 0);', kind)
        p:add "    }"
    end
    return "    for (unsigned i = 0; i < COUNT; ++i)\n        rounded[i] = ("
        .. from
        .. ")[i] == ("
        .. from
        .. ")[i] ? (float) (int32_t) ("
        .. from
        .. ")[i] : 7.0f;"
end

function special.reduce_magnitudes(p, set)
    local from = p:input("any", 1)
    p:add("    for (size_t at = 0; at < COUNT; at += %d) {", set.lanes)
    p:add(
        "        const %s value = %s;",
        set.index,
        set.max_magnitude(set.index_zero(), set.load_unaligned(from, "at"))
    )
    local steps, result = set.reduce_magnitudes "value"
    steps_of(p, "        ", steps)
    p:add("        const number found = { %s };", result)
    p:add "        uint32_t expected = 0;"
    p:add("        for (unsigned i = 0; i < %d; ++i) {", set.lanes)
    p:add("            const number one = { (%s)[at + i] };", from)
    p:add "            const uint32_t magnitude = one.bits & 0x7fffffffu;"
    p:add "            expected = magnitude > expected ? magnitude : expected;"
    p:add "        }"
    p:add '        expect_bits("reduce_magnitudes", (unsigned) at, expected, found.bits);'
    p:add "    }"
end

-- Several vectors side by side: each is 16 inputs on from the one before.
local function reduced_together(p, set, word, from, vector, store, expected)
    for _, n in ipairs { 4, 8 } do
        p:add("    for (size_t at = 0; at < COUNT; at += %d) {", n * set.lanes)
        local list = {}
        for k = 1, n do
            list[k] = "value" .. k
            p:add("        const %s value%d = %s;", set.index, k, vector("at + " .. (k - 1) * set.lanes))
        end
        local steps, result = set[word](list)
        for _, step in ipairs(steps) do
            p:add("        const %s %s = %s;", set.index, step.name, step.value)
        end
        p:add("        %s;", store(n, result))
        p:add("        for (unsigned k = 0; k < %d; ++k) {", n)
        p:add "            uint32_t expected = 0;"
        p:add("            for (unsigned i = 0; i < %d; ++i) {", set.lanes)
        p:add("                const uint32_t one = %s[at + k * %d + i];", from, set.lanes)
        p:add("                expected = %s;", expected)
        p:add "            }"
        p:add('            expect_bits("%s %d", (unsigned) at + k, expected, got_words[at + k]);', word, n)
        p:add "        }"
        p:add "    }"
    end
end

function special.as_floats(p, set)
    p:input("any", 1)
    local from = "(const float *) (const void *) in_any_1"
    local magnitudes = set.max_magnitude(set.index_zero(), set.load_unaligned(from, "at"))
    p:vectors(set.store_unaligned("got", "at", set.as_floats(magnitudes)))
    p:lanes(string.format('expect_float("as_floats", i, %s, got[i], 0)', scalar.abs "in_any_1[i].value"))
end

function special.largest_of(p, set)
    p:input("any", 1)
    local from = "((const uint32_t *) (const void *) in_any_1)"
    reduced_together(p, set, "largest_of", from, function(at)
        local v = string.format("(const float *) (const void *) in_any_1 + (%s)", at)
        return set.max_magnitude(set.index_zero(), set.load_unaligned(v, 0))
    end, function(n, result)
        return set.store_partial("(float *) (void *) got_words", "at", n, result)
    end, "(one & 0x7fffffffu) > expected ? one & 0x7fffffffu : expected")
end

function special.sums_of(p, set)
    local from = p:input("words", 1)
    reduced_together(
        p,
        set,
        "sums_of",
        from,
        function(at) return set.load_words(from, at) end,
        function(n, result) return set.store_words_partial("got_words", "at", n, result) end,
        "expected + one"
    )
end

function special.store_words_partial(p, set)
    local from = p:input("words", 1)
    for n = 1, set.lanes - 1 do
        p:lanes "got_words[i] = 77"
        p:vectors(set.store_words_partial("got_words", "at", n, set.load_words(from, "at")))
        local form = 'expect_bits("store_words_partial", i, i %% %d < %d ? %s[i] : 77u, got_words[i])'
        p:lanes(form:format(set.lanes, n, from))
    end
end

for _, name in ipairs { "prefetch_l1", "prefetch_l2", "prefetch_nta" } do
    special[name] = function(p, set) p:vectors(set[name]("got", "at")) end
end

-- Words of scores, by what C calls them, and what they make of the rows of a step: bytes of 16-bit integers, or 15-bit
-- integers of rows 0 and 2, 1 and 3.
local gather_scores = {
    high = { words = { "0x80ff0103u", "0x7f80fe00u" }, of = { 0x300, 0x1fe, 0xff80, 0x807f } },
    even = { words = { "0x7fff0003u", "0x1234ffffu & 0x7fff7fffu" }, of = { 3, 0x7fff, 0x7fff, 0x1234 } },
}

-- The integer gather: sums of scores times s8 elements of four rows, for each column, in order.
local function integer_sums(p, set)
    local g, from = set.integer_sums, p:input("i8", 1)
    local scores = gather_scores[g.halves[1]]
    p:begin "integer_sums"
    local function let(name, value) p:add("    const %s %s = %s;", set.index, name, value) end
    for _, columns in ipairs { g.columns, g.columns - 3 } do
        p:add "    {"
        local rows = {}
        for r = 1, g.rows do
            rows[r] = "row" .. r
            local base = string.format("(%s) + %d", from, (r - 1) * 50)
            let(rows[r], columns == g.columns and g.load(base, 0) or g.load_partial(base, 0, columns))
        end
        local steps, quads = g.interleave(rows)
        for _, step in ipairs(steps) do
            let(step.name, step.value)
        end
        let("first", g.broadcast(scores.words[1]))
        let("second", g.broadcast(scores.words[2]))
        local floats = {}
        for n, quad in ipairs(quads) do
            let("quad" .. n, quad)
            local zeros = {}
            for k = 1, #g.sums do
                zeros[k] = set.index_zero()
            end
            local sums = g.add(zeros, { "first", "second" }, "quad" .. n)
            p:add("    const %s float%d = %s;", set.vector, n, set.float_of(g.total(sums)))
            floats[n] = "float" .. n
        end
        local order, ordered = g.order(floats)
        steps_of(p, "    ", order)
        for n, value in ipairs(ordered) do
            p:add("    %s;", set.store_unaligned("got", (n - 1) * set.lanes, value))
        end
        p:add("    for (unsigned i = 0; i < %d; ++i) {", columns)
        p:add "        int32_t expected = 0;"
        for r, score in ipairs(scores.of) do
            p:add("        expected += %d * (%s)[%d + i];", score, from, (r - 1) * 50)
        end
        p:add '        expect_float("integer_sums", i, (float) expected, got[i], 0);'
        p:add "    }"
        p:add "    }"
    end
    -- Scores as integers in their halves: of each of four rows so many bits from `from` on, at `to` of a word.
    local split = {
        high = {
            { { 8, 8, 0 }, { 8, 8, 8 }, { 8, 8, 16 }, { 8, 8, 24 } },
            { { 0, 8, 0 }, { 0, 8, 8 }, { 0, 8, 16 }, { 0, 8, 24 } },
        },
        even = {
            { { 0, 15, 0 }, { 0, 0, 0 }, { 0, 15, 16 }, { 0, 0, 0 } },
            { { 0, 0, 0 }, { 0, 15, 0 }, { 0, 0, 0 }, { 0, 15, 16 } },
        },
    }
    p:add("    static float scores[COUNT];")
    p:add("    for (unsigned i = 0; i < COUNT; ++i)")
    p:add("        scores[i] = (float) ((uint32_t) halves[i] & %du);", g.levels)
    for half, part in ipairs { "first_half", "second_half" } do
        -- The word of four scores, the n-th at place(n).
        local function word_of(place)
            local parts = {}
            for n, bits in ipairs(split[g.halves[1]][half]) do
                local mask = (1 << bits[2]) - 1
                local form = "((uint32_t) scores[%s] >> %d & 0x%xu) << %d"
                parts[n] = form:format(place(n - 1), bits[1], mask, bits[3])
            end
            return table.concat(parts, " | ")
        end
        local q, list, names = {}, {}, {}
        for n = 1, 4 do
            q[n] = "q" .. n
            local score = set.load_unaligned("scores", "at + " .. (n - 1) * set.lanes)
            list[n] = string.format("const %s q%d = %s", set.index, n, g.round(score))
        end
        for n, value in ipairs(g[part](q)) do
            names[n] = "part" .. n
            list[#list + 1] = string.format("const %s part%d = %s", set.index, n, value)
        end
        list[#list + 1] = set.store_words("got_words", "at / 4", g.unite(names))
        list[#list + 1] = g["store_" .. part]("(uint32_t *) (void *) got_bytes", "at / 16", "q1")
        p:add("    for (size_t at = 0; at < COUNT; at += %d) {", 4 * set.lanes)
        for _, line in ipairs(list) do
            p:add("        %s;", line)
        end
        p:add("        for (unsigned i = 0; i < %d; ++i)", set.lanes)
        p:add(
            '            expect_bits("integer_sums.%s", i, %s, got_words[at / 4 + i]);',
            part,
            word_of(function(n) return "at + " .. n * set.lanes .. " + i" end)
        )
        p:add("        for (unsigned i = 0; i < %d; ++i) {", set.lanes // 4)
        p:add "            uint32_t got_word = 0;"
        p:add "            for (unsigned n = 0; n < 4; ++n)"
        p:add "                got_word |= (uint32_t) (uint8_t) got_bytes[at / 4 + 4 * i + n] << 8 * n;"
        p:add(
            '            expect_bits("integer_sums.store_%s", i, %s, got_word);',
            part,
            word_of(function(n) return "at + 4 * i + " .. n end)
        )
        p:add "        }"
        p:add "    }"
    end
    p:finish()
end

-- Words in words: what a word makes of another one's expression is what it makes of its value.
local function composed(p, set)
    local binary = { "add", "sub", "mul", "div", "max" }
    local a, b, c = p:input("any", 1), p:input("any", 2), p:input("any", 3)
    for _, outer in ipairs { "add", "sub", "mul", "div", "max", "fma", "abs" } do
        for _, inner in ipairs(binary) do
            for place = 1, outer == "abs" and 1 or outer == "fma" and 3 or 2 do
                local function arguments(value)
                    local list = { "c", "c", "c" }
                    list[place] = value
                    return table.unpack(list, 1, outer == "abs" and 1 or outer == "fma" and 3 or 2)
                end
                local value = set[inner]("a", "b")
                p:begin "composed"
                p:vectors(
                    string.format("const %s a = %s", set.vector, set.load_unaligned(a, "at")),
                    string.format("const %s b = %s", set.vector, set.load_unaligned(b, "at")),
                    string.format("const %s c = %s", set.vector, set.load_unaligned(c, "at")),
                    string.format("const %s value = %s", set.vector, value),
                    set.store_unaligned("got", "at", set[outer](arguments(value))),
                    set.store_unaligned("apart", "at", set[outer](arguments "value"))
                )
                p:lanes(string.format('expect_float("%s of %s", i, apart[i], got[i], 0)', outer, inner))
                p:finish()
            end
        end
    end
end

-- The functions and integer gathers of the instruction sets before the one of that name: they are tested there.
local function tested_before(name)
    local seen = {}
    for _, other in ipairs(isa.all) do
        if other == name then return seen end
        for _, value in pairs(isa.get(other)) do
            seen[value] = true
        end
        for _, needs in pairs(isa.get(other).type_needs or {}) do
            seen[needs.integer_sums or needs] = true
        end
    end
end

-- What type of weights a word is for, if any.
local function type_of(word) return word.name:match "_([bfi]%d*f?%d+)$" end

-- The C text of the program for `set`; `without`: types whose words this CPU does not run.
local function program_of(set, without)
    seed = 1
    local p = setmetatable({ set = set, lines = {}, data = {}, arrays = {}, tested = {}, count = 0 }, Program)
    local before, known = {}, tested_before(set.name)
    for _, word in ipairs(words.list) do
        if set[word.name] and not known[set[word.name]] and not without[type_of(word)] then
            if special[word.name] then
                p:begin(word.name)
                before[#before + 1] = special[word.name](p, set)
                p:finish()
            elseif not p.tested[word.name] then
                plain(p, word)
            end
            if not p.tested[word.name] then error("no test for the word " .. word.name, 0) end
        end
    end
    local bare = {} -- without words for one type
    for key, value in pairs(set) do
        if key ~= "load_i8" and key ~= "load_partial_i8" then bare[key] = value end
    end
    add_loads(bare)
    for _, name in ipairs(set.lanes > 1 and { "load_i8", "load_partial_i8" } or {}) do
        p:begin(name .. " by elements")
        special[name](p, bare)
        p:finish()
    end
    if set.integer_sums and not known[set.integer_sums] then integer_sums(p, set) end
    composed(p, set)
    local body = table.concat(p.lines, "\n")
    local text = {}
    for _, header in ipairs(set.includes) do
        text[#text + 1] = "#include " .. header
    end
    text[#text + 1] = '#include "tests/isa/words.h"'
    text[#text + 1] = "#if !(" .. (set.guard or "1") .. ")\n#error flags\n#endif"
    text[#text + 1] = "enum { COUNT = " .. count .. " };"
    table.move(helpers.lines({ body }, { scalar, bare }), 1, 10000, #text + 1, text)
    table.move(p.data, 1, #p.data, #text + 1, text)
    for _, array in ipairs {
        "float got[COUNT + 16]",
        "float apart[COUNT]",
        "float rounded[COUNT]",
        "float halves[COUNT]",
        "uint32_t got_words[COUNT]",
        "uint16_t got_halves[COUNT], got_halves_expected[COUNT]",
        "int8_t got_bytes[COUNT], got_bytes_expected[COUNT]",
    } do
        text[#text + 1] = "static " .. array .. " ALIGNED;"
    end
    text[#text + 1] = body
    text[#text + 1] = "void run(void)\n{"
    text[#text + 1] = "    for (unsigned i = 0; i < COUNT; ++i)\n        halves[i] = (float) (i * 257u % 65536u);"
    text[#text + 1] = table.concat(before, "\n")
    for n = 1, p.count do
        text[#text + 1] = "    test_" .. n .. "();"
    end
    text[#text + 1] =
        '    board_write(wrong_count ? "wrong\\n" : "all right\\n");\n    board_exit(wrong_count > 0);\n}\n'
    return (table.concat(text, "\n"):gsub("%$(%l)", "t_%1"):gsub("%$(%u)", "T_%1"))
end

-- Running it --

local function has(program)
    return assert(process.run({ "sh", "-c", 'command -v "$1"', "sh", program }, { timeout = 60 })).status == 0
end

-- The commands that run programs of `set`, whose row of targets is `target`, each with the program's path behind; or
-- nil and why there are none.
local function emulators(set, target)
    if not has(target.compiler) then return nil, target.compiler .. " is missing" end
    local list = { target.emulator, table.unpack(target.others or {}) }
    if set.emulator then list = { set.emulator, table.unpack(set.other_emulators or {}) } end
    if target.object == "wasm" then list = { { "node", "tests/isa/run_wasm.cjs" } } end
    if not set.target and isa.runs(set, cpu.describe()) then list = { {} } end
    if #list == 0 then return nil, "this CPU does not run it, and no emulator does" end
    if list[1][1] and not has(list[1][1]) then return nil, list[1][1] .. " is missing" end
    return list
end

local function run(set, without)
    local target, folder, flags = targets.get(set.target or "generic"), process.temporary_directory(), set.flags
    local list, why = emulators(set, target)
    local header = not list and stand_ins.header(set)
    if header then
        list, flags = { {} }, stand_ins.flags(header)
        host.print(set.name .. ": " .. why .. ": with " .. header)
    end
    if not list then
        host.print("skipped: " .. set.name .. ": " .. why)
        return
    end
    -- Compilers take longer than most CPUs, but for stand-ins and emulated boards.
    local level = (header or target.script) and "-O1" or effort.check_level
    assert(host.write_directory(folder .. "/isa", { ["words.c"] = program_of(set, without) }, true))
    local source, program = folder .. "/isa/words.c", folder .. "/words"
    local start = target.start and { "tests/firmware/boards/" .. target.start } or {}
    local script = target.script and { "-T", "tests/firmware/boards/" .. target.script } or {}
    local wasm = target.object == "wasm"
    local built = assert(
        process.run(
            compilers.joined(
                { target.compiler, "-std=gnu11", level, "-ffp-contract=off", "-ffreestanding", "-I.", "-w" },
                target.flags,
                flags,
                wasm and { "-nostdlib", "-Wl,--no-entry", "-Wl,--export=run", "-Wl,--allow-undefined", source }
                    or compilers.joined(target.link, { "-nostdlib" }, script, start, { source }),
                { "-o", program }
            ),
            { timeout = 300, env = { LD_PRELOAD = "" } }
        )
    )
    if built.status ~= 0 then error(set.name .. ": " .. built.output, 0) end
    for _, emulator in ipairs(list) do
        local result =
            assert(process.run(compilers.joined(emulator, { program }), { timeout = 120, env = { LD_PRELOAD = "" } }))
        if result.output ~= "all right\n" then
            error(set.name .. ": " .. table.concat(emulator, " ") .. ":\n" .. result.output, 0)
        end
    end
end

for _, name in ipairs(isa.all) do
    test["the_words_of_" .. name .. "_agree_with_portable_ones"] = function()
        local facts, bare = cpu.describe(), isa.get(name)
        local set, without = bare, {}
        for _, type in ipairs(types) do
            local typed = isa.with_types(set, { type })
            if typed == set or bare.emulator or isa.runs(typed, facts) or stand_ins.header(typed) then
                set = typed
            else
                without[type.name] = true
                local feature = isa.needs(bare, type).feature
                host.print(string.format("skipped: %s: %s: this CPU lacks %s", name, type.name, feature))
            end
        end
        run(set, without)
    end
end

-- An older set of x86 needs no entry in the files of CPUs that list a newer one.
function test.a_CPU_has_the_sets_whose_bits_its_own_include()
    local cpus = { "scalar", "sse4", "avx2" }
    local ssse3 = { name = "ssse3", architecture = "x86", cpu = { leaf1_ecx = 1 << 9, leaf7_ebx = 0, xcr0 = 0 } }
    check.equal(isa.follows(ssse3, cpus), true)
    check.equal(isa.follows(ssse3, { "scalar", "neon" }), false)
    check.equal(isa.follows(isa.get "avx2", cpus), true)
    check.equal(isa.follows(isa.get "avx_vnni", cpus), false)
    check.equal(isa.follows(isa.get "sve", { "scalar", "neon" }), false)
end

-- What a CPU says of AMX is masked where this process has no permission (harness/base/cpu.c).
function test.amx_runs_where_its_bits_are_and_needs_a_permission()
    for _, name in ipairs { "amx_int8", "amx_bf16" } do
        local set, has = isa.get(name), { architecture = "x86_64" }
        for _, register in ipairs(isa.registers) do
            has[register] = set.cpu[register] or 0
        end
        check.equal({ isa.runs(set, has), isa.needs_permission(set) }, { true, true })
        has.leaf7_edx = has.leaf7_edx & ~(1 << 25)
        check.equal(isa.runs(set, has), false)
    end
    check.equal({ isa.needs_permission(isa.get "avx512"), isa.needs_permission(isa.get "sve") }, { false, false })
end

-- Every function of an instruction set is a word of the contract.
function test.every_word_is_in_the_contract()
    local known = {}
    for _, word in ipairs(words.list) do
        known[word.name] = true
    end
    for _, name in ipairs(isa.all) do
        for key, value in pairs(isa.get(name)) do
            if type(value) == "function" and not known[key] then
                error(name .. "." .. key .. ": is no word of gen/isa/words.lua", 0)
            end
        end
    end
end

-- Instruction sets that are for some types come with these types, unless others are asked for by name.
function test.a_bundle_has_what_its_types_call_for()
    local function selected(...)
        local names = {}
        for i, set in ipairs(isa.select(...)) do
            names[i] = set.name
        end
        return table.concat(names, ",")
    end
    local pairs_of_bf16 = { dtype.get("bf16").products }
    check.equal(selected(nil), "scalar,avx2,avx512")
    check.equal(selected(nil, { dtype.get "bf16" }), "scalar,avx2,avx512")
    for _, type in ipairs { dtype.get "i8", dtype.get("i7", "projection"), dtype.get("i7", "activations").products } do
        local tiles = type.tiles and ",amx_int8" or ""
        check.equal(selected(nil, { type }), "scalar,avx2,avx_vnni,avx512" .. tiles)
        check.matches(isa.with_types(isa.get "avx512", { type }).guard, "__AVX512VNNI__")
    end
    check.equal(selected(nil, pairs_of_bf16), "scalar,avx2,avx512,avx512_bf16,amx_bf16")
    check.equal(selected(nil, pairs_of_bf16, { "sse4" }), "sse4,avx512_bf16,amx_bf16")
    check.equal(selected("avx2", pairs_of_bf16), "avx2")
    check.equal(selected "avx512_bf16", "avx512_bf16")
end

-- An instruction set that lacks a word is told before anything is rendered.
function test.a_missing_word_is_one_line()
    for _, name in ipairs(isa.all) do
        words.demand(isa.get(name), { "few", table.unpack(dtype.loaded_names) }, "a test")
    end
    for _, name in ipairs(compilers.joined(isa.names, { "wasm" })) do
        words.demand(isa.get(name), { "many", "masks", "cache", "integer" }, "a test")
    end
    local poor = setmetatable({ select = false }, { __index = isa.get "avx2" })
    local good, message = pcall(words.demand, poor, { "few", "masks" }, "tiny")
    check.equal(good, false)
    check.equal(tostring(message), "--isa: avx2: lacks the word select of tier masks, which tiny needs")
end

-- Of each word of the integer gather; and an instruction set has no others.
function test.a_missing_word_of_the_integer_gather_is_one_line()
    local sets = 0
    for _, name in ipairs(isa.all) do
        local set, known = isa.with_types(isa.get(name), { dtype.get "i8" }), {}
        words.demand(set, { "few" }, "a test")
        sets = sets + (set.integer_sums and 1 or 0)
        for _, word in ipairs(set.integer_sums and words.integer_sums or {}) do
            known[word.name] = true
            local gather = setmetatable({ [word.name] = false }, { __index = set.integer_sums })
            local poor = setmetatable({ integer_sums = gather }, { __index = set })
            local _, message = pcall(words.demand, poor, { "few" }, "tiny")
            local form = "--isa: %s: lacks the word %s of tier integer_sums, which tiny needs"
            check.equal(tostring(message), form:format(name, word.name))
        end
        for word in pairs(set.integer_sums or {}) do
            check.equal({ word, known[word] }, { word, true })
        end
    end
    check.equal(sets >= 4, true)
end

-- Names of helpers are unique, and what a helper calls stands before it.
function test.helpers_have_one_text_each()
    local lines = helpers.lines({ "$from_f16(x) $from_f16(y)" }, { scalar, scalar })
    local text = table.concat(lines, "\n")
    check.equal(select(2, text:gsub("static inline float %$from_f16", "")), 1)
    check.equal(select(2, text:gsub("typedef union", "")), 1)
    check.equal(text:find "typedef" < text:find "static", true)
    check.equal(helpers.lines({ "no call" }, { scalar }), {})
    -- Those that instruction sets share, too.
    local shared = table.concat(helpers.lines({ "$neon_load_i8(x)" }, isa.select "neon,dotprod,i8mm"), "\n")
    check.equal(select(2, shared:gsub("static inline float32x4_t %$neon_load_i8", "")), 1)
end

-- Numbers are put together, and what adds or multiplies nothing is left out.
function test.expressions_are_simplified_while_they_are_built()
    local sum, times = expression.sum, expression.times
    for _, case in ipairs {
        { sum("p", 0), "p" },
        { sum(0, "i"), "i" },
        { sum(3, 4), 7 },
        { sum("p", 8, "i", 4), "p + 12 + i" },
        { sum("i + 4", 8), "i + 12" },
        { sum("p", times("head", 1), times("i", 0)), "p + head" },
        { sum("a ? b : c", 2), "(a ? b : c) + 2" },
        { expression.index("row + i", 0), "row[i]" },
        { times("head", 1), "head" },
        { times(1, "step"), "step" },
        { times("i", 0), 0 },
        { times(3, 4), 12 },
        { times(sum("head", 1), 4), "(head + 1) * 4" },
        { times("i * 4", 2), "i * 8" },
        { times("a", "b / c"), "a * (b / c)" },
    } do
        check.equal(case[1], case[2])
    end
end

-- Parentheses stand where C needs them.
function test.expressions_have_the_parentheses_that_they_need()
    local cases = {
        { scalar.sub("a", scalar.sub("b", "c")), "a - (b - c)" },
        { scalar.sub(scalar.sub("a", "b"), "c"), "a - b - c" },
        { scalar.mul(scalar.add("a", "b"), "c[i + 1]"), "(a + b) * c[i + 1]" },
        { scalar.fma("a", "b", scalar.mul("c", "d")), "a * b + c * d" },
        { scalar.abs "a - b", "a - b < 0.0f ? -(a - b) : a - b" },
        { scalar.mul("-1.5e-3f", "x"), "-1.5e-3f * x" },
        { scalar.add("x", scalar.select("m", "a", "b")), "x + (m ? a : b)" },
        { scalar.add("(float) n", "f(a, b - c)"), "(float) n + f(a, b - c)" },
        { scalar.mul("x", "p->y"), "x * p->y" },
        { scalar.load("w + 3", "i"), "(w + 3)[i]" },
        { isa.get("avx2").prefetch_l1("row", 0), "_mm_prefetch((const char *) row, _MM_HINT_T0)" },
        { isa.get("avx2").prefetch_l1("row", 8), "_mm_prefetch((const char *) (row + 8), _MM_HINT_T0)" },
    }
    for _, case in ipairs(cases) do
        check.equal(case[1], case[2])
    end
end

return test
