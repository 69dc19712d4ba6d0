-- Four blocks of a skipless transformer in the shape of Mistral-7B's, a quarter as wide: small enough to be measured in
-- float32.
return {
    name = "skipless_1024",
    d = 1024,
    heads = 16,
    kv_heads = 4,
    layers = 4,
    vocab = 32000,
    attention = { eliminate = "QP", rope = { theta = 10000 }, causal = true, context = 4096 },
    ffn = { kind = "glu", f = 3584, activation = "silu" },
}
