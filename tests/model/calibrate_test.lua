-- pack --calibrate of whole models: each lookup FFN's projection is calibrated for what the float model gives it, as
-- pack --calibrate of that LookupFFN alone does for the same rows.
local activations = require "harness.convert.activations"
local check = require "tests.support.check"
local effort = require "tests.effort"
local host = require "host"
local model_file = require "gen.families.model_file"
local npy = require "npy"
local program = require "tests.support.program"
local request = require "gen.request.request"
local runnable = require "harness.base.runnable"

local test = {}
local folder = program.folder()
local works, refuses = program.works, program.refuses

local ffn = "h = 8, tau = 4, projection = { kind = 'bh4', block = 16, decay = 0.7 }, score = 'gelu'"
local sets = runnable.sets(nil, {})

local function source(causal)
    return ([[
return { name = "m", d = 32, heads = 2, layers = 2, vocab = 257, positions = 64, skip = true, checkpoint = "gpt2",
    norm = { kind = "layernorm" }, embedding = {}, attention = { context = 64, causal = CAUSAL },
    tokenizer = { kind = "bytes" }, ffn = { kind = "lookup", FFN } }
]]):gsub("CAUSAL", tostring(causal)):gsub("FFN", ffn)
end
local alone = program.model(folder, "alone", "return { name = 'alone', d = 32, " .. ffn .. " }")
local lines = {}
for i = 1, 90 do
    lines[i] = ("line %d of %d: %s"):format(i, i * i, ("abcdefgh"):rep(i % 5))
end
local text = folder .. "/text.txt"
assert(host.write_file(text, table.concat(lines, "\n") .. "\n"))

