-- bench takes --weights, --threads and --html for every family, and several models in one call.
local changed = require "tests.support.changed"
local check = require "tests.support.check"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local program = require "tests.support.program"

local test = {}
local folder = program.folder()

local shape = "d = 16, heads = 2, vocab = 20, checkpoint = 'llama', "
local parts = "attention = { context = 8 }, ffn = { kind = 'mlp', f = 16, activation = 'relu' }"

-- What they are called, the model, options of their own, and the title of the page.
local families = {
    { "lookup", "gen/models/tiny.lua", { "--batch", "1" }, "tiny: LookupFFN against a dense FFN" },
    {
        "integer",
        "gen/models/tiny.lua",
        { "--batch", "1", "--arithmetic", "integer" },
        "tiny: LookupFFN in integers",
    },
    {
        "transformer",
        program.model(folder, "blocks", "return { name = 'blocks', layers = 1, " .. shape .. parts .. " }"),
        { "--batch", "1" },
        "blocks: the time of a transformer&#39;s block",
    },
    {
        "whole",
        program.model(
            folder,
            "whole",
            "return { name = 'whole', layers = 1, embedding = {}, skip = true, output = { head = {} }, "
                .. shape
                .. parts
                .. " }"
        ),
        { "--lengths", "2" },
        "whole: the time of a whole model",
    },
}

local function bench(path, own, ...)
    local words = { "bench", path, "--isa", "scalar", "--repetitions", "1", "--cflags", "-O0" }
    return program.with(program.with(words, table.unpack(own)), ...)
end

