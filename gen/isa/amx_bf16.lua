-- AVX-512 with AMX of bytes and of BF16: multiplies tiles of inputs and weights in both. Else the same as AVX-512 with
-- BF16.

local avx512_bf16 = require "gen.isa.avx512_bf16"
local tiles = require "gen.isa.parts.tiles"

local set = {}
for key, value in pairs(avx512_bf16) do
    set[key] = value
end

set.name = "amx_bf16"
set.serves = { "tile_dot_bf16" }
tiles.add(set, true)

return set
