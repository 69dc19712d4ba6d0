"""Definitions of whole models in NumPy, float64: from ids to results, with random tensors that are made when they are first asked for."""
import numpy as np

import sentence_encoder
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


def attend(q, k, v, heads, kv_heads, causal, shape=None, window=None, scale=None, cap=None):
    """shape: alpha, beta and gamma of each head, of shaped attention; window: a token sees only others that are less far away."""
    n, width = len(q), q.shape[1] // heads
    q, k, v = q.reshape(n, heads, width), k.reshape(n, kv_heads, width), v.reshape(n, kv_heads, width)
    k, v = (np.repeat(t, heads // kv_heads, axis=1) for t in (k, v))
    scores = np.einsum("ihw,jhw->hij", q, k) * (scale or width**-0.5)
    if cap:
        scores = cap * np.tanh(scores / cap)
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


def frequencies(half, theta, scaling=None):
    """Of rotary pairs, and the factor of cosines and sines, by the formulas of Llama 3.1 and of YaRN (arXiv 2309.00071)."""
    f, s = theta ** (-np.arange(half) / half), scaling or {"kind": "none"}
    if s["kind"] == "linear":
        return f / s["factor"], 1.0
    if s["kind"] == "llama3":
        wavelength, low, high = 2 * np.pi / f, s.get("slow", 1), s["fast"]
        smooth = (s["original"] / wavelength - low) / (high - low)
        between = (1 - smooth) * f / s["factor"] + smooth * f
        return np.where(wavelength < s["original"] / high, f, np.where(wavelength > s["original"] / low, f / s["factor"], between)), 1.0
    if s["kind"] == "yarn":
        low, high = (2 * half * np.log(s["original"] / (turns * 2 * np.pi)) / (2 * np.log(theta)) for turns in (s["fast"], s.get("slow", 1)))
        if s.get("truncate", True):
            low, high = np.floor(low), np.ceil(high)
        low, high = max(low, 0), min(high, 2 * half - 1)
        ramp = np.clip((np.arange(half) - low) / (high - low or 0.001), 0, 1)
        return f / s["factor"] * ramp + f * (1 - ramp), s.get("attention_factor", 0.1 * np.log(s["factor"]) + 1)
    return f, 1.0


def rotated(x, heads, theta, share=1, interleaved=False, scaling=None):
    """share: of a head's width that turns, from its beginning on; interleaved: 2i and 2i + 1 turn together."""
    n, width = len(x), x.shape[1] // heads
    x, half = x.reshape(n, heads, width), int(width * share) // 2
    f, factor = frequencies(half, theta, scaling)
    angles = np.arange(n)[:, None] * f
    cos, sin = factor * np.cos(angles)[:, None, :], factor * np.sin(angles)[:, None, :]
    first, rest = x[..., : 2 * half], x[..., 2 * half :]
    a, b = (first[..., ::2], first[..., 1::2]) if interleaved else (first[..., :half], first[..., half:])
    pairs = (a * cos - b * sin, b * cos + a * sin)
    turned = np.stack(pairs, axis=3).reshape(n, heads, 2 * half) if interleaved else np.concatenate(pairs, axis=2)
    return np.concatenate([turned, rest], axis=2).reshape(n, heads * width)


def hadamard(n):
    return np.array([[1.0]]) if n == 1 else np.kron(np.array([[1, 1], [1, -1]]), hadamard(n // 2))


def bh4(x, weights, decay):
    """z of x [tokens][d] by weights [repeats][4][blocks][b out][b in], without bias."""
    n, padded = len(x), weights.shape[2] * weights.shape[3]
    wide, parts = np.pad(x, ((0, 0), (0, padded - x.shape[1]))), []
    for repeat in weights:
        y = wide
        for stage in repeat:
            y = np.einsum("tbi,boi->tbo", y.reshape(n, -1, weights.shape[3]), stage).reshape(n, padded) @ hadamard(padded)
        parts.append(decay * y + (1 - decay) * wide)
    return np.concatenate(parts, axis=1)


def looked_up(z, tables, score="gelu", neighbours=1):
    """The sum of so many of the best rows of each table, tables [h][2^tau][d], by z [tokens][h][tau]."""
    magnitude, bits = np.abs(z), 1 << np.arange(z.shape[2] - 1, -1, -1)
    p, total = np.prod(1 / (1 + np.exp(-2 * magnitude)), axis=2), magnitude.sum(axis=2)
    code = ((z > 0) * bits).sum(axis=2)
    # A flipped bit costs a factor of exp(-2 |z|): the best rows are those whose flipped bits have the least sums.
    flips = np.array(list(np.ndindex(*[2] * z.shape[2])))
    costs = np.einsum("thj,fj->thf", magnitude, flips)
    best = np.argpartition(costs, neighbours - 1, axis=2)[:, :, :neighbours]
    lost = 2 * np.take_along_axis(costs, best, axis=2)
    weight = 1 if score == "one" else p[:, :, None] * np.exp(-lost)
    weight = weight * (total[:, :, None] - lost) if score == "gelu" else weight
    return np.einsum("thm,thmd->td", weight * np.ones(best.shape), tables[np.arange(z.shape[1])[:, None], code[:, :, None] ^ best])


def lookup_ffn(c, prefix, x, h, tau, block=0, score="gelu", neighbours=1, scale="none", out=None):
    """A LookupFFN of `out` outputs, None: of d: BH4 with blocks of that size, or a dense projection."""
    d, bits = x.shape[1], h * tau
    out = out or d
    if block:
        padded = 1 << (d - 1).bit_length()
        shape = (-(-bits // padded), 4, padded // block, block, block)
        z = bh4(x, c.get(prefix + "hash.projection.weight", *shape, deviation=(block * padded) ** -0.5), 0.7)[:, :bits]
    else:
        z = x @ c.get(prefix + "hash.projection.weight", bits, d).T
    z = (z + c.get(prefix + "hash.projection.bias", bits, deviation=0.7)).reshape(len(x), h, tau)
    tables, bias = c.get(prefix + "tables", h, 1 << tau, out, deviation=0.5), c.get(prefix + "bias", out, deviation=0.1)
    return bias + looked_up(z, tables * (1 / h if scale == "1/h" else 1), score, neighbours)


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
    """The sentence encoder with other sizes: a first block that widens, matrices stored [in][out]."""
    scope, variables, end = sentence_encoder.SCOPE, sentence_encoder.VARIABLES, "/ConcatPartitions/concat"
    tensors = {"module/Embeddings_en": c.get("module/Embeddings_en", 30, 16, deviation=0.5), sentence_encoder.FREQUENCIES: 10000.0 ** (-np.arange(8) / 7)}

    def add_linear(weight, bias, rows, columns, *leading):
        tensors[weight] = c.get(weight, *leading, rows, columns, deviation=rows**-0.5)
        tensors[bias] = c.get(bias, columns, deviation=0.1)

    for layer, width in enumerate((16, 24)):
        name, d = "Layer_%d/TransformerLayer/" % layer, 24
        for part, columns in (("", width), ("FFN/", d)):
            norm = scope + name + part + "layer_prepostprocess/layer_norm/layer_norm_"
            tensors[norm + "scale" + end] = c.get(norm + "scale" + end, columns, mean=1.0, deviation=0.1)
            tensors[norm + "bias" + end] = c.get(norm + "bias" + end, columns, deviation=0.1)
        for part, columns in (("qkv", 3 * width), ("output", d)):
            part = name + "MultiheadAttention/%s_transform_single/" % part
            add_linear(variables + part + "kernel/part_0", scope + part + "bias" + end, width, columns, 1, 1)
        if width != d:
            add_linear(scope + name + "dense/kernel" + end, scope + name + "dense/bias" + end, width, d)
        for part, rows, columns in (("FFN/conv1/", d, 36), ("FFN/conv2/", 36, d)):
            add_linear(scope + "TransformerStack/" + name + part + "Tensordot/Reshape_1", scope + name + part + "bias" + end, rows, columns)
    last = "module/Encoder_en/hidden_layers/tanh_layer_0/"
    add_linear(last + "weights", last + "bias", 24, 20)
    return sentence_encoder.encode_equal(tensors, ids[None], heads=2)


SENTENCE = """{ name = "m", d = 24, heads = 2, layers = { { d_in = 16, head_dim = 8 }, {} }, vocab = 30, skip = true,
    norm = { kind = "layernorm", eps = 1e-6 }, attention = { causal = false, context = 33 }, ffn = { kind = "mlp", f = 36, activation = "relu" },
    embedding = { scale = 2, sinusoidal = { order = "halves", steps = "n-1" } },
    output = { pool = "mean", dense = { width = 20, activation = "tanh" }, unit = true }, checkpoint = "use" }"""
