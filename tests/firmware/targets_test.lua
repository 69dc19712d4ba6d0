-- Firmware bundles run on every target, most of them in emulation: no output is wrong, and no more flash, RAM and stack
-- is taken than declared.
local check = require "tests.support.check"
local compilers = require "harness.base.compilers"
local effort = require "tests.effort"
local elf = require "harness.base.elf"
local host = require "host"
local json = require "json"
local missing = require("tests.support.program").missing
local process = require "process"
local target_list = require "gen.plan.target"
local toolchain = require "harness.firmware.toolchain"
local warnings = require "tests.support.warnings"

local test = {}

-- Of every target; soft: also where there is no FPU; calls: the header that says how such a model is called, nil: as a
-- LookupFFN, with macros; quick: the one target on which quick runs it. Whole models execute millions
-- of instructions, which nobody logs.
local cases = {
    { model = "tiny", name = "tiny", options = {}, soft = true },
    { model = "kws", name = "kws i8", options = { "--tables", "i8" }, quick = "cortex-m4f" },
    { model = "kws", name = "kws e4m3", options = { "--tables", "e4m3" }, quick = "aarch64" },
    { model = "kws", name = "kws int", options = { "--arithmetic", "integer" }, soft = true, quick = "cortex-m55" },
    { model = "odd", path = "tests/firmware/odd.lua", name = "odd", options = {}, quick = "rv64gcv" },
    {
        model = "odd",
        path = "tests/firmware/odd.lua",
        name = "odd 16",
        options = { "--tables", "f16", "--projection", "bf16" },
        quick = "aarch64-sve",
    },
    { model = "plain", path = "tests/firmware/plain.lua", name = "plain", options = {}, quick = "cortex-m4f" },
    {
        model = "gpt_nano_sort",
        name = "sort",
        options = {},
        source = "gpt-nano-sort.json",
        soft = true,
        calls = { "DECODER", "SORT_STRIDE" },
        quick = "cortex-m4f",
    },
    {
        model = "gpt_nano_sort",
        name = "sort i8",
        options = { "--type", "i8", "--cache", "i8" },
        source = "gpt-nano-sort.json",
        soft = true,
        calls = { "DECODER", "SORT_STRIDE" },
        quick = "wasm32",
    },
    {
        model = "gpt_nano_sort",
        name = "sort q8",
        options = { "--type", "q8,embedding=q8" },
        source = "gpt-nano-sort.json",
        soft = true,
        calls = { "DECODER", "SORT_STRIDE" },
        quick = "cortex-m55",
    },
    {
        model = "lookups",
        path = "tests/firmware/lookups.lua",
        name = "lookups",
        options = {},
        soft = true,
        calls = { "DECODER", "TEXT" },
        quick = "aarch64",
    },
    {
        model = "sentences",
        path = "tests/firmware/sentences.lua",
        name = "encoder",
        options = {},
        soft = true,
        calls = { "TEXT" },
        quick = "cortex-m0plus",
    },
    {
        model = "two_rows",
        path = "tests/firmware/two_rows.lua",
        name = "two int",
        options = { "--arithmetic", "integer" },
        soft = true,
        quick = "cortex-m4f",
    },
    {
        model = "two_rows",
        path = "tests/firmware/two_rows.lua",
        name = "two i4",
        options = { "--arithmetic", "integer", "--tables", "i4" },
        soft = true,
        quick = "cortex-m55",
    },
}

