-- As many bytes gathered as roberta_small gathers, from half as many tables: two rows of each.
return {
    name = "small_two_64",
    d = 512,
    h = 64,
    tau = 8,
    neighbours = 2,
    projection = { kind = "bh4", block = 64, decay = 0.7 },
    score = "gelu",
    norm = { kind = "layernorm", eps = 1e-5 },
}
