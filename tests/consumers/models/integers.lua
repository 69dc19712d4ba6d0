-- A layer without floating point: emit and pack it with --arithmetic integer.
return {
    name = "integers",
    d = 64,
    h = 8,
    tau = 6,
    projection = { kind = "bh4", block = 16, decay = 0.7 },
    score = "gelu",
    norm = { kind = "layernorm", eps = 1e-5 },
    budget = 1e-2,
}
