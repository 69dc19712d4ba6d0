-- gen/models/mistral_7b_skipless.lua with a quarter of each width, and 28 layers.
return {
    name = "quarter_skipless",
    d = 1024,
    heads = 16,
    kv_heads = 4,
    layers = 28,
    vocab = 32000,
    attention = { eliminate = "QP", rope = { theta = 10000 }, context = 1024 },
    ffn = { kind = "glu", f = 3584, activation = "silu" },
}
