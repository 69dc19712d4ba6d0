"""Definitions of whole models in NumPy, float64: from ids to results, with random tensors that are made when they are first asked for."""
import numpy as np

from derivatives import ERF

ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1 + (x / np.sqrt(2)).erf() if hasattr(x, "erf") else 1 + ERF(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
}


class Checkpoint:
    """Random tensors, made when they are first asked for."""

    def __init__(self, seed):
        self.random, self.tensors = np.random.default_rng(seed), {}

    def get(self, name, *shape, mean=0.0, deviation=None):
        if name not in self.tensors:
            spread = deviation if deviation is not None else shape[-1] ** -0.5
            self.tensors[name] = (mean + spread * self.random.standard_normal(shape)).astype(np.float32)
        return self.tensors[name].astype(np.float64)

    def linear(self, name, out, x):
        return x @ self.get(name + ".weight", out, x.shape[1]).T + self.get(name + ".bias", out, deviation=0.1)

    def transposed(self, name, out, x):
        return x @ self.get(name + ".weight", x.shape[1], out, deviation=x.shape[1] ** -0.5) + self.get(name + ".bias", out, deviation=0.1)

    def norm(self, name, x, eps, mean=True):
        gain = self.get(name + ".weight", x.shape[1], mean=1.0, deviation=0.1)
        if not mean:
            return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + eps) * gain
        offset = self.get(name + ".bias", x.shape[1], deviation=0.1)
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps) * gain + offset


