-- Plain lookups: rows that no score multiplies, of widths that fill no vector.
return {
    name = "plain",
    d = 27,
    d_out = 19,
    h = 7,
    tau = 5,
    projection = { kind = "bh4", block = 8 },
    score = "one",
}
