-- A small encoder of bytes: from text to a vector.
return {
    name = "encoder",
    d = 32,
    heads = 2,
    layers = 2,
    vocab = 256,
    skip = true,
    token_types = 2,
    norm = { kind = "layernorm", place = "post" },
    attention = { context = 64, causal = false },
    ffn = { kind = "mlp", f = 64, activation = "gelu" },
    embedding = { sinusoidal = { order = "halves" } },
    output = { pool = "mean", unit = true },
    tokenizer = { kind = "bytes" },
    checkpoint = "roberta",
}
