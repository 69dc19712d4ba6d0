-- Whole models give the same bits with every number of threads, in every command that calls them.
local check = require "tests.support.check"
local effort = require "tests.effort"
local host = require "host"
local json = require "json"
local program = require "tests.support.program"

local test = {}
local folder = program.folder()
local optimise = "-O0" -- compiling takes longer than what is compiled

-- { path, weights } of the model `name`: `text` are its keys beside those that all share.
local function model(name, text)
    local path = program.model(
        folder,
        name,
        "return { name = '"
            .. name
            .. "', d = 128, heads = 4, vocab = 256, skip = true, norm = { kind = 'layernorm' }, "
            .. text
            .. " }"
    )
    local weights = folder .. "/" .. name .. ".safetensors"
    program.works { "sample", path, "-o", weights }
    return { path = path, weights = weights }
end

local dense = "ffn = { kind = 'mlp', f = 512, activation = 'gelu' }, "
local looks_up = "ffn = { kind = 'lookup', h = 24, tau = 5, projection = { kind = 'dense' }, score = 'gelu' }, "

-- The file of so many ids.
local function ids_of(count)
    local list, path = {}, folder .. "/" .. count
    for i = 1, count do
        list[i] = i * i % 256
    end
    assert(host.write_file(path, table.concat(list, " ")))
    return path
end

-- The rows that `run` writes for `count` ids with so many threads.
local function rows(m, count, threads, ...)
    local y = folder .. "/y.npy"
    local words = { "run", m.path, "--weights", m.weights, "--ids", ids_of(count), "--output", y }
    for _, word in ipairs { "--cflags", optimise, "--threads", tostring(threads), ... } do
        words[#words + 1] = word
    end
    program.works(words)
    return assert(host.read(y))
end

-- counts: of ids, so that a chunk is shared, several are, and kernels for few tokens are taken.
local function same_bits(m, counts, ...)
    for _, count in ipairs(counts) do
        local one = rows(m, count, 1, ...)
        for _, threads in ipairs(effort.full "transformers" and { 2, 3, 7 } or { 3 }) do
            if rows(m, count, threads, ...) ~= one then
                error(string.format("%s, %d ids: other bits with %d threads", m.path, count, threads))
            end
        end
    end
end

function test.a_decoder_gives_the_same_bits()
    local text = "layers = 2, attention = { context = 130, rope = {} }, output = { head = {} }, embedding = {}, "
    local counts = effort.some("transformers", { 101, 1, 25, 130 }, 1)
    same_bits(model("dense", text .. dense .. "checkpoint = 'llama'"), counts)
    if not effort.full "transformers" then return end
    local m = model("looks_up", text .. looks_up .. "checkpoint = 'llama'")
    same_bits(m, { 1, 25, 101, 130 }, "--type", "i8")
    same_bits(m, { 29, 101 }, "--schedule", "chunk.tokens=48")
end

-- Tokens enter the ring in their order.
function test.a_window_gives_the_same_bits()
    local m = model(
        "ring",
        "layers = { {}, { ffn = { kind = 'mlp', f = 640, activation = 'relu' } } }, attention = { context = 130, \z
            window = 9, rope = {} }, output = { head = {} }, embedding = {}, checkpoint = 'llama', "
            .. dense
    )
    same_bits(m, { 130 }, "--cache", "f16", "--schedule", "chunk.tokens=24")
end

function test.an_encoder_gives_the_same_bits()
    local m = model(
        "rows",
        "layers = 2, attention = { context = 200, causal = false }, checkpoint = 'roberta', embedding = { \z
            sinusoidal = {} }, output = { head = { bias = true }, dense = { width = 96, activation = 'gelu' } }, "
            .. looks_up
    )
    same_bits(m, { 200 }, "--schedule", "chunk.tokens=48")
    if effort.full "transformers" then same_bits(m, { 5, 59, 97, 200 }, "--type", "bf16") end
end

-- One block gives sums over the tokens of a sentence, parts of which threads may share, and several give rows.
function test.batches_give_the_same_bits()
    local texts = {}
    for i = 1, 40 do
        texts[i] = ("word "):rep(i % 9 + 1)
    end
    for _, layers in ipairs { 1, 2 } do
        local m = model(
            "sentences_" .. layers,
            "layers = "
                .. layers
                .. ", attention = { context = 64, causal = false }, checkpoint = 'roberta', embedding = { \z
                    sinusoidal = {} }, output = { pool = 'mean', unit = true }, tokenizer = { kind = 'bytes' }, "
                .. dense
        )
        local found = {}
        for i, threads in ipairs { "1", "4" } do
            local words = { "embed", m.path, "--weights", m.weights, "--cflags", optimise, "-o", folder .. "/v.npy" }
            table.move({ "--threads", threads, table.unpack(texts) }, 1, 2 + #texts, #words + 1, words)
            program.works(words)
            found[i] = assert(host.read(folder .. "/v.npy"))
        end
        check.equal(found[1] == found[2], true)
    end
end

function test.verify_of_several_threads()
    local path = "gen/models/gpt_nano_sort.lua"
    local words = { "verify", path, "--threads", "3", "--cflags", optimise, "--isa", "scalar", "--json" }
    local verified = assert(json.decode(program.works(words)))
    check.equal({ verified.ok, verified.threads }, { true, 3 })
    program.refuses(2, "--threads: 0: must be an integer from 1 to 1024", { "verify", path, "--threads", "0" })
end

return test
