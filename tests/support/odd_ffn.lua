-- A LookupFFN of odd sizes and a checkpoint of it: a padded input, two repeats, a norm, d_out of its own; 7 * 5 bits of
-- z out of 2 * 32.
local host = require "host"
local program = require "tests.support.program"

local folder = program.folder()
local odd_ffn = {
    model = program.model(
        folder,
        "odd",
        [[
return { name = "odd", d = 27, d_out = 19, h = 7, tau = 5, projection = { kind = "bh4", block = 8 }, score = "gelu",
    scale = "1/h", norm = { kind = "layernorm" } }
]]
    ),
    weights = folder .. "/odd.safetensors",
}
program.works { "sample", odd_ffn.model, "--seed", "5", "-o", odd_ffn.weights }

-- The blob of the weights at `path`, with more words for pack.
function odd_ffn.packed(path, ...)
    local blob = folder .. "/blob.bin"
    program.works { "pack", odd_ffn.model, "--weights", path, "-o", blob, ... }
    return assert(host.read(blob))
end

return odd_ffn
