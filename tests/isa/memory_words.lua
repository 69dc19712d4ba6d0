-- Tests of words that load and store vectors, and of constants: what each writes into a program in C.
local dtype = require "gen.plan.dtype"
local expression = require "gen.isa.expression"
local isa = require "gen.isa.list"

local scalar = isa.get "scalar"
local words = {}

function words.zero(p, set)
    p:vectors(set.store_unaligned("got", "at", set.zero()))
    p:lanes 'expect_float("zero", i, 0.0f, got[i], 0)'
end

function words.broadcast(p, set)
    local from = p:input("any", 1)
    p:vectors(set.store_unaligned("got", "at", set.broadcast("(" .. from .. ")[at]")))
    p:lanes(string.format('expect_float("broadcast", i, (%s)[i / %d * %d], got[i], 0)', from, set.lanes, set.lanes))
end

function words.index_zero(p, set)
    local statement, _, array = p:store_index(set.index_zero())
    p:vectors(statement)
    p:lanes(string.format('expect_bits("index_zero", i, 0, %s[i])', array))
end

function words.index_broadcast(p, set)
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
words.load, words.load_unaligned = load("load", 0), load("load_unaligned", 1)

local function store(name, step)
    return function(p, set)
        local from = p:input("any", 1)
        p:add("    for (size_t at = 0; at + %d <= COUNT; at += %d)", set.lanes + step, set.lanes)
        p:add("        %s;", set[name](step > 0 and "got + " .. step or "got", "at", set.load_unaligned(from, "at")))
        p:add("    for (unsigned i = 0; i + %d <= COUNT; ++i)", set.lanes + step)
        p:add('        expect_float("%s", i, (%s)[i], got[i + %d], 0);', name, from, step)
    end
end
words.store, words.store_unaligned = store("store", 0), store("store_unaligned", 1)

function words.stream(p, set)
    p:vectors(set.stream("(got + at)", set.load_unaligned(p:input("any", 1), "at")))
    p:add("    %s;", set.stream_fence())
    p.tested.stream_fence = true
    p:lanes(string.format('expect_float("stream", i, (%s)[i], got[i], 0)', p:input("any", 1)))
end

-- Where vectors of `set` that begin at element `at` lie, and element i, as portable C reads it: two in four bits are
-- a byte.
local function packed(type) return dtype.get(type).bytes < 1 end
local function place(set, type, from)
    if set.lanes == 1 and packed(type) then return "(" .. from .. ")", "at" end
    return expression.sum("(" .. from .. ")", packed(type) and "at / 2" or "at")
end
local function element_of(type, from)
    if packed(type) then return scalar["load_" .. type]("(" .. from .. ")", "i") end
    return scalar["load_" .. type]("(" .. from .. " + i)")
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
                local value = whole and set[name](place(set, domain, from), n)
                    or set[name](from, "at", n)
                local element = whole and element_of(domain, from) or "(" .. from .. ")[i]"
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
words.load_partial = load_partial("load_partial", "any")
words.load_words_partial = load_partial("load_words_partial", "words")
for _, type in ipairs(dtype.loaded_names) do
    words["load_partial_" .. type] = load_partial("load_partial_" .. type, type, "load_" .. type)
    words["load_" .. type] = function(p, set)
        local from = p:input(type, 1)
        p:vectors(set.store_unaligned("got", "at", set["load_" .. type](place(set, type, from))))
        p:lanes(
            string.format(
                'expect_float("load_%s", i, %s, got[i], 0)',
                type,
                element_of(type, from)
            )
        )
    end
end

function words.store_partial(p, set)
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

function words.load_words(p, set)
    local from = p:input("words", 1)
    local statement, mask, array = p:store_index(set.load_words(from, "at"))
    p:vectors(statement)
    p:lanes(string.format('expect_bits("load_words", i, %s[i] & %s, %s[i])', from, mask, array))
end

function words.store_words(p, set)
    local from = p:input("words", 1)
    p:vectors(set.store_words("got_words", "at", set.load_words(from, "at")))
    p:lanes(string.format('expect_bits("store_words", i, %s[i], got_words[i])', from))
end

function words.index_load(p, set)
    local from = p:input("f16", 1) -- as uint16_t
    local statement, mask, array = p:store_index(set.index_load(from, "at"))
    p:vectors(statement)
    p:lanes(string.format('expect_bits("index_load", i, %s[i] & %s, %s[i])', from, mask, array))
end

function words.index_store(p, set)
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
words.store_f16, words.store_i8 =
    store_type("store_f16", "half", "got_halves"), store_type("store_i8", "byte", "got_bytes")

function words.store_i16(p, set)
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

function words.store_bf16(p, set)
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

function words.pack_bf16(p, set)
    local a, b = p:input("any", 1), p:input("any", 2)
    local packed = set.pack_bf16(set.load_unaligned(a, "at"), set.load_unaligned(b, "at"))
    p:add("    for (size_t at = 0; at < COUNT; at += %d)", set.lanes)
    p:add("        %s;", set.store_words("got_words", "at", packed))
    p:add "    for (unsigned i = 0; i < COUNT; ++i) {"
    for half, from in ipairs { a, b } do
        p:add("        const uint32_t found%d = got_words[i] >> %d & 0xffffu;", half, 16 * (half - 1))
        p:add("        if ((%s)[i] != (%s)[i])", from, from)
        p:add('            expect_bits("pack_bf16 of NaN", i, 1, (found%d & 0x7fffu) > 0x7f80u);', half)
        p:add "        else"
        p:add('            expect_bits("pack_bf16", i, $to_bf16((%s)[i]), found%d);', from, half)
    end
    p:add "    }"
end

function words.store_quads(p, set)
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

function words.store_words_partial(p, set)
    local from = p:input("words", 1)
    for n = 1, set.lanes - 1 do
        p:lanes "got_words[i] = 77"
        p:vectors(set.store_words_partial("got_words", "at", n, set.load_words(from, "at")))
        local form = 'expect_bits("store_words_partial", i, i %% %d < %d ? %s[i] : 77u, got_words[i])'
        p:lanes(form:format(set.lanes, n, from))
    end
end

for _, name in ipairs { "prefetch_l1", "prefetch_l2", "prefetch_nta" } do
    words[name] = function(p, set) p:vectors(set[name]("got", "at")) end
end

return words
