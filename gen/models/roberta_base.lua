-- RoBERTa-base with LookupFFN (table 2 of the paper): 1.39 MFLOP a token instead of 9.44.
return {
    name = "roberta_base",
    d = 768,
    h = 170,
    tau = 9,
    projection = { kind = "bh4", block = 64, decay = 0.7 },
    score = "gelu",
    norm = { kind = "layernorm", eps = 1e-5 },
}
