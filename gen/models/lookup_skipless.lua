-- Blocks whose lookup FFNs deliver q, k and v of the next block: no product is left before attention.
return {
    name = "lookup_skipless",
    d = 256,
    heads = 4,
    kv_heads = 2,
    layers = 4,
    vocab = 8000,
    attention = { eliminate = "QKV", rope = { theta = 10000 }, context = 1024 },
    ffn = { kind = "lookup", h = 64, tau = 7, projection = { kind = "bh4", block = 32, decay = 0.7 }, score = "gelu" },
}
