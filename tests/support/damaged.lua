-- Commands that meet damaged files: a small LookupFFN with good weights, and what a refusal leaves behind.
local check = require "tests.support.check"
local host = require "host"
local program = require "tests.support.program"

local folder = program.folder()
local damaged = { folder = folder }
damaged.model = program.model(
    folder,
    "small",
    [[
return { name = "small", d = 6, h = 3, tau = 4, projection = { kind = "bh4", block = 4 }, score = "gelu",
    norm = { kind = "layernorm" } }
]]
)
program.works { "sample", damaged.model, "-o", folder .. "/good.safetensors" }
damaged.good = assert(host.read(folder .. "/good.safetensors"))

-- The command must be refused with one line that holds `fragment`, in a folder with an older output file.
function damaged.refused(fragment, words, options)
    local there = program.folder()
    options = options or {}
    options.directory = there
    assert(host.write_file(there .. "/output", "older"))
    program.refuses(1, fragment, words, options)
    check.equal(host.list(there), { "output" })
    check.equal(host.read(there .. "/output"), "older")
end

-- A .npy file of so many tokens for `run`.
function damaged.input_of(tokens)
    local path = folder .. "/input_" .. tokens .. ".npy"
    program.python("np.save(sys.argv[1], np.ones((int(sys.argv[2]), 6), '<f4'))", path, tostring(tokens))
    return path
end

return damaged
