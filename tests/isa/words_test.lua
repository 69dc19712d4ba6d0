-- Every word of every instruction set does what the portable one does: a C program for each set, written with the words
-- themselves, runs here or in the set's emulator.
local Program = require "tests.isa.word_program"
local add_loads = require "gen.isa.parts.element_loads"
local arithmetic_words = require "tests.isa.arithmetic_words"
local check = require "tests.support.check"
local compilers = require "harness.base.compilers"
local cpu = require "harness.base.cpu"
local dtype = require "gen.plan.dtype"
local helpers = require "gen.isa.helpers"
local host = require "host"
local inputs = require "tests.isa.inputs"
local integer_gather = require "tests.isa.integer_gather"
local isa = require "gen.isa.list"
local memory_words = require "tests.isa.memory_words"
local missing = require("tests.support.program").missing
local process = require "process"
local stand_ins = require "tests.support.stand_ins"
local targets = require "gen.plan.target"
local tile_words = require "tests.isa.tile_words"
local words = require "gen.isa.words"

local scalar = isa.get "scalar"
local types = {} -- those that some words are for
for _, type in ipairs(dtype.list) do
    if not type.plain then types[#types + 1] = type end
end

local special = {} -- words whose operands or results are none of `plain`
for _, list in ipairs { memory_words, arithmetic_words, tile_words } do
    for name, word in pairs(list) do
        special[name] = word
    end
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
    local p = Program.of(set)
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
    if set.integer_sums and not known[set.integer_sums] then integer_gather(p, set) end
    composed(p, set)
    local body = table.concat(p.lines, "\n")
    local text = {}
    for _, header in ipairs(set.includes) do
        text[#text + 1] = "#include " .. header
    end
    text[#text + 1] = '#include "tests/isa/words.h"'
    text[#text + 1] = "#if !(" .. (set.guard or "1") .. ")\n#error flags\n#endif"
    text[#text + 1] = "enum { COUNT = " .. inputs.count .. " };"
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
    if isa.needs_permission(set) then -- ARCH_REQ_XCOMP_PERM
        local request = '__asm__ volatile("syscall" : "+a"(number) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory")'
        text[#text + 1] = "    long number = 158; /* of arch_prctl */\n    " .. request .. ";"
    end
    text[#text + 1] = "    for (unsigned i = 0; i < COUNT; ++i)\n        halves[i] = (float) (i * 257u % 65536u);"
    text[#text + 1] = table.concat(before, "\n")
    for n = 1, p.count do
        text[#text + 1] = "    test_" .. n .. "();"
    end
    text[#text + 1] =
        '    board_write(wrong_count ? "wrong\\n" : "all right\\n");\n    board_exit(wrong_count > 0);\n}\n'
    return (table.concat(text, "\n"):gsub("%$(%l)", "t_%1"):gsub("%$(%u)", "T_%1"))
end

-- The commands that run programs of `set`, whose row of targets is `target`, each with the program's path behind; or
-- nil and why there are none.
local function emulators(set, target)
    if missing(target.compiler) then return nil, target.compiler .. " is missing" end
    local list = { target.emulator, table.unpack(target.others or {}) }
    if set.emulator then list = { set.emulator, table.unpack(set.other_emulators or {}) } end
    if target.object == "wasm" then list = { { "node", "tests/isa/run_wasm.cjs" } } end
    if not set.target and isa.runs(set, cpu.describe()) then list = { {} } end
    if #list == 0 then return nil, "this CPU does not run it, and no emulator does" end
    if list[1][1] and missing(list[1][1]) then return nil, list[1][1] .. " is missing" end
    return list
end

-- Compiles the program for `set`, with its flags or those of `header`, which has functions in C for its instructions,
-- and runs it by the commands of `list`.
local function run(set, without, list, header)
    local target, folder = targets.get(set.target or "generic"), process.temporary_directory()
    local flags = header and stand_ins.flags(header) or set.flags
    -- Compilers take longer than most CPUs, but for emulated boards.
    local level = target.script and "-O1" or "-O0"
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

local test = {}

-- The instruction set of that name with all types that this CPU runs or the set's emulator does, and the other types.
local function runnable(name)
    local facts, bare, without = cpu.describe(), isa.get(name), {}
    local set = bare
    for _, type in ipairs(types) do
        local typed = isa.with_types(set, { type })
        if typed == set or bare.emulator or isa.runs(typed, facts) then
            set = typed
        else
            without[type.name] = isa.needs(bare, type).feature
        end
    end
    return set, without
end

function test.without_AVX2_nothing_stands_in()
    local real, print, got, said = cpu.real, host.print, {}, {}
    function cpu.real() return { architecture = "x86_64" } end
    function host.print(line) said[#said + 1] = line end
    for i, name in ipairs(stand_ins.names) do
        got[i] = stand_ins.get(name) == nil
    end
    cpu.real, host.print = real, print
    for i, name in ipairs(stand_ins.names) do
        check.equal({ got[i], said[i] }, { true, "skipped: stand-ins for " .. name .. ": this CPU has no AVX2" })
    end
end

for _, name in ipairs(isa.all) do
    test["the_words_of_" .. name .. "_agree_with_portable_ones"] = function()
        local everywhere, header = stand_ins.get(name)
        if header then run(isa.with_types(everywhere, types), {}, { {} }, header) end
        local set, without = runnable(name)
        local list, why = emulators(set, targets.get(set.target or "generic"))
        if list then
            run(set, without, list)
        elseif not header then
            host.print("skipped: " .. name .. ": " .. why)
        end
        for type, feature in pairs(list and not header and without or {}) do
            host.print(string.format("skipped: %s: %s: this CPU lacks %s", name, type, feature))
        end
    end
end

return test
