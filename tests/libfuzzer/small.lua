-- A LookupFFN whose files have few bytes, for fuzz targets.
return {
    name = "small",
    d = 6,
    h = 3,
    tau = 3,
    projection = { kind = "bh4", block = 4 },
    score = "gelu",
    norm = { kind = "layernorm" },
}
