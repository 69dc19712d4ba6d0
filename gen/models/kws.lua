-- A head the size of keyword spotting, for microcontrollers without a floating-point unit: with --arithmetic integer under 128 KiB of flash.
return {
    name = "kws",
    d = 64,
    h = 16,
    tau = 6,
    projection = { kind = "bh4", block = 16, decay = 0.7 },
    score = "gelu",
    norm = { kind = "layernorm", eps = 1e-5 },
    budget = 2e-2,
}
