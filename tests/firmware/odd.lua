-- Widths that fill no vector, rows of tables and weights in types of their own.
return {
    name = "odd",
    d = 27,
    d_out = 19,
    h = 7,
    tau = 5,
    projection = { kind = "bh4", block = 8 },
    score = "gelu",
    norm = { kind = "layernorm", eps = 1e-5 },
}
