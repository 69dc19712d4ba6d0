"""A skipless transformer in float64 by its definition, its checkpoints under every family's tensor names, and its model file."""
import numpy as np

from definitions import attend, bh4, looked_up, rotated


def orthogonal_and_noise(random, rows, columns):
    """A well-conditioned [rows][columns]: part of an orthogonal matrix, plus noise."""
    n = max(rows, columns)
    q = np.linalg.qr(random.standard_normal((n, n)))[0]
    return q[:rows, :columns] * np.sqrt(n / columns) + 0.1 * random.standard_normal((rows, columns)) / np.sqrt(columns)


def difference(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def most_changed(a, b):
    """The largest relative difference of a token."""
    return (np.linalg.norm(a - b, axis=1) / np.linalg.norm(b, axis=1)).max()


class Shape:
    """What a model file says, as attributes."""

    def __init__(self, **given):
        self.d, self.heads, self.kv_heads, self.layers, self.vocab, self.f = 32, 4, 4, 2, 40, 48
        self.family, self.parallel, self.ffn, self.bias, self.rope, self.causal, self.tied = "llama", False, "mlp", False, 1.0, True, False
        self.positions = self.token_types = 0
        self.head_dim, self.d_in, self.skip = None, None, False
        self.h, self.tau, self.projection, self.beside = 6, 4, "dense", None  # beside: the kind of a dense FFN next to a lookup FFN
        self.__dict__.update(given)
        self.width, self.input = self.head_dim or self.d // self.heads, self.d_in or self.d
        self.q, self.e = self.width * self.heads, self.width * self.kv_heads
        self.dense = self.beside if self.ffn == "lookup" else self.ffn  # the kind of the dense FFN

    def source(self, eliminate="none"):
        rope = f"rope = {{ share = {self.rope} }}, " if self.rope else ""
        ffn = f"kind = '{self.dense}', f = {self.f}, activation = 'relu'"
        if self.ffn == "lookup":
            kind = "{ kind = 'bh4', block = 8 }" if self.projection == "bh4" else "{ kind = 'dense' }"
            beside = f", dense = {{ {ffn} }}" if self.beside else ""
            ffn = f"kind = 'lookup', h = {self.h}, tau = {self.tau}, projection = {kind}, score = 'gelu'{beside}"
        optional = "".join(f"{key} = {getattr(self, key)}, " for key in ("positions", "token_types", "head_dim", "d_in") if getattr(self, key))
        return f"""return {{
    name = "m", d = {self.d}, heads = {self.heads}, kv_heads = {self.kv_heads}, layers = {self.layers}, vocab = {self.vocab}, {optional}
    parallel = {str(self.parallel).lower()}, skip = {str(self.skip).lower()}, tied = {str(self.tied).lower()}, checkpoint = "{self.family}",
    attention = {{ eliminate = "{eliminate}", {rope}causal = {str(self.causal).lower()}, context = 64 }},
    ffn = {{ {ffn} }},
}}
"""


def some_tokens(shape, seed):
    """The input for which random_model keeps values in range."""
    return np.random.default_rng(seed).integers(0, shape.vocab, 9)


def random_model(shape, seed):
    """{ key: array } with maps as the checkpoint stores them, [out][in]; keys are ("Q", layer) and, for a bias, ("Q.bias", layer)."""
    random = np.random.default_rng(seed)
    s, model = shape, {}
    model["word", 0] = random.standard_normal((s.vocab, s.input))
    for key in ("positions", "token_types"):
        if getattr(s, key):
            model[key, 0] = random.standard_normal((getattr(s, key), s.input))
    for layer in range(s.layers):
        maps = {"Q": (s.q, s.input), "K": (s.e, s.input), "V": (s.e, s.input), "P": (s.d, s.q)}
        if s.skip and s.d_in:
            maps["S"] = (s.d, s.input)
        if s.ffn == "lookup":
            model["T", layer] = random.standard_normal((s.h, 1 << s.tau, s.d))
            model["T.bias", layer] = random.standard_normal(s.d)
            bits = s.h * s.tau
            if s.projection == "bh4":
                repeats = -(-bits // s.d)
                blocks = [orthogonal_and_noise(random, 8, 8) for _ in range(repeats * 4 * (s.d // 8))]
                model["R", layer] = np.reshape(blocks, (repeats, 4, s.d // 8, 8, 8)) / np.sqrt(s.d)
            else:
                model["R", layer] = random.standard_normal((bits, s.d)) / np.sqrt(s.d)
            model["R.bias", layer] = 0.1 * random.standard_normal(bits)
        if s.dense:
            maps["M"] = (s.f, s.d)
            if s.dense == "glu":
                maps["G"] = (s.f, s.d)
            maps["O"] = (s.d, s.f)
        for key, (rows, columns) in maps.items():
            model[key, layer] = orthogonal_and_noise(random, rows, columns)
            if s.bias:
                model[key + ".bias", layer] = 0.3 * random.standard_normal(rows)
    model["head", 0] = model["word", 0].copy() if s.tied else random.standard_normal((s.vocab, s.d))
    logits(s, model, some_tokens(s, seed), balance=True)
    return model


NAMES = {
    "llama": {"word": "model.embed_tokens.weight", "head": "lm_head.weight", "layer": "model.layers.%d.", "Q": "self_attn.q_proj", "K": "self_attn.k_proj",
              "V": "self_attn.v_proj", "P": "self_attn.o_proj", "S": "skip_proj", "M": "mlp.up_proj", "G": "mlp.gate_proj", "O": "mlp.down_proj", "lookup": "mlp."},
    "gpt_neox": {"word": "gpt_neox.embed_in.weight", "head": "embed_out.weight", "layer": "gpt_neox.layers.%d.", "Q": "attention.query", "K": "attention.key",
                 "V": "attention.value", "P": "attention.dense", "S": "skip", "M": "mlp.dense_h_to_4h", "O": "mlp.dense_4h_to_h", "lookup": "mlp."},
    "roberta": {"word": "roberta.embeddings.word_embeddings.weight", "positions": "roberta.embeddings.position_embeddings.weight",
                "token_types": "roberta.embeddings.token_type_embeddings.weight", "head": "lm_head.decoder.weight", "layer": "roberta.encoder.layer.%d.",
                "Q": "attention.self.query", "K": "attention.self.key", "V": "attention.self.value", "P": "attention.output.dense", "S": "skip.dense",
                "M": "intermediate.dense", "O": "output.dense", "lookup": "FFN."},
    "gpt2": {"word": "transformer.wte.weight", "positions": "transformer.wpe.weight", "head": "lm_head.weight", "layer": "transformer.h.%d.",
             "Q": "attn.query", "K": "attn.key", "V": "attn.value", "P": "attn.c_proj", "M": "mlp.c_fc", "O": "mlp.c_proj", "lookup": "mlp."},
}
NAMES["mingpt"], NAMES["gemma"], NAMES["phi3"] = NAMES["gpt2"], NAMES["llama"], NAMES["llama"]
NAMES["phi"] = {**NAMES["llama"], "P": "self_attn.dense", "M": "mlp.fc1", "O": "mlp.fc2"}
LOOKUP = {"T": "tables", "T.bias": "bias", "R": "hash.projection.weight", "R.bias": "hash.projection.bias"}


def name_of(shape, key, layer):
    names = NAMES[shape.family]
    if key in ("word", "positions", "token_types", "head"):
        return names[key]
    prefix = names["layer"] % layer
    if key in LOOKUP:
        return prefix + names["lookup"] + LOOKUP[key]
    letter, _, bias = key.partition(".")
    return prefix + names[letter] + (".bias" if bias else ".weight")


def to_checkpoint(shape, model):
    """{ tensor name: array }; GPT-NeoX packs q, k and v as [heads][3][width of a head][input], minGPT as [3][rows][input], and GPT-2
    stores that and all maps transposed."""
    tensors = {}
    gpt = shape.family in ("gpt2", "mingpt")
    for (key, layer), values in model.items():
        if shape.tied and key == "head":
            continue
        if shape.family == "gpt_neox" and key[0] in "QKV" and key[1:] in ("", ".bias"):
            end = ".bias" if "." in key else ".weight"
            if key[0] == "Q":
                parts = [model[letter + key[1:], layer].reshape(shape.heads, 1, shape.width, -1) for letter in "QKV"]
                packed = np.concatenate(parts, axis=1).reshape(3 * shape.q, -1)
                tensors["gpt_neox.layers.%d.attention.query_key_value" % layer + end] = packed if end == ".weight" else packed[:, 0]
            continue
        if gpt and key[0] in "QKV" and key[1:] in ("", ".bias"):
            if key[0] == "Q":
                packed = np.concatenate([model[letter + key[1:], layer] for letter in "QKV"])
                name = "transformer.h.%d.attn.c_attn" % layer + (".bias" if "." in key else ".weight")
                tensors[name] = packed.T.copy() if shape.family == "gpt2" else packed
            continue
        linear = shape.family == "gpt2" and key in ("P", "M", "O")
        tensors[name_of(shape, key, layer)] = values.T.copy() if linear else values
    return tensors


def from_fused(shape, tensors):
    """The maps of a fused checkpoint; what was eliminated is absent."""
    known = {name_of(shape, key, layer): (key, layer)
             for layer in range(shape.layers) for end in ("", ".bias") for key in [k + end for k in "QKVPSMGORT" if k in NAMES[shape.family] or k in "RT"]}
    for key in ("word", "positions", "token_types", "head"):
        if key in NAMES[shape.family]:
            known[NAMES[shape.family][key]] = (key, 0)
    return {known[name]: values for name, values in tensors.items()}


def lookup_ffn(s, model, layer, x):
    weight = model["R", layer]
    z = bh4(x, weight, 0.7)[:, : s.h * s.tau] if s.projection == "bh4" else x @ weight.T
    return model["T.bias", layer] + looked_up((z + model["R.bias", layer]).reshape(len(x), s.h, s.tau), model["T", layer])


def logits(s, model, tokens, balance=False):
    """Of token numbers [tokens]; a map that is absent does nothing. balance: scales maps so that values, scores and what tells tokens apart
    neither grow nor shrink from layer to layer, in a model that as a whole is well-conditioned: else float32 alone would be off by more than 1e-5."""

    def scale(key, layer, factor):
        for name in (key, key + ".bias"):
            if (name, layer) in model:
                model[name, layer] = model[name, layer] * factor
        return factor

    def size(values):
        return np.sqrt((values**2).mean())

    def apply(key, layer, x):
        if (key, layer) not in model:
            return x
        return x @ model[key, layer].T + model.get((key + ".bias", layer), 0.0)

    x = model["word", 0][tokens]
    if s.positions:
        x = x + model["positions", 0][: len(tokens)]
    if s.token_types:
        x = x + model["token_types", 0][0]
    for layer in range(s.layers):
        if x.shape[1] > s.input:
            q, k, v = np.split(x, [s.d, s.d + s.e], axis=1)
        else:
            q, k, v = (apply(key, layer, x) for key in "QKV")
        if balance:
            k = k * scale("K", layer, 2 / (size(k) * size(q)))
        turned = (rotated(q, s.heads, 1e4, s.rope), rotated(k, s.kv_heads, 1e4, s.rope)) if s.rope else (q, k)
        mixed = attend(*turned, v, s.heads, s.kv_heads, s.causal)
        if balance and s.ffn == "mlp":  # what all tokens share would soon be all that is left; GLUs and tables keep tokens apart
            shared = mixed.mean(axis=0) / np.linalg.norm(mixed.mean(axis=0))
            model["P", layer] = model["P", layer] - 0.9 * np.outer(model["P", layer] @ shared, shared)
        mixed = apply("P", layer, mixed)
        if balance:
            mixed = mixed * scale("P", layer, 1 / size(mixed))
        if s.skip and not s.parallel:
            mixed = apply("S", layer, x) + mixed
        inner = x if s.parallel else mixed
        out = lookup_ffn(s, model, layer, inner) if s.ffn == "lookup" else 0
        if s.dense:
            hidden = np.maximum(apply("G" if s.dense == "glu" else "M", layer, inner), 0)
            out = out + apply("O", layer, hidden * apply("M", layer, inner) if s.dense == "glu" else hidden)
        if balance:
            factor = 1 / size(out)
            for key in ("T", "O"):
                scale(key, layer, factor)
            out = out * factor
        if s.skip and s.parallel:
            mixed = x + mixed
        x = out + mixed if s.parallel or s.skip else out
    return x @ model["head", 0].T
