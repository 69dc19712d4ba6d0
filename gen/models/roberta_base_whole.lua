-- RoBERTa-base with LookupFFN (table 2 of the paper), whole: 12 layers, from ids to logits of masked words.
return {
    name = "roberta_base_whole",
    d = 768,
    heads = 12,
    layers = 12,
    vocab = 50265,
    positions = 514,
    token_types = 1,
    attention = { causal = false, context = 512 },
    ffn = {
        kind = "lookup",
        h = 170,
        tau = 9,
        projection = { kind = "bh4", block = 64, decay = 0.7 },
        score = "gelu",
    },
    skip = true,
    norm = { kind = "layernorm", eps = 1e-5 },
    embedding = { first_position = 2, norm = { kind = "layernorm", eps = 1e-5 } },
    output = {
        norm = { kind = "layernorm", eps = 1e-5 },
        dense = { width = 768, activation = "gelu", norm = { kind = "layernorm", eps = 1e-5 } },
        head = { bias = true },
    },
    checkpoint = "lookupffn",
}
