-- An encoder that makes one vector of a text: sines, a token type, norms behind, pooling, a length of 1, and a
-- unigram tokenizer. What the maps of the first block make of words and sines is looked up.
return {
    name = "sentences",
    d = 36,
    heads = 3,
    layers = 2,
    vocab = 256,
    skip = true,
    token_types = 2,
    norm = { kind = "layernorm", eps = 1e-5, place = "post" },
    attention = { context = 24, causal = false },
    ffn = { kind = "mlp", f = 40, activation = "gelu" },
    embedding = { sinusoidal = { order = "halves" }, norm = { kind = "layernorm", eps = 1e-5 }, projected = true },
    output = { pool = "mean", unit = true },
    tokenizer = { file = "pieces.json", kind = "unigram" },
    checkpoint = "roberta",
}
