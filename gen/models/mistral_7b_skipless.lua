-- Mistral-7B without skip connections and norms (arXiv 2404.12362, section 4).
return {
    name = "mistral_7b_skipless",
    d = 4096,
    heads = 32,
    kv_heads = 8,
    layers = 32,
    vocab = 32000,
    attention = { eliminate = "QP", rope = { theta = 10000 }, context = 4096 },
    ffn = { kind = "glu", f = 14336, activation = "silu" },
}
