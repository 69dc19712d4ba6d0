-- Integer kernels: random models agree with the reference bit by bit, nothing in them needs floating point or a
-- library, and wrong ones are found.
local blob = require "gen.plan.blob"
local check = require "tests.support.check"
local compile = require "harness.base.compile"
local emit = require "gen.emit.emit"
local effort = require "tests.effort"
local family = require "gen.families.lookup.family"
local firmware = require "gen.emit.firmware"
local fuzz = require "tests.fuzz.fuzz"
local harness = require "harness.families.lookup.integer"
local host = require "host"
local integer_plan = require "gen.families.lookup.integer.plan"
local isa = require "gen.isa.list"
local json = require "json"
local model_file = require "gen.families.model_file"
local process = require "process"
local program = require "tests.support.program"
local target = require "gen.plan.target"
local weights = require "weights"

local works, refuses = program.works, program.refuses
local test = {}
local folder = program.folder()

local function plan_of(given, projection, tables)
    local m = model_file.validate(given, "", given.name)
    return integer_plan.build(m, isa.select "scalar", { projection = projection, tables = tables })
end

-- Emits, compiles, packs random weights and checks: what harness.check returns.
local function checked(p, seed, change)
    local directory = program.folder()
    local files = { weights = directory .. "/w.safetensors", prefix = "", output = directory .. "/w.bin" }
    assert(weights.sample(files.weights, "", p.tensors, seed))
    assert(weights.pack(blob.packing(p, files)))
    if change then change(files) end
    return harness.check(p, compile.library({ p }, directory, "gcc", "-O2"), files, seed)
end

