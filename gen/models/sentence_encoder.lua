-- Universal Sentence Encoder lite: two blocks of different widths, a mean over tokens and a dense layer make a vector
-- of 512 values of length 1 from a sentence.
return {
    name = "sentence_encoder",
    d = 512,
    heads = 4,
    layers = { { d_in = 256, d = 512, heads = 4, head_dim = 64 }, { d = 512, heads = 4 } },
    vocab = 8002,
    skip = true,
    norm = { kind = "layernorm", eps = 1e-6 },
    attention = { context = 128, causal = false },
    ffn = { kind = "mlp", f = 1536, activation = "relu" },
    embedding = { scale = 2, sinusoidal = { order = "halves", steps = "n-1" } },
    output = { pool = "mean", dense = { width = 512, activation = "tanh" }, unit = true },
    checkpoint = "use",
}
