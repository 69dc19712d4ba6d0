-- Checkpoints that sample writes, quantise rounds and pack reads.
local check = require "tests.support.check"
local host = require "host"
local odd_ffn = require "tests.support.odd_ffn"
local process = require "process"
local program = require "tests.support.program"

local works, refuses = program.works, program.refuses
local test = {}

local folder = program.folder()
local tiny = "gen/models/tiny.lua"
local odd, weights, packed = odd_ffn.model, odd_ffn.weights, odd_ffn.packed
local plain = packed(weights)

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
    local said = works { "pack", odd, "--weights", small, "--tables", "i8", "-o", folder .. "/odd.bin" }
    check.matches(said, "tables in i8, relative error 0\n") -- behind a factor 1 / h that no float is, too
    works { "verify", odd, "--weights", small, "--tables", "i8", "--isa", "scalar" }
    refuses(1, "-o: " .. small .. ": is the input", { "quantise", small, "-o", small })
    refuses(1, folder .. "/absent: No such file", { "quantise", folder .. "/absent", "-o", again })
end

-- Two columns in a byte, the first in its low bits, in the units that pack chooses; packed, they are what they were.
function test.quantise_halves_the_bytes_of_tables()
    local given, small = folder .. "/tiny.safetensors", folder .. "/tiny_i4.safetensors"
    local again = folder .. "/again.safetensors"
    works { "sample", tiny, "-o", given }
    check.matches(works { "quantise", given, "--tables", "i4", "-o", small }, "^wrote .*, relative error 0%.0%d+\n$")
    local found = program.python(
        [[
given, rounded = load(sys.argv[1]), load(sys.argv[2])
kind, halves = rounded["tables"]
scales = rounded["tables_scale_i4"][1][..., None].astype("f8")
values = given["tables"][1].astype("f8")
elements = np.stack([halves & 15, halves >> 4], -1).astype("i8").reshape(values.shape)
elements[elements > 7] -= 16
off = ((elements * scales - values) ** 2).sum(-1)
plain = np.abs(values).max(-1, keepdims=True) / 7
assert (elements == np.clip(np.rint(values / scales), -7, 7)).all()
assert (off <= ((np.rint(values / plain) * plain - values) ** 2).sum(-1) * 1.000001).all()
print(kind, halves.shape, rounded["hash.projection.weight"][0], sorted(name for name in rounded if "tables" in name))
]],
        given,
        small
    )
    check.equal(found, "U8 (8, 64, 32) I8 ['tables', 'tables_scale_i4']\n")
    works { "quantise", small, "--tables", "i4", "-o", again }
    check.equal(host.read(again) == host.read(small), true)
    local said = works { "pack", tiny, "--weights", small, "--tables", "i4", "-o", folder .. "/tiny.bin" }
    check.matches(said, "tables in i4, relative error 0\n")
    refuses(
        1,
        weights .. ": has no tables of a LookupFFN with rows of an even width, which alone can be in i4\n",
        { "quantise", weights, "--tables", "i4", "-o", again }
    )
end

-- Two columns in a byte, each 32 of them with a scale, of what a model reads; packed, they are what they would be.
function test.quantise_packs_matrices_in_groups()
    local model, types = "gen/models/gpt_nano_sort.lua", "i4,head=u4"
    local skipless = "gen/models/tiny_skipless.lua"
    local given, small, blob = folder .. "/sort.safetensors", folder .. "/sort_i4.safetensors", folder .. "/sort.bin"
    works { "sample", model, "-o", given }
    local made = { "quantise", given, "--type", types, "--model", model, "-o", small }
    check.matches(works(made), "^wrote .*, relative error 0%.%d+\n$")
    local found = program.python(
        [[
given, rounded = load(sys.argv[1]), load(sys.argv[2])
kinds = {}
for name, (dtype, values) in given.items():
    kind, own = rounded[name]
    if kind == "U8":
        r, c = values.shape
        halves = np.stack([own & 15, own >> 4], -1).reshape(r, c).astype("i8")
        if name + "_groups_u4" in rounded:
            both = np.repeat(rounded[name + "_groups_u4"][1].astype("f8"), 32, 1)
            kind, scale, low = "u4", both[..., 0], both[..., 1]
        else:
            kind, scale, low = "i4", np.repeat(rounded[name + "_groups_i4"][1].astype("f8"), 32, 1), 0
            halves[halves > 7] -= 16
        off = halves * scale[:, :c] + (low if kind == "i4" else low[:, :c]) - values
        assert 0.02 < np.sqrt((off ** 2).sum() / (values.astype("f8") ** 2).sum()) < 0.2, name
    elif kind == "F32":
        assert (own == values).all(), name
    kinds.setdefault(kind, []).append(name)
print(*sorted((kind, len(names)) for kind, names in kinds.items()), kinds["u4"], kinds["I8"])
]],
        given,
        small
    )
    check.equal(found, "('F32', 27) ('I8', 1) ('i4', 12) ('u4', 1) ['lm_head.weight'] ['transformer.wte.weight']\n")
    works { "quantise", small, "--type", types, "--model", model, "-o", folder .. "/again.safetensors" }
    check.equal(host.read(folder .. "/again.safetensors") == host.read(small), true)
    local function pack(path, ...) return works { "pack", model, "--weights", path, "-o", blob, ... } end
    pack(given, "--type", types)
    local exact = host.read(blob)
    check.matches(pack(small, "--type", types), "relative error up to 0 ")
    check.equal(host.read(blob) == exact, true)
    local said = "sort_i4.safetensors: tensors in groups are dequantised: "
        .. "12 in i4, which %-%-type i4 keeps; 1 in u4, which %-%-type u4 keeps\n$"
    check.matches(pack(small, "--type", "i8"), said)
    works { "verify", model, "--weights", small, "--type", types, "--isa", "scalar" }
    local line = ": has tensors in 4 bits: fuse takes the checkpoint before it was quantised\n"
    refuses(1, small .. line, { "fuse", skipless, "--weights", small, "-o", folder .. "/fused.safetensors" })
    -- Bytes in groups, of an embedding, too.
    local bytes, type = folder .. "/sort_q8.safetensors", "q8,embedding=q8"
    made = { "quantise", given, "--type", type, "--model", model, "-o", bytes }
    check.matches(works(made), "relative error 0%.00%d+\n$")
    pack(given, "--type", type)
    exact = host.read(blob)
    check.matches(pack(bytes, "--type", type), "relative error up to 0 ")
    check.equal(host.read(blob) == exact, true)
    line = ": has tensors in groups: fuse takes the checkpoint before it was quantised\n"
    refuses(1, bytes .. line, { "fuse", skipless, "--weights", bytes, "-o", folder .. "/fused.safetensors" })
    line = "--calibrate: is for matrices in i4 and u4, not q8,embedding=q8"
    refuses(2, line, program.with(made, "--calibrate", model))
    local other = { "quantise", given, "--type", "bf16", "--model", model, "-o", blob }
    refuses(2, "--type: bf16: must have a part in i4, u4 or q8", other)
    refuses(2, "--type: i4: needs --model", { "quantise", given, "--type", "i4", "-o", blob })