def attend(q, k, v, heads, kv_heads, causal, shape=None, window=None, scale=None):
    """shape: alpha, beta and gamma of each head, of shaped attention; window: a token sees only others that are less far away."""
    n, width = len(q), q.shape[1] // heads
    q, k, v = q.reshape(n, heads, width), k.reshape(n, kv_heads, width), v.reshape(n, kv_heads, width)
    k, v = (np.repeat(t, heads // kv_heads, axis=1) for t in (k, v))
    scores = np.einsum("ihw,jhw->hij", q, k) * (scale or width**-0.5)
    if causal:
        scores += np.triu(np.full((n, n), -np.inf), 1)
    if window:
        scores += np.where(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) < window, 0, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    if shape is not None:
        seen = np.tril(np.ones((n, n))) if causal else np.ones((n, n))
        alpha, beta, gamma = shape.T[:, :, None, None]
        weights = alpha * np.eye(n) + beta * weights - gamma * seen / seen.sum(axis=1, keepdims=True)
    return np.einsum("hij,jhw->ihw", weights, v).reshape(n, heads * width)


def sines(n, width, order, steps, most=10000.0):
    half = width // 2
    angles = np.arange(n)[:, None] * most ** (-np.arange(half) / (half - 1 if steps == "n-1" else half))
    if order == "halves":
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(n, width)


def rotated(x, heads, theta, share=1, interleaved=False):
    """share: of a head's width that turns, from its beginning on; interleaved: 2i and 2i + 1 turn together."""
    n, width = len(x), x.shape[1] // heads
    x, half = x.reshape(n, heads, width), int(width * share) // 2
    angles = np.arange(n)[:, None] * theta ** (-np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    first, rest = x[..., : 2 * half], x[..., 2 * half :]
    a, b = (first[..., ::2], first[..., 1::2]) if interleaved else (first[..., :half], first[..., half:])
    pairs = (a * cos - b * sin, b * cos + a * sin)
    turned = np.stack(pairs, axis=3).reshape(n, heads, 2 * half) if interleaved else np.concatenate(pairs, axis=2)
    return np.concatenate([turned, rest], axis=2).reshape(n, heads * width)


def hadamard(n):
    return np.array([[1.0]]) if n == 1 else np.kron(np.array([[1, 1], [1, -1]]), hadamard(n // 2))


def lookup_ffn(c, prefix, x, h, tau, block=0, score="gelu", neighbours=1, decay=0.7, scale="none"):
    """A LookupFFN of d outputs: BH4 with blocks of that size, or a dense projection; so many of the best rows of each table."""
    n, d = x.shape
    if block:
        padded = 1 << (d - 1).bit_length()
        repeats = -(-h * tau // padded)
        weights = c.get(prefix + "hash.projection.weight", repeats, 4, padded // block, block, block, deviation=(block * padded) ** -0.5)
        wide = np.pad(x, ((0, 0), (0, padded - d)))
        parts = []
        for repeat in weights:
            y = wide
            for stage in repeat:
                y = np.einsum("tbi,boi->tbo", y.reshape(n, padded // block, block), stage).reshape(n, padded) @ hadamard(padded)
            parts.append(decay * y + (1 - decay) * wide)
        z = np.concatenate(parts, axis=1)[:, : h * tau]
    else:
        z = x @ c.get(prefix + "hash.projection.weight", h * tau, d).T
    z = (z + c.get(prefix + "hash.projection.bias", h * tau, deviation=0.7)).reshape(n, h, tau)
    tables, bias = c.get(prefix + "tables", h, 1 << tau, d, deviation=0.5), c.get(prefix + "bias", d, deviation=0.1)
    magnitude, bits = np.abs(z), 1 << np.arange(tau - 1, -1, -1)
    p, total = np.prod(1 / (1 + np.exp(-2 * magnitude)), axis=2), magnitude.sum(axis=2)
    code = ((z > 0) * bits).sum(axis=2)
    # A flipped bit costs a factor of exp(-2 |z|): the best rows are those whose flipped bits have the least sums.
    flips = np.array(list(np.ndindex(*[2] * tau)))
    costs = np.einsum("thj,fj->thf", magnitude, flips)
    best = np.argpartition(costs, neighbours - 1, axis=2)[:, :, :neighbours]
    lost = 2 * np.take_along_axis(costs, best, axis=2)
    weight = (1 if score == "one" else p[:, :, None] * np.exp(-lost)) * (1 / h if scale == "1/h" else 1)
    weight = weight * (total[:, :, None] - lost) if score == "gelu" else weight
    return bias + np.einsum("thm,thmd->td", weight * np.ones(best.shape), tables[np.arange(h)[:, None], code[:, :, None] ^ best])


def gpt(c, ids, stored_in_out=False):
    """minGPT's decoder: learned positions, pre-norm blocks, a head of its own; GPT-2's: matrices stored [in][out], the head is the embedding."""
    linear = c.transposed if stored_in_out else c.linear
    d, x = 24, c.get("transformer.wte.weight", 29, 24, deviation=0.5)[ids]
    x = x + c.get("transformer.wpe.weight", 20, 24, deviation=0.3)[: len(ids)]
    for layer in range(2):
        name = "transformer.h.%d." % layer
        q, k, v = np.split(linear(name + "attn.c_attn", 3 * d, c.norm(name + "ln_1", x, 1e-5)), 3, axis=1)
        x = x + linear(name + "attn.c_proj", d, attend(q, k, v, 4, 4, True))
        inner = ACTIVATIONS["gelu_tanh"](linear(name + "mlp.c_fc", 40, c.norm(name + "ln_2", x, 1e-5)))
        x = x + linear(name + "mlp.c_proj", d, inner)
    head = c.get("transformer.wte.weight", 29, d) if stored_in_out else c.get("lm_head.weight", 29, d)
    return c.norm("transformer.ln_f", x, 1e-5) @ head.T


def gpt2(c, ids):
    return gpt(c, ids, stored_in_out=True)


GPT = """{ name = "m", d = 24, heads = 4, layers = 2, vocab = 29, positions = 20, skip = true, norm = { kind = "layernorm" },
    attention = { context = 20 }, ffn = { kind = "mlp", f = 40, activation = "gelu_tanh" }, embedding = {},
    output = { norm = { kind = "layernorm" }, head = {} }, checkpoint = "mingpt" }"""


def shaped(c, ids, causal=True):
    """Parallel blocks without skip connections and norms, whose attention is shaped and does without V and P."""
    d, x = 32, c.get("model.embed_tokens.weight", 31, 32, deviation=1.0)[ids]
    for layer in range(3):
        name = "model.layers.%d." % layer
        q, k = (x @ c.get(name + "self_attn.%s_proj.weight" % letter, out, d).T for letter, out in (("q", d), ("k", d)))
        parts = c.get(name + "attention_shape", 4, 3, mean=0.8, deviation=0.2)
        inner = x @ c.get(name + "mlp.up_proj.weight", 48, d).T
        mixed = attend(rotated(q, 4, 1e4), rotated(k, 4, 1e4), x, 4, 4, causal, parts)
        x = mixed + ACTIVATIONS["gelu"](inner) @ c.get(name + "mlp.down_proj.weight", d, 48).T
    return x @ c.get("lm_head.weight", 31, d).T


def shaped_encoder(c, ids):
    return shaped(c, ids, causal=False)


SHAPED = """{ name = "m", d = 32, heads = 4, layers = 3, vocab = 31, parallel = true,
    attention = { context = 70, rope = {}, shaped = true, eliminate = "VP" },
    ffn = { kind = "mlp", f = 48, activation = "gelu" }, embedding = {}, output = { head = {} } }"""
SHAPED_ENCODER = SHAPED.replace("shaped = true", "shaped = true, causal = false")

def llama(c, ids, window=None, theta=1e4, biased=False, plain_ends=False):
    """Rotary positions, RMSNorm, a gated FFN, heads that share keys and values, an embedding that is the head, scaled, and a soft cap; with
    plain_ends no scale, no cap, and a head of its own. biased: q, k and v have biases."""
    d, words = 40, c.get("model.embed_tokens.weight", 70, 40, deviation=0.3)
    x = words[ids] if plain_ends else 1.5 * words[ids]

    def plain(name, out, y):
        return y @ c.get(name + ".weight", out, y.shape[1]).T

    for layer in range(3):
        name = "model.layers.%d." % layer
        y = c.norm(name + "input_layernorm", x, 1e-6, mean=False)
        q, k, v = ((c.linear if biased else plain)(name + "self_attn.%s_proj" % letter, out, y) for letter, out in (("q", d), ("k", 20), ("v", 20)))
        x = x + plain(name + "self_attn.o_proj", d, attend(rotated(q, 4, theta), rotated(k, 2, theta), v, 4, 2, True, window=window))
        y = c.norm(name + "post_attention_layernorm", x, 1e-6, mean=False)
        x = x + plain(name + "mlp.down_proj", d, ACTIVATIONS["silu"](plain(name + "mlp.gate_proj", 33, y)) * plain(name + "mlp.up_proj", 33, y))
    y = c.norm("model.norm", x, 1e-6, mean=False)
    return y @ c.get("lm_head.weight", 70, d).T if plain_ends else 5 * np.tanh(y @ words.T / 5)


LLAMA = """{ name = "m", d = 40, heads = 4, kv_heads = 2, layers = 3, vocab = 70, tied = true, skip = true, norm = { kind = "rmsnorm", eps = 1e-6 },
    attention = { context = 64, rope = {} }, ffn = { kind = "glu", f = 33, activation = "silu" }, embedding = { scale = 1.5 },
    output = { norm = { kind = "rmsnorm", eps = 1e-6 }, head = { soft_cap = 5 } } }"""


def mistral(c, ids):
    return llama(c, ids, window=9, theta=1e6, plain_ends=True)


def qwen2(c, ids):
    return llama(c, ids, theta=1e6, biased=True, plain_ends=True)


def gpt_neox(c, ids, parallel=True):
    """A quarter of each head turns; q, k and v of a head lie beside each other; attention and FFN read the same input, or follow each other."""
    d, heads, x = 32, 4, c.get("gpt_neox.embed_in.weight", 37, 32, deviation=0.5)[ids]
    for layer in range(2):
        name = "gpt_neox.layers.%d." % layer
        packed = c.linear(name + "attention.query_key_value", 3 * d, c.norm(name + "input_layernorm", x, 1e-5))
        q, k, v = (part.reshape(len(ids), d) for part in np.split(packed.reshape(len(ids), heads, 3 * d // heads), 3, axis=2))
        mixed = c.linear(name + "attention.dense", d, attend(rotated(q, heads, 1e4, 0.25), rotated(k, heads, 1e4, 0.25), v, heads, heads, True))
        y = x if parallel else x + mixed
        inner = ACTIVATIONS["gelu"](c.linear(name + "mlp.dense_h_to_4h", 50, c.norm(name + "post_attention_layernorm", y, 1e-5)))
        x = x + mixed + c.linear(name + "mlp.dense_4h_to_h", d, inner)
    return c.norm("gpt_neox.final_layer_norm", x, 1e-5) @ c.get("embed_out.weight", 37, d).T


def gpt_neox_in_turn(c, ids):
    return gpt_neox(c, ids, parallel=False)


# config.json, of which `lookupc import` makes the model file.
LLAMA_SHAPE = {"hidden_size": 40, "intermediate_size": 33, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3,
               "vocab_size": 70, "max_position_embeddings": 64, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1e6}
MISTRAL = {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 9, **LLAMA_SHAPE}
QWEN2 = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "sliding_window": 9, "use_sliding_window": False, **LLAMA_SHAPE}
GPT_NEOX = {"model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], "hidden_size": 32, "intermediate_size": 50,
            "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 37, "max_position_embeddings": 48, "hidden_act": "gelu"}


def bert(c, ids, base, d_embedding=0):
    """Post-norm blocks behind words, positions and token types."""
    first = 2 if base == "roberta." else 0
    d, width = 32, d_embedding or 32
    x = c.get(base + "embeddings.word_embeddings.weight", 41, width, deviation=1.0)[ids]
    x = x + c.get(base + "embeddings.position_embeddings.weight", 34, width, deviation=0.3)[first : first + len(ids)]
    x = x + c.get(base + "embeddings.token_type_embeddings.weight", 2, width, deviation=0.3)[0]
    x = c.norm(base + "embeddings.LayerNorm", x, 1e-12)
    if d_embedding:
        x = c.linear(base + "embeddings_project", d, x)
    for layer in range(2):
        name = base + "encoder.layer.%d." % layer
        q, k, v = (c.linear(name + "attention.self." + word, d, x) for word in ("query", "key", "value"))
        mixed = c.linear(name + "attention.output.dense", d, attend(q, k, v, 4, 4, False))
        x = c.norm(name + "attention.output.LayerNorm", x + mixed, 1e-12)
        inner = ACTIVATIONS["gelu"](c.linear(name + "intermediate.dense", 56, x))
        x = c.norm(name + "output.LayerNorm", x + c.linear(name + "output.dense", d, inner), 1e-12)
    return x


def bert_model(checkpoint, first, output, more="", embedding=""):
    return """{ name = "m", d = 32, heads = 4, layers = 2, vocab = 41, positions = 34, token_types = 2, skip = true, %s
    norm = { kind = "layernorm", eps = 1e-12, place = "post" }, attention = { causal = false, context = %d },
    ffn = { kind = "mlp", f = 56, activation = "gelu" }, embedding = { %s norm = { kind = "layernorm", eps = 1e-12 } },
    output = { %s }, checkpoint = "%s" }""" % (more, 34 - first, embedding, output, checkpoint)


def masked(c, ids):
    """RoBERTa's head: dense, gelu, norm, and the embedding again, with a bias."""
    x = ACTIVATIONS["gelu"](c.linear("lm_head.dense", 32, bert(c, ids, "roberta.")))
    x = c.norm("lm_head.layer_norm", x, 1e-5)
    return x @ c.tensors["roberta.embeddings.word_embeddings.weight"].astype(np.float64).T + c.get("lm_head.bias", 41, deviation=0.5)


def pooled(c, ids):
    """BERT's pooler on the mean of all tokens, of length 1; narrow rows of the embedding."""
    x = bert(c, ids, "bert.", d_embedding=18).mean(axis=0, keepdims=True)
    x = np.tanh(c.linear("bert.pooler.dense", 32, x))
    return x / np.linalg.norm(x)


def classified(c, ids):
    """Scores of five classes from the first token."""
    x = np.tanh(c.linear("bert.pooler.dense", 32, bert(c, ids, "bert.")[:1]))
    return c.linear("classifier", 5, x)


def summed(c, ids):
    """The sum of all tokens / sqrt(n)."""
    return bert(c, ids, "roberta.").sum(axis=0, keepdims=True) / np.sqrt(len(ids))


def last(c, ids):
    return bert(c, ids, "roberta.")[-1:]


def sentence(c, ids):
    """The sentence encoder's shape: sinusoidal positions, a first block that widens, matrices stored [in][out]."""
    tensorflow, variables = "module_apply_default/Encoder_en/KonaTransformer/Encode/", "module/Encoder_en/KonaTransformer/Encode/"

    def linear(weight, bias, out, x, leading=False):
        shape = (1, 1, x.shape[1], out) if leading else (x.shape[1], out)
        matrix = c.get(weight, *shape, deviation=x.shape[1] ** -0.5).reshape(x.shape[1], out)
        return x @ matrix + c.get(bias, out, deviation=0.1)

    def norm(name, x):
        gain = c.get(name + "layer_norm_scale/ConcatPartitions/concat", x.shape[1], mean=1.0, deviation=0.1)
        offset = c.get(name + "layer_norm_bias/ConcatPartitions/concat", x.shape[1], deviation=0.1)
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-6) * gain + offset

    x = 2 * c.get("module/Embeddings_en", 30, 16, deviation=0.5)[ids] + sines(len(ids), 16, "halves", "n-1")
    for layer, (heads, q_width, d) in enumerate(((2, 16, 24), (2, 24, 24))):
        name = "Layer_%d/TransformerLayer/" % layer
        single = "MultiheadAttention/%s_transform_single/"
        end = "bias/ConcatPartitions/concat"
        y = norm(tensorflow + name + "layer_prepostprocess/layer_norm/", x)
        qkv = linear(variables + name + single % "qkv" + "kernel/part_0", tensorflow + name + single % "qkv" + end, 3 * q_width, y, True)
        q, k, v = np.split(qkv, 3, axis=1)
        mixed = linear(variables + name + single % "output" + "kernel/part_0", tensorflow + name + single % "output" + end, d,
                       attend(q, k, v, heads, heads, False), True)
        if layer == 0:
            x = linear(tensorflow + name + "dense/kernel/ConcatPartitions/concat", tensorflow + name + "dense/" + end, d, x)
        x = x + mixed
        y = norm(tensorflow + name + "FFN/layer_prepostprocess/layer_norm/", x)
        stack = tensorflow + "TransformerStack/" + name + "FFN/%s/Tensordot/Reshape_1"
        inner = np.maximum(linear(stack % "conv1", tensorflow + name + "FFN/conv1/" + end, 36, y), 0)
        x = x + linear(stack % "conv2", tensorflow + name + "FFN/conv2/" + end, d, inner)
    tanh_layer = "module/Encoder_en/hidden_layers/tanh_layer_0/"
    x = np.tanh(linear(tanh_layer + "weights", tanh_layer + "bias", 20, x.mean(axis=0, keepdims=True)))
    return x / np.linalg.norm(x)


SENTENCE = """{ name = "m", d = 24, heads = 2, layers = { { d_in = 16, head_dim = 8 }, {} }, vocab = 30, skip = true,
    norm = { kind = "layernorm", eps = 1e-6 }, attention = { causal = false, context = 33 }, ffn = { kind = "mlp", f = 36, activation = "relu" },
    embedding = { scale = 2, sinusoidal = { order = "halves", steps = "n-1" } },
    output = { pool = "mean", dense = { width = 20, activation = "tanh" }, unit = true }, checkpoint = "use" }"""
