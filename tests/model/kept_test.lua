-- Packed weights are kept, and packed again as soon as anything differs that they depend on.
local check = require "tests.support.check"
local evict = require "harness.base.cache_eviction"
local host = require "host"
local process = require "process"
local program = require "tests.support.program"

local test = {}

local model = [[
return { name = "kept", d = 256, heads = 4, layers = 2, vocab = 64, positions = 16, skip = true,
    norm = { kind = "layernorm" }, attention = { context = 16 }, ffn = { kind = "mlp", f = 2048, activation = "gelu" },
    checkpoint = "gpt2", embedding = {}, output = { norm = { kind = "layernorm" }, head = {} } }
]]

-- Waits until the files of this folder are old enough to be trusted.
local function settle() assert(process.run { "sleep", "2.1" }) end

local function blobs(folder)
    return #(host.kind(folder .. "/lookupc/blobs") and host.list(folder .. "/lookupc/blobs") or {})
end

function test.packed_weights_are_kept_while_nothing_changes()
    local folder = program.folder()
    local path, weights, cache = program.model(folder, "kept", model), folder .. "/w.safetensors", folder .. "/cache"
    local y = folder .. "/y.npy"
    assert(host.write_file(folder .. "/ids", "1 2 3"))
    program.works { "sample", path, "-o", weights }
    local function run(...)
        local words =
            { "run", path, "--weights", weights, "--ids", folder .. "/ids", "--output", y, "--isa", "scalar", ... }
        program.works(words, { env = { XDG_CACHE_HOME = cache } })
        return assert(host.read(y))
    end
    settle()
    local fresh = run()
    check.equal(blobs(cache), 1)
    check.equal(run(), fresh)
    check.equal(blobs(cache), 1)

    -- What is kept is what is used: with another blob under the same name the answer is another one. A damaged one is
    -- packed again.
    program.works { "sample", path, "-o", folder .. "/other", "--seed", "2" }
    program.works { "pack", path, "--weights", folder .. "/other", "-o", folder .. "/other.bin" }
    local kept = cache .. "/lookupc/blobs/" .. host.list(cache .. "/lookupc/blobs")[1]
    local bytes = assert(host.read(kept))
    assert(host.write_file(kept, assert(host.read(folder .. "/other.bin"))))
    local others = run()
    check.equal(others ~= fresh, true)
    for _, damaged in ipairs { bytes:sub(1, 1 << 20), bytes:sub(1, -2) .. "?" } do
        assert(host.write_file(kept, damaged))
        check.equal(run(), fresh)
        check.equal(assert(host.read(kept)) == bytes, true)
    end

    -- Other weights in a file of the same name, size and time of modification.
    local swap = "touch -r w.safetensors other && cat other > w.safetensors && touch -r other w.safetensors"
    check.equal(process.run({ "bash", "-c", swap }, { directory = folder }).status, 0)
    settle()
    check.equal(run(), others)
    check.equal(blobs(cache), 2)
    check.equal(run("--type", "bf16") ~= others, true)
    check.equal(blobs(cache), 3)

    -- A model file that reads the same tensors in another way, and a folder that cannot be written.
    assert(host.write_file(path, (model:gsub("d = 256, heads = 4", "d = 256, heads = 8"))))
    check.equal(run() ~= others, true)
    check.equal(blobs(cache), 4)
    assert(host.write_file(folder .. "/file", ""))
    cache = folder .. "/file"
    run()
end

function test.blobs_that_were_not_used_for_longest_are_removed()
    local folder = program.folder()
    for i, name in ipairs { "a.bin", "b.bin", "c.bin", "other" } do
        assert(host.write_file(folder .. "/" .. name, ("x"):rep(100)))
        assert(process.run { "touch", "-d", "2020-01-0" .. i, folder .. "/" .. name })
    end
    assert(process.touch(folder .. "/a.bin"))
    evict(folder, ".bin", 100, 400)
    check.equal(#host.list(folder), 4)
    evict(folder, ".bin", 150, 400)
    check.equal(host.list(folder), { "a.bin", "c.bin", "other" })
    evict(folder, ".bin", 400, 400)
    check.equal(host.list(folder), { "other" })
end

return test