end

-- Values that half precision has no scale for are refused as those that are too large, by all that rounds them.
function test.too_small_for_groups()
    local model, path = "gen/models/gpt_nano_sort.lua", folder .. "/too_small.safetensors"
    local blob = folder .. "/too_small.bin"
    works { "sample", model, "--seed", "2", "-o", path }
    local name = "lm_head.weight"
    local function times(power)
        program.python(
            [=[
tensors = load(sys.argv[2])
tensors[sys.argv[1]][1][:] *= 2.0 ** int(sys.argv[3])
save(sys.argv[2], tensors)
]=],
            name,
            path,
            power
        )
    end
    times("-17")
    works { "pack", model, "--weights", path, "--type", "q8", "-o", blob }
    times("-7")
    for _, type in ipairs { "q8", "i4", "u4" } do
        local line = string.format("%s: tensor %s: values are too small for %s\n", path, name, type)
        refuses(1, line, { "pack", model, "--weights", path, "--type", type, "-o", blob })
        if type == "q8" then refuses(1, line, { "quantise", path, "--type", type, "--model", model, "-o", blob }) end
    end
    works { "pack", model, "--weights", path, "--type", "i8", "-o", blob }
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

-- Blocks of GGUF's Q4_0 are values (q - 8) d with d in half precision, of which rounding changes none; the layout is
-- that of docs/types.md.
function test.q4_0_packs_in_i4_as_it_is()
    local path, rounded = folder .. "/blocks.safetensors", folder .. "/q4_0.safetensors"
    local blob = folder .. "/q4_0.bin"
    works { "sample", "gen/models/tiny_skipless.lua", "-o", path }
    local change = [[
rng = np.random.default_rng(4)
def q4_0(values):
    if values.ndim < 2: return values
    groups = values.reshape(-1, 32)
    largest = groups[np.arange(len(groups)), np.abs(groups).argmax(1)]
    d = (largest / rng.choice([-8, 7, -6, 1], len(groups))).astype("f2")
    q = np.clip(np.rint(groups / d[:, None].astype("f8")), -8, 7)
    q[:5] = 0
    return (q * d[:, None].astype("f8")).astype("f4").reshape(values.shape)
save(sys.argv[2], {name: (dtype, q4_0(values)) for name, (dtype, values) in load(sys.argv[1]).items()})
]]
    program.python(change, path, rounded)
    local words = { "pack", "gen/models/tiny_skipless.lua", "--weights", rounded, "--type", "i4", "-o", blob }
    check.matches(works(words), "weights in i4, relative error up to 0 ")
    local first = [[
words = np.fromfile(sys.argv[2], "<u4")[16:][: 2 * 144].reshape(2, 144) # behind the header: the first map
scales = words[:, :16].copy().view("<f2").astype("f8")
weights = np.zeros((32, 64))
for k in range(64):
    column = words[k // 32, 16:].reshape(4, 32)[k % 32 // 8]
    units = column >> (k % 4 * 8 + k % 8 // 4 * 4) & 15
    weights[:, k] = (units.astype("f8") - 8) * scales[k // 32]
print(np.array_equal(weights, load(sys.argv[1])["model.layers.0.self_attn.k_proj.weight"][1]))
]]
    check.equal(program.python(first, rounded, blob), "True\n")
end

return test
