"""Shapes of whole models that tests train, as keys of their model files: one of every kind, and random ones."""
import numpy as np

from lookupc import effort

LN, RMS = {"kind": "layernorm"}, {"kind": "rmsnorm", "eps": 1e-6}


def changed(m, **more):
    """The model with other keys; those of tables go into them."""
    return {**m, **{k: {**m[k], **v} if isinstance(v, dict) and isinstance(m.get(k), dict) else v for k, v in more.items()}}


GPT = {
    "name": "m", "d": 24, "heads": 4, "layers": 2, "vocab": 29, "positions": 50, "skip": True, "norm": LN, "attention": {"context": 50},
    "ffn": {"kind": "mlp", "f": 40, "activation": "gelu_tanh"}, "embedding": {}, "output": {"norm": LN, "head": {}}, "checkpoint": "mingpt",
}
BH4 = {"kind": "lookup", "h": 6, "tau": 4, "projection": {"kind": "bh4", "block": 8}, "score": "gelu", "neighbours": 2}
LOOKUP = {**GPT, "ffn": BH4}
NEOX = {
    "name": "m", "d": 40, "heads": 5, "layers": 3, "vocab": 33, "parallel": True, "skip": True, "norm": LN,
    "attention": {"context": 70, "rope": {"share": 0.5}}, "ffn": {"kind": "mlp", "f": 50, "activation": "gelu"}, "embedding": {},
    "output": {"norm": LN, "head": {}}, "checkpoint": "gpt_neox",
}
LLAMA = {
    "name": "m", "d": 40, "heads": 4, "kv_heads": 2, "layers": 3, "vocab": 70, "tied": True, "skip": True, "norm": RMS,
    "attention": {"context": 64, "rope": {}}, "ffn": {"kind": "glu", "f": 33, "activation": "silu"}, "embedding": {"scale": 1.5},
    "output": {"norm": RMS, "head": {}},
}
SHAPED = {
    "name": "m", "d": 36, "heads": 3, "layers": 3, "vocab": 31, "parallel": True,
    "attention": {"context": 70, "rope": {}, "shaped": True, "eliminate": "VP"},
    "ffn": {"kind": "mlp", "f": 48, "activation": "gelu"}, "embedding": {}, "output": {"head": {}},
}
MAPPED = {
    "name": "m", "d": 32, "heads": 4, "vocab": 29, "skip": True, "norm": LN, "attention": {"causal": False, "context": 50},
    "layers": [{"d_in": 24, "head_dim": 8, "heads": 3}, {"count": 2, "ffn": {"kind": "mlp", "f": 20, "activation": "silu"}},
               {"ffn": {"kind": "lookup", "h": 4, "tau": 4, "projection": {"kind": "dense"}, "score": "gelu", "scale": "1/h"}}],
    "ffn": {"kind": "mlp", "f": 36, "activation": "relu"}, "output": {"head": {"bias": True}}, "checkpoint": "roberta",
    "embedding": {"d": 18, "scale": 2, "sinusoidal": {"order": "halves", "steps": "n-1"}, "norm": LN},
}
MASKED = {
    "name": "m", "d": 32, "heads": 4, "layers": 2, "vocab": 41, "positions": 52, "skip": True, "norm": {**LN, "place": "post"}, "tied": True,
    "attention": {"causal": False, "context": 50}, "ffn": {"kind": "mlp", "f": 56, "activation": "gelu"}, "embedding": {"norm": LN, "first_position": 2},
    "output": {"dense": {"width": 32, "activation": "gelu", "norm": LN}, "head": {"bias": True}}, "checkpoint": "roberta",
}
TABLES = {"kind": "lsh", "tables": 5, "tau": 2, "window": 3, "seed": 7}
SHAPES = {
    "gpt": GPT,
    "lookup": LOOKUP,
    "mapped": MAPPED,
    "shaped": SHAPED,
    "neox": NEOX,
    "llama": LLAMA,
    "windowed": changed(NEOX, attention={"window": 9}),
    "masked": MASKED,
    "near": changed(NEOX, norm={"shared": True}, attention={"causal": False, "window": 9}),
    "eliminated": changed(LLAMA, attention={"eliminate": "QP"}),
    "post": changed(LLAMA, norm={"place": "post"}),
    "shaped encoder": changed(SHAPED, attention={"causal": False}),
    "interleaved": changed(LLAMA, attention={"rope": {"pairs": "interleaved"}}, output={"head": {"soft_cap": 5}}),
    "plain": changed(SHAPED, attention={"shaped": False}),
    "wide heads": changed(LLAMA, d=256, heads=2, kv_heads=1, layers=2, ffn={"activation": "gelu"}),
    "gpt2": changed(GPT, checkpoint="gpt2", tied=True, attention={"causal": False}),
    "shaped lookup": {**SHAPED, "ffn": {**BH4, "h": 4, "scale": "1/h"}},
    "input of all": changed({**SHAPED, "ffn": {**BH4, "h": 4, "scale": "1/h", "dense": {"kind": "mlp", "f": 9, "activation": "gelu"}}},
                            attention={"eliminate": "QP"}),
    "mixed": {**SHAPED, "attention": {"context": 70, "rope": {}, "shaped": True}, "ffn": {**BH4, "h": 4, "scale": "1/h"},
              "layers": [{"heads": 2, "ffn": SHAPED["ffn"]}, {}]},
    "unequal": {**LOOKUP, "layers": [{}, {"ffn": {**BH4, "h": 5, "tau": 2}}, {}]},
    "dense lookup": {**GPT, "ffn": {"kind": "lookup", "h": 5, "tau": 3, "projection": {"kind": "dense"}, "score": "softmax"}},
    "beside": {**GPT, "ffn": {**BH4, "dense": {"kind": "mlp", "f": 10, "activation": "gelu"}}},
    "gated beside": {**LLAMA, "ffn": {**BH4, "dense": {"kind": "glu", "f": 9, "activation": "silu"}}},
    "eight": {**MAPPED, "layers": 1, "ffn": {**BH4, "h": 7, "neighbours": 8, "score": "softmax", "scale": "1/h"}},
    "unit": changed(LLAMA, attention={"unit": True}),
    "unit encoder": changed(GPT, attention={"unit": True, "shaped": True, "causal": False}),
    "shifted": changed(LLAMA, attention={"unit": True, "shifted": 1}),
    "shifted encoder": changed(NEOX, attention={"shifted": 5, "causal": False, "window": 9}),
    "tables": changed(LLAMA, attention={**TABLES, "shifted": 1, "eliminate": "QP"}),
    "tables encoder": changed(GPT, attention={**TABLES, "tau": 3, "causal": False}),
    "looked": {**LLAMA, "parallel": True, "ffn": {**BH4, "qkv": True}},
    "looked encoder": {**SHAPED, "attention": {"context": 70, "unit": True, "shifted": 2, "causal": False}, "skip": True, "norm": LN,
                       "ffn": {**BH4, "h": 4, "scale": "1/h", "qkv": True}},
    "looked in part": {**SHAPED, "attention": {"context": 70, "rope": {}, "shaped": True}, "ffn": {**BH4, "h": 4, "scale": "1/h"},
                       "layers": [{"ffn": {**BH4, "h": 4, "scale": "1/h", "qkv": True}}, {"ffn": SHAPED["ffn"]}]},
    "tables in part": changed(LLAMA, attention={"unit": True, "shifted": 1}, layers=[{}, {"attention": {**TABLES, "tau": 3}}]),
}


