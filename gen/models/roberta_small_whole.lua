-- The authors' small RoBERTa with LookupFFN, whole: 4 layers, from ids to logits of masked words.
return {
    name = "roberta_small_whole",
    d = 512,
    heads = 8,
    layers = 4,
    vocab = 50265,
    positions = 514,
    token_types = 1,
    attention = { causal = false, context = 512 },
    ffn = {
        kind = "lookup",
        h = 128,
        tau = 8,
        projection = { kind = "bh4", block = 64, decay = 0.7 },
        score = "gelu",
    },
    skip = true,
    norm = { kind = "layernorm", eps = 1e-5 },
    embedding = { first_position = 2, norm = { kind = "layernorm", eps = 1e-5 } },
    output = {
        norm = { kind = "layernorm", eps = 1e-5 },
        dense = { width = 512, activation = "gelu", norm = { kind = "layernorm", eps = 1e-5 } },
        head = { bias = true },
    },
    checkpoint = "lookupffn",
}
