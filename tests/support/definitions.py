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


def lookup_ffn(c, prefix, x, h, tau, block=0, score="gelu", neighbours=1, scale="none"):
    """A LookupFFN of d outputs: BH4 with blocks of that size, or a dense projection."""
    d, bits = x.shape[1], h * tau
    if block:
        padded = 1 << (d - 1).bit_length()
        shape = (-(-bits // padded), 4, padded // block, block, block)
        z = bh4(x, c.get(prefix + "hash.projection.weight", *shape, deviation=(block * padded) ** -0.5), 0.7)[:, :bits]
    else:
        z = x @ c.get(prefix + "hash.projection.weight", bits, d).T
    z = (z + c.get(prefix + "hash.projection.bias", bits, deviation=0.7)).reshape(len(x), h, tau)
    tables, bias = c.get(prefix + "tables", h, 1 << tau, d, deviation=0.5), c.get(prefix + "bias", d, deviation=0.1)
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
