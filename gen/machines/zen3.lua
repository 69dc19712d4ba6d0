-- AMD Zen 3, measured.
return {
    cpus = { { "AuthenticAMD", 25, 0, 15 }, { "AuthenticAMD", 25, 32, 95 } },
    architecture = "x86",
    isa = { "scalar", "sse4", "avx2" },
    l2_bytes = 512 << 10,

    tile_vectors = 4,
    rows_first = 0,
    copies = 1,
    integers_ahead = 4,
    floats_ahead = 2,
    codes_ahead = 1,

    integers_met = 1,
    floats_met = 2,
    whole_up_to = math.huge,
    integers_into_l2 = 0,
    floats_into_l2 = 128 << 20,
    whole_rows = 32,

    few_into_l2 = math.huge,
    few_prefetch = 2,
    far = 128 << 20,
    far_lines = 1,
    far_rows = 16,
    tables_at_once = 16,

    product_prefetch = 4096,
    attention_prefetch = 2,
    attention_converted = 2,
}
