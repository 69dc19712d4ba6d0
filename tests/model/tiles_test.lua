-- Blocks on a matrix engine compute what they do on vectors: bytes to the bit, as sums of integers are, and bf16 where
-- sums are exact, or nearly. The tiles are arrays in C.
local activation_table = require "gen.families.model.blocks.activation_table"
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

-- A compiler of kernels that count how often tiles are used.
local counting = compilers.joined(
    { "gcc", "-std=gnu11", "-O0", "-Wno-psabi", "-D__asm__(...)=" },
    { "-DLOOKUPC_TILES_IN_C=extern size_t tiles_used; ++tiles_used; static __thread" },
    stand_ins.flags "tests/isa/stand_ins/amx.h"
)

-- The model file and the folder of a bundle for blocks whose weights, inputs and cache have such a type, of both
-- instruction sets.
local function emitted(type)
    local path, bundle = program.model(folder, "tiles_" .. type, text), folder .. "/" .. type
    local list = table.concat(sets[type], ",")
    program.works { "emit", path, "--type", type, "--activations", type, "--isa", list, "-o", bundle }
    return path, bundle
end

-- Their object files, and numbers of their plan.
local function blocks(type)
    local path, bundle = emitted(type)
    local objects = {}
    for i, set in ipairs(sets[type]) do
        objects[i] = bundle .. "/" .. set .. ".o"
        compilers.call(compilers.joined(counting, { "-c", bundle .. "/tiles__" .. set .. ".c", "-o", objects[i] }))
    end
    local list = isa.select(table.concat(sets[type], ","))
    local p = model_plan.build(model.load(path), list, { type = type, activations = type })
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

-- Runs the C program that `words` compile to `path`.
local function run(words, path)
    compilers.call(words)
    local result = assert(process.run({ path }, { timeout = 120 }))
    if result.status ~= 0 then error(table.concat(words, " ") .. ": " .. result.output, 0) end
end

