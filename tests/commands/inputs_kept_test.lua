-- No command writes over a file that it reads, whatever leads it there: an index, a folder, a model file.
local check = require "tests.support.check"
local gpt_neox = require "tests.support.gpt_neox"
local host = require "host"
local json = require "json"
local program = require "tests.support.program"
local weights = require "weights"

local works = program.works
local test = {}
local folder = program.folder()

local function path_of(name) return folder .. "/" .. name end

program.python(
    [[
import os
text = "".join("a line of words number %d\n" % i for i in range(400))
open(sys.argv[1] + "/t.txt", "w").write(text)
np.save(sys.argv[1] + "/ids.npy", np.array([1, 2, 3], np.int32))
]],
    folder
)
works { "tokenizer", "--text", path_of "t.txt", "--pieces", "60", "-o", path_of "words.model" }

local blocks = [[
return { skip = true, d = 16, heads = 2, layers = 1, norm = { kind = "layernorm" },
    attention = { context = 16, causal = %s }, embedding = { sinusoidal = {} },
    ffn = { kind = "mlp", f = 32, activation = "gelu" }, name = "m", vocab = 60, output = %s,
    tokenizer = { file = "words.model" } }
]]
local encoder = program.model(folder, "encoder", blocks:format("false", '{ pool = "mean" }'))
local decoder = program.model(folder, "decoder", blocks:format("true", "{ head = {} }"))
program.model(folder, "below", 'return include "encoder.lua"')

-- A folder with an index of one file; and one with the file alone.
assert(host.write_directory(folder, { ["sharded/x"] = "", ["single/x"] = "" }))
local part = path_of "sharded/part.safetensors"
works { "sample", encoder, "-o", part }
works { "sample", encoder, "-o", path_of "single/model.safetensors" }
local map = {}
for name in pairs(weights.tensors(part)) do
    map[name] = "part.safetensors"
end
local index = path_of "sharded/model.safetensors.index.json"
assert(host.write_file(index, assert(json.encode { weight_map = map })))
assert(host.write_directory(path_of "llama", {
    ["config.json"] = gpt_neox,
    ["model.safetensors.index.json"] = '{ "weight_map": {} }',
}))

-- Refuses the command, whose last word is the path of an input, in one line, and leaves that as it was.
local function kept(words)
    local path = words[#words]
    local before = assert(host.read(path))
    program.refuses(1, path .. ": is the input ", words)
    check.equal(host.read(path) == before, true)
end

function test.files_of_a_checkpoint_are_not_written_over()
    local single = path_of "single/model.safetensors"
    for _, row in ipairs {
        { path_of "sharded", part },
        { path_of "sharded", index },
        { index, part },
        { path_of "single", single },
    } do
        local from, path = table.unpack(row)
        kept { "pack", encoder, "--weights", from, "-o", path }
        kept { "quantise", from, "-o", path }
        kept { "embed", encoder, "--weights", from, "--isa", "scalar", "a", "-o", path }
        kept { "run", encoder, "--weights", from, "--isa", "scalar", "--ids", path_of "ids.npy", "--output", path }
    end
    kept { "import", path_of "llama", "-o", path_of "llama/config.json" }
    kept { "import", path_of "llama", "-o", path_of "llama/model.safetensors.index.json" }
    works { "import", path_of "llama", "-o", path_of "llama/own.lua" }
    works { "import", path_of "llama", "-o", path_of "llama/own.lua" }
    works { "quantise", path_of "sharded", "-o", path_of "sharded/own.safetensors" }
    works { "quantise", path_of "sharded", "-o", path_of "sharded/own.safetensors" }
end

function test.what_a_model_file_names_is_not_written_over()
    local words = path_of "words.model"
    kept { "sample", path_of "below.lua", "-o", encoder }
    kept { "pack", encoder, "--weights", part, "-o", words }
    kept { "embed", path_of "below.lua", "--weights", part, "--isa", "scalar", "a", "-o", words }
    kept { "embed", path_of "below.lua", "--weights", part, "--isa", "scalar", "a", "-o", encoder }
    local train = { "train", decoder, "--text", path_of "t.txt", "--steps", "2", "--isa", "scalar" }
    local to = path_of "w.safetensors"
    kept(table.move({ "-o", to, "--html", words }, 1, 4, #train + 1, { table.unpack(train) }))
    check.equal(host.kind(to), nil)
end

return test
