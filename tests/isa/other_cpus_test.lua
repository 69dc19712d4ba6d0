-- On CPUs that are not this one, in emulation, a bundle chooses what they can run, and its kernels pass verify.
local check = require "tests.support.check"
local compilers = require "harness.base.compilers"
local cpu = require "harness.base.cpu"
local effort = require "tests.effort"
local fuzz = require "tests.fuzz.fuzz"
local host = require "host"
local isa = require "gen.isa.list"
local json = require "json"
local lookup_plan = require "gen.families.lookup.plan"
local model_file = require "gen.families.model_file"
local process = require "process"
local program = require "tests.support.program"
local stand_ins = require "tests.support.stand_ins"
local transformers = require "tests.fuzz.transformers"
local whole_models = require "tests.fuzz.whole_models"

local test = {}

-- build.sh makes it, with full effort: lookupc itself for AArch64.
local lookupc_of_aarch64 = check.lookupc:gsub("[^/]*$", "aarch64/lookupc")
local libraries_of_aarch64 = "/usr/aarch64-linux-gnu"

local function run(arguments, more)
    local environment = { LD_PRELOAD = "", LOOKUPC_CPU = "" } -- a mask of this CPU may be of none of them
    for key, value in pairs(more or {}) do
        environment[key] = value
    end
    return assert(process.run(arguments, { timeout = 600, env = environment }))
end

local function call(arguments, more)
    local result = run(arguments, more)
    if result.status ~= 0 then error(table.concat(arguments, " ") .. ": " .. result.output, 0) end
    return result.output
end

-- Whether the emulator of the command is there, knows its CPU and runs `program` with --version; says so if not.
local function can_emulate(emulator, program)
    local works = run(compilers.joined({ "sh", "-c", '"$@"', "sh" }, emulator, { program, "--version" })).status == 0
    if not works then host.print("skipped: " .. table.concat(emulator, " ") .. ": does not run here") end
    return works
end

-- The command that runs verify in the emulator of the instruction set `set`, or nil; says why. It finds out by itself
-- what the CPU has.
local function verifier(set, emulator)
    local program, compiler = check.lookupc, {}
    if set.architecture == "aarch64" then
        program, compiler = lookupc_of_aarch64, { "--cc", "aarch64-linux-gnu-gcc" }
        emulator = compilers.joined(emulator, { "-L", libraries_of_aarch64 })
        if not effort.full "emulated" then return nil end
    elseif cpu.describe().architecture ~= "x86_64" then
        host.print("skipped: " .. table.concat(emulator, " ") .. ": runs programs of x86-64")
        return nil
    end
    if not can_emulate(emulator, program) then return nil end
    return function(arguments) return call(compilers.joined(emulator, { program, "verify" }, arguments, compiler)) end
end

-- Whether `output`, of verify, says that kernels of the instruction set `name` were checked and are right.
local function passed(output, name)
    check.matches(output, "\n" .. name .. " +%a+ +ok ")
    check.equal(output:find "FAILED", nil)
end

