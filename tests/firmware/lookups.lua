-- A decoder with LookupFFNs in blocks of two shapes, the last one with a dense FFN beside it, rotary positions, grouped
-- queries, a tied head with a soft cap, and a tokenizer.
local projection, dense = { kind = "bh4", block = 8 }, { kind = "glu", f = 10, activation = "silu" }
return {
    name = "lookups",
    d = 32,
    heads = 4,
    kv_heads = 2,
    layers = {
        { count = 2 },
        {
            heads = 2,
            kv_heads = 1,
            ffn = { kind = "lookup", h = 6, tau = 4, projection = projection, dense = dense },
        },
    },
    vocab = 261,
    skip = true,
    tied = true,
    norm = { kind = "rmsnorm", eps = 1e-5 },
    attention = { context = 40, rope = { theta = 10000 } },
    ffn = { kind = "lookup", h = 6, tau = 4, projection = projection },
    embedding = { scale = 2 },
    output = { norm = { kind = "rmsnorm", eps = 1e-5 }, head = { soft_cap = 20 } },
    tokenizer = { kind = "bytes" },
    checkpoint = "llama",
}
