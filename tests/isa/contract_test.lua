-- Instruction sets have the words that the contract lists, and say which CPU runs them.
local check = require "tests.support.check"
local compilers = require "harness.base.compilers"
local dtype = require "gen.plan.dtype"
local helpers = require "gen.isa.helpers"
local isa = require "gen.isa.list"
local words = require "gen.isa.words"

local scalar = isa.get "scalar"
local test = {}

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

-- Behind a mask a CPU that has everything runs its set and what that builds on, with what all CPUs of these have.
function test.a_mask_leaves_a_set_and_what_it_builds_on()
    local x86, aarch64 = { architecture = "x86_64" }, { architecture = "aarch64", vector_bytes = 64 }
    for _, register in ipairs(isa.registers) do
        x86[register] = 0xffffffff
    end
    for _, register in ipairs { "id_aa64pfr0_el1", "id_aa64isar0_el1", "id_aa64isar1_el1", "id_aa64zfr0_el1" } do
        aarch64[register] = ~0
    end
    local function left(has, name)
        local facts, names = {}, {}
        for key, value in pairs(has) do
            facts[key] = value
        end
        isa.mask(facts, isa.get(name))
        for _, other in ipairs(isa.names) do
            if isa.runs(isa.get(other), facts) then names[#names + 1] = other end
        end
        return table.concat(table.move(isa.features(facts), 1, 9, #names + 1, names), " ")
    end
    for name, sets in pairs {
        scalar = "scalar",
        sse4 = "scalar sse4",
        avx2 = "scalar sse4 avx2 f16c",
        avx_vnni = "scalar sse4 avx2 avx_vnni f16c",
        avx512 = "scalar sse4 avx2 avx512 f16c",
        avx512_bf16 = "scalar sse4 avx2 avx512 avx512_bf16 f16c avx512vnni",
        amx_int8 = "scalar sse4 avx2 avx512 amx_int8 f16c avx512vnni",
        amx_bf16 = "scalar sse4 avx2 avx512 avx512_bf16 amx_int8 amx_bf16 f16c avx512vnni",
    } do
        check.equal({ name, left(x86, name) }, { name, sets })
    end
    for name, sets in pairs {
        scalar = "scalar",
        neon = "scalar neon",
        dotprod = "scalar neon dotprod dotprod",
        sve = "scalar neon sve",
        i8mm = "scalar neon i8mm i8mm",
    } do
        check.equal({ name, left(aarch64, name) }, { name, sets })
    end
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

return test
