"""A whole model of any shape in float64: from the keys of its model file, as a dictionary, to that file and to the logits of its definition."""
import os

import numpy as np

import table_attention
from definitions import ACTIVATIONS, Checkpoint, attend, lookup_ffn, rotated, sines
from derivatives import Value
from transformer import NAMES

# Names that blocks alone do not have: norms of a layer, and of the output.
NORMS = {
    "llama": ("input_layernorm", "post_attention_layernorm", "model.norm"),
    "gemma": ("input_layernorm", "post_attention_layernorm", "model.norm"),
    "phi": ("input_layernorm", None, "model.final_layernorm"),
    "gpt_neox": ("input_layernorm", "post_attention_layernorm", "gpt_neox.final_layer_norm"),
    "roberta": ("attention.output.LayerNorm", "output.LayerNorm", None),
    "mingpt": ("ln_1", "ln_2", "transformer.ln_f"),
    "gpt2": ("ln_1", "ln_2", "transformer.ln_f"),
}
NORMS["phi3"] = NORMS["llama"]
BEHIND = ("pre_feedforward_layernorm", "post_attention_layernorm", "post_feedforward_layernorm")  # of place = "both", behind the first


def lua(value):
    """As Lua writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {lua(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "{ " + ", ".join(map(lua, value)) + " }"
    return '"' + value + '"' if isinstance(value, str) else str(value).lower()


def write(folder, name, m):
    path = os.path.join(folder, name + ".lua")
    with open(path, "w", encoding="ascii") as file:
        file.write("return " + lua(m) + "\n")
    return path


ATTENTION_VARIED = ("kind", "tables", "tau", "window", "eps", "seed", "unit")  # what `attention` of an entry of `layers` replaces


def blocks(m):
    """The keys of each block."""
    layers = m["layers"] if isinstance(m["layers"], list) else [{"count": m["layers"]}]
    rest = {key: value for key, value in m["attention"].items() if key not in ATTENTION_VARIED}
    attention = [{**rest, **own["attention"]} if "attention" in own else m["attention"] for own in layers]
    return [{**m, **own, "attention": a} for own, a in zip(layers, attention) for _ in range(own.get("count", 1))]


def by_tables(m):
    """Whether a block attends by tables."""
    return any(own["attention"].get("kind") == "lsh" for own in blocks(m))


class Maker:
    """What a definition takes from the checkpoint `c` of model `m`."""

    def __init__(self, c, m):
        self.c, self.m, self.family = c, m, m.get("checkpoint", "llama")
        self.names, self.biased, self.across = NAMES[self.family], self.family not in ("llama", "gemma", "phi3"), self.family == "gpt2"
        self.fused = m["attention"].get("eliminate", "none") != "none" or m["attention"].get("cache") == "k"

    def linear(self, name, out, x, alone=False, biased=False):
        if not self.biased and not biased:
            return x @ self.c.get(name + ".weight", out, x.shape[1]).T
        return (self.c.transposed if self.across and not alone else self.c.linear)(name, out, x)

    def norm(self, name, x, norm):
        if self.family == "gemma":  # x / rms * (1 + w)
            return self.one_plus(name, x, norm.get("eps", 1e-5))
        return self.c.norm(name, x, norm.get("eps", 1e-5), mean=norm["kind"] == "layernorm")

    def one_plus(self, name, x, eps):
        return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + eps) * (1 + self.c.get(name + ".weight", x.shape[1], deviation=0.3))

    def head_norm(self, name, x, width, eps):
        """RMSNorm of each head, with one gain for all of them."""
        if self.family == "gemma":
            return self.one_plus(name, x.reshape(-1, width), eps).reshape(x.shape)
        return self.c.norm(name, x.reshape(-1, width), eps, mean=False).reshape(x.shape)

    def unit(self, q, k, heads, width, scales):
        """Heads without their lengths, those of q times numbers of their own, if there are any."""
        q, k = (x.reshape(-1, width) / np.sqrt((x.reshape(-1, width) ** 2).mean(axis=1, keepdims=True) + 1e-6) for x in (q, k))
        n = len(q) // heads
        return (q.reshape(n, heads, width) * (1 if scales is None else scales.reshape(1, heads, 1))).reshape(n, -1), k.reshape(n, -1)

    def projections(self, prefix, x, heads, kv_heads, width, gone):
        """q, k and v of x."""
        if self.m["attention"].get("cache") == "k":
            q, k = (x if letter in gone else self.linear(prefix + self.names[letter], heads * width, x, True) for letter in "QK")
            return q, k, self.linear(prefix + self.names["V"] + "_from_k", heads * width, k, True)
        if self.family == "phi3":
            packed = self.linear(prefix + "self_attn.qkv_proj", (heads + 2 * kv_heads) * width, x)
            return np.split(packed, [heads * width, (heads + kv_heads) * width], axis=1)
        if gone or self.family not in ("gpt_neox", "mingpt", "gpt2"):
            outputs = {"Q": heads * width, "K": kv_heads * width, "V": kv_heads * width}
            return [x if letter in gone else self.linear(prefix + self.names[letter], out, x, True, self.m.get("qkv_biased")) for letter, out in outputs.items()]
        if self.family == "gpt_neox":
            packed = self.linear(prefix + "attention.query_key_value", 3 * heads * width, x).reshape(len(x), heads, 3, width)
            return [packed[:, :, i].reshape(len(x), heads * width) for i in range(3)]
        return np.split(self.linear(prefix + "attn.c_attn", 3 * heads * width, x), 3, axis=1)

    def ffn(self, prefix, x, ffn, d):
        if ffn["kind"] == "lookup":
            projection = ffn["projection"]
            block, scale = projection.get("block", 0), ffn.get("scale", "none")
            beside = self.ffn(prefix, x, ffn["dense"], d) if "dense" in ffn else 0
            name, kind = prefix + self.names["lookup"], (ffn["h"], ffn["tau"], block, ffn["score"], ffn.get("neighbours", 1), scale)
            return beside + lookup_ffn(self.c, name, x, *kind, out=d)
        alone, activation = self.fused, ACTIVATIONS[ffn["activation"]]
        if self.family == "phi3":
            gate, up = np.split(self.linear(prefix + "mlp.gate_up_proj", 2 * ffn["f"], x), 2, axis=1)
            return self.linear(prefix + self.names["O"], d, activation(gate) * up)
        hidden = self.linear(prefix + self.names["M"], ffn["f"], x, alone)
        if ffn["kind"] == "glu":
            hidden = activation(self.linear(prefix + self.names["G"], ffn["f"], x, alone)) * hidden
        else:
            hidden = activation(hidden)
        return self.linear(prefix + self.names["O"], d, hidden, alone)

    def mixed(self, prefix, x, m, width, number, looked=False):
        """Attention of block `number`, of the keys `m`, without P; looked: x begins with q, k and v."""
        a, heads, kv_heads = m["attention"], m["heads"], m.get("kv_heads", m["heads"])
        ends = heads * width, (heads + kv_heads) * width, (heads + 2 * kv_heads) * width
        q, k, v = (x[:, : ends[0]], x[:, ends[0] : ends[1]], x[:, ends[1] : ends[2]]) if looked else self.projections(prefix, x, heads, kv_heads, width, a.get("eliminate", "none").replace("none", ""))
        if "qk_norm" in a:
            q, k = (self.head_norm(prefix + f"self_attn.{word}_norm", x, width, a["qk_norm"].get("eps", 1e-6)) for word, x in (("q", q), ("k", k)))
        by_tables = a.get("kind") == "lsh"
        if a.get("unit") or by_tables:
            scales = None if by_tables else self.c.get(prefix + "attention_scale", heads, mean=1.5, deviation=0.2)
            q, k = self.unit(q, k, heads, width, scales)
        if "rope" in a:
            rope = a["rope"]
            how = (rope.get("theta", 1e4), rope.get("share", 1), rope.get("pairs") == "interleaved", rope.get("scaling"))
            q, k = rotated(q, heads, *how), rotated(k, kv_heads, *how)
        parts = self.c.get(prefix + "attention_shape", heads, 3, mean=0.8, deviation=0.2) if a.get("shaped") else None
        window = None if number in a.get("full_layers", []) else a.get("window")
        n = a.get("shifted", 0) * width
        if n:  # keys of the token before, of the first token its own
            rows = np.maximum(np.arange(len(q)) - 1, 0)
            k = np.concatenate([k[rows, :n], k[:, n:]], axis=1)
        if by_tables:
            signs = m.get("signs", table_attention.signs_of(m))
            return table_attention.attend(q, k, v, heads, kv_heads, a, signs and (lambda shape: signs(number, shape)))
        return attend(q, k, v, heads, kv_heads, a.get("causal", True), parts, window, a.get("scale"), a.get("soft_cap"))

    def block(self, number, x, m):
        prefix, d, heads = self.names["layer"] % number, m["d"], m["heads"]
        kv_heads, width = m.get("kv_heads", heads), m.get("head_dim", d // heads)
        norm, skip, gone = m.get("norm"), m.get("skip", False), m["attention"].get("eliminate", "none")
        pre, post = norm and norm.get("place") != "post", norm and norm.get("place") == "post"
        first, second, _ = NORMS[self.family]
        second = first if norm and norm.get("shared") else second
        both, behind_attention, behind_ffn = norm and norm.get("place") == "both", None, None
        if both:
            second, behind_attention, behind_ffn = BEHIND
        if m["ffn"].get("qkv"):
            rows = self.ffn(prefix, self.norm(prefix + first, x, norm) if pre else x, m["ffn"], 2 * d + 2 * kv_heads * width)
            made = self.mixed(prefix, rows, m, width, number, True) + rows[:, -d:]
            return x + made if skip else made
        mixed = self.mixed(prefix, self.norm(prefix + first, x, norm) if pre else x, m, width, number)
        if "P" not in gone:
            mixed = self.linear(prefix + self.names["P"], d, mixed, alone=self.fused)
        if both:
            mixed = self.norm(prefix + behind_attention, mixed, norm)
        if m.get("parallel"):
            made = self.ffn(prefix, self.norm(prefix + second, x, norm) if pre else x, m["ffn"], d)
            made = mixed + (self.norm(prefix + behind_ffn, made, norm) if both else made)
            return x + made if skip else made
        if skip:
            mixed = mixed + (x if x.shape[1] == d else self.linear(prefix + self.names["S"], d, x))
        if post:
            mixed = self.norm(prefix + first, mixed, norm)
        out = self.ffn(prefix, self.norm(prefix + second, mixed, norm) if pre else mixed, m["ffn"], d)
        out = self.norm(prefix + behind_ffn, out, norm) if both else out
        out = mixed + out if skip else out
        return self.norm(prefix + second, out, norm) if post else out

    def embedded(self, ids, width):
        m, e = self.m, self.m["embedding"]
        rows = e.get("d", width)
        x = e.get("scale", 1) * self.c.get(self.names["word"], m["vocab"], rows, deviation=0.5)[ids]
        if "positions" in m:
            x = x + self.c.get(self.names["positions"], m["positions"], rows, deviation=0.3)[e.get("first_position", 0) :][: len(ids)]
        if "sinusoidal" in e:
            x = x + sines(len(ids), rows, e["sinusoidal"].get("order", "interleaved"), e["sinusoidal"].get("steps", "n"))
        if "norm" in e:
            x = self.norm("roberta.embeddings.LayerNorm", x, e["norm"])
        return x if rows == width else self.linear("roberta.embeddings_project", width, x)


def logits(c, ids, m):
    """Of a sequence. m, which no model file says: qkv_biased: q, k and v have biases also where others have none; signs, of attention by
    tables: a function of layer and shape, absent: those of the seed; None: weights are those expected."""
    maker = Maker(c, m)
    first = blocks(m)[0]
    x = maker.embedded(ids, first.get("d_in", first["d"]))
    for number, own in enumerate(blocks(m)):
        x = maker.block(number, x, own)
    if "norm" in m["output"]:
        x = maker.norm(NORMS[maker.family][2], x, m["output"]["norm"])
    if "dense" in m["output"]:
        dense = m["output"]["dense"]
        x = ACTIVATIONS[dense["activation"]](maker.linear("lm_head.dense", dense["width"], x))
        x = maker.norm("lm_head.layer_norm", x, dense["norm"])
    if m.get("tied"):
        y = x @ c.get(maker.names["word"], m["vocab"], m["d"]).T
    else:
        y = x @ c.get(maker.names["head"], m["vocab"], x.shape[1]).T
    y = y + c.get("lm_head.bias", m["vocab"], deviation=0.5) if m["output"]["head"].get("bias") else y
    cap = m["output"]["head"].get("soft_cap")
    return cap * np.tanh(y / cap) if cap else y


class Traced(Checkpoint):
    """Tensors whose gradients are wanted."""

    def __init__(self, tensors):
        super().__init__(0)
        self.tensors, self.values = tensors, {}

    def get(self, name, *shape, **_):
        if name not in self.values:
            self.values[name] = Value(self.tensors[name].astype(np.float64))
        return self.values[name]


def loss(c, m, ids, targets):
    """The sum of cross-entropies of targets that are not negative."""
    total = 0.0
    for sequence, wanted in zip(ids, targets):
        y = logits(c, sequence, m)
        largest = y.max(axis=1, keepdims=True)
        counted = np.flatnonzero(wanted >= 0)
        exponents = np.exp(y - largest).sum(axis=1)[counted]
        total = total + (np.log(exponents) + largest[counted, 0] - y[counted, wanted[counted]]).sum()
    return total


def gradients(tensors, m, ids, targets):
    """Loss, its gradients by the names of tensors, and how near a value came to a kink, where gradients jump."""
    c, Value.nearest = Traced(tensors), np.inf
    total = loss(c, m, ids, targets)
    total.propagate()
    found = {name: np.zeros(v.shape) if v.gradient is None else v.gradient for name, v in c.values.items()}
    return float(total.data), found, Value.nearest


def tensors(m, number):
    """Random ones, by name; what they are does not depend on the ids."""
    c = Checkpoint(number)
    logits(c, np.zeros(1, int), m)
    return c.tensors
