-- AVX-512 with AMX of bytes and of BF16: multiplies tiles of inputs and weights in both. Else the same as AVX-512 with
-- BF16.

return require "gen.isa.parts.tiles"("amx_bf16", require "gen.isa.avx512_bf16", "tile_dot_bf16")
