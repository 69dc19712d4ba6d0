-- AMD Zen 5, measured: 32 MiB of L3; the TLB of its L1 covers 192 MiB in pages of 2 MiB.
return {
    cpus = { { "AuthenticAMD", 26, 0, 47 }, { "AuthenticAMD", 26, 64, 79 }, { "AuthenticAMD", 26, 96, 127 } },
    architecture = "x86",
    isa = { "scalar", "sse4", "avx2", "avx_vnni", "avx512", "avx512_bf16" },
    l2_bytes = 1 << 20,

    tile_vectors = 4,
    rows_first = 1,
    copies = 2,
    integers_ahead = 4,
    floats_ahead = 4,
    codes_ahead = 0,

    integers_met = 4,
    floats_met = 0,
    whole_up_to = 32 << 20,
    integers_into_l2 = 32 << 20,
    floats_into_l2 = 32 << 20,
    whole_rows = 128,

    few_into_l2 = 32 << 20,
    few_prefetch = 1,
    far = 192 << 20,
    far_lines = 16,
    far_rows = 64,
    tables_at_once = 256,

    product_prefetch = 0,
    attention_prefetch = 1,
    attention_converted = 1,
}
