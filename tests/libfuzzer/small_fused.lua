-- A transformer without Q and P whose files have few bytes, for the fuzz target of fuse.
return {
    name = "small_fused",
    d = 8,
    heads = 2,
    layers = 1,
    vocab = 4,
    attention = { eliminate = "QP", context = 16 },
    ffn = { kind = "mlp", f = 8, activation = "relu" },
}
