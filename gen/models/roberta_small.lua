-- The authors' small RoBERTa: one LookupFFN layer.
return {
    name = "roberta_small",
    d = 512,
    h = 128,
    tau = 8,
    projection = { kind = "bh4", block = 64, decay = 0.7 },
    score = "gelu",
    norm = { kind = "layernorm", eps = 1e-5 },
}