-- Runs the C program `source`, which compares functions of both instruction sets; their symbols begin with `symbol`.
local function compare(type, source, symbol, objects, numbers)
    local words, path = { "gcc", "-std=gnu11", "-O0", source }, folder .. "/compare"
    for name, number in pairs(numbers) do
        words[#words + 1] = "-D" .. name .. "=" .. number
    end
    if type == "i8" then words[#words + 1] = "-DSCALED" end
    words[#words + 1] = string.format('-DRUNTIME="%s/%s/tiles_runtime.h"', folder, type)
    words[#words + 1] = "-DBY_VECTORS=" .. symbol .. "__" .. sets[type][1]
    words[#words + 1] = "-DBY_TILES=" .. symbol .. "__" .. sets[type][2]
    -- Whole blocks call functions of other files: they stay undefined, and nothing here calls them.
    local rest = { "-Wl,--unresolved-symbols=ignore-all", "-lm", "-o", path }
    run(compilers.joined(words, objects, rest), path)
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
    if not stand_ins.get "amx_int8" then return end
    emitted "i8"
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
    local all, found, at = table.concat(block, "\n"), 0, 1
    while text:find(all, at, true) do
        found, at = found + 1, select(2, text:find(all, at, true)) + 1
    end
    check.equal(found, 2) -- of products, and of one whose outputs are activated
    check.matches(text, "tdpbusd %%tmm7,%%tmm5,%%tmm0")
    check.equal(text:match "tilestored %%tmm[4-7]", nil)
end

function test.both_dialects_of_assemblers_have_the_same_instructions_of_tiles()
    if not stand_ins.get "amx_bf16" then return end
    emitted "bf16"
    check.equal(instructions("bf16", "intel"), instructions("bf16", "att"))
end

-- As the tables say themselves: beside the integral of the density, and tanh.
function test.activations_by_table_are_as_near_as_they_say()
    local each, normal, exact, tables = 1 / 1024, 0.5, {}, {}
    local function tanh(x) return 1 - 2 / (1 + math.exp(2 * x)) end
    function exact.gelu(x) return x * normal end
    function exact.gelu_tanh(x) return x / 2 * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3))) end
    function exact.silu(x) return x / 2 * (1 + tanh(x / 2)) end
    local function number(text) return tonumber((text:gsub("f$", ""))) end
    for name in pairs(exact) do
        local t = activation_table.of(name)
        tables[name] = { bound = number(t.bound), by_step = number(t.by_step), error = number(t.error), {}, {}, {}, {} }
        for power, list in ipairs(t.coefficients) do
            for k, text in ipairs(list) do
                tables[name][power][k] = number(text)
            end
        end
    end
    for x = each, 20, each do
        normal = normal + each * math.exp(-(x - each / 2) ^ 2 / 2) / math.sqrt(2 * math.pi)
        for name, t in pairs(tables) do
            local bounded, share = math.min(t.bound, x), 0
            local k = math.floor(bounded * t.by_step + 0.5) + 1
            for power = 4, 1, -1 do
                share = share * bounded + t[power][k]
            end
            local y = x / 2 + x * share
            if not (math.abs(y - exact[name](x)) <= t.error * x) then
                error(string.format("%s of %g: %g instead of %g", name, x, y, exact[name](x)))
            end
        end
    end
end

-- An FFN of each kind, whose inputs and outputs fill no tile and no panel.
for type, activation in pairs { i8 = "silu", bf16 = "gelu" } do
    local ffn = string.format('kind = "%s", f = 152, activation = "%s"', type == "i8" and "glu" or "mlp", activation)
    test["products_in_" .. type .. "_activate_and_round_meanwhile"] = function()
        if not stand_ins.get(sets[type][2]) then return end
        local path = program.model(
            folder,
            "activated_" .. type,
            [[return { name = "tiles", d = 72, heads = 1, layers = 1, vocab = 8,
                norm = { kind = "rmsnorm", eps = 1e-5 }, attention = { eliminate = "none", context = 160 },
                ffn = { ]] .. ffn .. " } }"
        )
        local bundle, set = folder .. "/activated_" .. type, sets[type][2]
        program.works { "emit", path, "--type", type, "--activations", type, "--isa", set, "-o", bundle }
        local per_word = dtype.get(type).products.rows
        local numbers = { -- of words, and with bytes where their sums start and their unit
            PER_WORD = per_word,
            COMPARED = 152 // per_word + (type == "i8" and 2 or 0),
            EMITTED = string.format('"%s/tiles__%s.c"', bundle, set),
            PRODUCT = string.format("tiles_product_%s_by_%s__%s", type, type, set),
            MATRIX = string.format("tiles_matrix_%s_by_%s", type, type),
            ACTIVATED = "tiles_" .. activation .. "_by_table",
            ERROR = activation_table.of(activation).error,
            ROUND_INPUTS = "tiles_rounded_72",
            ROUND_MEASURED = "tiles_rounded_measured_152",
        }
        local words, to = {}, folder .. "/together"
        for name, value in pairs(numbers) do
            words[#words + 1] = "-D" .. name .. "=" .. value
        end
        if type == "i8" then words[#words + 1] = "-DSCALED" end
        if ffn:find "glu" then words[#words + 1] = "-DGATED" end
        local source = { "tests/model/activated_tiles.c", "-Wl,--unresolved-symbols=ignore-all", "-lm", "-o", to }
        run(compilers.joined(counting, words, source), to)
    end
end

for type in pairs(sets) do
    test["blocks_in_" .. type .. "_are_the_same_by_tiles"] = function()
        if not stand_ins.get(sets[type][2]) then return end
        local objects, numbers = blocks(type)
        local product = "tiles_product_" .. type .. "_by_" .. type
        compare(type, "tests/model/product_tiles.c", product, objects, numbers)
        compare(type, "tests/model/attention_tiles.c", "tiles_attention_" .. type, objects, numbers)
    end
end

return test
