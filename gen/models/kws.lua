-- A head the size of keyword spotting, for microcontrollers without a floating-point unit: with --arithmetic integer
-- under 128 KiB of flash. For so small a d one dense matrix of 6,144 weights is less work than BH4's 7,680 in eight
-- stages.
return {
    name = "kws",
    d = 64,
    h = 16,
    tau = 6,
    projection = { kind = "dense" },
    score = "gelu",
    norm = { kind = "layernorm", eps = 1e-5 },
    budget = 2e-2,
}
