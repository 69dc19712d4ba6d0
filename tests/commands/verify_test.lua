-- What verify finds, and what a budget makes of it.
local check = require "tests.support.check"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local odd_ffn = require "tests.support.odd_ffn"
local process = require "process"
local program = require "tests.support.program"
local sets = require "tests.support.sets"

local works, refuses = program.works, program.refuses
local with = program.with
local test = {}

local folder = program.folder()
local tiny = "gen/models/tiny.lua"
local odd, weights = odd_ffn.model, odd_ffn.weights

function test.verify_for_machines()
    local found = assert(json.decode(works { "verify", odd, "--isa", "scalar", "--json", "--seed", "9" }))
    check.equal({ found.model, found.ok, found.seed, #found.results > 0, #found.skipped }, { "odd", true, 9, true, 0 })
    for _, result in ipairs(found.results) do
        check.equal({ result.isa, result.ok }, { "scalar", true })
        check.equal(result.rel_err > 0 and result.rel_err <= 1e-5, true)
        check.equal(math.type(result.code_flips), "integer")
    end
end

-- Each of these templates is wrong in one place: verify must say so. Without biases, a token of zeros is all ties.
function test.verify_finds_wrong_kernels()
    local model = program.model(
        folder,
        "ties",
        [[
return { name = "ties", d = 27, h = 7, tau = 5, projection = { kind = "bh4", block = 8 }, score = "gelu" }
]]
    )
    local unbiased = folder .. "/unbiased.safetensors"
    works { "sample", model, "-o", unbiased }
    program.python(
        "tensors = load(sys.argv[1]); tensors['hash.projection.bias'][1][:] = 0; save(sys.argv[1], tensors)",
        unbiased
    )
    works { "verify", model, "--weights", unbiased, "--isa", sets.in_turn(), "--cflags", "-O0" }
    local rows = {
        { "gen/isa/scalar.lua", 'binary(z, ">", "0.0f")', 'binary(z, ">=", "0.0f")' },
        {
            "gen/isa/scalar.lua",
            'return binary(binary(a, "*", b), "+", c) end',
            'return binary(binary("1.001f * " .. a, "*", b), "+", c) end',
        },
        { "templates/lookup/lanes/load_tokens.c", "tokens - 1", "tokens" },
        { "templates/lookup/shared/ffn.c", "(left + ", "(left - 1 + " },
        { "templates/bundle/bind.c", 'return $(names.macro("ERROR_CHECKSUM"))', "return 0" },
        {
            "templates/lookup/model.c",
            "range * tiles / ranges * tile,",
            "(range * tiles / ranges + range) * tile,",
            "--threads",
            "3",
        },
        {
            "templates/lookup/rows/round_inputs.c",
            "? $(levels).0f / largest",
            "? 0.99f * $(levels).0f / largest",
            "--projection",
            "i8",
        },
        {
            "templates/lookup/lanes/round_inputs.c",
            '"inverse" .. n));',
            'isa.mul(isa.broadcast("0.99f"), "inverse" .. n)));',
            "--projection",
            "i8",
        },
    }
    for _, row in ipairs(effort.some("planted", rows, #rows // 3)) do
        local tree = program.folder()
        assert(process.run { "cp", "-r", "commands", "gen", "templates", "harness", "LICENSE", tree })
        local text = assert(host.read(tree .. "/" .. row[1]))
        local from, to = text:find(row[2], 1, true)
        if from then
            assert(host.write_file(tree .. "/" .. row[1], text:sub(1, from - 1) .. row[3] .. text:sub(to + 1)))
            local result = program.run {
                "--tree",
                tree,
                "verify",
                model,
                "--weights",
                unbiased,
                "--isa",
                "scalar",
                "--cflags",
                "-O0",
                table.unpack(row, 4),
            }
            if
                result.status ~= 1
                or not result.output:find("FAILED", 1, true)
                or not result.errors:find("^lookupc verify: scalar")
            then
                error(
                    string.format(
                        "%s: %s is not found: %d %q %q",
                        row[1],
                        row[3],
                        result.status,
                        result.output,
                        result.errors
                    )
                )
            end
        else
            error(row[1] .. ": no longer has " .. row[2])
        end
    end
end

function test.verify_of_several_threads()
    local words = { "verify", tiny, "--cflags", "-O0" }
    for _, cc in ipairs { "gcc", "clang" } do
        if cc == "clang" and not program.links("clang", "-fopenmp") then
            host.note "skipped: clang has no OpenMP library"
        else
            local found = assert(
                json.decode(
                    works(with(words, "--isa", sets.in_turn(), "--threads", "3", "--cc", cc, "--json"))
                )
            )
            check.equal({ found.ok, found.threads }, { true, 3 })
            for _, result in ipairs(found.results) do
                local numbers = {}
                for _, item in ipairs(result.checks) do
                    numbers[item.name] = item.detail
                end
                local count = tonumber(numbers["any number of tokens"]:match("^%d+"))
                check.equal(count >= (result.regime == "many" and 8 or 2), true)
            end
        end
    end
end

function test.compilers_that_fail()
    local function verify(...) return { "verify", odd, "--isa", "scalar", ... } end
    refuses(1, "no-such-compiler", verify("--cc", "no-such-compiler"))
    refuses(1, "false: exit status 1", verify("--cc", "false"))
    refuses(1, "gcc: exit status 1", verify("--cflags", "-fno-such-flag"))
end

-- Against the checkpoint's own weights a projection in bf16 costs codes; against the rounded ones kernels are as exact
-- as ever.
function test.verify_tells_what_a_rounded_projection_costs()
    -- a quarter as wide as roberta_small, with an eighth of its tables
    local small, flips =
        program.model(
            folder,
            "small",
            [[return { name = "small", d = 128, h = 16, tau = 8, projection = { kind = "bh4", block = 32, decay = 0.7 },
            score = "gelu", norm = { kind = "layernorm" } }]]
        ), {}
    local words = { "verify", small, "--isa", "scalar", "--cflags", "-O0", "--json", "--projection" }
    for _, projection in ipairs { "bf16", "i16", "i8" } do
        for _, r in ipairs(json.decode(works(with(words, projection))).results) do
            local least = projection == "i16" and 1e-4 or 1e-2
            check.equal({ r.projection, r.tables, r.rel_err > least, r.rel_err < 1 }, { projection, "f32", true, true })
            if projection == "bf16" then check.equal(r.kernel_rel_err < 1e-5, true) end
            flips[projection] = r.code_flips / r.codes
        end
    end
    local right = flips.bf16 > 1e-3 and flips.bf16 < 3e-2 and flips.i16 < flips.bf16 / 2
    if not right or flips.i8 < 1e-2 or flips.i8 > 6e-2 then
        error(string.format("%g of the codes differ in bf16, %g in i16, %g in i8", flips.bf16, flips.i16, flips.i8))
    end
end

-- With a budget, the error of y decides; without one it is only reported.
function test.a_budget_rules_out()
    local source = [[
return { name = "odd", d = 27, d_out = 19, h = 7, tau = 5, projection = { kind = "bh4", block = 8 }, score = "gelu",
    scale = "1/h", norm = { kind = "layernorm" }, budget = %s }
]]
    local function verify(model, ...)
        return { "verify", model, "--weights", weights, "--isa", "scalar", "--cflags", "-O0", ... }
    end
    local strict = program.model(folder, "strict", source:format "1e-4")
    local generous = program.model(folder, "generous", source:format "0.1")
    works(verify(strict))
    works(verify(generous, "--tables", "i8"))
    works(verify(odd, "--tables", "i8"))
    local result = program.run(verify(strict, "--tables", "i8"))
    check.equal(result.status, 1)
    check.matches(result.output, "\nscalar +many +FAILED +f32 +i8 ")
    check.matches(
        result.errors,
        "^lookupc verify: scalar many: budget: relative error [%d.e-]+ of y with projection in f32 and tables in i8, \z
            the budget is 0%.0001\n"
    )
    local bench = { "bench", strict, "--isa", "scalar", "--cflags", "-O0", "--batch", "1", "--repetitions", "1" }
    refuses(1, "budget: relative error ", with(bench, "--tables", "i8"))
    -- What the reference expects of rounded tables is far below what rounding costs.
    for _, r in ipairs(json.decode(works(verify(odd, "--tables", "i8", "--json"))).results) do
        check.equal(
            { r.tables, r.rel_err > 1e-3, r.rel_err < 0.1, r.kernel_rel_err < 1e-5, r.max_abs_err > 0 },
            { "i8", true, true, true, true }
        )
    end
end

-- --budget of verify goes before the model's key for y, and bounds flips of codes, too.
function test.a_budget_of_flips_and_of_y()
    local function verify(model, ...)
        local words = { "verify", model, "--isa", "scalar", "--cflags", "-O0", "--projection", "bf16" }
        return with(words, "--tables", "i8", "--budget", ...)
    end
    local keyed = program.model(
        folder,
        "keyed",
        [[return { name = "keyed", d = 64, h = 24, tau = 6, projection = { kind = "bh4", block = 16, decay = 0.7 },
            score = "gelu", budget = 1e-4 }]]
    )
    works(verify(keyed, "error=0.9,codes=20%"))
    local found = json.decode(works(verify(keyed, "codes=0.2,error=0.9", "--json")))
    check.equal(found.budget, { error = 0.9, codes = 0.2 })
    local most = 0
    for _, r in ipairs(found.results) do
        most = math.max(most, r.code_flips / r.codes)
    end
    if most < 1e-3 or most > 0.05 then error(string.format("%g of the codes flip: the test proves nothing", most)) end
    for _, row in ipairs {
        {
            "error=0.9,codes=0.01%",
            "budget: %d+ of %d+ codes flipped %([%d.]+ %%%) with projection in bf16 and tables in i8, \z
                the budget is 0.01 %%\n",
        },
        {
            "codes=20%",
            "budget: relative error [%d.]+ of y with projection in bf16 and tables in i8, the budget is 0.0001\n",
        }, -- the model's key
        { "error=0.0002,codes=20%", "the budget is 0.0002\n" },
    } do
        local result = program.run(verify(keyed, row[1]))
        check.equal(result.status, 1)
        check.matches(result.errors, "^lookupc verify: scalar many: .*" .. row[2])
        check.equal(json.decode(program.run(verify(keyed, row[1], "--json")).output).ok, false)
    end
    for _, row in ipairs {
        { "z=1", '"z=1": must be codes=SHARE or error=NUMBER' },
        { "error", '"error": must be codes=SHARE or error=NUMBER' },
        { "error=0.1,", '"": must be codes=SHARE or error=NUMBER' },
        { "error=0", '"error=0": must be a number above 0, at most 1' },
        { "codes=-1%", '"codes=-1%": must be a share from 0 to 1' },
        { "codes=nan", '"codes=nan": must be a share from 0 to 1' },
        { "error=0.1,error=0.2", '"error=0.2": is given twice' },
    } do
        refuses(2, "--budget: " .. row[2], verify(keyed, row[1]))
    end
    local block = { "verify", "gen/models/tiny_skipless.lua", "--budget", "codes=1%" }
    refuses(2, '--budget: "codes=1%": tiny_skipless has no LookupFFN', block)
    block[2], block[4] = "gen/models/lookup_skipless.lua", "error=1"
    refuses(2, '--budget: "error=1": error is for a LookupFFN alone: of each layer codes=SHARE', block)
    local integers = { "verify", "gen/models/kws.lua", "--arithmetic", "integer", "--projection", "i8" }
    integers = with(integers, "--cflags", "-O0", "--budget", "codes=3%")
    works(integers)
    integers[#integers] = "codes=0.1%"
    local line = "budget: %d+ of %d+ codes flipped .* with the codes of integer arithmetic"
    check.matches(program.run(integers).errors, line)
end

-- Of a whole model it holds for each layer that has a LookupFFN: the others have no codes.
function test.a_budget_of_flips_by_layer()
    local path = program.model(
        folder,
        "layered",
        [[
return { name = "layered", d = 16, heads = 2, vocab = 50, skip = true, norm = { kind = "rmsnorm" }, embedding = {},
    layers = { {}, { ffn = { kind = "mlp", f = 16, activation = "gelu" } }, {} },
    attention = { causal = false, context = 20 },
    ffn = { kind = "lookup", h = 40, tau = 6, projection = { kind = "bh4", block = 16, decay = 0.7 }, score = "gelu" } }
]]
    )
    local words = { "verify", path, "--isa", "scalar", "--cflags", "-O0", "--budget", "codes=0.2%" }
    if effort.full "transformers" then
        local exact = { "--json", table.unpack(words) }
        table.insert(exact, 1, table.remove(exact, 2))
        local found = json.decode(works(exact))
        check.equal({ found.ok, found.budget.codes, #found.layers }, { true, 0.002, 2 })
        for i, row in ipairs(found.layers) do
            check.equal({ row.layer, row.flips, row.codes > 2000, row.ok }, { ({ 0, 2 })[i], 0, true, true })
        end
    end
    table.move({ "--projection", "i8" }, 1, 2, #words + 1, words)
    local result = program.run(words)
    check.equal(result.status, 1)
    local known = {}
    local line = "lookupc verify: layer (%d): (%d+) of (%d+) codes flip %([%d.]+ %%%), the budget is 0.2 %%\n"
    for layer, flips, codes in result.errors:gmatch(line) do
        known[#known + 1] = layer
        check.equal({ flips / codes > 0.005, flips / codes < 0.1 }, { true, true })
        check.matches(result.output, ("\nlayer %s: %s of %s codes flip"):format(layer, flips, codes))
    end
    check.equal(known, { "0", "2" })
end

return test
