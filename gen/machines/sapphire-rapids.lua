-- Intel Sapphire and Emerald Rapids, measured.
return {
    cpus = { { "GenuineIntel", 6, 143, 143 }, { "GenuineIntel", 6, 207, 207 } },
    architecture = "x86",
    isa = { "scalar", "sse4", "avx2", "avx_vnni", "avx512", "avx512_bf16", "amx_int8", "amx_bf16" },
    l2_bytes = 2 << 20,

    tile_vectors = 4,
    rows_first = 1,
    copies = 3,
    integers_ahead = 0,
    floats_ahead = 0,
    codes_ahead = 1,

    integers_met = 4,
    floats_met = 0,
    whole_up_to = math.huge,
    integers_into_l2 = 0,
    floats_into_l2 = math.huge,
    whole_rows = 32,

    few_into_l2 = 0,
    few_prefetch = 2,
    far = math.huge,
    far_lines = 2,
    far_rows = 16,
    tables_at_once = 256,

    product_prefetch = 1,
    attention_prefetch = 2,
    attention_converted = 2,
}
