-- Checkpoints in other formats: folders, files of PyTorch, FP8, blocks stored input by output.
local check = require "tests.support.check"
local checkpoints = require "tests.support.checkpoints"
local host = require "host"
local json = require "json"
local process = require "process"
local program = require "tests.support.program"
local tensors_of = require("weights").tensors

local works, refuses = program.works, program.refuses
local folder, path_of, transformer = checkpoints.folder, checkpoints.path_of, checkpoints.transformer
local test = {}

-- Beside the scales of their blocks they are the floats that these stand for; alone they are refused.
function test.fp8_checkpoints()
    local model, weights = transformer("t", ""), path_of "t.safetensors"
    local paths = { path_of "fp8.safetensors", path_of "floats.safetensors", path_of "alone.safetensors" }
    local index = path_of "fp8.index.json"
    local function pack(from, to) return { "pack", model, "--weights", from, "-o", path_of(to) } end
    works { "sample", model, "-o", weights }
    program.python(
        [[
fp8, floats = load(sys.argv[1]), load(sys.argv[1])
names = [name for name in fp8 if name.endswith("proj.weight")]
for name in names:
    shape = fp8[name][1].shape
    codes = (np.arange(np.prod(shape)) * 5 % 254).reshape(shape)
    codes += codes >= 127  # but NaN
    exponent, fraction = codes >> 3 & 15, codes & 7
    values = np.where(exponent == 0, fraction / 512.0, (8 + fraction) * 2.0 ** (exponent - 10.0))
    values *= np.where(codes < 128, 1, -1)
    fp8[name] = "F8_E4M3", codes
    fp8[name + "_scale_inv"] = "F32", np.full((1, 1), 0.001)
    floats[name] = "F32", values.astype("f4") * np.float32(0.001)
save(sys.argv[2], fp8)
save(sys.argv[3], floats)
json.dump({"weight_map": {name: "fp8.safetensors" for name in fp8}}, open(sys.argv[5], "w"))
for name in names:
    del fp8[name + "_scale_inv"]
save(sys.argv[4], fp8)
]],
        weights,
        paths[1],
        paths[2],
        paths[3],
        index
    )
    works(pack(index, "a"))
    works(pack(paths[2], "b"))
    check.equal(host.read(path_of "a") == host.read(path_of "b"), true)
    local rule = "proj.weight: dtype: F8_E4M3, which is FP8: must be F32, F16, BF16 or F64, or stand beside its blocks'"
    refuses(1, rule, pack(paths[3], "never"))
end

