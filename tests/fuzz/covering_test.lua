-- The models of tests/fuzz/covering.lua compile without a warning for every instruction set, on every machine; those to
-- be verified agree with the reference: with stand-ins, on this CPU, or in emulation.
local check = require "tests.support.check"
local checks = require "tests.fuzz.checks"
local compile = require "harness.base.compile"
local compilers = require "harness.base.compilers"
local cover = require "tests.fuzz.cover"
local covering = require "tests.fuzz.covering"
local cpu = require "harness.base.cpu"
local dtype = require "gen.plan.dtype"
local effort = require "tests.effort"
local emit = require "gen.emit.emit"
local families = require "gen.families.list"
local firmware_files = require "gen.emit.firmware"
local host = require "host"
local isa = require "gen.isa.list"
local plans = require "tests.fuzz.plans"
local process = require "process"
local program = require "tests.support.program"
local schema = require "gen.schema.schema"
local score = require "gen.plan.score"
local stand_ins = require "tests.support.stand_ins"
local toolchain = require "harness.firmware.toolchain"
local weights = require "weights"
local whole_models = require "tests.fuzz.whole_models"

local test = {}

-- ## Fresh

function test.list_is_fresh()
    if covering.mark ~= cover.mark() then error("tests/fuzz/covering.lua is stale: run ./build.sh covering", 0) end
end

