-- Pythia-6.9B without skip connections and norms (arXiv 2404.12362, section 4): an architecture of its own, for no
-- exact fusion takes P out of a parallel block.
return {
    name = "pythia_6_9b_skipless",
    d = 4096,
    heads = 32,
    layers = 32,
    vocab = 50400,
    parallel = true,
    attention = { eliminate = "QP", rope = { theta = 10000, share = 0.25 }, context = 2048 },
    ffn = { kind = "mlp", f = 16384, activation = "gelu" },
    checkpoint = "gpt_neox",
}