-- Published kernels of BH4 store its blocks in either order.
function test.blocks_of_models_stored_input_by_output()
    local ffn = "{ kind = 'lookup', h = 4, tau = 4, projection = { kind = 'bh4', block = 8 }, score = 'gelu' }"
    local common = ", d = 32, heads = 4, vocab = 50, skip = true, norm = { kind = 'rmsnorm' }, \z
        attention = { context = 80 }, "
    local turned, sampled = path_of "turned.safetensors", path_of "sampled.safetensors"
    local blobs, results = { path_of "a", path_of "b" }, { path_of "a.npy", path_of "b.npy" }
    for name, text in pairs {
        blocks = "layers = 2, ffn = " .. ffn,
        model = "embedding = {}, output = { head = {} }, layers = { {}, { ffn = "
            .. ffn
            .. " } }, ffn = { kind = 'glu', f = 40, activation = 'silu' }",
    } do
        local model = program.model(folder, name, "return { name = '" .. name .. "'" .. common .. text .. " }")
        works { "sample", model, "-o", sampled }
        program.python(
            [[
tensors = load(sys.argv[1])
for name in tensors:
    if name.endswith("hash.projection.weight"):
        dtype, values = tensors[name]
        tensors[name] = dtype, values.swapaxes(3, 4)
save(sys.argv[2], tensors)
]],
            sampled,
            turned
        )
        local input = path_of "input.npy"
        program.python(
            [[
rows = np.random.default_rng(1).normal(size=(80, 32)).astype("f4")
np.save(sys.argv[1], rows if sys.argv[2] == "blocks" else np.arange(80, dtype="i4") % 50)
]],
            input,
            name
        )
        local calibrated = { name == "blocks" and "--calibrate" or "--calibrate-ids", input, "--projection", "i8" }
        for _, more in ipairs { {}, calibrated } do
            local words = { "pack", model, "--weights", sampled, "-o", blobs[1], table.unpack(more) }
            works(words)
            words[4], words[6] = turned, blobs[2]
            words[#words + 1] = "--blocks-in-out"
            works(words)
            check.equal(host.read(blobs[1]) == host.read(blobs[2]), true, name)
        end
        local compiled = { "--isa", "scalar", "--cflags", "-O0" }
        works { "verify", model, "--weights", turned, "--blocks-in-out", table.unpack(compiled) }
        local of_input = name == "blocks" and "--input" or "--ids"
        local function run(weights, output, ...)
            local words = { "run", model, "--weights", weights, of_input, input, "--output", output, ... }
            works(table.move(compiled, 1, #compiled, #words + 1, words))
        end
        run(sampled, results[1])
        run(turned, results[2], "--blocks-in-out")
        check.equal(host.read(results[1]) == host.read(results[2]), true, name)
        run(turned, results[2])
        check.equal(host.read(results[1]) ~= host.read(results[2]), true, name)
    end
    local rest = "layers = 1, ffn = { kind = 'glu', f = 8, activation = 'silu' } }"
    local dense = program.model(folder, "dense", "return { name = 'dense'" .. common .. rest)
    local message = "--blocks-in-out: is for lookup FFNs with projection.kind = bh4: dense has none"
    refuses(2, message, { "pack", dense, "--weights", sampled, "-o", blobs[1], "--blocks-in-out" })
end

-- verify takes the checkpoint that pack takes, and the one that fuse takes, which it fuses.
function test.verify_takes_either_checkpoint()
    local model = transformer("v", "m.attention.eliminate = 'QP'")
    for _, row in ipairs { { "--unfused", true }, { "--seed=1", false } } do
        local weights = path_of "v.safetensors"
        works { "sample", model, row[1], "-o", weights }
        local found =
            json.decode(works { "verify", model, "--weights", weights, "--isa", "scalar", "--json", "--cflags", "-O0" })
        check.equal(found.results[1].rel_err ~= nil, row[2])
    end
end

-- The line of Python in the message is Python, and converts: here with a torch of stand-ins.
function test.checkpoints_of_pytorch()
    local there = program.folder()
    local stand_ins = [[
import numpy as np
class Tensor(np.ndarray):
    def clone(self): return self.copy()
    def contiguous(self): return self
def is_tensor(value): return isinstance(value, Tensor)
def load(path, map_location, weights_only):
    assert map_location == "cpu" and weights_only and open(path, "rb").read(2) == b"PK"
    return { "epoch": 3, "state_dict": { "step": 7, "bias": np.ones(4, "<f4").view(Tensor) } }
]]
    works { "sample", "gen/models/tiny.lua", "-o", there .. "/good" }
    assert(host.write_file(there .. "/torch.py", stand_ins))
    assert(process.run { "mkdir", there .. "/safetensors" })
    assert(host.write_file(
        there .. "/safetensors/torch.py",
        [[
def save_file(tensors, path):
    with open(path, "w") as file:
        file.write(" ".join(f"{name} {list(values)}" for name, values in tensors.items()))
]]
    ))
    for _, row in ipairs {
        { "model.ckpt", "PK\3\4" .. ("\0"):rep(100), "a ZIP file, as PyTorch checkpoints are; " },
        { "model", "PK\3\4" .. ("\0"):rep(100), "a ZIP file, as PyTorch checkpoints are; " },
        { "model.pt", "\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", "a PyTorch checkpoint; " },
        { "pytorch_model.bin", "", "by its name a PyTorch checkpoint; " },
        { "cut.pth", assert(host.read(there .. "/good")):sub(1, 40), "by its name a PyTorch checkpoint; " },
    } do
        local path = there .. "/" .. row[1]
        assert(host.write_file(path, row[2]))
        local words = { "pack", "gen/models/tiny.lua", "--weights", path, "-o", there .. "/never" }
        refuses(
            1,
            path .. ": is not a safetensors file but " .. row[3] .. "convert it with Python: import torch; ",
            words
        )
        if row[2]:find "^PK" then
            local line = program.run(words).errors:match "convert it with Python: (.-)\n"
            local script = "import sys; sys.path.insert(0, '.')\n" .. line
            local result = assert(process.run({ "/usr/bin/python3", "-c", script }, { directory = there }))
            if result.status ~= 0 then error(result.output) end
            check.matches(assert(host.read(there .. "/model.safetensors")), "^bias %[.*1%.0.*%]$")
            assert(host.remove(there .. "/model.safetensors"))
        end
    end
    -- A safetensors file of any name is one.
    assert(host.write_file(there .. "/good.bin", assert(host.read(there .. "/good"))))
    works { "pack", "gen/models/tiny.lua", "--weights", there .. "/good.bin", "-o", there .. "/b" }
    refuses(1, "is not a safetensors file but a blob of lookupc pack: give the checkpoint that it was packed from", {
        "pack",
        "gen/models/tiny.lua",
        "--weights",
        there .. "/b",
        "-o",
        there .. "/never",
    })
end

-- Without them the weights have other values, so that --ignore does not help.
function test.parts_of_quantised_weights()
    local model, sampled = transformer("parts", ""), path_of "parts.safetensors"
    works { "sample", model, "-o", sampled }
    local stem = "model.layers.0.mlp.up_proj"
    for last, what in pairs {
        [".weight_zero_point"] = "weights with zero points",
        [".biases"] = "weights quantised by MLX",
        [".scales"] = "weights quantised in groups",
        [".qzeros"] = "weights quantised by GPTQ or AWQ",
        [".weight_packed"] = "packed weights of compressed-tensors",
        [".weight.absmax"] = "weights quantised by bitsandbytes",
    } do
        local rule = "tensor " .. stem .. last .. ": " .. what .. " are not read; take the checkpoint that"
        local file = checkpoints.with(sampled, { stem .. last })
        refuses(1, rule, { "pack", model, "--weights", file, "-o", path_of "b.bin", "--ignore", "*" .. last })
    end
    model = transformer("fused", "m.attention.eliminate = 'QP'")
    works { "sample", model, "--unfused", "-o", sampled }
    local file = checkpoints.with(sampled, { stem .. ".weight_zero_point" })
    refuses(
        1,
        stem .. ".weight_zero_point: weights with zero points are not read",
        { "fuse", model, "--weights", file, "-o", path_of "f.safetensors", "--ignore", "*_zero_point" }
    )
end

function test.folders_without_a_checkpoint()
    local there = program.folder()
    local packing = { "pack", "gen/models/tiny.lua", "--weights", there, "-o", path_of "b.bin" }
    local function refused(message) refuses(1, there .. ": " .. message, packing) end
    local function without(fragment)
        refused("is a folder without model.safetensors and model.safetensors.index.json" .. fragment)
    end
    without "\n"
    assert(host.write_file(there .. "/pytorch_model.bin", "PK\3\4"))
    without "; its pytorch_model.bin is in another format: give its path to be told how to convert it\n"
    works { "sample", "gen/models/tiny.lua", "-o", there .. "/tiny.safetensors" }
    without "; it has tiny.safetensors: give the path of that file\n"
    works { "sample", "gen/models/tiny.lua", "-o", there .. "/a.safetensors" }
    without "; of its 2 files such as a.safetensors an index must say which tensors are where\n"
    assert(host.write_file(there .. "/model.safetensors", assert(host.read(there .. "/a.safetensors"))))
    works(packing)
    -- an index beside it, of another file or of that one, as MLX writes it
    local function index_of(file)
        local map = {}
        for name in pairs(assert(tensors_of(there .. "/" .. file))) do
            map[name] = file
        end
        local text = assert(json.encode { metadata = {}, weight_map = map })
        assert(host.write_file(there .. "/model.safetensors.index.json", text))
    end
    index_of "a.safetensors"
    refused "has both model.safetensors.index.json and model.safetensors, which the index does not name: give the path"
    index_of "model.safetensors"
    works(packing)
end

return test
