-- A GPT of minGPT's smallest size that sorts six digits of {0, 1, 2}: given the digits, it continues them in order.
return {
    name = "gpt_nano_sort",
    d = 48,
    heads = 3,
    layers = 3,
    vocab = 3,
    positions = 11,
    skip = true,
    norm = { kind = "layernorm", eps = 1e-5 },
    attention = { context = 11 },
    ffn = { kind = "mlp", f = 192, activation = "gelu_tanh" },
    embedding = {},
    output = { norm = { kind = "layernorm", eps = 1e-5 }, head = {} },
    checkpoint = "mingpt",
}
