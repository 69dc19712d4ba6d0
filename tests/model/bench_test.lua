-- bench of a whole model times every length that is asked for, by stage and beside the dense twin, its JSON has the
-- keys that docs/json.md lists, and a model that is wrong is not timed.
local check = require "tests.support.check"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"

local test = {}
local folder = program.folder()

local lookup =
    "{ kind = 'lookup', h = 4, tau = 4, projection = { kind = 'bh4', block = 16, decay = 0.7 }, score = 'gelu' }"

local function model(name, text)
    return program.model(
        folder,
        name,
        "return { name = '"
            .. name
            .. "', d = 32, heads = 2, skip = true, vocab = 50, embedding = {}, norm = { kind = 'layernorm' }, "
            .. text
            .. " }"
    )
end

local function encoder(name)
    return model(
        name,
        "layers = 2, attention = { causal = false, context = 40 }, positions = 40, checkpoint = 'lookupffn', \z
            output = { norm = { kind = 'layernorm' }, head = {} }, ffn = " .. lookup
    )
end

local function bench(path, ...)
    return { "bench", path, "--cflags", "-O0", "--isa", "scalar", "--repetitions", "1", ... }
end

local function is_stages(stages)
    for _, name in ipairs { "embedding", "products", "attention", "ffn", "head" } do
        check.equal(math.type(stages[name]), "float", name)
    end
end

function test.encoders_beside_their_dense_twin()
    local weights = folder .. "/encoder.safetensors"
    local path = encoder "encoder"
    program.works { "sample", path, "-o", weights }
    local found = json.decode(program.works(bench(path, "--lengths", "40", "--json", "--weights", weights)))
    local rows = {}
    for i, r in ipairs(found.results) do
        rows[i] = { r.call, r.tokens, r.sequences, r.position, r.type, r.isa, r.cache }
        is_stages(r.stages)
        check.near(r.us_per_token * r.tokens, r.us_per_sequence, 1e-6 * r.us_per_sequence)
        check.near(r.speedup, r.dense.us_per_sequence / r.us_per_sequence, 1e-6 * r.speedup)
        check.near(r.body_speedup, r.dense.body_us_per_sequence / r.body_us_per_sequence, 1e-6 * r.body_speedup)
        check.equal({ r.rel_err < 1e-5, r.dense.rel_err < 1e-5, type(r.counts) }, { true, true, "boolean" })
        check.equal({ r.model, r.cpu_over_wall > 0 }, { "encoder", true })
        check.equal(math.type(r.stages_share), "float") -- of differences of times, which noise may make negative
        check.equal(math.type(r.dense.ffn), "float")
        check.equal(r.again_ratio ~= nil, i == #found.results)
    end
    check.equal(rows, {
        { "encode", 40, 1, 0, "f32", "scalar", "f32" },
        { "encode", 40, 13, 0, "f32", "scalar", "f32" },
    })
    check.equal(found.host.cpu ~= nil, true)
end

function test.decoders_prefill_and_step()
    local path = model(
        "decoder",
        "layers = { { d_in = 32 } }, attention = { context = 20 }, checkpoint = 'llama', tied = true, \z
            output = { norm = { kind = 'layernorm' }, head = {} }, ffn = { kind = 'glu', f = 48, activation = 'silu' }"
    )
    local page = folder .. "/page.html"
    local text = program.works(bench(path, "--type", "i8", "--html", page, "--threads", "2"))
    check.matches(text, "medians of interleaved wall times")
    check.matches(assert(host.read(page)), "<title>decoder: the time of a whole model</title>")
    check.matches(assert(host.read(page)), ">prefill</td>")
    check.matches(text, "^decoder on [^\n]*, up to 2 threads\nisa     type  call    tokens position us/sequence ")
    check.matches(text, "\nscalar  i8    prefill     16        %- ")
    check.matches(text, "\nscalar  i8    step         1        0 ")
    check.matches(text, "\nscalar  i8    step         1       19 ")
    check.matches(text, "\nby stage, us/sequence\n[^\n]* embedding  products attention       FFN      head together\n")
    check.matches(text, "\nA/A control: the last call measured twice ")
end

-- A window has no end: the context says where a step is timed.
function test.windows()
    local path = model(
        "windowed",
        "layers = 1, attention = { context = 20, window = 5, rope = {} }, checkpoint = 'llama', \z
            output = { head = {} }, ffn = { kind = 'mlp', f = 48, activation = 'gelu' }"
    )
    local found = json.decode(program.works(bench(path, "--lengths", "20", "--json")))
    check.equal({ found.results[1].tokens, found.results[2].position, found.results[3].position }, { 20, 0, 19 })
    program.refuses(2, '--lengths: "21": must be integers from 1 to the context, 20', bench(path, "--lengths", "21"))
end

-- Without its blocks a model has no map from the width of one input to that of the next.
function test.blocks_of_other_widths_without_skip_connections()
    local path = program.model(
        folder,
        "widening",
        "return { name = 'widening', d = 32, heads = 4, vocab = 50, norm = { kind = 'rmsnorm' }, \z
            attention = { context = 64 }, embedding = {}, output = { head = {} }, layers = { { d = 512, d_in = 16 }, \z
            { d_in = 512, ffn = { kind = 'lookup', h = 4, tau = 4 } } }, \z
            ffn = { kind = 'glu', f = 64, activation = 'silu' } }"
    )
    local found = json.decode(program.works(bench(path, "--lengths", "8", "--json")))
    is_stages(found.results[1].stages)
end

function test.what_cannot_be_timed()
    local path = encoder "refused"
    program.refuses(2, '--lengths: "41": must be integers from 1 to the context, 40', bench(path, "--lengths", "8,41"))
    program.refuses(2, '--lengths: "": must be integers from 1 to the context, 40', bench(path, "--lengths", "8,"))
    program.refuses(2, "--batch: 8: is for blocks and FFNs; whole models take --lengths", bench(path, "--batch", "8"))
    program.refuses(2, "--threads: 0: must be an integer from 1 to 1024", bench(path, "--threads", "0"))
    program.refuses(
        2,
        "--lengths: 8: is for a whole model, not for a LookupFFN",
        bench("gen/models/tiny.lua", "--lengths", "8")
    )
end

function test.wrong_models_are_not_timed()
    local tree, path = program.folder(), "templates/model/blocks/product.c"
    for _, part in ipairs { "commands", "gen", "harness", "templates", "LICENSE" } do
        assert(process.run({ "cp", "-r", part, tree .. "/" .. part }).status == 0)
    end
    local text = assert(host.read(path))
    local wrong, count = text:gsub('isa%.add%("sums", "offsets"%)', 'isa.mul("sums", "offsets")')
    check.equal(count > 0, true)
    assert(host.write_file(tree .. "/" .. path, wrong))
    local result = program.run { "--tree", tree, table.unpack(bench(encoder "wrong", "--lengths", "8")) }
    check.equal({ result.status, result.output }, { 1, "" })
    check.matches(
        result.errors,
        "wrong.lua: wrong fails verification: encode: relative error [^\n]*: nothing was timed"
    )
end

return test
