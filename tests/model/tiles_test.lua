-- Blocks on a matrix engine compute what they do on vectors: bytes to the bit, as sums of integers are, and bf16 where
-- sums are exact, or nearly. The tiles are arrays in C.
local check = require "tests.support.check"
local compilers = require "harness.base.compilers"
local dtype = require "gen.plan.dtype"
local isa = require "gen.isa.list"
local model = require "gen.families.model_file"
local model_plan = require "gen.families.model.plan"
local process = require "process"
local program = require "tests.support.program"
local stand_ins = require "tests.support.stand_ins"

local test = {}
local folder = program.folder()

local text = [[return { name = "tiles", d = 64, heads = 1, layers = 1, vocab = 8,
    attention = { eliminate = "QP", context = 160 }, ffn = { kind = "mlp", f = 64, activation = "relu" } }]]

local sets = { i8 = { "avx512", "amx_int8" }, bf16 = { "avx512_bf16", "amx_bf16" } }

-- What counts how often tiles are used.
local counted = "-DLOOKUPC_TILES_IN_C=extern size_t tiles_used; ++tiles_used; static __thread"

-- The object files of blocks whose weights, inputs and cache have such a type, of both instruction sets, and numbers of
-- their plan.
local function blocks(type)
    local path = program.model(folder, "tiles_" .. type, text)
    local bundle, list = folder .. "/" .. type, table.concat(sets[type], ",")
    program.works { "emit", path, "--type", type, "--activations", type, "--isa", list, "-o", bundle }
    local objects = {}
    for i, set in ipairs(sets[type]) do
        objects[i] = bundle .. "/" .. set .. ".o"
        compilers.call(
            compilers.joined(
                { "gcc", "-std=gnu11", "-O0", "-Wno-psabi", "-D__asm__(...)=", counted },
                stand_ins.flags "tests/isa/stand_ins/amx.h",
                { "-c", bundle .. "/tiles__" .. set .. ".c", "-o", objects[i] }
            )
        )
    end
    local p = model_plan.build(model.load(path), isa.select(list), { type = type, activations = type })
    local run = p.segments[1].plan
    local cache, of_attention = run.shape.cache, run.variants[2].attention
    return objects,
        {
            PER_WORD = cache.per_word,
            QUERY_STEP = of_attention.query_step,
            WEIGHT_STEP = of_attention.weight_step,
            KEY_STEP = cache.key_step,
            PITCH = cache.pitch,
        }
end

-- Runs the C program `source`, which compares functions of both instruction sets; their symbols begin with `symbol`.
local function compare(type, source, symbol, objects, numbers)
    local words, path = { "gcc", "-std=gnu11", "-O0", source }, folder .. "/compare"
    for name, number in pairs(numbers) do
        words[#words + 1] = "-D" .. name .. "=" .. number
    end
    if type == "i8" then words[#words + 1] = "-DSCALED" end
    words[#words + 1] = "-DBY_VECTORS=" .. symbol .. "__" .. sets[type][1]
    words[#words + 1] = "-DBY_TILES=" .. symbol .. "__" .. sets[type][2]
    -- Whole blocks call functions of other files: they stay undefined, and nothing here calls them.
    local rest = { "-Wl,--unresolved-symbols=ignore-all", "-lm", "-o", path }
    compilers.call(compilers.joined(words, objects, rest))
    local result = assert(process.run({ path }, { timeout = 120 }))
    if result.status ~= 0 then error(source .. ": " .. result.output, 0) end
end

-- The instructions of tiles in the object file of such kernels, in their order, without addresses, where the compiler
-- writes for assemblers of the dialect `dialect`.
local function instructions(type, dialect)
    local set = isa.with_types(isa.get(sets[type][2]), { dtype.get(type).products })
    local source, object = string.format("%s/%s/tiles__%s.c", folder, type, set.name), folder .. "/compiled.o"
    local words = { "gcc", "-std=c99", "-O2", "-masm=" .. dialect, "-c", source, "-o", object }
    compilers.call(compilers.joined(words, set.flags))
    local list = {}
    local command = "objdump -d --no-show-raw-insn '" .. object .. "' | grep tmm"
    for line in compilers.call({ "sh", "-c", command }):gmatch "[^\n]+" do
        local word, operands = line:match "\t(%l+%d*%l*) +(.*tmm.*)$"
        if word then list[#list + 1] = word .. " " .. operands:gsub("[%w_]*%b()", "memory") end
    end
    return list
end

-- Nothing runs them here: sums come last, a second and b first, as gas writes them; no tile leaves its register but
-- sums. With bytes attention has shorter rows.
function test.products_have_the_instructions_that_are_meant()
    blocks "i8"
    local text = table.concat(instructions("i8", "att"), "\n")
    local block = {}
    for tile = 0, 3 do
        block[#block + 1] = "tilezero %tmm" .. tile
    end
    for tile, loaded in ipairs { { 4, 6, 7 }, {}, { 5 }, {} } do
        for _, operand in ipairs(loaded) do
            block[#block + 1] = "tileloadd memory,%tmm" .. operand
        end
        local second, first = 6 + (tile - 1) % 2, 4 + (tile - 1) // 2
        block[#block + 1] = string.format("tdpbsud %%tmm%d,%%tmm%d,%%tmm%d", second, first, tile - 1)
    end
    for tile = 0, 3 do
        block[#block + 1] = "tilestored %tmm" .. tile .. ",memory"
    end
    check.equal(text:find(table.concat(block, "\n"), 1, true) ~= nil, true)
    check.matches(text, "tdpbusd %%tmm7,%%tmm5,%%tmm0")
    check.equal(text:match "tilestored %%tmm[4-7]", nil)
end

function test.both_dialects_of_assemblers_have_the_same_instructions_of_tiles()
    blocks "bf16"
    check.equal(instructions("bf16", "intel"), instructions("bf16", "att"))
end

for type in pairs(sets) do
    test["blocks_in_" .. type .. "_are_the_same_by_tiles"] = function()
        local objects, numbers = blocks(type)
        local product = "tiles_product_" .. type .. "_by_" .. type
        compare(type, "tests/model/product_tiles.c", product, objects, numbers)
        compare(type, "tests/model/attention_tiles.c", "tiles_attention_" .. type, objects, numbers)
    end
end

return test
