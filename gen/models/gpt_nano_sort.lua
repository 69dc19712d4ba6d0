-- A trained minGPT of 85,728 parameters that sorts six digits below 3: the digits, then the digits in order.
return {
    name = "gpt_nano_sort",
    d = 48,
    heads = 3,
    layers = 3,
    vocab = 3,
    positions = 11,
    attention = { context = 11 },
    ffn = { kind = "mlp", f = 192, activation = "gelu_tanh" },
    skip = true,
    norm = { kind = "layernorm", eps = 1e-5 },
    embedding = {},
    output = { norm = { kind = "layernorm", eps = 1e-5 }, head = {} },
    checkpoint = "mingpt",
}
