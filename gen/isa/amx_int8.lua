-- AVX-512 with AMX of bytes: multiplies tiles of inputs in i8 by tiles of weights in i8. Else the same as AVX-512.

return require "gen.isa.parts.tiles"("amx_int8", require "gen.isa.avx512", "tile_dot_i8")