for _, name in ipairs(isa.names) do
    local set = isa.get(name)
    local cases = effort.some("emulated", {
        { "tiny" },
        { "tiny", "--tables", "i8", "--projection", "i16" },
        { "tiny", "--tables", "i8", "--projection", "i8" },
        { "tiny", "--tables", "f16", "--projection", "bf16" },
        { "tiny_skipless", "--type", "f16", "--cache", "i8" },
        { "tiny", "--tables", "e4m3" },
        { "tiny_skipless" },
        { "tiny_skipless", "--type", "i8", "--cache", "f16" },
        { "gpt_nano_sort", "--type", "bf16" },
    }, 2)
    for _, case in ipairs(set.emulator and cases or {}) do
        local title = table.concat(case, "_"):gsub("%-%-%a+_", "")
        test["verify_passes_on_a_CPU_of_" .. name .. "_" .. title] = function()
            local verify = verifier(set, set.emulator)
            if not verify then return end
            local model, options = "gen/models/" .. case[1] .. ".lua", table.move(case, 2, #case, 1, {})
            passed(verify(compilers.joined({ model, "--isa", name }, options)), name)
        end
    end
end

local emulated_mflop = 0.05 -- of a token: emulated calls of many tokens take seconds

-- What draws random models, and how many: from a number and an instruction set the model as the table of a model file
-- and options of verify, or nil. LookupFFNs have their default schedules, the others random ones. Seeds are those with
-- which tests/fuzz/ verifies the same models on this CPU.
local drawn = {}

drawn.LookupFFNs = {
    count = effort.emulated_models,
    draw = function(index)
        local given, tables, projection = fuzz.model(index)
        local valid = model_file.validate(given, "", given.name)
        local p = lookup_plan.build(valid, { isa.get "scalar" }, nil, tables, projection)
        if p.mflop.folded < emulated_mflop then return given, { "--tables", tables, "--projection", projection } end
    end,
}

-- Whether a blob of plan `p` has a BH4 multiplied out.
local function multiplies_out(p)
    for _, run in ipairs(p.segments) do
        local looked = run.plan.shape.looked
        if looked and looked.multiplied then return true end
    end
    return false
end

local function drawn_from(plan_of)
    local function draw(index, set)
        local p, given = plan_of(index, { set })
        if p.shape.sequences then return end -- their schedules are not those of one sequence, which verify has
        local options = { "--schedule", p.variants[1].schedule_text, "--type", p.options.type }
        for _, name in ipairs { "activations", "tables", "projection" } do
            if p.options[name] then options = compilers.joined(options, { "--" .. name, p.options[name] }) end
        end
        if multiplies_out(p) then options[#options + 1] = "--multiply-out" end
        return given, compilers.joined(options, { "--cache", p.options.cache, "--seed", tostring(index) })
    end
    return { count = effort.emulated_models, draw = draw }
end
drawn.transformers = drawn_from(transformers.plan)
drawn.whole_models = drawn_from(whole_models.plan)

-- Random models, many and few tokens, in types that take turns, as the instruction sets and their emulated CPUs do.
for kind, row in pairs(drawn) do
    test["random_" .. kind .. "_pass_on_CPUs_of_AArch64"] = function()
        local folder, sets = process.temporary_directory(), {}
        for _, name in ipairs(isa.names) do
            local set = isa.get(name)
            local emulators = { set.emulator, table.unpack(set.other_emulators or {}) }
            for _, emulator in ipairs(set.architecture == "aarch64" and emulators or {}) do
                sets[#sets + 1] = { name = name, verify = verifier(set, emulator) }
            end
        end
        local index, done = 0, 0
        while done < row.count do
            index = index + 1
            local set = sets[done % #sets + 1]
            if not set.verify then return end
            local given, options = row.draw(index, isa.get(set.name))
            if given then
                local path = string.format("%s/%d.lua", folder, index)
                assert(host.write_file(path, fuzz.text(given)))
                passed(set.verify(compilers.joined({ path, "--isa", set.name }, options)), set.name)
                done = done + 1
            end
        end
    end
end

-- No emulator has AVX-VNNI. Every CPU with AVX2 gets a lookupc that takes AVX2 for it, and functions in C for its
-- instructions; one that has it lookupc itself, too.
function test.kernels_for_AVX_VNNI_pass()
    local folder, ways = process.temporary_directory(), {}
    if isa.runs(isa.get "avx_vnni", cpu.describe()) then ways[1] = { check.lookupc, "verify" } end
    local _, header = stand_ins.get "avx_vnni"
    if header then
        local file = "gen/isa/avx_vnni.lua"
        local flag = '"-include' .. call({ "pwd" }):gsub("\n", "") .. "/" .. header .. '"'
        local tree = program.changed_tree(file, '"-mavxvnni"', flag)
        local text = assert(host.read(tree .. "/" .. file)):gsub("leaf7_1_eax = 1 << 4", "leaf7_1_eax = 0")
        assert(host.write_file(tree .. "/" .. file, text))
        ways[#ways + 1] = { check.lookupc, "--tree", tree, "verify", "--for", "generic" }
    end
    local wide = folder .. "/wide.lua" -- columns and tables that fill no vector, two rows of a table
    assert(
        host.write_file(
            wide,
            "return { name = 'wide', d = 64, d_out = 75, h = 70, tau = 6, neighbours = 2, score = 'gelu', \z
                projection = { kind = 'bh4', block = 16 } }"
        )
    )
    for number, case in ipairs {
        { "gen/models/tiny.lua", "--tables", "i8", "--projection", "i8" },
        { "gen/models/tiny_skipless.lua", "--type", "i8", "--activations", "i8" },
        { wide, "--tables", "i8", "--projection", "i16" },
        { wide, "--tables", "i8", "--projection", "i7" },
    } do
        if number == 1 or effort.full "emulated" then
            for _, way in ipairs(ways) do
                passed(call(compilers.joined(way, { "--isa", "avx_vnni", "--cflags", "-O0" }, case)), "avx_vnni")
            end
        end
    end
end

-- With vectors of 128 bits there are no kernels of SVE to verify: one line says so.
function test.vectors_of_128_bits_are_too_short_for_sve()
    local set = isa.get "sve"
    local verify = verifier(set, { "qemu-aarch64-static", "-cpu", "max,sve128=on" })
    if not verify then return end
    local good, message = pcall(verify, { "gen/models/tiny.lua", "--isa", "sve" })
    check.equal(good, false)
    check.matches(message, "lookupc: %-%-isa: [^\n]*\n$")
end

-- Dispatch --

-- The instruction sets of a bundle for both architectures.
local both = table.concat(isa.names, ",")

-- Makes the program tests/isa/dispatch.c of a bundle in `folder` with the compiler `cc`, for the architecture of that
-- name; `macros`: of the compiler, for the bundle's choice.
local function build(folder, cc, architecture, macros)
    local program = folder .. "/" .. architecture .. table.concat(macros):gsub("%W", "_")
    local objects, commands = {}, {}
    local function add(source, flags)
        objects[#objects + 1] = program .. #objects .. ".o"
        commands[#commands + 1] = compilers.joined(
            { cc, "-O0", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-I" .. folder .. "/tiny" },
            flags,
            { "-c", source, "-o", objects[#objects] }
        )
    end
    add("tests/isa/dispatch.c", {})
    for _, file in ipairs(json.decode(assert(host.read(folder .. "/tiny/MANIFEST.json"))).files) do
        if file.name:find "%.c$" then
            local flags = (file.architecture or architecture) == architecture and file.flags or {}
            add(folder .. "/tiny/" .. file.name, file.name == "tiny.c" and macros or flags)
        end
    end
    for _, failure in ipairs(compilers.failures(commands)) do
        if failure then error(failure, 0) end
    end
    call(compilers.joined({ cc, "-static", "-o", program }, objects))
    return program
end

-- CPUs, and what of a bundle of everything they run; the last one is the best. The emulator has no AVX-512.
local cpus = {
    { "x86", "Conroe", "scalar" }, -- no SSE4.1, no XGETBV
    { "x86", "Nehalem", "scalar sse4" }, -- no XGETBV
    { "x86", "Haswell", "scalar sse4 avx2" },
    { "x86", "Skylake-Server", "scalar sse4 avx2" },
    { "aarch64", "cortex-a72", "scalar neon" },
    { "aarch64", "cortex-a76", "scalar neon dotprod" },
    { "aarch64", "neoverse-n1", "scalar neon dotprod" },
    { "aarch64", "neoverse-v1", "scalar neon dotprod sve i8mm" },
    { "aarch64", "a64fx", "scalar neon sve" },
    { "aarch64", "max,sve=off", "scalar neon dotprod i8mm" },
    { "aarch64", "max,sve128=on", "scalar neon dotprod i8mm" },
    { "aarch64", "max,sve256=on", "scalar neon dotprod sve i8mm" },
    { "aarch64", "max,sve512=on", "scalar neon dotprod sve i8mm" },
}

-- One bundle for both architectures: what it takes on each CPU, what it does when it is told what to take.
function test.a_bundle_chooses_what_the_CPU_runs()
    local folder = process.temporary_directory()
    local model, weights, blob = "gen/models/tiny.lua", folder .. "/w.safetensors", folder .. "/w.bin"
    call { check.lookupc, "sample", model, "-o", weights }
    call { check.lookupc, "pack", model, "--weights", weights, "-o", blob }
    call { check.lookupc, "emit", model, "--isa", both, "-o", folder .. "/tiny" }
    local programs, native = {}, cpu.real() -- a bundle knows of no mask
    if native.architecture == "x86_64" then
        programs.x86 = build(folder, "gcc", "x86", { "-DTINY_ISA_FROM_ENVIRONMENT" })
    end
    if run({ "sh", "-c", "echo '#include <stdio.h>' | aarch64-linux-gnu-gcc -E -" }).status == 0 then
        programs.aarch64 = build(folder, "aarch64-linux-gnu-gcc", "aarch64", { "-DTINY_ISA_FROM_ENVIRONMENT" })
    end
    -- The number of the chosen instruction set is its place among the names; or what bind says. `asks`: for AMX before.
    local function chosen(emulator, program, wanted, asks)
        local words = compilers.joined(emulator, { program, blob }, asks and { "asks" } or {})
        local output = call(words, { TINY_ISA = wanted or "" })
        local number = output:match "(%d+) right\n$"
        return number and isa.names[math.tointeger(tonumber(number)) + 1] or output:match "(error %d+)\n$" or output
    end
    if programs.x86 then
        local last = #native.isa
        check.equal(chosen({}, programs.x86, nil, true), native.isa[last])
        while isa.needs_permission(isa.get(native.isa[last])) do
            last = last - 1
        end
        check.equal(chosen({}, programs.x86), native.isa[last])
    end
    for _, case in ipairs(cpus) do
        local architecture, name, runs = table.unpack(case)
        local emulator = { architecture == "x86" and "qemu-x86_64-static" or "qemu-aarch64-static", "-cpu", name }
        local program = programs[architecture]
        if not program then
            host.print("skipped: " .. name .. ": no compiler for it")
        elseif run(compilers.joined({ "sh", "-c", '"$@"', "sh" }, emulator, { program })).status ~= 2 then
            host.print("skipped: " .. table.concat(emulator, " ") .. ": does not run here")
        else
            -- Told to take one that it can run it does; ERROR_CPU for others, ERROR_ISA for a name that is none.
            local found, columns = chosen(emulator, program), {}
            for i, wanted in
                ipairs(effort.full "emulated" and compilers.joined(isa.names, { "mmx" }) or { "dotprod", "mmx" })
            do
                local can = wanted == "scalar" or (" " .. runs .. " "):find(" " .. wanted .. " ", 1, true)
                local instead = wanted == "mmx" and "error 20" or "error 8"
                columns[i] = chosen(emulator, program, wanted)
                check.equal({ name, wanted, columns[i] }, { name, wanted, can and wanted or instead })
            end
            host.print(string.format("%-16s %-8s told to take others: %s", name, found, table.concat(columns, ", ")))
            check.equal({ name, found }, { name, runs:match "%w+$" })
        end
    end
end

-- The macro says it at compile time, whatever the environment says.
function test.a_macro_names_the_instruction_set()
    if cpu.describe().architecture ~= "x86_64" then return end
    local folder = process.temporary_directory()
    local model, weights, blob = "gen/models/tiny.lua", folder .. "/w.safetensors", folder .. "/w.bin"
    call { check.lookupc, "sample", model, "-o", weights }
    call { check.lookupc, "pack", model, "--weights", weights, "-o", blob }
    call { check.lookupc, "emit", model, "--isa", "scalar,sse4", "-o", folder .. "/tiny" }
    local program = build(folder, "gcc", "x86", { '-DTINY_ISA="scalar"', "-DTINY_ISA_FROM_ENVIRONMENT" })
    check.equal(call({ program, blob }, { TINY_ISA = "sse4" }), "0 right\n")
end

return test