function test.weights_threads_and_a_page_of_every_family()
    for _, row in ipairs(effort.some("published", families, 1)) do
        local name, path, own, title = table.unpack(row)
        local weights, page = folder .. "/" .. name .. ".safetensors", folder .. "/" .. name .. ".html"
        program.works { "sample", path, "-o", weights }
        local words = bench(path, own, "--weights", weights, "--threads", "2", "--html", page, "--json")
        local found = json.decode(program.works(words))
        for _, r in ipairs(found.results) do
            check.equal({ name, r.threads, r.us_per_token > 0, type(r.counts) }, { name, 2, true, "boolean" })
        end
        check.equal({ type(found.host.cpu), #found.results > 0 }, { "string", true })
        local text = assert(host.read(page))
        check.matches(text, "<h1>" .. title .. "</h1>")
        -- what is printed can be kept: report knows all keys, and draws what bench does
        local kept = folder .. "/kept.json"
        assert(host.write_file(kept, assert(json.encode(found))))
        local shown = program.works { "report", kept, kept, "--html", page }
        check.matches(shown, "\n%*%*[%a ]+%.%*%* %d%d%d%d%-%d%d%-%d%d, [^\n]*, 2 threads[.,]")
        check.matches(shown, "\n| model | isa | .*\n| " .. found.results[1].model .. "[ *]* | scalar | ")
        program.page(page, 2 * select(2, text:gsub("<svg", "")))
        -- a checkpoint that is another's is refused, so the one above was read
        local other = folder .. "/other.safetensors"
        program.works { "sample", "gen/models/kws.lua", "-o", other }
        program.refuses(1, other, bench(path, own, "--weights", other))
        program.refuses(2, "--threads: 0: must be an integer from 1 to 1024", bench(path, own, "--threads", "0"))
    end
end

-- One table each, in the order given; the JSON of several is a list of what one alone prints.
function test.several_models()
    local page, tiny, kws = folder .. "/several.html", "gen/models/tiny.lua", "gen/models/kws.lua"
    local own = { "--batch", "1", "--arithmetic", "integer", kws }
    check.matches(
        program.works(bench(tiny, own, "--html", page)),
        "^tiny on [^\n]*, integers\nisa .*\n\nkws on [^\n]*, integers\nisa "
    )
    check.matches(assert(host.read(page)), "<h1>2 models, timed</h1>.*<h1>tiny: .*</h1>.*<h1>kws: ")
    local found = json.decode(program.works(bench(tiny, own, "--json"))).models
    local names = {}
    for i, of in ipairs(found) do
        names[i] = of.results[1].model
        check.equal(type(of.host.cpu), "string")
    end
    check.equal(names, { "tiny", "kws" })
    program.refuses(2, "--weights: w: is of one model, not of 2", bench(tiny, own, "--weights", "w"))
    -- nothing is timed before all are known to be right
    program.refuses(1, "none.lua: No such file", bench(tiny, { "none.lua" }))
end

-- A result as bench prints it, and what holds it, with these changes.
local function kept(changes, of_host, more)
    local facts = { cpu = "a|b", date = "2026-11-27", compiler = "gcc 12", flags = "-O2" }
    local result = { model = "m", isa = "avx2", batch = 8, us_per_token = 2.5, counts = true }
    result.projection_dtype, result.table_dtype = "i8", "i8"
    return changed({ host = changed(facts, of_host), results = { changed(result, changes) } }, more)
end

local function write_kept(name, value)
    local path = folder .. "/" .. name
    assert(host.write_file(path, type(value) == "string" and value or assert(json.encode(value))))
    return path
end

-- Runs with one setting are in one table; limits that differ are a range, and a star stands for what does not count.
function test.report_prints_a_section_for_each_file_and_a_table_for_each_setting()
    local slower = { counts = false, us_per_token = 3, model = "n" }
    local runs = {
        kept({ again_ratio = 0.95 }, nil, { limits = { fma_gflops = 90 } }),
        { models = { kept(slower, nil, { limits = { fma_gflops = 95.2 } }) } },
        kept({ batch = 64 }, { date = "2026-11-28" }, { converted = "from a page" }),
    }
    local path = write_kept("a-cpu-2.json", runs)
    check.equal(program.works { "report", path }, table.concat({
        "# Results",
        "",
        "## A Cpu 2",
        "",
        "**LookupFFNs.** 2026-11-27, a|b, gcc 12 -O2, one thread. Limits of the core: FMA 90 to 95 GFLOP/s. \z
            Measured twice: at most 5.0 % apart.",
        "",
        "| model | isa | projection | tables | tokens | us/token |",
        "| --- | --- | --- | --- | --: | --: |",
        "| m | avx2 | i8 | i8 | 8 | 2.50 |",
        "| n * | avx2 | i8 | i8 | 8 | 3.00 |",
        "",
        "**LookupFFNs.** 2026-11-28, a|b, gcc 12 -O2, one thread. Converted from a page.",
        "",
        "| model | isa | projection | tables | tokens | us/token |",
        "| --- | --- | --- | --- | --: | --: |",
        "| m | avx2 | i8 | i8 | 64 | 2.50 |",
        "",
    }, "\n"))
    write_kept("method.md", "# How\n\nBy hand.\n\n")
    check.matches(program.works { "report", path, path }, "^# How\n\nBy hand%.\n\n## A Cpu 2\n.*\n\n## A Cpu 2\n")
end

function test.report_refuses_what_bench_does_not_print()
    for said, value in pairs {
        ["1:1: string or "] = "{",
        [" must be what bench --json prints"] = "[]",
        [' 2.results.1.us_per_tokn = 1: unknown key; did you mean "us_per_token"?'] = {
            kept {},
            kept { us_per_tokn = 1 },
        },
        [" results.1.us_per_token = null: must be a number"] = kept { us_per_token = json.null },
        [' results.1.batch = "8": must be an integer from 0 to '] = kept { batch = "8" },
        [" results.1.stages.project: required key is missing"] = kept { stages = { gather = 1 } },
        [" results.1.rivals.1.libary = "] = kept { rivals = { { libary = "onednn" } } },
        [' host.date = "today": must be a day such as "2026-11-27"'] = kept({}, { date = "today" }),
        [' host.cpu = "a\\nb": must be text on a line'] = kept({}, { cpu = "a\nb" }),
        [" results: must be results of bench, which the first one is not"] = kept({}, nil, { results = { {} } }),
        [' models.1 = "a": must be an object'] = { models = { "a" } },
        [" limits.l2_gbytes = true: must be a number"] = kept({}, nil, { limits = { l2_gbytes = true } }),
    } do
        local path = write_kept("bad.json", value)
        program.refuses(1, path .. ":" .. said, { "report", path })
    end
    program.refuses(1, "none.json: No such file", { "report", "none.json" })
    program.refuses(2, "FILE", { "report" })
    local good = write_kept("good.json", kept())
    program.refuses(1, "--html: " .. good, { "report", good, "--html", good })
end

return test
