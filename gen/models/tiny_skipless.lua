-- A transformer for tests and examples: two blocks without Q and P, whose heads of queries share keys and values.
return {
    name = "tiny_skipless",
    d = 64,
    heads = 4,
    kv_heads = 2,
    layers = 2,
    vocab = 256,
    attention = { eliminate = "QP", rope = { theta = 10000 }, context = 256 },
    ffn = { kind = "glu", f = 160, activation = "silu" },
}
