-- pack and run read a checkpoint of several files as they read one file with the same tensors.
local check = require "tests.support.check"
local host = require "host"
local json = require "json"
local program = require "tests.support.program"

local test = {}
local folder = program.folder()
local path = program.model(
    folder,
    "sharded",
    [[
return { name = "sharded", layers = 2, vocab = 3000, d = 128, heads = 4, kv_heads = 2,
    attention = { eliminate = "QP", rope = {}, context = 40 },
    ffn = { kind = "glu", f = 200, activation = "silu" } }
]]
)
local unfused, whole, several = folder .. "/unfused.safetensors", folder .. "/whole.safetensors", folder .. "/several"
local index = several .. "/model.safetensors.index.json"
program.works { "sample", path, "--unfused", "-o", unfused }
program.works { "fuse", path, "--weights", unfused, "-o", whole }
program.works { "fuse", path, "--weights", unfused, "-o", several, "--shard-mib", "1" }

local function packed(weights, ...)
    local blob = folder .. "/blob.bin"
    program.works { "pack", path, "--weights", weights, "-o", blob, ... }
    return assert(host.read(blob))
end

function test.there_are_several_files()
    local files = {}
    for _, file in pairs(json.decode(assert(host.read(index))).weight_map) do
        files[file] = true
    end
    local count = 0
    for _ in pairs(files) do
        count = count + 1
    end
    check.equal(count > 2, true)
end

function test.pack()
    for _, type in ipairs { "f32", "i8" } do
        local wanted = packed(whole, "--type", type)
        for _, weights in ipairs { several, index } do
            check.equal(packed(weights, "--type", type) == wanted, true)
        end
    end
end

-- More files than a program may have open unless it asks for more.
function test.many_files()
    local many = folder .. "/many"
    program.python(
        [[
import os
os.mkdir(sys.argv[2])
index = {}
for i, (name, tensor) in enumerate(load(sys.argv[1]).items()):
    index[name] = f"{i}.safetensors"
    save(f"{sys.argv[2]}/{i}.safetensors", {name: tensor})
with open(sys.argv[2] + "/model.safetensors.index.json", "w", encoding="utf-8-sig") as file: # a byte order mark
    json.dump({"weight_map": index}, file)
]],
        whole,
        many
    )
    local words = { "pack", path, "--weights", many, "-o", folder .. "/blob.bin" }
    program.works(words, { limit = "ulimit -S -n 10" })
    program.refuses(1, ".safetensors: Too many open files", words, { limit = "ulimit -n 10" })
end

function test.run()
    local x, outputs = folder .. "/x.npy", {}
    program.python("np.save(sys.argv[1], np.random.default_rng(3).standard_normal((7, 128)).astype('<f4'))", x)
    for i, weights in ipairs { whole, index } do
        outputs[i] = folder .. "/y" .. i .. ".npy"
        program.works { "run", path, "--weights", weights, "--input", x, "--output", outputs[i] }
    end
    check.equal(host.read(outputs[1]) == host.read(outputs[2]), true)
end

-- Root may write everywhere, but not there.
function test.folders_that_cannot_be_made()
    for place, reason in pairs {
        ["/proc/none"] = "/proc/none: No such file or directory",
        [whole] = whole .. ": Not a directory",
        [whole .. "/in"] = whole .. "/in: Not a directory",
        [folder .. "/none/in"] = folder .. "/none/in: No such file or directory",
        [folder .. "/" .. ("x"):rep(300)] = ": File name too long",
    } do
        program.refuses(1, reason, { "fuse", path, "--weights", unfused, "-o", place, "--shard-mib", "1" })
    end
end

-- The default of some systems' threads, and less than one block of a product.
function test.a_stack_of_64_kib()
    local there = program.folder()
    local small = { limit = "ulimit -s 64" }
    program.works({ "fuse", path, "--weights", unfused, "-o", there .. "/fused" }, small)
    check.equal(host.read(there .. "/fused") == host.read(whole), true)
    program.works({ "sample", path, "--unfused", "-o", there .. "/sampled" }, small)
    check.equal(host.read(there .. "/sampled") == host.read(unfused), true)
    for _ = 1, 2 do -- the second finds the output of the first
        program.works({ "pack", path, "--weights", whole, "-o", there .. "/blob" }, small)
        program.works({ "emit", path, "-o", there .. "/bundle" }, small)
        local tiny = { "pack", "gen/models/tiny.lua", "--arithmetic", "integer", "--tables", "i8" }
        program.works({ "sample", tiny[2], "-o", there .. "/tiny" }, small)
        table.move({ "--weights", there .. "/tiny", "-o", there .. "/integers" }, 1, 4, #tiny + 1, tiny)
        program.works(tiny, small)
    end
end

-- What compiles needs as much as the compiler; what finds a library that was kept does not.
function test.kernels_run_with_a_stack_of_64_kib()
    local env = { XDG_CACHE_HOME = program.folder() }
    local bench = { "bench", "gen/models/tiny.lua", "--isa", "scalar", "--batch", "1,64", "--repetitions", "1" }
    for _, words in ipairs { { "verify", "gen/models/tiny.lua", "--isa", "scalar" }, bench } do
        program.works(words, { env = env })
        program.works(words, { env = env, limit = "ulimit -s 64" })
    end
end

function test.what_is_wrong_is_said_in_one_line()
    local output = folder .. "/none.bin"
    local text = assert(host.read(index))
    local broken = several .. "/broken.index.json"
    assert(host.write_file(broken, (text:gsub("layers%.1%.mlp%.up_proj", "layers.1.mlp.no_proj"))))
    program.refuses(1, "broken.index.json", { "pack", path, "--weights", broken, "-o", output })
    program.refuses(1, "none.index.json", { "pack", path, "--weights", several .. "/none.index.json", "-o", output })
    program.refuses(1, "tensor model.layers.2.self_attn.k_proj.weight is missing", {
        "pack",
        program.model(folder, "deeper", assert(host.read(path)):gsub("layers = 2", "layers = 3")),
        "--weights",
        index,
        "-o",
        output,
    })
    check.equal(host.read(output), nil)
end

return test
