-- A decoder that writes dictionary entries on a microcontroller: 3 blocks with LookupFFNs, 1 MB of flash, 64 KB of RAM.
return {
    name = "tiny_writer",
    d = 128, heads = 4, kv_heads = 1, layers = 3, vocab = 512,
    skip = true,
    norm = { kind = "rmsnorm" },
    attention = { context = 128, rope = {} },
    ffn = {
        kind = "lookup", h = 64, tau = 4, neighbours = 2, score = "gelu",
        projection = { kind = "bh4", block = 16 },
    },
    embedding = {},
    output = { norm = { kind = "rmsnorm" }, head = {} },
    tokenizer = { file = "pieces.model" },
}
