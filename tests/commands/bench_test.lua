-- bench takes --weights, --threads and --html for every family, and several models in one call.
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
    local words = { "bench", path, "--isa", "scalar", "--repetitions", "1", "--cflags", "-O1" }
    table.move(own, 1, #own, #words + 1, words)
    return table.move({ ... }, 1, select("#", ...), #words + 1, words)
end

function test.weights_threads_and_a_page_of_every_family()
    for _, row in ipairs(effort.turns(families, effort.bench_stride)) do
        local name, path, own, title = table.unpack(row)
        local weights, page = folder .. "/" .. name .. ".safetensors", folder .. "/" .. name .. ".html"
        program.works { "sample", path, "-o", weights }
        local words = bench(path, own, "--weights", weights, "--threads", "2", "--html", page, "--json")
        local found = json.decode(program.works(words))
        for _, r in ipairs(found.results) do
            check.equal({ name, r.threads, r.us_per_token > 0, type(r.counts) }, { name, 2, true, "boolean" })
        end
        check.equal({ type(found.host.cpu), #found.results > 0 }, { "string", true })
        check.matches(assert(host.read(page)), "<h1>" .. title .. "</h1>")
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

return test
