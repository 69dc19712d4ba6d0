-- A small decoder of bytes: from text to logits.
return {
    name = "decoder",
    d = 32,
    heads = 2,
    layers = 2,
    vocab = 256,
    positions = 64,
    skip = true,
    norm = { kind = "layernorm" },
    attention = { context = 64 },
    ffn = { kind = "mlp", f = 64, activation = "gelu" },
    embedding = {},
    output = { norm = { kind = "layernorm" }, head = {} },
    tokenizer = { kind = "bytes" },
    checkpoint = "mingpt",
}
