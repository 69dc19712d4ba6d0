-- The dense twin of tiny_writer: the same decoder with an MLP of 4 d in place of each LookupFFN, to compare with.
local m = include "tiny_writer.lua"
m.ffn = { kind = "mlp", f = 512, activation = "gelu" }
return m
