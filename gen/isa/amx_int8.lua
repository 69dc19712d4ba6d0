-- AVX-512 with AMX of bytes: multiplies tiles of inputs in i8 by tiles of weights in i8. Else the same as AVX-512.

local avx512 = require "gen.isa.avx512"
local tiles = require "gen.isa.parts.tiles"

local set = {}
for key, value in pairs(avx512) do
    set[key] = value
end

set.name = "amx_int8"
set.serves = { "tile_dot_i8" }
tiles.add(set, false)

return set