def drawn(number):
    """The keys of random model `number` of this commit."""
    random = np.random.default_rng([effort("seed"), number])

    def one_of(*choices):
        return choices[random.integers(len(choices))]

    def often(share=0.5):
        return bool(random.random() < share)

    family = one_of("llama", "llama", "gpt_neox", "mingpt", "gpt2", "roberta", "roberta")
    heads, width = one_of(1, 2, 3, 4), one_of(4, 6, 8, 12, 32)
    m = {"name": "m", "d": heads * width, "heads": heads, "layers": one_of(1, 2, 3), "vocab": one_of(29, 33, 48), "checkpoint": family}
    if family in ("llama", "roberta"):
        m["kv_heads"] = one_of(*[n for n in range(1, heads + 1) if heads % n == 0])
    m["attention"] = a = {"context": 50, "causal": often(0.7)}
    m["skip"], m["parallel"] = often(0.8), often(0.3)
    if m["skip"] or often():  # skip connections alone let values grow
        m["norm"] = {**one_of(LN, RMS), "place": "pre" if m["parallel"] or often(0.7) else "post"}
    if often(0.25):
        a["shaped"] = True
    elif often(0.3):
        a["window"] = one_of(1, 5, 20)
    if often(0.6):
        a["rope"] = {"share": one_of(1, 0.5) if width % 4 == 0 else 1, "pairs": one_of("half", "interleaved"), "theta": one_of(100, 10000)}
    if often(0.2):
        a["scale"] = 0.3
    kind = one_of("mlp", "lookup", "lookup", "glu" if family == "llama" else "mlp")
    activation = one_of("gelu", "gelu_tanh", "silu", "relu")
    m["ffn"] = {"kind": kind, "f": one_of(7, 32, 50), "activation": activation}
    if kind == "lookup":
        tau, blocks = one_of(1, 2, 4, 5), [b for b in (4, 8, 16) if b < 2 * m["d"]]
        projection = {"kind": "bh4", "block": one_of(*blocks)} if often(0.6) and m["d"] > 2 else {"kind": "dense"}
        m["ffn"] = {"kind": kind, "h": one_of(1, 3, 4, 7), "tau": tau, "projection": projection, "score": one_of("gelu", "softmax")}
        m["ffn"] |= {"neighbours": one_of(*range(1, min(4, 1 << tau) + 1)), "scale": one_of("none", "1/h")}
        if often(0.3):
            m["ffn"]["dense"] = {"kind": "glu" if family == "llama" else "mlp", "f": one_of(1, 20), "activation": activation}
        if not m["skip"] and "norm" not in m:  # values grow from table to table, until a softmax has one key
            m["ffn"]["scale"], m["layers"] = "1/h", min(m["layers"], 2)
    if often(0.3):
        square = [w for w in ("Q", "QP", "K", "KP", "V", "VP") if w[0] == "Q" or m.get("kv_heads", heads) == heads]
        a["eliminate"] = one_of(*square)
    elif often(0.3):
        m["head_dim"] = one_of(4, 8)
        a.pop("rope", None)
    elif kind == "lookup" and m["parallel"] and "dense" not in m["ffn"]:
        m["ffn"]["qkv"] = True
    m["embedding"] = {"scale": one_of(1, 1.7)}
    if family not in ("llama", "gpt_neox") and often(0.7):
        m["positions"] = 50
    elif m["d"] % 2 == 0 and m["d"] > 2 and often(0.3):
        m["embedding"]["sinusoidal"] = {"order": one_of("halves", "interleaved"), "steps": one_of("n", "n-1")}
    m["output"], m["tied"] = {"head": {}}, often(0.3)
    if family == "roberta":
        m["output"]["head"]["bias"] = often()
    elif often():
        m["output"]["norm"] = one_of(LN, RMS)
    if often(0.2):
        m["output"]["head"]["soft_cap"] = 5
    if often(0.2):
        for key in ("shaped", "scale", "window"):
            a.pop(key, None)
        a |= {"kind": "lsh", "tables": one_of(1, 3, 16), "tau": one_of(1, 2, 4), "window": one_of(0, 1, 5, 50), "eps": one_of(0.3, 0.01)}
    elif "scale" not in a and often(0.3):
        a["unit"] = True
    if often(0.3):
        a["shifted"] = 1 + int(random.integers(m.get("kv_heads", heads)))
    return m