-- The projection in the blob of the model of the file `path`, and so many bytes of its scales: what the packer fills
-- the section, or the piece of one, called `name` with.
local function projection_of(path, blob, name, scales_bytes)
    local bytes, p = assert(host.read(blob)), request.plan(path, { sets[#sets] }, { projection = "i8" })
    for _, part in ipairs(p.pieces or p.sections) do
        if part.name == name then
            local own = bytes:sub(part.at + 1, part.at + part.elements * part.dtype.bytes)
            return own, bytes:sub(part.scales + 1, part.scales + scales_bytes)
        end
    end
end

-- What the FFN of layer number `layer` from 0 of the model of the file `path` reads of the sequences: by the emitted
-- code of a model that ends there.
local function inputs_of(path, weights, layer, sequences)
    local m = model_file.load(path)
    local p = activations.plan_until(m, activations.blocks(m), layer + 1, { sets[#sets] }, path)
    local filled = folder .. "/until.safetensors" -- the FFN that is cut off has tensors of its own
    local wanted = {}
    for i, tensor in ipairs(activations.tensors(p)) do
        wanted[i] = tensor.name .. "=" .. table.concat(tensor.shape, ",")
    end
    program.python(
        [[
given, tensors = load(sys.argv[1]), {}
for item in sys.argv[3:]:
    name, shape = item.split("=")
    shape = [int(n) for n in shape.split(",")]
    fits = name in given and list(given[name][1].shape) == shape
    tensors[name] = given[name] if fits else ("F32", np.zeros(shape, "<f4"))
save(sys.argv[2], tensors)
]],
        weights,
        filled,
        table.unpack(wanted)
    )
    local model = activations.open(p, filled, { cc = "gcc", cflags = "-O0" })
    return activations.states(p, model, sequences)
end

-- Packs the whole model and each LookupFFN alone.
local function check_layers(causal, sequences)
    local path, weights = program.model(folder, "m", source(causal)), folder .. "/w.safetensors"
    works { "sample", path, "-o", weights }
    local blob, other = folder .. "/m.bin", folder .. "/alone.bin"
    local pack = { "pack", path, "--weights", weights, "--projection", "i8", "-o", blob, "--cflags", "-O0" }
    table.move({ "--calibrate", text }, 1, 2, #pack + 1, pack)
    local said = works(pack)
    for layer = 0, 1 do
        local rows = inputs_of(path, weights, layer, sequences)
        local x = folder .. "/x.npy"
        assert(npy.write(x, 32, rows))
        local prefix = ("transformer.h.%d.mlp."):format(layer)
        local words = { "pack", alone, "--weights", weights, "--prefix", prefix, "--projection", "i8" }
        table.move({ "--calibrate", x, "-o", other }, 1, 4, #words + 1, words)
        local own = works(words)
        local wanted, wanted_scales = projection_of(alone, other, "projection", 4 * 4 * 32)
        local found, scales = projection_of(path, blob, "lookup_projection of layer " .. layer, 4 * 4 * 32)
        check.equal({ found:sub(1, #wanted) == wanted, scales == wanted_scales }, { true, true })
        local figures = assert(own:match "; (of [^\n]+)\n")
        check.equal(said:find("\nlayer " .. layer .. ": " .. figures .. "\n", 1, true) ~= nil, true)
    end
end

local kinds = {}

function kinds.decoder()
    local bytes, windows = { assert(host.read(text)):byte(1, -1) }, {}
    for first = 1, #bytes, 64 do
        windows[#windows + 1] = table.move(bytes, first, math.min(first + 63, #bytes), 1, {})
    end
    check_layers(true, windows)
end

-- Each line is a sequence of its own.
function kinds.encoder()
    local list = {}
    for i, line in ipairs(lines) do
        list[i] = table.move({ line:byte(1, -1) }, 1, math.min(#line, 64), 1, {})
    end
    check_layers(false, list)
end

-- Blocks alone take rows of their input.
function kinds.blocks()
    local path = program.model(
        folder,
        "blocks",
        "return { name = 'blocks', d = 32, heads = 2, layers = 2, vocab = 9, norm = { kind = 'rmsnorm' }, skip = true, "
            .. "attention = { context = 300, rope = {} }, ffn = { kind = 'lookup', "
            .. ffn
            .. " } }"
    )
    local weights, blob, x = folder .. "/blocks.safetensors", folder .. "/blocks.bin", folder .. "/rows.npy"
    works { "sample", path, "-o", weights }
    program.python("np.save(sys.argv[1], np.random.default_rng(1).standard_normal((301, 32)).astype('<f4')[1:])", x)
    local words = { "pack", path, "--weights", weights, "--projection", "i8", "-o", blob, "--cflags", "-O0" }
    works(words)
    local plain = assert(host.read(blob))
    table.move({ "--calibrate", x }, 1, 2, #words + 1, words)
    local said = works(words)
    check.equal(assert(host.read(blob)) == plain, false)
    local form = "\nlayer %d: of 75 rows held back z is off by ([%%d.]+) and "
        .. "[^\n]*, calibrated ([%%d.]+) and [^\n]* %%%%\n"
    for layer = 0, 1 do
        local nearest, calibrated = said:match(form:format(layer))
        check.equal(tonumber(calibrated) < tonumber(nearest), true)
    end
end

function test.every_lookup_ffn_is_calibrated_for_what_it_reads()
    for _, name in ipairs(effort.some("transformers", { "encoder", "decoder", "blocks" }, 1)) do
        kinds[name]()
    end
end

function test.refusals_are_one_line()
    local path, blob = program.model(folder, "m", source(true)), folder .. "/none.bin"
    works { "sample", path, "-o", folder .. "/w.safetensors" }
    local function refused(line, ...)
        local status = line:find "^%-%-" and 2 or 1
        refuses(status, line, { "pack", path, "--weights", folder .. "/w.safetensors", "-o", blob, ... })
    end
    refused("--calibrate: " .. text .. ": is for LookupFFNs with --projection i8", "--calibrate", text)
    refused("none.ids: No such file", "--calibrate-ids", "none.ids", "--projection", "i8")
    refused('": must be an integer', "--calibrate-ids", path, "--projection", "i8")
    refused("none.txt: No such file", "--calibrate", "none.txt", "--projection", "i8")
    local few = folder .. "/few.ids"
    assert(host.write_file(few, "1 2 3"))
    refused(few .. ": 3 tokens: calibration takes at least 64", "--calibrate-ids", few, "--projection", "i8")
    check.equal(host.kind(blob), nil)
end

return test
