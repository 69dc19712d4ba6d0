-- Every command as a user meets it: what it prints, writes and refuses, and its exit status.
local check = require "tests.support.check"
local cli = require "commands.cli"
local dtype = require "gen.plan.dtype"
local sets = require "tests.support.sets"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"
local words = require "commands.words"

local works, refuses = program.works, program.refuses
local test = {}

local folder = program.folder()
-- Odd sizes, a padded input, two repeats, a norm, d_out of its own: 7 * 5 bits of z out of 2 * 32.
local odd = program.model(
    folder,
    "odd",
    [[
return { name = "odd", d = 27, d_out = 19, h = 7, tau = 5, projection = { kind = "bh4", block = 8 }, score = "gelu",
    scale = "1/h", norm = { kind = "layernorm" } }
]]
)
local tiny = "gen/models/tiny.lua"
local weights = folder .. "/odd.safetensors"
works { "sample", odd, "--seed", "5", "-o", weights }

-- The blob of weights at `path`.
local function packed(path, ...)
    local blob = folder .. "/blob.bin"
    works { "pack", odd, "--weights", path, "-o", blob, ... }
    return assert(host.read(blob))
end

local plain = packed(weights)

-- Those words and more.
local function with(words, ...) return table.move({ ... }, 1, select("#", ...), #words + 1, { table.unpack(words) }) end

local commands = {}
for i, command in ipairs(cli.commands) do
    commands[i] = command.name
end

function test.help_names_every_command_and_says_where_the_rest_stands()
    local text = works { "help" }
    for _, name in ipairs(commands) do
        check.matches(text, "\n  " .. name .. " ")
    end
    check.matches(text, "\nlookupc help COMMAND says more of one; lookupc help model prints the keys [^\n]*\n$")
    check.equal(select(2, text:gsub("\n", "")) < 50, true) -- lines: it fits on a screen
    for _, words in ipairs { { "--help" }, { "-h" } } do
        check.equal(works(words), text)
    end
    local result = program.run {}
    check.equal({ result.status, result.output, result.errors }, { 2, "", text })
end

function test.help_of_model_files_names_every_key()
    local text = works { "help", "model" }
    for _, key in ipairs { "name", "d_out", "projection.block", "projection.decay", "norm.eps", "neighbours" } do
        check.matches(text, "\n  " .. key:gsub("%p", "%%%0") .. " ")
    end
end

function test.help_of_a_command()
    for _, name in ipairs(commands) do
        local text = works { "help", name }
        check.matches(text, "^usage: lookupc " .. name .. "%f[ \n]")
        if name ~= "help" then check.equal(works { name, "--help" }, text) end
    end
    local text = works { "help", "sample" }
    check.matches(text, "\nwrite random weights [^\n]*%.\n")
    for _, option in ipairs { "%-%-seed N", "%-o FILE", "%-%-prefix TEXT" } do
        check.matches(text, "\n  " .. option .. " +%l")
    end
end

-- Help and man pages print them, and all that stops them is that their files are absent.
function test.examples_of_every_command_are_command_lines()
    local there, pages = program.folder(), program.folder()
    works { "help", "--man", pages }
    for _, command in ipairs(cli.commands) do
        local page = assert(host.read(pages .. "/" .. words.page(command) .. ".1"))
        local help = works { "help", command.name }
        check.matches(page, "\n%.SH EXAMPLES\n")
        for _, example in ipairs(command.examples) do
            local line = example[2]
            check.matches(page:gsub("\\(.)", "%1"), line:gsub("%p", "%%%0"))
            check.matches(help, "\n  " .. line:gsub("%p", "%%%0"))
            local own = line:gsub(" [<>].*", ""):gsub("^lookupc", '"$0"', 1)
            local result = assert(process.run({ "bash", "-c", own, check.lookupc }, {
                directory = there,
                env = { LOOKUPC_STORE = there .. "/store.sqlite" },
                timeout = 60,
            }))
            local absent = result.output:find("No such file or directory", 1, true)
                or result.output:find("there is no store yet", 1, true)
            if result.status ~= 0 and not absent then error(line .. ": " .. result.output, 0) end
        end
    end
end

-- Rules of the table of commands need no file: they come before anything is read.
function test.options_that_exclude_each_other_or_need_another_one_are_refused()
    local function typed(command, word)
        local name, value = word:match "^([^=]+)=?(.*)$"
        for _, option in ipairs(command.options) do
            if option.name == name then
                local sample = option.values and option.values[1] or "1"
                return words.dashes(option), option.value and (value ~= "" and value or sample) or nil
            end
        end
        error(command.name .. ": a rule names the option " .. word .. ", which it does not have")
    end
    local excluded, needed = 0, 0
    for _, command in ipairs(cli.commands) do
        local function of(...)
            local list = { command.name, command.arguments[1] and "none" }
            for _, word in ipairs { ... } do
                local dashes, value = typed(command, word)
                list[#list + 1], list[#list + 2] = dashes, value
            end
            return list
        end
        local function shown(word)
            local dashes, value = typed(command, word)
            return dashes .. (word:find "=" and " " .. value or ""), value and dashes .. ": " .. value or dashes
        end
        for _, option in ipairs(command.options) do
            local _, own = shown(option.name)
            for _, other in ipairs(option.not_beside or {}) do
                refuses(2, own .. ": cannot be given beside " .. shown(other), of(option.name, other))
                check.matches(works { "help", command.name }, "; not beside [^\n]*" .. shown(other):gsub("%p", "%%%0"))
                excluded = excluded + 1
            end
            if option.needs then
                refuses(2, own .. ": needs " .. shown(option.needs), of(option.name))
                needed = needed + 1
            end
        end
    end
    check.equal({ excluded > 10, needed > 10 }, { true, true })
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
    local words = { "verify", path, "--isa", "scalar", "--cflags", "-O1", "--budget", "codes=0.2%" }
    if effort.full then
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

function test.options_that_a_model_has_no_use_for_are_refused()
    local dense = program.model(
        folder,
        "dense_projection",
        [[return { name = "dense_projection", d = 8, h = 2, tau = 3, projection = { kind = "dense" }, score = "gelu" }]]
    )
    local encoder = program.model(
        folder,
        "encoder",
        [[
return { name = "encoder", d = 8, heads = 2, layers = 1, vocab = 9, checkpoint = "bert", norm = { kind = "layernorm" },
    attention = { causal = false, context = 8 }, ffn = { kind = "mlp", f = 8, activation = "gelu" } }
]]
    )
    local x, ids = folder .. "/decode.npy", folder .. "/decode.ids"
    assert(host.write_file(ids, "0 1"))
    program.python("np.save(sys.argv[1], np.zeros((2, 8), np.float32))", x)
    for line, given in pairs {
        ["--blocks-in-out: is for projection.kind = bh4: dense_projection has dense"] = {
            "verify",
            dense,
            "--weights",
            weights,
            "--blocks-in-out",
        },
        ["--decode: " .. encoder .. ": is an encoder, which takes all tokens at once"] = {
            "run",
            encoder,
            "--weights",
            weights,
            "--input",
            x,
            "--output",
            folder .. "/y.npy",
            "--decode",
        },
        ["--threads: 2: cannot be given beside --decode, whose calls have one thread"] = {
            "run",
            "gen/models/gpt_nano_sort.lua",
            "--weights",
            weights,
            "--ids",
            ids,
            "--output",
            folder .. "/y.npy",
            "--decode",
            "--threads",
            "2",
        },
        ["--choices: cannot be given beside --time 0, which measures nothing"] = {
            "tune",
            odd,
            "--time",
            "0",
            "--choices",
            "gather.group",
            "-o",
            folder .. "/t.lua",
        },
    } do
        refuses(2, line, given)
    end
end

function test.version() check.equal(works { "--version" }, "lookupc " .. host.version .. "\n") end

function test.types_of_tables()
    local o = folder .. "/never"
    for _, text in ipairs { "i4", "F32", "f32,i8" } do
        refuses(
            2,
            '--tables: "' .. text .. '": must be one of ' .. table.concat(dtype.names, ", "),
            { "emit", tiny, "-o", o, "--tables", text }
        )
    end
    check.equal(host.kind(o), nil)
    check.matches(works { "plan", tiny, "--tables", "i8" }, "\ntables +32%.0 KiB of i8\n")
    local blobs = {}
    for _, text in ipairs(dtype.names) do
        local bundle = folder .. "/" .. text
        works { "emit", odd, "--tables", text, "-o", bundle }
        check.matches(works { "check", bundle }, ": fresh\n$")
        check.equal(json.decode(host.read(bundle .. "/MANIFEST.json")).options.tables, text)
        check.equal(blobs[packed(weights, "--tables", text)], nil)
        blobs[packed(weights, "--tables", text)] = true
    end
    check.equal(blobs[plain], true)
end

function test.types_of_projections()
    local o = folder .. "/never"
    for _, text in ipairs { "f16", "f32,bf16" } do -- more of them: every option with a list of values takes no other
        for _, words in ipairs {
            { "plan", tiny },
            { "schedules", tiny },
            { "emit", tiny, "-o", o },
            { "pack", odd, "--weights", weights, "-o", o },
            { "verify", odd },
            { "run", odd, "--weights", weights, "--input", "x.npy", "--output", o },
        } do
            table.insert(words, "--projection")
            table.insert(words, text)
            refuses(
                2,
                '--projection: "' .. text .. '": must be one of ' .. table.concat(dtype.projection_names, ", "),
                words
            )
        end
    end
    refuses(
        2,
        '--projection: "f16": must be one of ' .. table.concat(dtype.projection_names, ", "),
        { "bench", tiny, "--batch", "1", "--projection", "f32,f16" }
    )
    refuses(2, '--projection: "bf16": given twice', { "bench", tiny, "--batch", "1", "--projection", "bf16,f32,bf16" })
    check.equal(host.kind(o), nil)
    check.matches(works { "plan", tiny, "--projection", "bf16" }, "\nprojection +bh4, [^\n]*, 8%.0 KiB of bf16\n")
    local bundle = folder .. "/projection"
    works { "emit", odd, "--projection", "bf16", "--tables", "i8", "-o", bundle }
    check.matches(works { "check", bundle }, ": fresh\n$")
    local options = json.decode(host.read(bundle .. "/MANIFEST.json")).options
    check.equal({ options.projection, options.tables }, { "bf16", "i8" })
    check.equal(packed(weights, "--projection", "f32"), plain)
    check.equal(packed(weights, "--projection", "bf16") == plain, false)
end

-- Against the checkpoint's own weights a projection in bf16 costs codes; against the rounded ones kernels are as exact
-- as ever.
-- Defaults for a machine are choices like any others: recorded, the same everywhere, and behind --schedule.
function test.defaults_are_for_a_machine()
    local small = "gen/models/roberta_small.lua"
    local function chosen_of(model, ...)
        local words = { "schedules", model, "--isa", "avx512", "--json", ... }
        local list = {}
        for _, choice in ipairs(json.decode(works(words)).sets[1].choices) do
            list[choice.key] = choice.chosen
        end
        return list
    end
    local function chosen(...) return chosen_of(small, "--tables", "i8", ...) end
    check.equal(chosen("--for", "generic"), chosen())
    local zen = chosen("--for", "zen4")
    check.equal({ zen["gather.pack"], zen["whole.prefetch"], zen["few.prefetch"], zen["few.group"] }, { 2, 3, 3, 128 })
    local rapids = chosen("--for", "sapphire-rapids")
    check.equal({ rapids["gather.pack"], rapids["gather.prefetch_codes"], rapids["few.prefetch"] }, { 3, 1, 3 })
    check.equal(rapids["gather.prefetch_next"], 0) -- copies read slices as they come
    check.equal(zen["gather.prefetch_codes"], 0)
    check.equal(chosen("--for", "zen4", "--schedule", "few.prefetch=1")["few.prefetch"], 1)
    local blocks = "gen/models/tiny_skipless.lua"
    local function prefetched(...) return chosen_of(blocks, ...)["attention.prefetch"] end
    check.equal({ prefetched(), prefetched("--for", "zen4") }, { 2, 3 })
    check.equal(prefetched("--for", "zen4", "--cache", "f16"), prefetched("--cache", "f16"))
    local out = folder .. "/for_zen4"
    works { "emit", "gen/models/tiny.lua", "--for", "zen4", "--isa", "avx512", "-o", out }
    works { "check", out }
    -- So are those of LookupFFNs in blocks, and in packages for other languages.
    local plain = out .. "_plain"
    for _, name in ipairs { "lookup_skipless", "roberta_small_whole" } do
        local model, made = "gen/models/" .. name .. ".lua", out .. name
        works { "emit", model, "--for", "zen4", "--isa", "avx512", "-o", made }
        works { "emit", model, "--isa", "avx512", "-o", plain .. name }
        works { "check", made }
        check.equal(json.decode(host.read(made .. "/MANIFEST.json")).options["for"], "zen4")
        local file = name .. "/" .. name .. "__avx512.c"
        check.equal(host.read(out .. file) == host.read(plain .. file), false)
    end
    works { "emit", small, "--for", "zen4", "--tables", "i8", "--isa", "avx512", "--python", out .. "_python" }
    check.matches(host.read(out .. "_python/MANIFEST.json"), '"few.prefetch": 3')
    for _, row in ipairs {
        { { "plan", small, "--for", "z80" }, '--for: "z80": must be one of generic, ice-lake-server' },
        { { "plan", small, "--for", "zen4", "--tuned", "t.lua" }, "--for: zen4: cannot be given beside --tuned" },
        {
            { "plan", small, "--for", "zen4", "--arithmetic", "integer" },
            "--for: zen4: cannot be given beside --arithmetic integer",
        },
        {
            { "emit", small, "--for", "neoverse-v1", "--isa", "neon,avx512", "-o", out },
            "--isa: avx512: is not of --for neoverse-v1, which has scalar, neon, dotprod, sve, i8mm",
        },
        { { "schedules", blocks, "--for", "zen3", "--isa", "avx512" }, "--isa: avx512: is not of --for zen3" },
        { { "bench", small, "--for", "zen3", "--isa", "neon" }, "--isa", status = 1 }, -- this CPU runs none
        { { "plan", small, "--for", "neoverse-v1" }, "neoverse-v1: does not run avx2: needs --isa, of scalar, neon" },
        {
            { "emit", small, "--for", "zen4", "--profile", "firmware", "-o", out },
            "--for: is not for --profile firmware",
        },
    } do
        refuses(row.status or 2, row[2], row[1])
    end
end

function test.verify_tells_what_a_rounded_projection_costs()
    -- a quarter as wide as roberta_small, with an eighth of its tables
    local small, flips =
        program.model(
            folder,
            "small",
            [[return { name = "small", d = 128, h = 16, tau = 8, projection = { kind = "bh4", block = 32, decay = 0.7 },
            score = "gelu", norm = { kind = "layernorm" } }]]
        ), {}
    local words = { "verify", small, "--isa", "scalar", "--cflags", "-O1", "--json", "--projection" }
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
        local words = { "verify", model, "--isa", "scalar", "--cflags", "-O1", "--projection", "bf16" }
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
    integers = with(integers, "--cflags", "-O1", "--budget", "codes=3%")
    works(integers)
    integers[#integers] = "codes=0.1%"
    local line = "budget: %d+ of %d+ codes flipped .* with the codes of integer arithmetic"
    check.matches(program.run(integers).errors, line)
end

function test.usage_errors()
    local o = folder .. "/never"
    for _, row in ipairs {
        { 'lookupc: unknown command "emti"; did you mean emit?', "emti" },
        { 'lookupc: unknown command "zzzzzzzz" (see lookupc help)', "zzzzzzzz" },
        { 'lookupc: unknown command ""', "" },
        { 'lookupc: unknown command "emti"', "help", "emti" },
        { "lookupc help: takes [COMMAND], got plan emit", "help", "plan", "emit" },
        {
            "lookupc emit: unknown option --iza; did you mean --isa? (see lookupc help emit)",
            "emit",
            tiny,
            "--iza",
            "scalar",
            "-o",
            o,
        },
        { "unknown option --output", "emit", tiny, "--output", o },
        { "unknown option -x", "plan", tiny, "-x" },
        { "lookupc plan: MODEL.lua is missing", "plan" },
        { "takes MODEL.lua, got a.lua b.lua", "plan", "a.lua", "b.lua" },
        { "DIR is missing", "check" },
        { "-o is missing", "emit", tiny },
        { "-o: needs a value, DIR", "emit", tiny, "-o" },
        { "-o: needs a value", "sample", tiny, "-o", "" },
        { "--weights is missing", "run", tiny, "--input", o, "--output", o },
        { "--weights: needs a value, PATH", "pack", tiny, "-o", o, "--weights" },
        { "--weights: needs a value, PATH", "run", tiny, "--input", o, "--output", o, "--weights=" },
        { "unknown option --schedule", "pack", tiny, "--weights", weights, "-o", o, "--schedule", "gather.group=1" },
        {
            "lookupc run: --input is missing: X.npy, float32 [tokens][d]; or give --ids (see",
            "run",
            tiny,
            "--weights",
            weights,
            "--output",
            o,
        },
        { "[d_out]; or give --expect (see", "run", tiny, "--weights", weights, "--input", o },
        { "lookupc pack: --weights is missing: PATH, the checkpoint", "pack", tiny, "-o", o },
        { "lookupc pack: --weights: needs a value, PATH (see", "pack", tiny, "-o", o, "--weights=" },
        { "--json: takes no value", "plan", tiny, "--json=1" },
        { "--seed: 1: given twice", "sample", tiny, "-o", o, "--seed", "1", "--seed=1", given_twice = true },
        { "--json: given twice", "plan", tiny, "--json", "--json" },
    } do
        local fragment = row.given_twice and "--seed: given twice" or row[1]
        refuses(2, fragment, { table.unpack(row, 2) })
    end
    for _, number in ipairs { "abc", "-1", "1.5", "1e3", "0x10", "4294967296", "99999999999999999999", " 1" } do
        refuses(
            2,
            "--seed: " .. number .. ": must be an integer from 0 to 4294967295",
            { "sample", tiny, "-o", o, "--seed", number }
        )
    end
    check.equal(host.kind(o), nil)
end

-- A script's unset variable, for every argument and option that help names.
function test.empty_words()
    local may_be_empty, counted = { TEXT = true, PROMPT = true, FLAGS = true }, 0
    -- The command line is read here: a process for each word would take seconds.
    local function says(fragment, given)
        local note, noted = host.note, {}
        host.note = function(text) noted[#noted + 1] = text end
        local good, status = pcall(cli, given)
        host.note = note
        check.equal({ good, status, #noted }, { true, 2, 1 })
        check.equal({ noted[1]:sub(1, #fragment), noted[1]:find "\n" }, { fragment })
    end
    for line in works({ "help" }):gmatch "\n  (%l[^\n]+)" do
        local name = line:sub(1, 12):gsub(" +$", "")
        local command = {}
        for word in name:gmatch "%S+" do
            command[#command + 1] = word
        end
        local usage = works({ "help", table.unpack(command) }):match "^usage: lookupc ([^\n]+)"
        local argument = usage:sub(#name + 2):match "^%[?([%a.]+)"
        argument = argument and argument:gsub("%.%.%.$", "")
        if argument and not may_be_empty[argument] then
            says("lookupc " .. name .. ": " .. argument .. " is empty (see", with(command, ""))
        end
        for option, value in usage:gmatch "(%-%-?[%l%-]+) ([^%s%]]+)" do
            counted = counted + 1
            if not may_be_empty[value] then
                local said = "lookupc " .. name .. ": " .. option .. ": needs a value, " .. value .. " (see"
                says(said, with(command, option, ""))
            end
        end
    end
    check.equal(counted > 250, true)
    local o = folder .. "/never"
    refuses(2, "--text: a value is empty: FILE...", { "train", tiny, "-o", o, "--steps", "1", "--text", tiny, "" })
    refuses(2, "LOG.jsonl is empty", { "tuned", "merge", tiny, "" })
    check.equal(host.kind(o), nil)
    works { "sample", tiny, "--prefix", "", "-o", folder .. "/without_prefix" }
end

-- The words of a command, then `...`.
local function line(command, ...)
    local list = {}
    for word in command.name:gmatch "%S+" do
        list[#list + 1] = word
    end
    return table.move({ ... }, 1, select("#", ...), #list + 1, list)
end

function test.every_option_with_a_list_of_values_takes_no_other()
    local count = 0
    for _, command in ipairs(cli.commands) do
        local given = {}
        for _, option in ipairs(command.options) do
            if option.values then
                local name, first, is_list = words.dashes(option), option.values[1], option.value == "LIST"
                local list = table.concat(option.values, ", ")
                for _, bad in ipairs { "nonsense", first:upper() .. "!", first .. " ", first .. ",nonsense", "," } do
                    local word = is_list and (bad:match ",(.*)$" or bad) or bad
                    local _, message = pcall(cli, line(command, name, bad))
                    check.equal(tostring(message), string.format('%s: "%s": must be one of %s', name, word, list))
                end
                if option.default then
                    check.equal(table.concat(option.values, " "):find(option.default, 1, true) ~= nil, true)
                end
                given[#given + 1], given[#given + 2] = name, is_list and table.concat(option.values, ",") or first
                count = count + 1
            end
        end
        if given[1] then -- the values themselves are taken: what is wrong stands behind them
            given[#given + 1] = "--nonsense"
            refuses(2, "unknown option --nonsense", line(command, table.unpack(given)))
        end
    end
    check.equal(count > 80, true) -- of 96 when this was written
    local never = folder .. "/never.safetensors"
    refuses(
        2,
        'lookupc: --table-optimiser: "sgd": must be one of adagrad, adam\n',
        { "train", odd, "--text", tiny, "--steps", "1", "-o", never, "--table-optimiser", "sgd" }
    )
    check.equal(host.kind(never), nil)
end

-- Values whose rules depend on more than the command line.
function test.wrong_lists()
    local o = folder .. "/never"
    for _, text in ipairs { "mve", "scalar,mve", ",", "scalar,", "AVX2", "scalar avx2" } do
        refuses(2, "--isa: ", { "emit", tiny, "-o", o, "--isa", text })
    end
    for _, text in ipairs {
        "gather.group",
        "gather.group=",
        "gather.group=x",
        "gather.gruop=8",
        "gather.group=8,gather.group=8",
        "gather.group=7",
        ",",
    } do
        refuses(2, "--schedule: ", { "emit", tiny, "-o", o, "--schedule", text })
    end
    refuses(2, 'did you mean "gather.group"?', { "emit", tiny, "-o", o, "--schedule", "gather.gruop=8" })
    for _, text in ipairs { "0", "x", "1,,2", "1.5", "65537" } do
        refuses(2, "--batch: ", { "bench", tiny, "--isa", "scalar", "--batch", text })
    end
    refuses(2, "--repetitions: 0: must be an integer", { "bench", tiny, "--isa", "scalar", "--repetitions", "0" })
    for _, text in ipairs { "i4", "f32,", "f32,i4", "f32 i8" } do
        refuses(
            2,
            ": must be one of " .. table.concat(dtype.names, ", "),
            { "bench", tiny, "--isa", "scalar", "--tables", text }
        )
    end
    for _, text in ipairs { ",", "default,", ",default" } do
        refuses(2, '--tuned: "' .. text .. '": must be files', { "bench", tiny, "--isa", "scalar", "--tuned", text })
    end
    refuses(2, '--tables: "i8": given twice', { "bench", tiny, "--isa", "scalar", "--tables", "i8,f32,i8" })
    refuses(2, '--rivals: "same": given twice', { "bench", tiny, "--isa", "scalar", "--rivals", "same,same" })
    for _, command in ipairs { "verify", "bench" } do
        for _, number in ipairs { "0", "1025" } do
            refuses(
                2,
                "--threads: " .. number .. ": must be an integer from 1 to 1024",
                { command, tiny, "--isa", "scalar", "--threads", number }
            )
        end
        refuses(2, "--threads: x: must be an integer", { command, tiny, "--threads", "x" })
    end
    check.equal(host.kind(o), nil)
end

function test.plan_for_machines()
    local found = assert(json.decode(works { "plan", "gen/models/roberta_base.lua", "--json" }))
    local expected = {
        d = 768,
        d_out = 768,
        h = 170,
        tau = 9,
        block = 64,
        padded = 1024,
        repeats = 2,
        table_bytes = 170 * 512 * 768 * 4,
    }
    for key, value in pairs(expected) do
        check.equal(found[key], value)
    end
    check.near(found.dense_mflop_per_token, 9.44, 0.005)
    check.near(found.mflop_per_token, 1.39, 0.005)
    if not (found.mflop_per_token_folded > 0 and found.mflop_per_token_folded < found.mflop_per_token) then
        error("folding saves nothing: " .. found.mflop_per_token_folded)
    end
    for _, key in ipairs { "packed_bytes", "scratch_bytes" } do
        check.equal(math.type(found[key]), "integer")
    end
    local dense = program.model(
        folder,
        "dense",
        'return { name = "m", d = 5, h = 3, tau = 2, projection = { kind = "dense" }, score = "softmax" }'
    )
    found = assert(json.decode(works { "plan", dense, "--json" }))
    check.equal({ found.d, found.d_out, found.padded, found.repeats }, { 5, 5, 5, 1 })
end

function test.plan_for_people()
    local text = works { "plan", "gen/models/roberta_base.lua" }
    check.matches(text, "1%.39")
    check.matches(text, "9%.44")
    check.equal(select(2, text:gsub("\n", "")) < 20, true)
end

function test.sizes_of_the_plan_are_those_of_the_files()
    local found = assert(json.decode(works { "plan", odd, "--json" }))
    check.equal(found.packed_bytes, #plain)
    works { "emit", odd, "-o", folder .. "/sizes" }
    local header = assert(host.read(folder .. "/sizes/odd.h"))
    check.matches(header, "#define ODD_WEIGHTS_BYTES " .. found.packed_bytes .. "u")
    check.matches(header, "#define ODD_SCRATCH_BYTES " .. found.scratch_bytes .. "u")
end

function test.emit_of_some_instruction_sets()
    local function kinds(list)
        local bundle = program.folder()
        works { "emit", tiny, "-o", bundle, "--isa", list }
        local seen = {}
        for _, name in ipairs(host.list(bundle)) do
            local isa = name:match("__(%w+)")
            if isa then seen[isa] = (seen[isa] or 0) + 1 end
        end
        works { "check", bundle }
        return seen, bundle
    end
    local all = kinds(sets.bundled)
    check.equal(kinds "scalar", { scalar = all.scalar })
    check.equal(kinds "avx512", { avx512 = all.avx512 })
    local _, one = kinds "scalar,avx2"
    local _, other = kinds "avx2,scalar,avx2"
    check.equal(process.run({ "diff", "-r", one, other }).output, "")
end

function test.emit_says_what_changed()
    local bundle = program.folder() .. "/new/folder"
    check.equal(works({ "emit", tiny, "-o", bundle }):gsub("EMIT  [^\n]*\n", ""), "")
    check.equal(works({ "emit", tiny, "-o", bundle }):gsub("same  [^\n]*\n", ""), "")
    assert(host.write_file(bundle .. "/tiny.h", "edited"))
    refuses(1, "tiny.h: edited", { "check", bundle })
    check.equal(works({ "emit", tiny, "-o", bundle }):gsub("same  [^\n]*\n", ""), "EMIT  " .. bundle .. "/tiny.h\n")
    check.equal(works { "check", bundle }, bundle .. ": fresh\n")
end

function test.pack_leaves_a_blob_alone_that_did_not_change()
    local folder = program.folder()
    local weights, blob = folder .. "/w.safetensors", folder .. "/tiny.bin"
    local function packed(...) return works({ "pack", tiny, "--weights", weights, "-o", blob, ... }):match "^%S+ +" end
    local function identity() return process.run({ "stat", "-c", "%i %y", blob }).output end
    works { "sample", tiny, "-o", weights }
    check.equal(packed(), "wrote ")
    local before = identity()
    check.equal(packed(), "same  ")
    check.equal(identity(), before)
    check.equal(packed("--tables", "i8"), "wrote ")
    check.equal(identity() ~= before, true)
end

function test.relative_paths_from_another_folder()
    local there = program.folder()
    local text = assert(host.read(tiny))
    program.model(there, "tiny", text)
    for _, words in ipairs {
        { "emit", "tiny.lua", "-o", "sub/tiny" },
        { "check", "sub/tiny" },
        { "sample", "tiny.lua", "-o", "w.safetensors" },
        { "pack", "tiny.lua", "--weights", "w.safetensors", "-o", "w.bin" },
    } do
        works(words, { directory = there })
    end
    program.python("np.save(sys.argv[1], np.ones((3, 64), '<f4'))", there .. "/x.npy")
    works(
        { "run", "tiny.lua", "--weights", "w.safetensors", "--input", "x.npy", "--output", "y.npy", "--isa", "scalar" },
        { directory = there }
    )
    check.equal(host.list(there), { "sub", "tiny.lua", "w.bin", "w.safetensors", "x.npy", "y.npy" })

    local here = program.folder()
    works { "emit", tiny, "-o", here }
    check.equal(process.run({ "diff", "-r", here, there .. "/sub/tiny" }).output, "")
end

function test.words_of_a_command_line()
    local there = program.folder()
    check.matches(works { "--version" }, "^lookupc %d+%.%d+%.%d+\n$")
    for _, words in ipairs { { "-V" }, { "version" } } do
        check.equal(works(words), works { "--version" })
    end
    works { "emit", tiny, "-o" .. there .. "/a", "--isa=scalar" }
    works { "emit", "-o", there .. "/b", "--isa", "scalar", "--", tiny }
    check.equal(process.run({ "diff", "-r", there .. "/a", there .. "/b" }).output, "")
    refuses(2, "lookupc emit: MODEL.lua is missing (see", { "emit" })
    refuses(2, "of the bundle; or give --list, --web, --python or --rust (see", { "emit", tiny })
    refuses(2, "takes MODEL.lua, got " .. tiny .. " --isa", { "emit", "-o", there, "--", tiny, "--isa" })
    refuses(2, 'SHELL: "tcsh": must be one of bash, zsh, fish', { "completion", "tcsh" })
    works { "help", "--man", there .. "/man" }
    for _, name in ipairs { "lookupc", "lookupc-emit", "lookupc-tuned-list" } do
        check.matches(
            host.read(there .. "/man/" .. name .. ".1"),
            "^%.TH [^\n]+\n%.SH NAME\n" .. name:gsub("%-", "\\%%-")
        )
    end
    for _, shell in ipairs { "bash", "zsh", "fish" } do
        check.matches(works { "completion", shell }, "fixed%-names")
    end
end

function test.a_model_may_come_through_a_pipe()
    local there = program.folder()
    local piped = { limit = "exec <" .. tiny }
    check.equal(works({ "plan", "-", "--json" }, piped), works { "plan", tiny, "--json" })
    works(
        { "emit", "-", "--name", "tiny", "--isa", "scalar", "-o", there .. "/a", "--depfile", there .. "/a.d" },
        piped
    )
    works { "emit", tiny, "--isa", "scalar", "-o", there .. "/b" }
    check.equal(process.run({ "diff", "-r", there .. "/a", there .. "/b" }).output, "")
    check.equal(host.read(there .. "/a.d"):find(": \\", 1, true), nil)
    assert(host.write_file(there .. "/bad.lua", "return {\n name = 1 }"))
    refuses(1, "lookupc: -:2: name = 1: must be", { "plan", "-" }, { limit = "exec <" .. there .. "/bad.lua" })
end

-- What a build is told of a bundle: its files beforehand, and what they depend on.
function test.files_of_a_bundle_and_what_they_depend_on()
    local there = program.folder()
    assert(host.write_directory(there, { ["a b.lua"] = assert(host.read(tiny)) }))
    local words = { "emit", there .. "/a b.lua", "--isa", "scalar,avx2", "--fixed-names", "--linked" }
    local function with(...) return table.move({ ... }, 1, select("#", ...), #words + 1, { table.unpack(words) }) end
    local listed = works(with "--list")
    check.equal(host.kind(there .. "/out"), nil)
    works(with("-o", there .. "/out", "--depfile", there .. "/d", "--depfile-target", "all"))
    local names = {}
    for name in listed:gmatch "[^\n]+" do
        names[#names + 1] = name
    end
    table.sort(names)
    check.equal(host.list(there .. "/out"), names)
    check.equal(host.read(there .. "/d"), "all: \\\n  " .. there .. "/a\\ b.lua\n")
    check.equal(host.read(there .. "/out/tiny__avx2.flags"), "-mavx2 -mfma\n")
    check.equal(works { "check", there .. "/out" }, there .. "/out: fresh\n")
    assert(host.remove(there .. "/out/tiny_linked.c"))
    refuses(1, "tiny_linked.c: missing", { "check", there .. "/out" })

    -- Integer kernels are scalar: the other file is there, too.
    works(with("--arithmetic", "integer", "-o", there .. "/out"))
    check.matches(host.read(there .. "/out/tiny__avx2.c"), "No kernels for avx2")
    check.equal(works { "check", there .. "/out" }, there .. "/out: fresh\n")
    -- Meson takes a folder as a subproject if project() comes first, and by subdir() if it does not come at all.
    works(with("--meson", "-o", there .. "/out"))
    local project = "^#[^\n]*\n#[^\n]*\nproject%('tiny', 'c'%)\nsubdir%('meson'%)\n"
    check.matches(host.read(there .. "/out/meson.build"), project)
    check.equal(host.read(there .. "/out/meson/meson.build"):find("project(", 1, true), nil)
    local named = 'name = "tiny": must be "tony", as --name says (in lookupc_add_library: NAME, or else'
    refuses(1, named, with("--name", "tony", "-o", there .. "/out"))
    refuses(2, "--linked: is not for --profile firmware", with("--profile", "firmware", "-o", there .. "/out"))

    works { "sample", tiny, "-o", there .. "/w.safetensors" }
    works { "pack", tiny, "--weights", there .. "/w.safetensors", "-o", there .. "/w.bin", "--depfile", there .. "/d" }
    check.equal(host.read(there .. "/d"), there .. "/w.bin: \\\n  " .. there .. "/w.safetensors \\\n  " .. tiny .. "\n")
end

-- No output is written before it is known that this one can be, and that it replaces no other file.
function test.dependency_files_that_cannot_be_written()
    local there = program.folder()
    local model, w = there .. "/tiny.lua", there .. "/w.safetensors"
    assert(host.write_file(model, assert(host.read(tiny))))
    works { "sample", tiny, "-o", w }
    assert(process.run { "ln", "-s", "nothing", there .. "/link" })
    for path, fragment in pairs {
        [there .. "/tiny.lua/d"] = "/tiny.lua/d: Not a directory",
        [there .. "/none/d/"] = "/none/d/: ",
        [there .. "/link"] = "/link: is a symbolic link to nothing",
        [there] = ": is not a regular file",
        [model] = "--depfile: " .. model .. ": is the input " .. model,
        [there .. "/out/tiny.c"] = "--depfile: " .. there .. "/out/tiny.c: is the output ",
        [there .. "/out/none/..//./tiny.c"] = "/tiny.c: is the output ",
    } do
        local emits = { "emit", model, "--isa", "scalar", "-o", there .. "/out", "--depfile", path }
        refuses(1, fragment, emits)
        if not path:find "tiny%.c$" then
            refuses(1, fragment, { "pack", model, "--weights", w, "-o", there .. "/blob", "--depfile", path })
        end
    end
    local packs = { "pack", model, "--weights", w, "-o", there .. "/blob", "--depfile" }
    refuses(1, "--depfile: " .. w .. ": is the input", with(packs, w))
    refuses(1, "is the output", with(packs, there .. "/blob"))
    check.equal(host.list(there), { "link", "tiny.lua", "w.safetensors" })
    check.equal(host.read(model) == host.read(tiny), true)

    works { "emit", model, "--isa", "scalar", "-o", there .. "/out", "--depfile", there .. "/out/d" }
    check.matches(host.read(there .. "/out/d"), "tiny%.lua\n$")
    works(with(packs, there .. "/d"))
    refuses(1, "is the output", with(packs, there .. "/out/../blob"))
end

-- As a build of an empty folder needs it; and nothing is printed there.
function test.the_folder_of_a_dependency_file_is_made_quietly()
    local there = program.folder()
    local emit = { "emit", tiny, "--isa", "scalar", "-o", there .. "/x/tiny", "--depfile-target", "s", "--depfile" }
    works(with(emit, there .. "/x/tiny.d"))
    check.equal(works(with(emit, there .. "/y/z//tiny.d", "--quiet")), "")
    check.equal(host.read(there .. "/x/tiny.d"), "s: \\\n  " .. tiny .. "\n")
    check.equal(host.read(there .. "/y/z/tiny.d"), host.read(there .. "/x/tiny.d"))
    works { "sample", tiny, "-o", there .. "/w.safetensors" }
    local pack = { "pack", tiny, "--weights", there .. "/w.safetensors", "-o", there .. "/b" }
    check.equal(works(with(pack, "--depfile", there .. "/v/d", "--quiet")), "")
    check.matches(host.read(there .. "/v/d"), "^" .. there:gsub("%p", "%%%0") .. "/b: ")
end

-- Nor do a command's outputs replace each other, or what it reads.
function test.outputs_are_files_of_their_own()
    local there = program.folder()
    local tune = { "tune", tiny, "--time", "1s", "-o", there .. "/t.lua", "--html" }
    refuses(1, "--html: " .. there .. "/t.jsonl: is the output ", with(tune, there .. "/t.jsonl"))
    refuses(1, "is the output", with(tune, there .. "/../" .. there:match "[^/]*$" .. "/t.lua"))
    refuses(1, "is the input", { "bench", tiny, "--html", tiny })
    local pack = { "pack", tiny, "--weights", tiny, "-o", there .. "/blob", "--depfile" }
    refuses(1, "is the output", with(pack, there .. "/./blob"))
    check.equal(host.list(there), {})
end

function test.run_converts_float64()
    local there = program.folder()
    works { "sample", tiny, "-o", there .. "/w.safetensors" }
    program.python(
        "x = np.linspace(-1, 1, 128).astype('<f4').reshape(2, 64); np.save(sys.argv[1], x); \z
         np.save(sys.argv[2], x.astype('<f8'))",
        there .. "/x.npy",
        there .. "/wide.npy"
    )
    local function run(input, output)
        return program.run {
            "run",
            tiny,
            "--weights",
            there .. "/w.safetensors",
            "--isa",
            "scalar",
            "--input",
            there .. input,
            "--output",
            there .. output,
        }
    end
    local plain, wide = run("/x.npy", "/y.npy"), run("/wide.npy", "/z.npy")
    check.equal({ plain.status, plain.errors, wide.status }, { 0, "", 0 })
    check.equal(wide.errors, "lookupc run: " .. there .. "/wide.npy: float64 is converted to float32\n")
    check.equal(host.read(there .. "/y.npy"), host.read(there .. "/z.npy"))
end

function test.doctor_says_what_is_there_and_what_is_missing()
    local facts = json.decode(works { "doctor", "--json" })
    check.equal(facts.cpu.isa[1], "scalar")
    check.equal(facts.cpu.amx, facts.cpu.amx_missing == nil)
    local bin = program.folder()
    local text = works({ "doctor" }, { env = { PATH = bin .. ":" .. bin } })
    check.matches(text, "\ngcc +is missing: ")
    check.matches(text, "\n  apt install gcc clang ")
    check.matches(text, "\nAMX +%S")
    for _, name in ipairs { "CPU", "instruction sets", "L2 cache", "pages of 2 MiB", "lookupc%-measure", "OpenBLAS" } do
        check.matches(text, "\n" .. name .. " +%S")
    end
    -- The compiler says which libraries it finds: one that finds OpenBLAS alone.
    local answer = '#!/bin/sh\ncase $1 in *openblas*) echo /lib/openblas ;; *) echo "${1#*=}" ;; esac\n'
    assert(host.write_file(bin .. "/gcc", answer))
    assert(process.run { "chmod", "+x", bin .. "/gcc" })
    text = works({ "doctor" }, { env = { PATH = bin .. ":/usr/bin:/bin" } })
    check.matches(text, "\nOpenBLAS +is there\n")
    check.matches(text, "\nMPI +is missing: builds lookupc%-mpi.so\n")
    check.matches(text, "\n  apt install [^\n]*libdnnl%-dev libsentencepiece%-dev libopenmpi%-dev ")
    -- A program alone, without its parts.
    assert(process.run { "cp", check.lookupc, bin .. "/lookupc" })
    local alone = assert(process.run({ bin .. "/lookupc", "doctor" }, { timeout = 60 })).output
    check.matches(alone, "\nlookupc%-mpi.so +is missing: train needs it on several machines\n")
    check.matches(alone, "\n  cmake [^\n]* %-DLOOKUPC_BENCH=ON %-DLOOKUPC_TRAIN=ON %-DLOOKUPC_MPI=ON && cmake ")
end

-- What run compiled is kept in the user's cache under everything it depends on.
function test.run_compiles_once()
    local there = program.folder()
    local cc, calls, cache = there .. "/cc", there .. "/calls", there .. "/cache"
    assert(host.write_file(cc, '#!/bin/sh\necho "$*" >>' .. calls .. '\nexec gcc "$@"\n'))
    assert(process.run { "chmod", "+x", cc })
    program.python("np.save(sys.argv[1], np.linspace(-1, 1, 4 * 27, dtype='<f4').reshape(4, 27))", there .. "/x.npy")
    -- y of a run, and how many files were compiled for it.
    local function run(flags, ...)
        assert(host.write_file(calls, ""))
        local words = { "run", odd, "--weights", weights, "--input", there .. "/x.npy", "--output", there .. "/y.npy" }
        for _, word in ipairs { "--isa", "scalar", "--cc", cc, "--cflags", flags, ... } do
            words[#words + 1] = word
        end
        works(words, { env = { XDG_CACHE_HOME = cache } })
        local _, count = assert(host.read(calls)):gsub(" %-c ", "")
        return assert(host.read(there .. "/y.npy")), count
    end
    local y, count = run "-O0"
    check.equal(count > 0, true)
    check.equal({ run "-O0" }, { y, 0 })
    check.equal({ run "-O1" }, { y, count })
    local other, compiled = run("-O0", "--tables", "i8")
    check.equal({ other ~= y, compiled }, { true, count })
    for _, name in ipairs(host.list(cache .. "/lookupc")) do
        assert(host.write_file(cache .. "/lookupc/" .. name, "damaged"))
    end
    check.equal({ run "-O0" }, { y, count })
    -- A cache that is a file keeps nothing, and costs nothing.
    cache = there .. "/x.npy"
    check.equal({ run "-O0" }, { y, count })
    check.equal({ run "-O0" }, { y, count })
end

function test.sample_depends_on_the_seed_alone()
    local function sample(...)
        local path = folder .. "/sample.safetensors"
        works { "sample", odd, "-o", path, ... }
        return assert(host.read(path))
    end
    local one = sample("--seed", "1")
    check.equal(sample("--seed", "1") == one, true)
    check.equal(sample("--seed=1") == one, true)
    check.equal(sample() == one, true)
    check.equal(sample("--seed", "2") ~= one, true)
    check.equal(#sample("--seed", "4294967295"), #one)
    check.equal(
        program.python(
            [[
for name, (dtype, values) in load(sys.argv[1]).items():
    print(name, dtype, values.shape, "varied" if values.std() > 0 and np.isfinite(values).all() else "WRONG")
]],
            weights
        ),
        [[
hash.projection.weight F32 (2, 4, 4, 8, 8) varied
hash.projection.bias F32 (35,) varied
tables F32 (7, 32, 19) varied
bias F32 (19,) varied
LayerNorm.weight F32 (27,) varied
LayerNorm.bias F32 (27,) varied
]]
    )
end

function test.pack_is_deterministic_and_hears_every_tensor()
    check.equal(packed(weights) == plain, true)
    local names = "hash.projection.weight hash.projection.bias tables bias LayerNorm.weight LayerNorm.bias"
    program.python(
        [=[
for name in sys.argv[3].split():
    tensors = load(sys.argv[1])
    tensors[name][1].flat[0] += 0.5
    save(sys.argv[2] + "/changed_" + name, tensors)
]=],
        weights,
        folder,
        names
    )
    for name in names:gmatch "%S+" do
        if packed(folder .. "/changed_" .. name) == plain then error(name .. " changes nothing") end
    end
end

-- Rows in units of their largest magnitude / 127, by NumPy; what is rounded already stays as it is.
function test.quantise_rounds_rows()
    local small, again = folder .. "/small.safetensors", folder .. "/again.safetensors"
    check.matches(works { "quantise", weights, "-o", small }, "^wrote .*, relative error 0%.00%d+\n$")
    check.equal(
        program.python(
            [=[
given, rounded = load(sys.argv[1]), load(sys.argv[2])
for name, (dtype, values) in given.items():
    found, own = rounded[name]
    if values.ndim < 2:
        assert found == "F32" and (own == values).all(), name
        continue
    scale = np.abs(values).max(-1).astype(np.float64) / 127
    kept, scales = rounded[name + "_scale"]
    assert found == "I8" and kept == "F32" and (scales == scale.astype(np.float32)).all(), name
    assert (own == np.rint(values.astype(np.float64) / scales[..., None].astype(np.float64))).all(), name
print(len(given), len(rounded))
]=],
            weights,
            small
        ),
        "6 8\n"
    )
    works { "quantise", small, "-o", again }
    check.equal(host.read(again) == host.read(small), true)
    check.equal(packed(small, "--tables", "i8") == plain, false)
    works { "verify", odd, "--weights", small, "--tables", "i8", "--isa", "scalar" }
    refuses(1, "-o: " .. small .. ": is the input", { "quantise", small, "-o", small })
    refuses(1, folder .. "/absent: No such file", { "quantise", folder .. "/absent", "-o", again })
end

function test.prefix()
    local path = folder .. "/prefixed.safetensors"
    local prefix = "roberta.encoder.layer.3.FFN."
    works { "sample", odd, "--seed", "5", "-o", path, "--prefix", prefix }
    check.equal(packed(path, "--prefix", prefix) == plain, true)
    local never = folder .. "/never"
    refuses(
        1,
        "tensor hash.projection.weight is missing; give --prefix " .. prefix .. "\n",
        { "pack", odd, "--weights", path, "-o", never }
    )
    refuses(
        1,
        "tensor roberta.encoder.layer.4.FFN.hash.projection.weight is missing; give --prefix " .. prefix .. "\n",
        { "pack", odd, "--weights", path, "-o", folder .. "/never", "--prefix", "roberta.encoder.layer.4.FFN." }
    )
    -- Two layers in one file: each is found by its own prefix.
    program.python(
        [[
one, two = load(sys.argv[1]), load(sys.argv[2])
save(sys.argv[3], {**{"a." + name: (dtype, values * 2) for name, (dtype, values) in two.items()}, **one})
]],
        path,
        weights,
        folder .. "/layers.safetensors"
    )
    check.equal(packed(folder .. "/layers.safetensors", "--prefix", prefix) == plain, true)
    check.equal(packed(folder .. "/layers.safetensors", "--prefix", "a.") ~= plain, true)
end

function test.blocks_stored_input_by_output()
    local path = folder .. "/transposed.safetensors"
    program.python(
        [[
tensors = load(sys.argv[1])
dtype, values = tensors["hash.projection.weight"]
tensors["hash.projection.weight"] = dtype, values.swapaxes(3, 4)
save(sys.argv[2], tensors)
]],
        weights,
        path
    )
    check.equal(packed(path, "--blocks-in-out") == plain, true)
    check.equal(packed(path) ~= plain, true)
    works { "verify", odd, "--weights", path, "--blocks-in-out", "--isa", "scalar" }
end

-- Other widths hold the same numbers: values rounded to the narrow type pack as their float32 equals do.
function test.widths_of_checkpoints()
    local other, same = folder .. "/other.safetensors", folder .. "/same.safetensors"
    for _, dtype in ipairs { "F16", "BF16", "F64", "mixed" } do
        program.python(
            [[
source, other, same, wanted = sys.argv[1:]
def convert(values, dtype):
    if dtype == "BF16":
        bits = (values.astype("<f4").view("<u4") + 0x8000) >> 16
        return bits.astype("<u2"), (bits.astype("<u4") << 16).view("<f4")
    narrow = values.astype(widths(dtype))
    return narrow, narrow.astype("<f4")
a, b = {}, {}
for number, (name, (_, values)) in enumerate(load(source).items()):
    dtype = ["F16", "BF16", "F64", "F32"][number % 4] if wanted == "mixed" else wanted
    narrow, wide = convert(values, dtype)
    a[name], b[name] = (dtype, narrow), ("F32", wide)
if wanted == "mixed":
    a["position_ids"] = "I64", np.arange(5)
save(other, a, {"format": "pt"})
save(same, b)
]],
            weights,
            other,
            same,
            dtype
        )
        local narrow, wide = packed(other), packed(same)
        if narrow ~= wide then error(dtype .. " packs differently") end
        check.equal(wide == plain, dtype == "F64")
        works { "verify", odd, "--weights", other, "--isa", "scalar" }
    end
end

local function run(input, output, ...)
    return works { "run", odd, "--weights", weights, "--input", input, "--output", output, ... }
end

function test.run_treats_each_token_alone()
    local all, y_all = folder .. "/all.npy", folder .. "/y_all.npy"
    local function part(letter, count) return folder .. "/" .. letter .. "_" .. count .. ".npy" end
    local counts = { "0", "1", "3", "33" }
    program.python(
        [[
x = np.random.default_rng(3).standard_normal((67, 27)).astype("<f4")
np.save(sys.argv[1] + "/all.npy", x)
for count in sys.argv[2:]:
    np.save(sys.argv[1] + "/x_" + count + ".npy", x[67 - int(count):])
]],
        folder,
        table.unpack(counts)
    )
    check.matches(run(all, y_all, "--cflags", "-O1"), "^wrote [^\n]*/y_all.npy, 67 tokens, %w+\n$")
    for _, count in ipairs(counts) do
        run(part("x", count), part("y", count), "--cflags", "-O1")
    end
    check.equal(
        program.python(
            [[
y = np.load(sys.argv[1] + "/y_all.npy")
for count in sys.argv[2:]:
    part = np.load(sys.argv[1] + "/y_" + count + ".npy")
    print(part.shape, part.dtype, part.flags.c_contiguous, np.allclose(y[67 - len(part):], part, rtol=1e-5, atol=1e-6))
]],
            folder,
            table.unpack(counts)
        ),
        "(0, 19) float32 True True\n(1, 19) float32 True True\n(3, 19) float32 True True\n(33, 19) float32 True True\n"
    )
end

function test.run_reads_both_versions_of_npy()
    local one, two = folder .. "/v1.npy", folder .. "/v2.npy"
    program.python(
        [[
x = np.random.default_rng(4).standard_normal((5, 27)).astype("<f4")
for path, version in zip(sys.argv[1:], [(1, 0), (2, 0)]):
    with open(path, "wb") as file:
        np.lib.format.write_array(file, x, version)
]],
        one,
        two
    )
    run(one, folder .. "/y1.npy", "--isa", "scalar", "--cflags", "-O0")
    run(two, folder .. "/y2.npy", "--isa", "scalar", "--cflags", "-O0")
    check.equal(host.read(folder .. "/y1.npy"), host.read(folder .. "/y2.npy"))
end

function test.run_compares_with_what_is_expected()
    local x, y = folder .. "/compared.npy", folder .. "/expected.npy"
    program.python("np.save(sys.argv[1], np.random.default_rng(5).standard_normal((4, 27)).astype('<f4'))", x)
    run(x, y, "--isa", "scalar", "--cflags", "-O0")
    local words =
        { "run", odd, "--weights", weights, "--input", x, "--isa", "scalar", "--cflags", "-O0", "--expect" }
    local function compared(...)
        local given = { ... }
        return program.run(table.move(given, 1, #given, #words + 1, { table.unpack(words) }))
    end
    local function other(name) return folder .. "/other_" .. name .. ".npy" end
    program.python(
        [[
y = np.load(sys.argv[1])
near, nan = y.copy(), y.copy()
near[1] *= 1.001
near[2, 7] += 0.25
nan[3, 0] = np.nan
others = {"same": y, "wide": y.astype(float)[None], "deep": y.reshape(2, 2, -1), "near": near, "nan": nan,
          "rows": y[1:], "bad": y.astype("<i4")}
for name, value in others.items():
    np.save(sys.argv[2] % name, value)
]],
        y,
        other "%s"
    )
    -- What other frameworks write: float64, more dimensions, one.
    for _, name in ipairs { "same", "wide", "deep" } do
        local same = table.move({ other(name) }, 1, 1, #words + 1, { table.unpack(words) })
        check.matches(works(same), "^relative error 0 in row 0 of 4; largest difference 0 [^\n]*\n$")
    end
    local near = other "near"
    local wrong = compared(near)
    check.equal(wrong.status, 1)
    check.matches(
        wrong.output,
        "^relative error [%d.]+ in row 2 of 4; largest difference 0.25 in row 2, column 7 of 19: "
    )
    check.matches(
        wrong.errors,
        "^lookupc: %-%-tolerance: 1e%-05: the relative error of row 2 is [%d.]+; a checkpoint does not say these: "
            .. "score = %w+, projection.decay = [%d.]+, "
            .. "[^\n]*blocks stored %[b out%]%[b in%] %(no %-%-blocks%-in%-out%)\n$"
    )
    check.equal(compared(near, "--tolerance", "1").status, 0)
    local relative = tonumber(wrong.output:match "relative error ([%d.]+)")
    local wanted = program.python(
        "a, b = (np.load(p)[2].astype(float) for p in sys.argv[1:])\n"
            .. "print(np.linalg.norm(a - b) / np.linalg.norm(b))",
        y,
        near
    )
    check.near(relative, tonumber(wanted), 0.06 * relative)
    check.equal(compared(other "nan", "--tolerance", "1e300").status, 1)
    for _, row in ipairs {
        { "has rows × columns 3 × 19: must be 4 × 19", other "rows" },
        { "descr: '<i4': must be '<f4' or '<f8'", other "bad" },
        { "none.npy: ", "none.npy" },
        { "--tolerance: -1: must be", y, "--tolerance", "-1", status = 2 },
    } do
        -- Refused before a compiler is called: there is none.
        local given = table.move(row, 2, #row, #words + 1, { table.unpack(words) })
        table.move({ "--cc", "/bin/false" }, 1, 2, #given + 1, given)
        program.refuses(row.status or 1, row[1], given)
    end
end

-- The shape of the result is known before anything is compiled: `--cc` names no compiler.
function test.every_family_refuses_an_expected_file_of_another_shape_before_it_compiles()
    local x, expected, ids = folder .. "/rows.npy", folder .. "/other_shape.npy", folder .. "/rows.ids"
    program.python("np.save(sys.argv[1], np.zeros((7, 5), 'f4'))", expected)
    assert(host.write_file(ids, "2 1 0"))
    program.python("np.save(sys.argv[1], np.ones((3, 64), 'f4'))", x)
    for _, row in ipairs {
        { "tiny", "input", "3 × 64" },
        { "tiny", "input", "3 × 64", "--arithmetic", "integer" },
        { "tiny_skipless", "input", "3 × 64" },
        { "gpt_nano_sort", "ids", "3 × 3" },
    } do
        local name, input, shape = table.unpack(row, 1, 3)
        local model, checkpoint = "gen/models/" .. name .. ".lua", folder .. "/" .. name .. ".safetensors"
        works { "sample", model, "-o", checkpoint }
        local given = { "run", model, "--weights", checkpoint, "--" .. input, input == "ids" and ids or x }
        table.move({ "--expect", expected, "--cc", "/bin/false" }, 1, 4, #given + 1, given)
        table.move(row, 4, #row, #given + 1, given)
        refuses(1, expected .. ": has rows × columns 7 × 5: must be " .. shape, given)
    end
end

function test.instruction_sets_agree()
    local x, outputs = folder .. "/x.npy", {}
    program.python("np.save(sys.argv[1], np.random.default_rng(6).standard_normal((41, 27)).astype('<f4'))", x)
    for i, isa in ipairs(sets.here()) do
        outputs[i] = folder .. "/y_" .. isa .. ".npy"
        check.matches(run(x, outputs[i], "--isa", isa, "--cflags", "-O0"), ", " .. isa .. "\n$")
    end
    check.equal(
        program.python(
            [[
first = np.load(sys.argv[1])
least = np.linalg.norm(first, axis=1).min()
worst = max(np.linalg.norm(np.load(path) - first, axis=1).max() / least for path in sys.argv[1:])
print(worst <= 1e-5 or worst)
]],
            table.unpack(outputs)
        ),
        "True\n"
    )
end

function test.run_gives_what_verified_kernels_give()
    for _, cc in ipairs { "gcc", "clang" } do
        check.matches(
            works { "verify", odd, "--weights", weights, "--isa", "scalar", "--cc", cc, "--cflags", "-O1" },
            "\nscalar [^\n]* ok "
        )
        local x = folder .. "/cc.npy"
        program.python("np.save(sys.argv[1], np.random.default_rng(7).standard_normal((9, 27)).astype('<f4'))", x)
        run(x, folder .. "/y_" .. cc .. ".npy", "--isa", "scalar", "--cc", cc, "--cflags", "-O1")
    end
    check.equal(
        program.python(
            "print(np.allclose(np.load(sys.argv[1]), np.load(sys.argv[2]), rtol=1e-5, atol=1e-6))",
            folder .. "/y_gcc.npy",
            folder .. "/y_clang.npy"
        ),
        "True\n"
    )
end

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
    for _, row in ipairs(effort.turns(rows, effort.wrong_stride)) do
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

function test.compilers_that_fail()
    local function verify(...) return { "verify", odd, "--isa", "scalar", ... } end
    refuses(1, "no-such-compiler", verify("--cc", "no-such-compiler"))
    refuses(1, "false: exit status 1", verify("--cc", "false"))
    refuses(1, "gcc: exit status 1", verify("--cflags", "-fno-such-flag"))
end

-- What bench says does not depend on how fast its kernels are: they are compiled without optimisation.
local quick_bench = { "bench", tiny, "--isa", "scalar", "--cflags", "-O0", "--repetitions", "1" }

function test.bench_for_machines_and_as_a_page()
    local page = folder .. "/page.html"
    local words = with(quick_bench, "--batch", "1,3,200", "--html", page, "--json")
    local found = assert(json.decode(works(words)))
    for _, key in ipairs { "cpu", "isa", "compiler", "flags" } do
        check.equal(found.host[key] ~= nil and key, key)
    end
    check.equal(#found.results, 3)
    local r = found.results[2]
    check.equal(
        { r.model, r.batch, r.threads, r.isa, r.table_dtype, r.projection_dtype },
        { "tiny", 3, 1, "scalar", "f32", "f32" }
    )
    for _, value in ipairs {
        r.us_per_token,
        r.stages.project,
        r.stages.gather,
        r.dense_us_per_token,
        r.speedup,
        r.rel_err,
    } do
        check.equal(value > 0 and value < 1e6, true)
    end
    check.equal({ type(r.schedule), type(r.dense_library), math.type(r.code_flips) }, { "string", "string", "integer" })
    check.near(r.speedup, r.dense_us_per_token / r.us_per_token, 1e-6 * r.speedup)
    check.equal({ r.same_type, r.same_type_speedup, #r.rivals }, { "f32", r.speedup, 2 })
    check.equal(type(r.counts), "boolean")
    check.equal(r.counts and r.cpu_over_wall < 0.97, false)
    for name in ("fma_gflops l1_gbytes l2_gbytes l3_gbytes memory_gbytes random_rows_gbytes"):gmatch "%S+" do
        check.equal(found.limits[name] > 0 and found.limits[name] < 1e5, true)
    end
    check.near(r.limit_share, r.limit_us / r.us_per_token, 1e-6 * r.limit_share)
    check.equal(r.limit_us > 0, true)
    local text = program.page(page, 3)
    for _, name in ipairs { "tiny", "tokens a call", "GFLOP/s", "times as fast", "scalar", "share of limit" } do
        check.matches(text, name)
    end
end

function test.a_page_that_cannot_be_written()
    for path, fragment in pairs {
        [folder .. "/none/page.html"] = "there is no folder",
        [folder] = "must be a file",
    } do
        refuses(1, fragment, with(quick_bench, "--batch", "1", "--html", path))
    end
end


-- The fastest of the type or a wider one; each with its error, which is that of its type.
function test.bench_beside_rivals_of_the_same_type()
    local words = with(quick_bench, "--tables", "i8,bf16", "--batch", "1,40", "--json")
    local found = assert(json.decode(works(words)))
    local errors = { f32 = { 0, 1e-5 }, bf16 = { 5e-4, 2e-2 }, i8 = { 5e-3, 5e-2 } }
    for _, r in ipairs(found.results) do
        local best, known = nil, {}
        for _, rival in ipairs(r.rivals) do
            known[#known + 1] = rival.library .. " " .. rival.type
            check.near(rival.speedup, rival.us_per_token / r.us_per_token, 1e-6 * rival.speedup)
            local least, most = table.unpack(errors[rival.type])
            check.equal({ rival.type, rival.rel_err >= least, rival.rel_err <= most }, { rival.type, true, true })
            local takes = r.same_type == "i8" or rival.type ~= "i8"
            if takes and (not best or rival.us_per_token < best.us_per_token) then best = rival end
        end
        check.equal(r.same_type, r.table_dtype)
        check.equal(r.same_type_rival, best)
        check.equal(r.same_type_speedup, best.speedup)
        check.equal(r.speedup >= r.same_type_speedup, true)
        local bf16 = found.host.onednn_bf16 == "none" and {} or { "onednn bf16" }
        check.equal(known, { "openblas f32", "onednn f32", bf16[1] or "onednn i8", bf16[1] and "onednn i8" })
    end
end

function test.bench_beside_chosen_rivals()
    local words = with(quick_bench, "--batch", "1", "--tables", "i8", "--rivals")
    local text = works(with(words, "f32", "--projection", "bf16"))
    check.equal({ text:find("same type", 1, true) }, {})
    check.matches(text, "float32, projection in bf16, tables in i8, defaults for [%w-]+\n")
    check.matches(works(with(words, "f32", "--for", "skylake-x")), ", tables in i8, defaults for skylake%-x\n")
    check.matches(text, " x f32 ")
    local r = assert(json.decode(works(with(words, "same", "--json")))).results[1]
    check.equal({ r.same_type, r.speedup, r.dense_library, #r.rivals > 2 }, { "i8", nil, nil, true })
    refuses(2, '--rivals: "i8": must be one of same, f32', { "bench", tiny, "--rivals", "i8" })
    refuses(2, "--rivals", { "bench", "gen/models/kws.lua", "--arithmetic", "integer", "--rivals", "f32" })
end

-- All types of one run stand beside the same dense FFN, each with its own rows. Types of the projection combine with
-- those of the tables; half the bytes are twice the FLOP a byte.
function test.bench_of_several_types()
    local page = folder .. "/types.html"
    local words = with(quick_bench, "--projection", "f32,bf16", "--tables", "i8,f32", "--batch", "3,40")
    local results, seen = assert(json.decode(works(with(words, "--json", "--html", page)))).results, {}
    for i, r in ipairs(results) do
        seen[i] = r.projection_dtype .. " " .. r.table_dtype .. " " .. r.batch
        check.near(
            r.gather_gbytes,
            8 * 64 * (r.table_dtype == "i8" and 1 or 4) * 1e-3 / r.stages.gather,
            1e-6 * r.gather_gbytes
        )
        check.equal(r.random_rows_gbytes > 0, true)
        if r.projection_dtype == "f32" then
            local i8 = r.table_dtype == "i8"
            check.equal({ r.rel_err > 1e-3, r.rel_err < 2e-2, r.same_type }, { i8, true, r.table_dtype })
        end
    end
    check.equal(seen, {
        "f32 i8 3",
        "f32 i8 40",
        "f32 f32 3",
        "f32 f32 40",
        "bf16 i8 3",
        "bf16 i8 40",
        "bf16 f32 3",
        "bf16 f32 40",
    })
    check.equal(results[1].dense_us_per_token, results[3].dense_us_per_token)
    check.equal(results[1].random_rows_gbytes ~= results[3].random_rows_gbytes, true)
    local flop = results[1].flop_per_byte.project
    check.near(results[5].flop_per_byte.project, 2 * flop, 1e-9 * 2 * flop)
    check.matches(assert(host.read(page)), "tables i8, f32, projection f32, bf16,")
    local text = works(words)
    check.matches(text, " x same type .* x f32 ")
    check.matches(text, "\nisa     projection tables tokens ")
    check.matches(text, "\nscalar  bf16       i8          3 ")
    check.matches(text, "random rows of i8 %d+, of f32 %d+ GB/s")
end

-- A column for the types that differ.
function test.bench_of_one_projection()
    local page = folder .. "/tables.html"
    local words = with(quick_bench, "--batch", "2", "--html", page)
    local text = works(with(words, "--tables", "i8,f32"))
    check.matches(text, "\nisa     tables tokens ")
    check.matches(text, "\nscalar  i8          2 ")
    check.matches(assert(host.read(page)), "tables i8, f32,")
end

-- While it runs, lookupc and its measuring process are built again, as the compiler of the emitted code knows.
function test.bench_of_a_program_that_is_replaced()
    if not effort.full then return end -- tests/unit/process_test.lua has its heart
    local there = program.folder()
    local script = [=[
set -e
cp "$(dirname "$1")"/lookupc{,-measure} "$2/"
cat >"$2/cc" <<'END'
#!/bin/bash
cd "${0%/*}"
[[ ! -s lookupc ]] || { rm lookupc lookupc-measure; : >lookupc; : >lookupc-measure; }
cd "$OLDPWD"
exec gcc "$@"
END
chmod +x "$2/cc"
export XDG_CACHE_HOME="$2"
"$2/lookupc" bench gen/models/tiny.lua --isa scalar --batch 1 --repetitions 1 --rivals f32 --cc "$2/cc"
[[ ! -s $2/lookupc ]]
]=]
    local result = assert(process.run({ "bash", "-c", script, "bash", check.lookupc, there }, { timeout = 100 }))
    check.equal(result.status, 0)
    check.matches(result.output, "^tiny on ")
end

function test.bench_of_several_threads()
    local words = with(quick_bench, "--threads", "2", "--batch", "1,100")
    local found = assert(json.decode(works(with(words, "--json"))))
    for _, r in ipairs(found.results) do
        check.equal({ r.threads, r.speedup > 0, r.cpu_over_wall > 0 }, { 2, true, true })
    end
    check.matches(found.host.flags, "%-fopenmp %-DTINY_OPENMP=2")
    check.matches(works(words), "^tiny on [^\n]*, 2 threads, .*wall times, FFN and dense FFN on up to 2 threads")
end

function test.verify_of_several_threads()
    local words = { "verify", tiny, "--cflags", "-O1" }
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

function test.schedules_are_legal_choices()
    local found = assert(json.decode(works { "schedules", odd, "--isa", "scalar", "--json" }))
    for _, choice in ipairs(effort.turns(found.sets[1].choices, effort.choices_stride)) do
        local last = choice.values[#choice.values]
        local bundle = program.folder()
        works { "emit", odd, "-o", bundle, "--isa", "scalar", "--schedule", choice.key .. "=" .. last }
        works { "check", bundle }
    end
end

-- Also those of values and of options that exclude each other; unknown and missing words are above.
function test.usage_errors_have_one_status()
    for _, words in ipairs {
        {},
        { "tuned", "forget" },
        { "plan", tiny, "--isa", "mmx" },
        { "plan", tiny, "--for", "z80" },
        { "plan", tiny, "--schedule", "gather.group=0" },
        { "plan", tiny, "--tuned", "t.lua", "--schedule", "gather.group=1" },
        { "completion", "tcsh" },
        { "schema" },
        { "tune", tiny, "-o", "t.lua", "--time", "soon" },
        { "bench", tiny, "--repetitions", "0" },
        { "verify", tiny, "--threads", "0" },
        { "train", tiny, "--text", tiny, "-o", "w.safetensors", "--steps", "-1" },
        { "emit", tiny, "-o", "there", "--web", "--cpp" },
    } do
        local result = program.run(words)
        if result.status ~= 2 then error(table.concat(words, " ") .. ": " .. result.status .. ": " .. result.errors) end
    end
    refuses(1, "absent.lua: No such file", { "plan", "absent.lua" }) -- a file, not the line
end

function test.nothing_is_left_in_the_folder_of_temporary_files()
    local there = program.folder()
    works({ "verify", odd, "--isa", "scalar" }, { env = { TMPDIR = there } })
    check.equal(host.list(there), {})
end

return test
