-- The two best rows of each table, in integers; widths that fill no vector.
return {
    name = "two_rows",
    d = 27,
    d_out = 19,
    h = 7,
    tau = 5,
    projection = { kind = "bh4", block = 8 },
    score = "gelu",
    neighbours = 2,
    norm = { kind = "layernorm", eps = 1e-5 },
}