local function failures(result)
    local list = {}
    for _, one in ipairs(result.checks) do
        if not one.ok then list[#list + 1] = one.name .. ": " .. one.detail end
    end
    return table.concat(list, "; ")
end

local kws = assert(model_file.load "gen/models/kws.lua")
local function kws_with(changes)
    local m = {}
    for key, value in pairs(kws) do
        m[key] = value
    end
    for key, value in pairs(changes) do
        m[key] = value
    end
    return m
end

-- <model>_bind names what is wrong with a blob that pack did not write, or wrote for another model.
function test.other_blobs_are_refused()
    local p = integer_plan.build(kws, isa.select "scalar", { projection = "i8" })
    for _, case in ipairs {
        { "another magic", 0, 4 },
        { "another version", 8, 5 },
        { "another model", 16, 6 },
        { "another size", 32, 3 },
        { "damage", 99, 7 },
        { "a byte less", nil, 3 },
    } do
        local result = checked(p, 1, function(files)
            local bytes, at = assert(host.read(files.output, 1 << 30)), case[2]
            local changed = bytes:sub(1, -2)
            if at then changed = bytes:sub(1, at) .. string.char(bytes:byte(at + 1) ~ 1) .. bytes:sub(at + 2) end
            assert(host.write_file(files.output, changed))
        end)
        check.matches(failures(result), "refused by kws_bind with code " .. case[3])
    end
end

-- Random models of all kinds in both types; neither error nor flips may be larger than these weights explain.
function test.random_models_equal_the_reference_bit_by_bit()
    for index = 1, effort.integer_models do
        local given = fuzz.model(index)
        fuzz.for_integers(given)
        given.name = "fuzz"
        given.integer = index % 3 == 0 and { input = 4.0, fraction = 14 } or nil
        local projection = index % 2 == 0 and "i8" or "i16"
        local result = checked(plan_of(given, projection), index)
        if not result.ok then
            error(string.format("%s, seed %d: %s\n%s", projection, index, failures(result), fuzz.text(given)), 0)
        end
        -- Few values of y may nearly cancel.
        local most = projection == "i8" and 0.3 or 0.1
        if given.d_out ~= nil and given.d_out < 16 or given.d < 16 then most = math.huge end
        if result.rel_err > most then
            error(
                string.format(
                    "%s, seed %d: relative error \z
                    %g\n%s",
                    projection,
                    index,
                    result.rel_err,
                    fuzz.text(given)
                ),
                0
            )
        end
        check.equal(result.code_flips <= (projection == "i8" and 0.2 or 0.02) * result.codes + 2, true)
    end
end

-- Whether it takes one row of a table or two.
function test.kws_is_within_two_percent_and_flips_few_codes()
    for neighbours = 1, 2 do
        local fine = checked(plan_of(kws_with { neighbours = neighbours }), 1)
        local coarse = checked(plan_of(kws_with { neighbours = neighbours, budget = 0.05 }, "i8"), 1)
        check.equal({ fine.ok, failures(fine) }, { true, "" })
        check.equal({ coarse.ok, failures(coarse) }, { true, "" })
        check.equal({ fine.codes, coarse.codes }, { 8192 * neighbours, 8192 * neighbours })
        if
            not (
                fine.rel_err < 0.01
                and fine.code_flips <= 8
                and coarse.rel_err < 0.03
                and coarse.code_flips < 200
                and coarse.code_flips > fine.code_flips
            )
        then
            error(
                string.format(
                    "%d rows: %g, %d flips; %g, %d flips",
                    neighbours,
                    fine.rel_err,
                    fine.code_flips,
                    coarse.rel_err,
                    coarse.code_flips
                )
            )
        end
    end
end

-- Rows of whole strips, of some columns more, and of half a byte more, with one row of a table and with two. A row's
-- scale is the one that changes it least: the largest magnitude / 7 would leave a relative error of 0.135.
function test.tables_in_i4_equal_the_reference_bit_by_bit()
    for _, changes in ipairs { {}, { d_out = 45, neighbours = 2 }, { d_out = 2, score = "softmax" } } do
        changes.budget = 1.0
        local p = plan_of(kws_with(changes), "i8", "i4")
        check.equal(p.by_name.tables.bytes, 16 * 64 * ((p.shape.d_out + 7) // 8 * 4))
        local result = checked(p, 1)
        check.equal(failures(result), "")
        check.equal(p.shape.d_out < 16 or result.rel_err > 0.06 and result.rel_err < 0.2, true)
    end
    local work = program.folder()
    works { "sample", "gen/models/kws.lua", "-o", work .. "/w.safetensors" }
    local words = { "pack", "gen/models/kws.lua", "--weights", work .. "/w.safetensors", "-o", work .. "/w.bin" }
    local types = { "--arithmetic", "integer", "--tables", "i4" }
    check.matches(works(table.move(types, 1, #types, #words + 1, words)), "tables in i4, relative error 0.093\n")
end

-- |z| is taken as 16 at most, where the second share is 2^-46 of the first: shifts of 32 bits and more.
function test.second_rows_of_far_bits_count_nothing()
    local p = plan_of {
        name = "far",
        d = 8,
        h = 16,
        tau = 2,
        projection = { kind = "dense" },
        score = "softmax",
        neighbours = 2,
        integer = { input = 256.0, fraction = 14 },
    }
    local result = checked(p, 1)
    check.equal({ failures(result), result.rel_err < 0.02 }, { "", true })
end

function test.budget_of_an_error_that_is_too_large()
    local result = checked(plan_of(kws_with { budget = 1e-4 }), 1)
    check.equal(result.ok, false)
    check.matches(
        failures(result),
        "^budget: relative error 0.00%d+ of y with the codes of integer arithmetic, the budget is 0.0001$"
    )
end

-- What check says of plan `p` with `find` replaced by `with` in the kernel whose name has `kernel`.
local function mutated(p, kernel, find, with)
    local directory, changed = program.folder(), 0
    local files = { weights = directory .. "/w.safetensors", prefix = "", output = directory .. "/w.bin" }
    assert(weights.sample(files.weights, "", p.tensors, 1))
    assert(weights.pack(blob.packing(p, files)))
    local contents, units = compile.sources { p }
    for name, text in pairs(contents) do
        if name:find(kernel, 1, true) then
            local count
            contents[name], count = text:gsub(find, with, 1)
            changed = changed + count
        end
    end
    check.equal({ find, changed }, { find, 1 })
    assert(host.write_directory(directory, contents, true))
    local library = directory .. "/wrong.so"
    local commands, link = compile.commands(units, directory, library, "gcc", "-O1")
    for _, command in ipairs(commands) do
        check.equal(assert(process.run(command)).status, 0)
    end
    check.equal(assert(process.run(link)).status, 0)
    return failures(harness.check(p, library, files, 1))
end

-- Every kernel, wrong in one number, is found out.
function test.wrong_kernels_are_found()
    local two, halves = plan_of(kws_with { neighbours = 2 }), plan_of(kws, nil, "i4")
    for _, case in ipairs {
        { "normalise", "places = 7", "places = 8" },
        { "dense", "x %+ k, w", "x + 8, w" },
        { "sign_hash", "value > 0", "value < 0" },
        { "sign_hash", "32768, 31314", "32768, 31313" },
        { "gather", "_add%(score%[table%]", "_add(score[0]" },
        { "sign_hash", "size < least", "magnitude < least >> z_shift", two },
        { "sign_hash", "47274u", "47224u", two },
        { "sign_hash", "sum %-= 2", "sum -= 1", two },
        { "gather", "slot < 32", "slot < 31", two },
        { "gather", "<< 28%) >> 28", "<< 28) >> 29", halves },
    } do
        check.matches(mutated(case[4] or plan_of(kws), table.unpack(case, 1, 3)), "integers: ")
    end
end

-- Every eighth bias is 0, and so is z there for an input of zeros.
function test.zero_counts_as_bit_zero()
    local p = plan_of { name = "tie", d = 8, h = 8, tau = 3, projection = { kind = "dense" }, score = "softmax" }
    check.equal(failures(checked(p, 1)), "")
    check.matches(mutated(p, "sign_hash", "value > 0", "value >= 0"), "integers: ")
end

-- The tables of the score as they are emitted, at every size and every fraction that there is: docs/types.md states
-- these bounds.
function test.tables_of_the_score_are_within_their_bounds()
    local text
    for _, file in ipairs(emit.sources(plan_of(kws))) do
        text = file.text:find "kws_score_log2%[%d+%] = {" and file.text or text
    end
    local function entries(name)
        local list = {}
        for number in text:match(name .. "%[%d+%] = {(.-)}"):gmatch("%d+") do
            list[#list + 1] = tonumber(number)
        end
        return list
    end
    local log2, power = entries "kws_score_log2", entries "kws_score_power"
    check.equal({ #log2, #power }, { 257, 33 })
    local function between(list, at, places)
        local i, part = at >> places, at & (1 << places) - 1
        return list[i + 1] - ((list[i + 1] - list[i + 2]) * part >> places)
    end
    local worst = { 0, 0 }
    for size = 0, 65535 do
        local value = size < 8 << 12 and between(log2, size, 7) or 0
        worst[1] = math.max(worst[1], math.abs(value / 32768 - math.log(1 + math.exp(-2 * size / 4096), 2)))
    end
    for fraction = 0, 32767 do
        worst[2] = math.max(worst[2], math.abs(between(power, fraction, 10) / 32768 / 2 ^ (-fraction / 32768) - 1))
    end
    if not (worst[1] < 2.5e-4 and worst[2] < 1.3e-4) then error(string.format("%g, %g", worst[1], worst[2])) end
end

local strict = "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion \z
    -Wstrict-prototypes -Wmissing-prototypes -Wundef \z
    -Wcast-qual -Wvla -Wfloat-conversion -Wfloat-equal -Wunused-macros -Wswitch-default -Werror -ffreestanding"

local function shell(script, ...)
    local result = assert(process.run({ "bash", "-c", script, "shell", ... }, { timeout = 120 }))
    return result.status, result.output
end

local function emitted(words)
    local to = program.folder() .. "/bundle"
    works { "emit", "gen/models/kws.lua", "--arithmetic", "integer", "-o", to, table.unpack(words or {}) }
    return to
end

-- x86 without vector and floating-point registers; Cortex-M0+, which has neither floats nor long products, without a
-- word from a library.
function test.kernels_need_neither_floats_nor_a_library()
    local compilers = { "gcc -O2 -mgeneral-regs-only", "clang -O2 -mgeneral-regs-only", "gcc -O3", "clang -O3" }
    if shell "command -v arm-none-eabi-gcc" == 0 then
        compilers[#compilers + 1] = "arm-none-eabi-gcc -O2 -mcpu=cortex-m0plus -mthumb"
    else
        host.note "skipped: arm-none-eabi-gcc is not installed"
    end
    for projection, tables in pairs { i8 = "i8", i16 = "i4" } do
        local bundle = emitted { "--projection", projection, "--tables", tables }
        for _, compiler in ipairs(compilers) do
            local status, output = shell(
                'cd "$1" && for f in kws_*.c; do '
                    .. compiler
                    .. " "
                    .. strict
                    .. ' -c "$f" -o x.o && nm -u x.o || exit 1; done',
                bundle
            )
            local calls = output:gsub("%s*U kws_[%w_]+\n", "")
            check.equal({ compiler, status, calls }, { compiler, 0, "" })
        end
        check.equal(
            shell(
                'cd "$1" && gcc -O2 -mgeneral-regs-only ' .. strict .. " -c kws.c -o x.o && [ $(ls *.c | wc -l) = 2 ]",
                bundle
            ),
            0
        )
        check.equal(
            shell(
                'cd "$1" && echo "#include \\"kws.h\\"" | g++ -DKWS_FLOATS -Wall -Wextra -Wpedantic -Werror -x c++ -c \z
                    - -o x.o -I.',
                bundle
            ),
            0
        )
    end
end

-- The compiler's functions for floats, which other kernels call there, are none of theirs.
function test.headers_for_a_cpu_without_fpu_promise_no_floats()
    for arithmetic, promise in pairs { integer = "import nothing%.", float = "nothing but the compiler's own" } do
        local options = { arithmetic = arithmetic, firmware = target.get "cortex-m0plus" }
        local p = family.build(kws, isa.select "scalar", options)
        check.matches(firmware.unmeasured(p, ("\0"):rep(p.packed_bytes))[1].text, promise)
    end
end

-- A host's own program: floats in, floats out, and what does not fit saturates.
function test.floats_of_a_host_saturate()
    local bundle = emitted()
    assert(host.write_file(
        bundle .. "/main.c",
        [[
#define KWS_FLOATS
#include "kws.h"
#include <stdio.h>
int main(void)
{
    const float zero = 0.0f;
    printf("%d %d %d %d %d %d %g\n", kws_from_float(1.0f), kws_from_float(-1.0f), kws_from_float(100.0f),
        kws_from_float(-100.0f), kws_from_float(zero / zero),
        kws_from_float(0.4f * KWS_X_SCALE), (double) kws_to_float(98304));
    return 0;
}
]]
    ))
    local status, output =
        shell('cd "$1" && gcc -O2 -Wall -Wextra -Wconversion -Werror main.c -o main && ./main', bundle)
    check.equal({ status, output }, { 0, "4096 -4096 32767 -32768 0 0 1.5\n" })
end

-- A projection that adds nothing: decay = 0, or weights that are all zero. Residual and bias decide alone.
function test.projections_of_zeros()
    local work = program.folder()
    local function verified(model, ...)
        local words = { "verify", model, "--arithmetic", "integer", "--json", "--cflags", "-O0", ... }
        return json.decode(works(words)).results[1]
    end
    local text = assert(host.read "gen/models/tiny.lua")
    for i, norm in ipairs { "%0", "" } do
        local path =
            program.model(work, "none" .. i, (text:gsub("decay = 0%.7", "decay = 0"):gsub("norm = %b{},", norm)))
        for _, type in ipairs { "i16", "i8" } do
            local result = verified(path, "--projection", type)
            check.equal({ result.ok, result.rel_err < 0.02 }, { true, true })
        end
    end
    works { "sample", "gen/models/tiny.lua", "-o", work .. "/w.safetensors" }
    program.python(
        [[
tensors = load(sys.argv[1])
tensors["hash.projection.weight"][1][:] = 0
save(sys.argv[1], tensors)
]],
        work .. "/w.safetensors"
    )
    check.equal(verified("gen/models/tiny.lua", "--weights", work .. "/w.safetensors").ok, true)
end

-- All rows alike: each of a token's two rows of a table counts in full.
function test.sums_of_two_rows_stay_in_range()
    local work = program.folder()
    local text = 'return { name = "full", d = 8, h = 16, tau = 3, projection = { kind = "dense" }, score = "one", \z
        neighbours = 2 }'
    local path = program.model(work, "full", text)
    works { "sample", path, "-o", work .. "/w.safetensors" }
    program.python(
        [[
tensors = load(sys.argv[1])
tensors["tables"][1][:] = 1
save(sys.argv[1], tensors)
]],
        work .. "/w.safetensors"
    )
    works { "verify", path, "--arithmetic", "integer", "--weights", work .. "/w.safetensors" }
end

function test.plan_pack_run_verify_bench_and_check_know_it()
    local work = program.folder()
    local plan = json.decode(works { "plan", "gen/models/kws.lua", "--arithmetic", "integer", "--json" })
    check.equal({ plan.arithmetic, plan.projection, plan.tables, plan.y_scale }, { "integer", "i16", "i8", 2.0 ^ -16 })
    check.equal(plan.packed_bytes < 100 * 1024 and plan.scratch_bytes < 2048, true)
    works { "sample", "gen/models/kws.lua", "-o", work .. "/w.safetensors" }
    check.matches(
        works {
            "pack",
            "gen/models/kws.lua",
            "--arithmetic",
            "integer",
            "--weights",
            work .. "/w.safetensors",
            "-o",
            work .. "/w.bin",
        },
        "projection in i16, relative error .*tables in i8"
    )
    check.equal(#assert(host.read(work .. "/w.bin")), plan.packed_bytes)
    local verified = json.decode(works {
        "verify",
        "gen/models/kws.lua",
        "--arithmetic",
        "integer",
        "--weights",
        work .. "/w.safetensors",
        "--json",
    })
    check.equal({ verified.ok, verified.arithmetic, verified.results[1].isa }, { true, "integer", "scalar" })
    check.matches(
        works { "bench", "gen/models/kws.lua", "--arithmetic", "integer", "--batch", "1,4", "--repetitions", "1" },
        "scalar +i16 +i8 +4 +%d+%.%d%d "
    )
    local bundle = emitted { "--projection", "i8", "--tables", "i4" }
    check.equal(works { "check", bundle }, bundle .. ": fresh\n")
    local options = json.decode(assert(host.read(bundle .. "/MANIFEST.json"))).options
    check.equal({ options.arithmetic, options.tables }, { "integer", "i4" })
    check.matches(assert(host.read(bundle .. "/kws.h")), "lookupc pack %-%-arithmetic integer %-%-tables i4`")
end

function test.emission_is_deterministic()
    local first = emit.files(plan_of(kws))
    check.equal(emit.files(plan_of(kws)), first)
end

function test.what_integers_cannot_do_is_refused()
    local tiny = "gen/models/tiny.lua"
    refuses(2, '--arithmetic: "fixed": must be one of float, integer', { "plan", tiny, "--arithmetic", "fixed" })
    refuses(
        2,
        '--tables: "f32": must be one of i8, i4 with --arithmetic integer',
        { "plan", tiny, "--arithmetic", "integer", "--tables", "f32" }
    )
    refuses(
        2,
        '--projection: "bf16": must be one of i8, i16 with --arithmetic integer',
        { "plan", tiny, "--arithmetic", "integer", "--projection", "bf16" }
    )
    refuses(
        2,
        '--isa: "avx2": must be scalar with --arithmetic integer',
        { "plan", tiny, "--arithmetic", "integer", "--isa", "avx2" }
    )
    refuses(
        2,
        "--schedule: gather.group=1: cannot be given beside --arithmetic integer",
        { "plan", tiny, "--arithmetic", "integer", "--schedule", "gather.group=1" }
    )
    refuses(
        2,
        "--threads: 2: cannot be given beside --arithmetic integer",
        { "verify", tiny, "--arithmetic", "integer", "--threads", "2" }
    )
    local function model(text, tau)
        return program.model(
            folder,
            "m",
            'return { name = "m", d = 8, h = 2, projection = { kind = "dense" }, score = "gelu", '
                .. "tau = "
                .. (tau or 3)
                .. ", "
                .. text
                .. " }\n"
        )
    end
    refuses(
        1,
        "neighbours = 3: must be 1 or 2 with --arithmetic integer",
        { "plan", model "neighbours = 3", "--arithmetic", "integer" }
    )
    refuses(
        1,
        'neighbours = 2: must be 1 with --arithmetic integer where tau = 1 and score = "gelu": \z
            a score would be negative',
        { "plan", model("neighbours = 2", 1), "--arithmetic", "integer" }
    )
    refuses(
        2,
        "--arithmetic: integer: must be float with --training",
        { "emit", model "neighbours = 1", "--arithmetic", "integer", "--training", "-o", folder .. "/trained" }
    )
    refuses(
        1,
        "integer.input = 0: must be a number above 0, at most 1e6",
        { "plan", model "integer = { input = 0 }", "--arithmetic", "integer" }
    )
    refuses(
        1,
        "integer.fraction = 31: must be an integer from 0 to 30",
        { "plan", model "integer = { fraction = 31 }", "--arithmetic", "integer" }
    )
    -- y of these tables leaves int32 with 30 binary places.
    local path = model "integer = { fraction = 30 }"
    works { "sample", path, "-o", folder .. "/w.safetensors" }
    refuses(
        1,
        "w.safetensors: y may reach ",
        { "pack", path, "--arithmetic", "integer", "--weights", folder .. "/w.safetensors", "-o", folder .. "/w.bin" }
    )
    check.equal(host.read(folder .. "/w.bin"), nil)
    refuses(
        2,
        "--arithmetic: integer: is for a LookupFFN, not for a transformer",
        { "plan", "gen/models/mistral_7b_skipless.lua", "--arithmetic", "integer" }
    )
end

return test
