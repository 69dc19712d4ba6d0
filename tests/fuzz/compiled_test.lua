-- Bundles of random models compile without a warning, and their objects import nothing: of every family, for every
-- instruction set that a compiler here knows, as gen/emit/promise.lua says it.
local check = require "tests.support.check"
local compilers = require "harness.base.compilers"
local cpu = require "harness.base.cpu"
local effort = require "tests.effort"
local emit = require "gen.emit.emit"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local model = require "gen.families.model_file"
local model_plan = require "gen.families.model.plan"
local plans = require "tests.fuzz.plans"
local missing = require("tests.support.program").missing
local process = require "process"
local promise = require "gen.emit.promise"
local target_list = require "gen.plan.target"

local test = {}

local warnings = compilers.joined(require "tests.support.warnings", { "-Wcast-align" })
local standards = { "-std=c99", "-std=c11" }

-- Every compiler, or way to check weights, at every level: { { one, level } }.
local function ways_of(list)
    local ways = {}
    for _, level in ipairs(promise.levels) do
        for _, one in ipairs(list) do
            ways[#ways + 1] = { one, level }
        end
    end
    return ways
end

-- All of them with effort full, otherwise the one whose turn it is.
local function some(list, turn) return effort.full "compilers" and list or { list[turn % #list + 1] } end

-- The symbols that objects import beside those with the model's prefix, as lines; `known`: a pattern of others that may
-- be there.
local function imports(nm, objects, model, known)
    local lines = {}
    for line in compilers.call(compilers.joined({ nm, "-u", "-A" }, objects)):gmatch "[^\n]+" do
        local name = line:match "U ([%w_]+)$"
        if name and not name:find("^" .. model .. "_") and not (known and name:find(known)) then
            lines[#lines + 1] = line
        end
    end
    return lines
end

-- The command of the compiler `cc` for the instruction set `set`.
local function compiler_of(set, cc)
    if set.architecture ~= "aarch64" or cpu.describe().architecture == "aarch64" then return { cc } end
    if cc == "gcc" then return { "aarch64-linux-gnu-gcc" } end
    return { cc, "--target=aarch64-linux-gnu", "-isystem", "/usr/aarch64-linux-gnu/include" }
end

-- Compiles the sources at `paths`, each by itself, by the command `cc` with the warnings and `flags` of a path. Returns
-- the objects' paths and what went wrong, a line each.
local function compiled(paths, cc, flags, more)
    local commands, objects, failures = {}, {}, {}
    for i, path in ipairs(paths) do
        objects[i] = path .. ".o"
        commands[i] = compilers.joined(cc, warnings, more, flags[path] or {}, { "-c", path, "-o", objects[i] })
    end
    for i, failure in ipairs(compilers.failures(commands, compilers.timeout)) do
        if failure then failures[#failures + 1] = paths[i]:match "[^/]+$" .. ": " .. failure end
    end
    return objects, failures
end

-- What is wrong with the bundle of plan `p` compiled in that way, a line each.
local function wrong(p, directory, cc, level, standard)
    local paths, flags, header = {}, {}, nil
    for _, file in ipairs(emit.sources(p)) do
        local path = directory .. "/" .. file.name
        assert(host.write_file(path, file.text))
        if file.name:find "%.c$" then paths[#paths + 1] = path end
        if file.isa then flags[path] = file.isa.flags end
        if file.public then header = path end
    end
    local command = compiler_of(p.variants[1] and p.variants[1].isa or {}, cc)
    local objects, failures = compiled(paths, command, flags, { level, standard })
    if (p.openmp or p.threads) and command[1] == cc and not command[2] then
        local openmp = { level, standard, "-fopenmp", "-D" .. p.names.macro "OPENMP" .. "=2", "-fsyntax-only" }
        local _, more = compiled(paths, command, flags, openmp)
        failures = compilers.joined(failures, more)
    end
    if #failures > 0 then return failures end
    local cxx = cc == "gcc" and "g++" or "clang++"
    local text = string.format('#include "%s"\n#include "%s"\nint main() { return 0; }\n', header, header)
    assert(host.write_file(directory .. "/main.cc", text))
    local as_cxx = { cxx, "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wcast-align" }
    local header_command = compilers.joined(as_cxx, { "-Werror", "-fsyntax-only", directory .. "/main.cc" })
    failures[1] = compilers.failures({ header_command })[1] or nil
    return compilers.joined(failures, imports("nm", objects, p.model.name))
end

local function refuse(failures)
    if #failures > 0 then error(table.concat(failures, "\n"), 0) end
end

function test.bundles_have_no_warning_and_import_nothing()
    local directory, failures, first = process.temporary_directory(), {}, effort.seed
    local ways, count = ways_of(promise.compilers), 0
    for index = first, first + effort.bundles - 1 do
        for _, name in ipairs(some(isa.names, index)) do
            for n, row in ipairs(some(plans.of(index, isa.get(name)), index // #isa.names)) do
                -- As many models as ways take, family by family, each of them once.
                local way, standard = ways[(index + n) % #ways + 1], standards[count % 2 + 1]
                count = count + 1
                for _, line in ipairs(wrong(row.plan, directory, way[1], way[2], standard)) do
                    failures[#failures + 1] =
                        string.format("%s %d, %s, %s %s %s: %s", row.name, index, name, way[1], way[2], standard, line)
                end
            end
        end
    end
    host.print(string.format("bundles: models %d to %d, %d of them", first, first + effort.bundles - 1, count))
    refuse(failures)
end

-- Heads fill vectors and are filled up to a power of two: what clears, copies and fills up is no call of a library.
function test.attention_by_tables_has_no_warning_and_imports_nothing()
    local directory, failures = process.temporary_directory(), {}
    local text = [[return { name = "hashed", d = 32, heads = 2, head_dim = %d, layers = 1, vocab = 9,
        attention = { kind = "lsh", tables = 4, tau = %d, window = %d, context = 40, causal = %s },
        ffn = { kind = "mlp", f = 16, activation = "relu" } }]]
    for i, case in ipairs {
        { 40, 5, true, "avx2", "clang", "-O1" },
        { 40, 0, true, "avx2", "clang", "-O2" },
        { 8, 5, false, "neon", "gcc", "-O3" },
        { 40, 5, true, "avx2", "gcc", "-O3", "i8" },
        { 1, 5, true, "scalar", "gcc", "-O1" },
    } do
        local width, window, causal, set, cc, level, cache = table.unpack(case)
        local path = directory .. "/hashed.lua"
        assert(host.write_file(path, text:format(width, math.min(4, width), window, causal)))
        local p = model_plan.build(model.load(path), isa.select(set), { cache = cache })
        for _, line in ipairs(wrong(p, directory, cc, level, "-std=c99")) do
            failures[#failures + 1] = string.format("case %d, %s %s: %s", i, cc, level, line)
        end
    end
    refuse(failures)
end

-- What few drawn models have: gates whose products come from a function of their own, no product at all, and a window
-- beside a single table.
function test.rare_models_have_no_warning()
    local directory = process.temporary_directory()
    local path = directory .. "/rare.lua"
    local form = "return { name = 'rare', d = 64, heads = 1, layers = 1, vocab = 9, attention = { %s }, %s }"
    local lsh = "kind = 'lsh', tables = 1, tau = 3, window = 4, context = 40, causal = false"
    local mlp = "ffn = { kind = 'mlp', f = 64, activation = 'relu' }"
    local glu = "ffn = { kind = 'glu', f = 64, activation = 'silu' }"
    local lookup = "parallel = true, ffn = { kind = 'lookup', h = 2, tau = 4, qkv = true }"
    for _, case in ipairs {
        { "amx_int8", { type = "i8", activations = "i8" }, "context = 40", glu },
        { "avx2", {}, lsh, mlp },
        { "avx2", { type = "u4" }, "context = 40", lookup },
    } do
        local set, types, attention, ffn = table.unpack(case)
        assert(host.write_file(path, form:format(attention, ffn)))
        refuse(wrong(model_plan.build(model.load(path), isa.select(set), types), directory, "gcc", "-O1", "-std=c99"))
    end
end

-- What may be imported: of libgcc, functions of floats where a CPU has no instructions of them; WebAssembly's stack.
local function known(target, floats)
    return target.soft_float and floats and "^__" or target.object == "wasm" and "^__stack_pointer$" or nil
end

-- The sources of a firmware bundle for `target`: their paths, and the flags of a path.
local function firmware(target, model, options, folder)
    local weights = folder .. ".safetensors"
    compilers.call { check.lookupc, "sample", model, "-o", weights }
    compilers.call(compilers.joined({
        check.lookupc,
        "emit",
        model,
        "--profile",
        "firmware",
        "--target",
        target.name,
        "--weights",
        weights,
        "--without-misra",
        "--weights-array",
        "-o",
        folder,
    }, options))
    local paths, flags = {}, {}
    for _, file in ipairs(json.decode(assert(host.read(folder .. "/MANIFEST.json"))).files) do
        local name = file.name:match "^src/.*%.c$"
        if name and not name:find "_weights%.c$" then
            paths[#paths + 1] = folder .. "/" .. name
            flags[paths[#paths]] = file.flags
        end
    end
    return paths, flags
end

-- The program that lists the symbols of what `target`'s compiler makes.
local function nm_of(target)
    local prefix = target.compiler:match "^(.*%-)gcc$"
    return prefix and prefix .. "nm" or target.object == "wasm" and "llvm-nm" or "nm"
end

-- A cross compiler may come without a C library, and so without a <stdint.h>. It gets one and is not told: with
-- -ffreestanding it might not call what it would call for a user.
local function header_flags(target, directory)
    assert(host.write_file(directory .. "/probe.c", "#include <stdint.h>\n"))
    local probe = compilers.joined({ target.compiler }, target.flags, { "-fsyntax-only", directory .. "/probe.c" })
    if assert(process.run(probe)).status == 0 then return {} end
    assert(host.write_directory(directory .. "/headers", { ["stdint.h"] = "#include <stdint-gcc.h>\n" }, true))
    return { "-isystem", directory .. "/headers" }
end

local firmware_kinds = {
    { name = "kws", model = "gen/models/kws.lua", options = {}, floats = true },
    { name = "kws", model = "gen/models/kws.lua", options = { "--arithmetic", "integer" } },
    { name = "lookups", model = "tests/firmware/lookups.lua", options = {}, floats = true },
    {
        name = "sentences",
        model = "tests/firmware/sentences.lua",
        options = { "--type", "i8", "--cache", "f16" },
        floats = true,
    },
}

function test.firmware_has_no_warning_and_imports_nothing()
    local directory, failures, turn = process.temporary_directory(), {}, effort.seed
    for number, target in ipairs(some(target_list.list, turn)) do
        local lacking = missing(target.compiler, nm_of(target))
        if lacking then host.print("skipped: " .. target.name .. ": " .. lacking .. " is not here") end
        for number_of_kind, kind in ipairs(lacking and {} or some(firmware_kinds, turn)) do
            local folder = string.format("%s/%d_%d", directory, number, number_of_kind)
            local paths, flags = firmware(target, kind.model, kind.options, folder)
            for i, way in ipairs(some(ways_of { "CRC32", "SHA256" }, turn)) do
                local checks, level = way[1], way[2]
                local objects, wrong_files = compiled(
                    paths,
                    { target.compiler },
                    flags,
                    compilers.joined(target.flags, header_flags(target, directory), {
                        level,
                        standards[(turn + i) % 2 + 1],
                        "-I" .. folder .. "/inc",
                        "-I" .. folder .. "/src",
                        string.format("-D%s_CHECK=%s_CHECK_%s", kind.name:upper(), kind.name:upper(), checks),
                    })
                )
                if #wrong_files == 0 then
                    wrong_files = imports(nm_of(target), objects, kind.name, known(target, kind.floats))
                end
                for _, line in ipairs(wrong_files) do
                    local title = kind.name .. " " .. table.concat(kind.options, " ") .. " " .. checks .. " " .. level
                    failures[#failures + 1] = target.name .. " " .. title .. ": " .. line
                end
            end
        end
    end
    refuse(failures)
end

return test