-- One more or one less of a list is as good: without the last type or score the draws stay legal.
function test.key_type_set_choice_and_legal_value_make_the_list_stale()
    local before, whole, choices = cover.mark(), families.get "whole", families.get("lookup").space.choices
    local more = { key = "new", rule = schema.boolean, optional = true, values = function() return { 0, 1 } end }
    local rows = {
        { whole.model.keys, #whole.model.keys + 1, more },
        { dtype.names, #dtype.names, nil },
        { dtype.type_names, #dtype.type_names, nil },
        { score.names, #score.names, nil },
        { isa.list, #isa.list + 1, { name = "scalar", use = "here" } },
        { whole.space.choices, #whole.space.choices + 1, more },
        { choices, #choices + 1, more },
        { choices[1], "values", function() return { 2 } end },
    }
    for _, row in ipairs(rows) do
        local list, key, value = table.unpack(row, 1, 3)
        local kept = list[key]
        list[key] = value
        local mark = cover.mark()
        list[key] = kept
        check.equal(mark == before, false)
    end
    check.equal(cover.mark(), before)
end

function test.some_whole_models_are_given_checkpoints_in_groups()
    local directory, found = process.temporary_directory(), {}
    for index = 1, 12 do
        local path = checks.quantised((whole_models.plan(index, { isa.get "avx2" })), directory, index)
        for _, tensor in pairs(path and assert(weights.tensors(path)) or {}) do
            if tensor.blocks then found[tensor.blocks] = true end
        end
    end
    check.equal(found, { Q4_0 = true, Q4_1 = true, Q8_0 = true })
end

local warnings = table.concat(compilers.joined(require "tests.support.warnings", { "-Wcast-align" }), " ")

-- The plans that the list has for the instruction set `set` under `keys`, each of a model with a name of its own.
local function plans_of(set, keys)
    local list = {}
    for _, family in ipairs(plans.families) do
        for _, key in ipairs(keys) do
            for _, index in ipairs(covering[family.name][key][set.name] or {}) do
                list[#list + 1] = (family.draw(index, set, family.name .. "_" .. index))
            end
        end
    end
    return list
end

local function refuse(failures)
    local lines = {}
    for _, failure in ipairs(failures) do
        if failure then lines[#lines + 1] = failure end
    end
    if #lines > 0 then error(table.concat(lines, "\n"), 0) end
end

-- The compiler flags of the instruction set `set` with all types of weights.
local function flags_of(set)
    local types = {}
    for i, name in ipairs(dtype.names) do
        types[i] = dtype.get(name)
    end
    return isa.with_types(set, types).flags
end

-- ## Compiled

local cross_gcc = "aarch64-linux-gnu-gcc"

-- The compilers for files of the instruction set `set`, the `number`th: both with effort full, otherwise the one whose
-- turn it is; of two sets with the same vectors each has another.
local function compilers_for(set, number)
    if set.architecture == "aarch64" and cpu.describe().architecture ~= "aarch64" then return { cross_gcc } end
    return effort.full "compilers" and { "gcc", "clang" } or { number % 2 == 0 and "gcc" or "clang" }
end

-- Every file of the bundles in `list`, as users get them, by each compiler: all kernels in one translation unit, which
-- has the flags of all types of weights, all else in another. And the kernels with functions in C for instructions: no
-- CPU has to run them to find what these lack.
local function compile_bundles(set, number, list)
    local directory, contents, commands = process.temporary_directory(), {}, {}
    local units = { { name = "kernels.c", flags = flags_of(set) }, { name = "api.c", flags = {} } }
    for _, unit in ipairs(units) do
        contents[unit.name] = ""
    end
    for _, p in ipairs(list) do
        for _, file in ipairs(emit.sources(p)) do
            contents[file.name] = file.text
            if file.name:find "%.c$" then
                local name = units[file.isa and 1 or 2].name
                contents[name] = contents[name] .. '#include "' .. file.name .. '"\n'
            end
        end
    end
    assert(host.write_directory(directory, contents, true))
    for _, cc in ipairs(compilers_for(set, number)) do
        for _, unit in ipairs(units) do
            commands[#commands + 1] = compilers.joined(
                { cc },
                compile.flags(unit, warnings),
                { "-fsyntax-only", directory .. "/" .. unit.name }
            )
        end
    end
    local _, header = stand_ins.get(set.name)
    if header then commands[#commands + 1] = stand_ins.check(directory .. "/kernels.c", header) end
    refuse(compilers.failures(commands))
end

-- Likewise of firmware bundles, by their target's compiler.
local function compile_firmware(list)
    local directory, lines, folders, target = process.temporary_directory(), {}, {}, list[1].target
    for i, p in ipairs(list) do
        local files = {}
        for _, file in ipairs(firmware_files.unmeasured(p, ("\0"):rep(p.packed_bytes))) do
            files[file.name] = file.text
            if file.name:find "%.c$" then lines[#lines + 1] = string.format('#include "%d/%s"', i, file.name) end
        end
        assert(host.write_directory(directory .. "/" .. i, files, true))
        folders[i] = "-I" .. directory .. "/" .. i .. "/inc"
    end
    local source = directory .. "/all.c"
    assert(host.write_file(source, table.concat(lines, "\n") .. "\n"))
    refuse(compilers.failures {
        compilers.joined(
            { target.compiler },
            toolchain.target_flags(list[1]),
            compilers.words(warnings),
            folders,
            { "-fsyntax-only", source }
        ),
    })
end

for number, name in ipairs(isa.all) do
    test["bundles_for_" .. name .. "_compile"] = function()
        local set = isa.get(name)
        local list = plans_of(set, effort.full "covering" and { "quick", "full" } or { "quick" })
        if plans.target_of(set) then
            compile_firmware(list)
            host.print("only compiled: " .. name) -- build.sh collects these lines; tests/firmware runs other models
        else
            compile_bundles(set, number, list)
        end
        host.print(string.format("%s: %d models", name, #list))
    end
end

-- Likewise of whole models that train: with a dense FFN and by lookups, in bf16 and in f32.
function test.training_compiles_with_stand_ins()
    local list, headers = table.concat(stand_ins.names, ","), {}
    for _, name in ipairs(stand_ins.names) do
        headers[name] = select(2, stand_ins.get(name))
    end
    for i, model in ipairs(next(headers) and { "gpt_nano_sort", "roberta_small_whole" } or {}) do
        for turn, type in ipairs { "bf16", "f32" } do
            if turn == i or effort.full "training" then
                local path, folder, commands = "gen/models/" .. model .. ".lua", program.folder(), {}
                local types = { "--type", type, table.unpack(i == 2 and { "--tables", "f32" } or {}) }
                program.works(compilers.joined({ "emit", path, "--training", "--isa", list, "-o", folder }, types))
                for name, header in pairs(headers) do
                    local source = string.format("%s/%s_train__%s.c", folder, model, name)
                    commands[#commands + 1] = stand_ins.check(source, header)
                end
                refuse(compilers.failures(commands))
            end
        end
    end
end

-- ## Verified

-- The plans to be verified for the instruction set `set`; few: the first of each family.
local function verified_plans(set, few)
    local list, seen = {}, {}
    for _, p in ipairs(plans_of(set, { "verified" })) do
        if not few or not seen[p.family] then list[#list + 1] = p end
        seen[p.family] = true
    end
    return list
end

-- These plans and their library, which `cc` compiles without optimisation; `header`: that stands in for instructions.
local function library_of(set, cc, header, few)
    local directory, list = process.temporary_directory(), verified_plans(set, few)
    if header then return list, stand_ins.library(list, directory, header) end
    local contents, units = compile.sources(list)
    for _, unit in ipairs(units) do
        if unit.isa then unit.flags = flags_of(isa.get(unit.isa.name)) end
    end
    assert(host.write_directory(directory, contents, true))
    local library = directory .. "/all.so"
    local commands, link = compile.commands(units, directory, library, cc, "-O0")
    refuse(compilers.failures(commands))
    compilers.call(link)
    return list, library
end

-- Compares the kernels of the plans in `library`, which `cc` compiled for the instruction set `set`, with the
-- reference.
local function verify(set, cc, list, library)
    local directory, lines = process.temporary_directory(), {}
    for i, p in ipairs(list) do
        local folder = directory .. "/" .. i
        assert(host.write_directory(folder, {}, true))
        for _, line in ipairs(checks.failures(p, library, folder, i, cc)) do
            lines[#lines + 1] = p.model.name .. ", " .. set.name .. ": " .. line
        end
        collectgarbage() -- the model's reference
    end
    host.print(string.format("%s: %d models", set.name, #list))
    refuse(lines)
end

-- Where stand-ins run all, quick only sees that instructions do the same; and emulators compute the reference, too.
local few = not effort.full "emulated"

local emulated = "COVERING_LIBRARY" -- in the environment where a CPU is emulated: what was compiled before

-- The same test, of one instruction set, by a lua_runner for AArch64 that build.sh makes.
local function verify_emulated(set)
    local runner = check.lookupc:gsub("[^/]*$", "aarch64/lua_runner")
    local words = compilers.joined(set.emulator, { "-L", "/usr/aarch64-linux-gnu", runner, ".", check.lookupc })
    local _, library = library_of(set, cross_gcc, nil, few)
    local result = assert(process.run(compilers.joined(words, { "tests/fuzz/covering_test.lua" }), {
        timeout = 600,
        env = { [emulated] = library, LOOKUPC_TEST = "kernels_for_" .. set.name .. "_are_right", LD_PRELOAD = "" },
    }))
    if result.status ~= 0 then error(result.output, 0) end
end

for _, name in ipairs(isa.names) do
    test["kernels_for_" .. name .. "_are_right"] = function()
        local set, facts = isa.get(name), cpu.describe()
        if process.variable(emulated) then
            return verify(set, cross_gcc, verified_plans(set, few), process.variable(emulated))
        end
        local everywhere, header = stand_ins.get(name)
        if header then verify(everywhere, "gcc", library_of(everywhere, "gcc", header)) end
        if isa.runs(set, facts) then
            verify(set, "gcc", library_of(set, "gcc", nil, header and few))
        elseif set.emulator and facts.architecture == "x86_64" then
            verify_emulated(set)
        elseif not header then
            host.print("only compiled: " .. name)
        end
    end
end

return test