-- A decoder with a tokenizer in place of the cases, for tests of other subjects: its path, its weights, more options.
local given = process.variable "FIRMWARE_MODEL"
if given then
    local options = {}
    for word in (process.variable "FIRMWARE_OPTIONS" or ""):gmatch "%S+" do
        options[#options + 1] = word
    end
    local case = { model = given:match "([^/]*)%.lua$", path = given, options = options, soft = true }
    case.name, case.weights, case.calls = case.model, process.variable "FIRMWARE_WEIGHTS", { "DECODER", "TEXT" }
    cases = { case }
end

-- Beside the dense FFN, by target.
local counted_cases = { ["cortex-m4f"] = "kws i8", ["cortex-m55"] = "kws int" }

local function call(arguments)
    local result = assert(process.run(arguments, { timeout = 900, env = { LD_PRELOAD = "" } }))
    if result.status ~= 0 then
        error(table.concat(arguments, " ") .. ": exit status " .. tostring(result.status) .. ": " .. result.output, 0)
    end
    return result.output
end

local data_folder = (process.variable "LOOKUPC_DATA" or "../shared/data") .. "/"

-- Whether the weights that a case is made of are here.
local function has_source(case) return not case.source or host.read(data_folder .. case.source, 1 << 28) ~= nil end

-- How far apart the inputs are, of 729, that are sorted: all where that takes a second; emulated they take minutes.
local function sort_stride(target) return not target.emulator and 1 or effort.full "firmware" and 10 or 81 end

-- The lines of a bundle's manifest: { flags, sources }, the flags of its target, paths of what is compiled.
local function bundle(case, target, folder)
    local weights = case.weights or folder .. ".safetensors"
    local path = case.path or "gen/models/" .. case.model .. ".lua"
    if case.source then
        call { check.lookupc, "import", data_folder .. case.source, "-o", folder .. ".lua" }
    elseif not case.weights then
        call { check.lookupc, "sample", path, "-o", weights }
    end
    call(compilers.joined({
        check.lookupc,
        "emit",
        path,
        "--profile",
        "firmware",
        "--target",
        target.name,
        "--weights",
        weights,
        "--without-misra",
        "-o",
        folder,
    }, case.options))
    local manifest = json.decode(assert(host.read(folder .. "/MANIFEST.json")))
    local sources = {}
    for _, file in ipairs(manifest.files) do
        if file.name:find("^src/.*%.[cS]$") then sources[#sources + 1] = file.name end
    end
    return {
        flags = manifest.measured.flags,
        sources = sources,
        manifest = manifest,
        integer = manifest.options.arithmetic == "integer",
    }
end

-- What tests/firmware/boards/run.c wants to know of a model; calls: of whole models, macros.
local function macros_of(model, selftest, integer, calls)
    local more = {}
    for i, macro in ipairs(calls or {}) do
        more[i] = "-D" .. macro
    end
    return compilers.joined({
        '-DCALLS_HEADER="tests/firmware/boards/' .. (calls and "run_whole.h" or "run_ffn.h") .. '"',
        '-DMODEL_HEADER="' .. model .. '.h"',
        '-DSELFTEST_HEADER="' .. selftest .. '"',
        "-DMODEL(word)=" .. model .. "_##word",
        "-DMACRO(word)=" .. model:upper() .. "_##word",
        "-DINPUT=" .. (integer and "int16_t" or "float"),
        "-DOUTPUT=" .. (integer and "int32_t" or "float"),
    }, more)
end

-- The value of TEXT, and behind it the macro of the ids that the tokenizer of the model at `path` gives it here.
local function text_of(path)
    local found = json.decode(call { check.lookupc, "tokenize", path, "A caf\xc3\xa9, 12 cats \xff", "--json" })
    return '="A caf\\xc3\\xa9, 12 cats \\xff"', "TEXT_IDS=" .. table.concat(found.ids, ",")
end

-- The same lines, with the flag of the second measurement in place of -O2.
local function smaller_of(b)
    local flags = {}
    for i, flag in ipairs(b.flags) do
        flags[i] = flag == "-O2" and b.manifest.measured.smaller or flag
    end
    return { flags = flags, sources = b.sources, manifest = b.manifest, integer = b.integer }
end

local run_source = "tests/firmware/boards/run.c"

-- Object files of a bundle, compiled with the flags that its target's files are measured with: the paths of those of
-- the bundle, of all but run.c, and a function that compiles that with more flags.
local function objects(b, case, target, folder)
    local model, calls = case.model, nil
    if case.calls then
        calls = { table.unpack(case.calls) }
        for i, macro in ipairs(case.calls) do
            if macro == "SORT_STRIDE" then
                calls[i] = macro .. "=" .. sort_stride(target)
            elseif macro == "TEXT" then
                local value, ids = text_of(case.path)
                calls[i], calls[#calls + 1] = macro .. value, ids
            end
        end
    end
    local own, all = {}, {}
    local include = { "-I" .. folder .. "/inc", "-I" .. folder .. "/src", "-I" .. folder .. "/test", "-I." }
    local macros = macros_of(model, model .. "_selftest.h", b.integer, calls)
    local function compile_one(path, object, extra)
        call(compilers.joined({ target.compiler }, b.flags, extra, include, { "-c", path, "-o", object }))
        all[#all + 1] = object
    end
    for i, source in ipairs(b.sources) do
        own[i] = folder .. "/own_" .. source:gsub("[/.]", "_") .. ".o"
        compile_one(folder .. "/" .. source, own[i], source:find("%.c$") and warnings or {})
    end
    compile_one(folder .. "/test/" .. model .. "_selftest.c", folder .. "/selftest.o", warnings)
    if target.start then
        compile_one("tests/firmware/boards/" .. target.start, folder .. "/start.o", { "-std=gnu11" })
    end
    local function run_object(more)
        local object = folder .. "/run.o"
        local own_flags = compilers.joined({ "-std=c11" }, macros, more)
        call(compilers.joined({ target.compiler }, b.flags, own_flags, include, { "-c", run_source, "-o", object }))
        return object
    end
    return own, all, run_object
end

local function link(b, target, all, program)
    local script = target.script and { "-T", "tests/firmware/boards/" .. target.script } or {}
    call(
        compilers.joined(
            { target.compiler },
            b.flags,
            target.link,
            { "-nostdlib" },
            script,
            { "-Wl,-Map=" .. program .. ".map" },
            all,
            target.soft_float and { "-lgcc" } or {},
            { "-o", program }
        )
    )
end

-- Names that the object files need and do not define; floats: but the compiler's own functions for floats.
local function undefined(own, floats)
    local defined, needed = {}, {}
    for _, path in ipairs(own) do
        for name, symbol in pairs(elf.symbols(assert(host.read(path, 1 << 28)))) do
            if symbol.undefined then
                needed[name] = true
            else
                defined[name] = true
            end
        end
    end
    local list = {}
    for name in pairs(needed) do
        if not defined[name] and not (floats and name:find "^__") then list[#list + 1] = name end
    end
    table.sort(list)
    return list
end

-- What the linker put into memory of the object files whose names begin with own_, and of the compiler's functions for
-- floats, in bytes, by its map: GNU ld's, with
-- the bytes behind section and address, or lld's, with them in the third column; in WebAssembly functions have names of
-- their own.
local function mapped_bytes(map)
    local text, sum = map:gsub("\n%s+(0x%x+%s+0x%x+%s+%S)", " %1"), 0
    local function add(section, bytes)
        if section:find("^%.text") or section:find("^%.s?rodata") or not section:find("^%.") then
            sum = sum + tonumber(bytes, 16)
        end
    end
    for _, file in ipairs { "/own_%S+%.o", "/libgcc%.a%([%w_]*sf[%w_]*%.o" } do
        for section, bytes in text:gmatch("\n (%.%l+)[%w_.$]*%s+0x%x+%s+0x(%x+)%s+%S*" .. file) do
            add(section, bytes)
        end
    end
    for bytes, section in map:gmatch("\n%s*%S+%s+%S+%s+(%x+)%s[^\n]-/own_[^\n:]-%.o:%(([^)\n]+)%)") do
        add(section, bytes)
    end
    return sum
end

-- Instructions between the two calls of run.c that stand for begin and end, by the emulator's log. What checks the
-- weights is not logged.
local function instructions(target, program, folder)
    local symbols, silent = elf.symbols(assert(host.read(program, 1 << 28))), {}
    for name, symbol in pairs(symbols) do
        if
            (name:find("_bind") or name:find("is_whole") or name:find("_checksum") or name:find("^reset"))
            and symbol.bytes > 0
        then
            silent[#silent + 1] = { first = symbol.value & ~1, next = (symbol.value & ~1) + symbol.bytes }
        end
    end
    table.sort(silent, function(a, b) return a.first < b.first end)
    local ranges, from = {}, 0
    for _, part in ipairs(silent) do
        if part.first > from then ranges[#ranges + 1] = string.format("0x%x..0x%x", from, part.first - 1) end
        from = part.next
    end
    ranges[#ranges + 1] = string.format("0x%x..0x7fffffff", from)
    local log = folder .. "/trace.log"
    local emulator = { target.emulator[1], "-dfilter", table.concat(ranges, ",") }
    for _, word in ipairs(target.trace) do
        emulator[#emulator + 1] = word
    end
    emulator[#emulator + 1] = log
    table.move(target.emulator, 2, #target.emulator, #emulator + 1, emulator)
    emulator[#emulator + 1] = program
    call(emulator)
    -- Blocks are listed once, an instruction a line after "IN:"; what is not listed is one instruction.
    local size, block = {}, nil
    local first, last = symbols.run_begin.value & ~1, symbols.run_end.value & ~1
    local count, counting = 0, false
    for line in assert(host.read(log, 1 << 30)):gmatch("[^\n]+") do
        local listed, executed = line:match("^0x(%x+):"), line:match("%[%x+/(%x+)/")
        if line:find("^IN:") then
            block = nil
        elseif listed then
            block = block or tonumber(listed, 16)
            size[block] = (block == tonumber(listed, 16) and 0 or size[block]) + 1
        elseif executed then
            local at = tonumber(executed, 16)
            if at == last then break end
            if counting then count = count + (size[at] or 1) end
            counting = counting or at == first
        end
    end
    assert(host.remove(log))
    return count
end

local lines, counts = {}, {} -- counts: instructions by target and case
local by_os = {} -- compilers whose -Os was run

local function run(case, target, folder)
    local model, b = case.model, bundle(case, target, folder)
    local header = assert(host.read(folder .. "/inc/" .. model .. ".h"))
    local function macro(name)
        return math.tointeger(tonumber(header:match("#define " .. model:upper() .. "_" .. name .. " (%d+)")))
    end
    local own, all, run_object = objects(b, case, target, folder)
    local mismatches, stack, selftest = 0, 0, 0
    -- Links and runs it on every CPU of the target's kind.
    local function run_program(files, program)
        link(b, target, files, program)
        for _, emulator in ipairs(compilers.joined({ target.emulator or {} }, target.others or {})) do
            local output = call(compilers.joined(emulator, { program }))
            local wrong, of_test, deep = output:match("mismatches (%w+)\nselftest (%w+)\nstack (%w+)")
            if not deep then error(target.name .. ": " .. output, 0) end
            mismatches = mismatches + math.tointeger(tonumber(wrong))
            selftest = math.max(selftest, math.tointeger(tonumber(of_test)))
            stack = math.max(stack, math.tointeger(tonumber(deep)))
        end
    end
    -- Stacks are aligned to 16; in WebAssembly each frame is, and most of it is never written.
    local grain = target.object == "wasm" and 32 or 16
    local function check_stacks()
        check.at_most(stack, macro "STACK_BYTES", 0.1, grain)
        check.at_most(selftest, macro "SELFTEST_STACK_BYTES", 0.1, grain)
    end
    run_program(compilers.joined(all, { run_object {} }), folder .. "/program")
    local count
    local counted = effort.full "firmware" or counted_cases[target.name] == case.name
    if counted and target.trace and target.emulator and not case.calls then
        link(b, target, compilers.joined(all, { run_object { "-DRUN_TRACE" } }), folder .. "/traced")
        count = instructions(target, folder .. "/traced", folder)
    end
    -- What is declared is the larger figure of -O2 and -Os: the second one, whose objects take the place of the first
    -- one's, is run where the first does not reach it, and once for each compiler.
    local first = case == cases[1] and not given and not by_os[target.compiler]
    if effort.full "firmware" or first or not pcall(check_stacks) then
        by_os[target.compiler] = true
        local _, smaller, run_smaller = objects(smaller_of(b), case, target, folder)
        run_program(compilers.joined(smaller, { run_smaller {} }), folder .. "/smaller")
    end
    counts[target.name .. " " .. case.name] = count
    local needed = target.object == "elf" and undefined(own, target.soft_float and not b.integer) or {}
    local measured, mapped = b.manifest.measured, mapped_bytes(host.read(folder .. "/program.map", 1 << 28) or "")
    lines[#lines + 1] = string.format(
        "%-14s %-8s %7d %7d %8d %8d %7d %7d %8d %8d %12s %10d",
        target.name,
        case.name,
        measured.text,
        measured.rodata,
        macro "FLASH_BYTES",
        macro "RAM_BYTES",
        macro "STACK_BYTES",
        stack,
        macro "SELFTEST_STACK_BYTES",
        selftest,
        count or "-",
        mismatches
    )
    check.equal(mismatches, 0)
    check.equal(needed, {})
    check_stacks()
    check.at_most(mapped, macro "FLASH_BYTES", 0.1, 0)
end

-- One target or one case alone, by its name.
local only, only_case = process.variable "FIRMWARE_TARGET", process.variable "FIRMWARE_CASE"

-- The first target of each class, which is an instruction set with or without an FPU; with effort full, all of them.
local function chosen_targets()
    if effort.full "firmware" then return target_list.list end
    local list, seen = {}, {}
    for _, target in ipairs(target_list.list) do
        local class = target.isa .. (target.soft_float and " without FPU" or "")
        if not seen[class] then list[#list + 1] = target end
        seen[class] = true
    end
    return list
end

-- The cases of a target: all with effort full; else the first one, and those whose one target it is.
local function chosen_cases(target)
    local list = {}
    for i, case in ipairs(cases) do
        local chosen = i == 1 or case.quick == target.name or effort.full "firmware"
        if only_case then chosen = case.name == only_case end
        if chosen and has_source(case) and (case.soft or not target.soft_float) then list[#list + 1] = case end
    end
    return list
end

for _, target in ipairs(only and { target_list.get(only) } or chosen_targets()) do
    test["the_self_test_passes_on_" .. target.name:gsub("-", "_")] = function()
        local lacking = missing(target.compiler, target.emulator and target.emulator[1])
        if lacking then
            lines[#lines + 1] = string.format(
                "%-14s skipped: %s is missing (%s)",
                target.name,
                lacking,
                table.concat(target.packages, ", ")
            )
            return
        end
        local folder = process.temporary_directory()
        for i, case in ipairs(chosen_cases(target)) do
            run(case, target, folder .. "/" .. i)
        end
    end
end

-- Returns the test that kws takes at least `times` fewer instructions on a target than `dense`: those of the dense FFN
-- of kws's widths with GELU in the same arithmetic, which 0.2.0 emitted.
local function at_least_fewer(name, dense, times)
    return function()
        local case = counted_cases[name]
        local own = counts[name .. " " .. case]
        if not own then return end
        local form = "%-14s %-8s %d instructions: %.2f times as many as %s"
        lines[#lines + 1] = form:format(name, "dense", dense, dense / own, case)
        check.equal(dense >= times * own, true)
    end
end

test.z_float_kws_takes_at_most_two_fifths_of_the_instructions_of_the_dense_ffn =
    at_least_fewer("cortex-m4f", 129790, 2.5)
test.z_integer_kws_takes_at_most_half_of_the_instructions_of_the_dense_ffn = at_least_fewer("cortex-m55", 26570, 2)

-- A layer in integers as firmware and one in floats for hosts, both with their weights linked in: { model, sources,
-- flags, header, which declares <model>_bind_linked }.
local function two_bundles(folder)
    local model = "gen/models/tiny.lua"
    local kws = { model = "kws", options = { "--arithmetic", "integer" } }
    local b = bundle(kws, target_list.get "generic", folder .. "/kws")
    call { check.lookupc, "emit", model, "--isa", "scalar", "--linked", "-o", folder .. "/tiny" }
    call { check.lookupc, "sample", model, "-o", folder .. "/w.safetensors" }
    call { check.lookupc, "pack", model, "--weights", folder .. "/w.safetensors", "-o", folder .. "/tiny/tiny.bin" }
    local list = {
        {
            model = "kws",
            sources = {},
            flags = { "-I" .. folder .. "/kws/inc", "-I" .. folder .. "/kws/src" },
            header = "kws.h",
        },
        { model = "tiny", sources = {}, flags = { "-I" .. folder .. "/tiny" }, header = "tiny_linked.h" },
    }
    for i, names in ipairs { b.sources, host.list(folder .. "/tiny") } do
        for _, name in ipairs(names) do
            if name:find "%.[cS]$" then table.insert(list[i].sources, folder .. "/" .. list[i].model .. "/" .. name) end
        end
    end
    return list
end

-- As gcc writes SVE's prologues, one of two copies by a register that a multiple of a vector's bytes is in.
function test.vectors_on_the_stack_are_counted_in_every_copy_of_a_function()
    local assembly = [[
f.constprop.0:
	mov	x13, 33
	cntb	x12
	mul	x12, x12, x13
	sub	sp, sp, x12
	addvl	sp, sp, #-16
f.constprop.1:
	cntb	x12, all, mul #3
	sub	sp, sp, x12
g:
	mov	x12, 4624
	sub	sp, sp, x12
]]
    check.equal((toolchain.vectors_in(assembly, 64)), { ["f.constprop"] = (33 + 16) * 48 })
    check.fails_with("h: its stack has no bound", toolchain.vectors_in, "h:\n\tsub\tsp, sp, x12\n", 64)
end

-- `lookupc plan` without weights.
function test.plan_says_what_the_bundle_takes_and_what_an_option_saves()
    local folder = process.temporary_directory() .. "/kws"
    local options = { "--arithmetic", "integer" }
    bundle({ model = "kws", options = options }, target_list.get "generic", folder)
    local function planned(...)
        local command = { check.lookupc, "plan", "gen/models/kws.lua", "--profile", "firmware", "--target", "generic" }
        return call(compilers.joined(command, options, { ... }))
    end
    local report = assert(host.read(folder .. "/REPORT.txt"))
    check.equal(planned():sub(1, #report), report)
    local now, smaller = json.decode(planned "--json"), json.decode(planned("--projection", "i8", "--json"))
    check.equal(#now.options, 1)
    check.equal(now.options[1].options, "--projection i8")
    for _, figure in ipairs { "flash_bytes", "ram_bytes", "stack_bytes", "selftest_stack_bytes" } do
        check.equal(now.options[1][figure], smaller[figure])
    end
    check.equal(smaller.flash_bytes < now.flash_bytes, true)
end

function test.every_source_of_kernels_refuses_an_int_of_16_bits()
    if missing "clang-19" then return host.print "skipped: clang-19 is missing" end
    for _, b in ipairs(two_bundles(process.temporary_directory())) do
        for i, source in ipairs(b.sources) do
            if source:find "%.c$" and not source:find "_linked%.c$" then
                local command = { "clang-19", "--target=" .. (i % 2 == 0 and "avr" or "msp430"), "-ffreestanding" }
                local result = process.run(compilers.joined(command, { "-fsyntax-only" }, b.flags, { source }), {})
                local wide = "an int of at least 32 bits"
                check.equal(result.status ~= 0 and result.output:match("error: .-(" .. wide .. ")"), wide)
            end
        end
    end
end

function test.binding_on_a_big_endian_cpu_says_so()
    local lacking = missing("clang-19", "lld-19", "qemu-mips-static")
    if lacking then return host.print("skipped: " .. lacking .. " is missing") end
    local folder = process.temporary_directory()
    local mips = { "clang-19", "--target=mips-linux-gnu", "-O1", "-ffreestanding", "-fno-pic", "-mno-abicalls", "-G0" }
    for _, b in ipairs(two_bundles(folder)) do
        call(compilers.joined(mips, b.flags, b.sources, {
            '-DMODEL_HEADER="' .. b.header .. '"',
            "-DMODEL(word)=" .. b.model .. "_##word",
            "tests/firmware/boards/big_endian.c",
            "-fuse-ld=lld-19",
            "-nostdlib",
            "-static",
            "-o",
            folder .. "/program",
        }))
        local header = assert(host.read(b.flags[1]:sub(3) .. "/" .. b.model .. ".h"))
        local code = header:match("#define " .. b.model:upper() .. "_ERROR_BYTE_ORDER (%d+)")
        local result = process.run({ "qemu-mips-static", folder .. "/program" }, {})
        check.equal(tostring(result.status), code)
    end
end

-- Starts twice: at -O0, where all variables of the start lie on the stack, and with memory that is not zero.
local started_twice = [[
#include "tests/firmware/boards/board.h"
extern const void *const vectors[16];
unsigned char board_stack[BOARD_STACK_BYTES] __attribute__((aligned(64)));
static volatile int used;
void run(void)
{
    if (!board_stack[0]) {
        board_stack[0] = 1; /* far from what is in use, and kept */
        used = 1;
        ((void (*)(void))vectors[1])();
    }
    board_write(used ? "memory is not cleared" : "started");
}
]]

function test.boards_start_without_optimisation()
    local folder = process.temporary_directory()
    for _, target in ipairs(target_list.list) do
        if target.start == "start_cortex_m.c" and not missing(target.compiler, target.emulator[1]) then
            assert(host.write_file(folder .. "/twice.c", started_twice))
            local start = "tests/firmware/boards/" .. target.start
            local flags = compilers.joined(target.flags, { "-O0", "-I." })
            link({ flags = flags }, target, { folder .. "/twice.c", start }, folder .. "/twice")
            local emulated = compilers.joined({ "timeout", "20" }, target.emulator, { folder .. "/twice" })
            check.equal(target.name .. ": " .. call(emulated), target.name .. ": started")
        end
    end
end

function test.zz_table()
    host.print(
        string.format(
            "%-14s %-8s %7s %7s %8s %8s %7s %7s %8s %8s %12s %10s",
            "target",
            "model",
            "text",
            "rodata",
            "flash",
            "RAM",
            "stack",
            "painted",
            "selftest",
            "painted",
            "instructions",
            "mismatches"
        )
    )
    for _, line in ipairs(lines) do
        host.print(line)
    end
    host.print(
        "flash: with weights. stack and selftest: declared, and painted when one token or the self-test ran. \z
            instructions of one token: by qemu's log of what it executes."
    )
end

return test
