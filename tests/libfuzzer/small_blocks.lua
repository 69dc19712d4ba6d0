-- A transformer whose files have few bytes, for fuzz targets.
return {
    name = "small_blocks",
    d = 8,
    heads = 2,
    kv_heads = 1,
    layers = 1,
    vocab = 16,
    attention = { context = 16, rope = {} },
    ffn = { kind = "glu", f = 8, activation = "silu" },
    skip = true,
    norm = { kind = "rmsnorm" },
}
