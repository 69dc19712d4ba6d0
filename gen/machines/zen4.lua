-- AMD Zen 4, measured.
return {
    cpus = { { "AuthenticAMD", 25, 16, 31 }, { "AuthenticAMD", 25, 96, 127 }, { "AuthenticAMD", 25, 160, 175 } },
    architecture = "x86",
    isa = { "scalar", "sse4", "avx2", "avx512", "avx512_bf16" },
    l2_bytes = 1 << 20,

    tile_vectors = 1,
    rows_first = 0,
    copies = 2,
    integers_ahead = 4,
    floats_ahead = 0,
    codes_ahead = 0,

    integers_met = 4,
    floats_met = 0,
    whole_up_to = math.huge,
    integers_into_l2 = 0,
    floats_into_l2 = 0,
    whole_rows = 32,

    few_into_l2 = 0,
    few_prefetch = 2,
    far = math.huge,
    far_lines = 2,
    far_rows = 16,
    tables_at_once = 256,

    product_prefetch = 0,
    attention_prefetch = 3,
    attention_converted = 2,
}
