#!/usr/bin/python3
"""Emitted blocks without eliminated projections compute what NumPy's unfused float64 transformer does, decode and prefill alike, and no
longer when one merged matrix is left out."""
import itertools
import os
import re
import tempfile

import numpy as np

import transformer
from lookupc import check, effort, read_safetensors, some, works, write_safetensors
from transformer import Shape, difference, most_changed

STRIDE = 1 if effort("merged") else 4  # of merged tensors that are left out
FLAGS = ("--cflags", "-O0")  # compiling takes longer than what is compiled
TOLERANCE = 1e-5  # float32 weights, relative
WORK = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
MODEL, UNFUSED, FUSED, CHANGED, X, Y = (WORK.name + "/" + name for name in ("m.lua", "w.safetensors", "f.safetensors", "c.safetensors", "x.npy", "y.npy"))


def emitted(weights, x, *options):
    """The output of the last block for the inputs x."""
    np.save(X, x.astype(np.float32))
    works("run", MODEL, "--weights", weights, "--input", X, "--output", Y, *FLAGS, *options)
    return np.load(Y).astype(np.float64)


def inputs(shape, model, tokens):
    x = model["word", 0][tokens]
    if shape.positions:
        x = x + model["positions", 0][: len(tokens)]
    return x + model["token_types", 0][0] if shape.token_types else x


def check_case(seed, eliminate, options=(), leave_out=False, **given):
    shape = Shape(**given)
    name = f"seed {seed}, eliminate {eliminate}, {given}"
    unfused = {key: values.astype(np.float32).astype(np.float64) for key, values in transformer.random_model(shape, seed).items()}
    unfused["head", 0] = np.eye(shape.d)  # so that logits are the output of the last block
    head = np.zeros((shape.vocab, shape.d))
    tokens = transformer.some_tokens(shape, seed)
    expected = transformer.logits(shape, unfused, tokens)
    with open(MODEL, "w") as file:
        file.write(shape.source(eliminate))
    tensors = transformer.to_checkpoint(shape, {**unfused, ("head", 0): head})
    write_safetensors(UNFUSED, tensors, "F32")
    weights = UNFUSED
    if eliminate != "none":
        works("fuse", MODEL, "--weights", UNFUSED, "-o", FUSED)
        weights = FUSED
    new = read_safetensors(weights)[0]
    x = inputs(shape, transformer.from_fused(shape, new) if eliminate != "none" else unfused, tokens)
    off = difference(emitted(weights, x, *options), expected)
    check(off < TOLERANCE, f"{name}: is off by {off}, more than {TOLERANCE}")
    if shape.causal:
        one_by_one = difference(emitted(weights, x, "--decode", *options), expected)
        check(one_by_one < TOLERANCE, f"{name}: token by token it is off by {one_by_one}, more than {TOLERANCE}")
        off = max(off, one_by_one)
    if leave_out:
        merged = [key for key in new if key in tensors and not np.array_equal(new[key], tensors[key])]
        # The embedding is the caller's, the head is not used.
        for key in [key for key in merged if key != "lm_head.weight" and "embed" not in key][seed % STRIDE :: STRIDE]:
            old = tensors[key]
            if old.shape != new[key].shape:  # rows that deliver q, k and v
                old = np.pad(old, [(0, b - a) for a, b in zip(old.shape, new[key].shape)])
            write_safetensors(CHANGED, {**new, key: old}, "F32")
            without = most_changed(emitted(CHANGED, x, *options), expected)
            check(without > 1e-3, f"{name}: without the merged {key} it is off by {without} only")
    return off


seeds = itertools.count(100)


def check_cases(cases, **more):
    """Cases are pairs of what is eliminated and what is given; returns how many were checked and what they are off by at most."""
    chosen = some("merged", [(next(seeds), *case) for case in cases], len(cases) // 6 or 1)
    return len(chosen), max(check_case(seed, eliminate, **given, **more) for seed, eliminate, given in chosen)


def check_eliminations():
    cases = []
    for layers, kv_heads, ffn in ((1, 4, "mlp"), (2, 4, "glu"), (4, 4, "mlp"), (1, 2, "glu"), (2, 2, "mlp"), (4, 2, "glu"), (2, 1, "glu"), (4, 1, "mlp")):
        given = {"layers": layers, "kv_heads": kv_heads, "ffn": ffn, "bias": layers == 2}
        cases += [(eliminate, given) for eliminate in ("none", "QP", "KP", "VP") if kv_heads == 4 or eliminate in ("none", "QP")]
        cases += [(eliminate, {**given, "parallel": True}) for eliminate in (("Q", "K", "V") if kv_heads == 4 else ("Q",))]
    count, worst = check_cases(cases)
    print(f"ok     blocks: {count} emitted models compute what the unfused ones do in NumPy, off by {worst:.1e} at most")


def check_left_out():
    cases = [(eliminate, {"kv_heads": kv_heads, "ffn": "glu"}) for eliminate, kv_heads in (("QP", 2), ("KP", 4), ("VP", 4))]
    cases.append(("Q", {"kv_heads": 2, "ffn": "mlp", "parallel": True}))
    check_cases(cases, layers=2, bias=True, leave_out=True)
    print("ok     blocks: without any one merged tensor they do not")


def check_families():
    check_cases([
        ("VP", {"family": "gpt_neox", "rope": 0.25}),
        ("none", {"family": "gpt_neox", "rope": 0.5, "parallel": True}),
        ("none", {"family": "mingpt", "rope": 0, "positions": 20}),
        ("QP", {"family": "mingpt", "rope": 0, "positions": 20}),
        ("none", {"family": "gpt2", "rope": 0, "positions": 20}),
        ("KP", {"family": "gpt2", "rope": 0, "positions": 20, "tied": True}),
        ("Q", {"family": "gpt2", "rope": 0, "positions": 20, "parallel": True}),
        ("QP", {"family": "roberta", "rope": 0, "causal": False, "positions": 20, "token_types": 2, "kv_heads": 2}),
    ], bias=True)
    print("ok     blocks: GPT-NeoX, also packed; GPT-2; RoBERTa, all tokens attending to all")


def check_widths():
    """Heads of another width than d / heads, and an input of another width than d, with and without its skip connection."""
    check_cases([
        ("none", {"head_dim": 12, "kv_heads": 2, "ffn": "glu"}),
        ("none", {"head_dim": 5, "family": "gpt_neox", "rope": 0, "bias": True, "parallel": True}),
        ("none", {"head_dim": 2, "heads": 3, "kv_heads": 1, "causal": False, "skip": True}),
        ("none", {"d_in": 20, "layers": 1, "family": "roberta", "rope": 0, "causal": False, "bias": True, "skip": True}),
        ("none", {"d_in": 70, "layers": 1, "head_dim": 6, "family": "gpt_neox", "bias": True, "skip": True}),
        ("none", {"d_in": 9, "layers": 1, "ffn": "lookup"}),
    ])
    print("ok     blocks: heads and inputs of widths of their own")


def check_lookups():
    cases = []
    for layers, kv_heads, projection in ((1, 4, "dense"), (3, 2, "dense"), (2, 4, "bh4"), (4, 1, "bh4")):
        given = {"layers": layers, "kv_heads": kv_heads, "projection": projection, "bias": layers == 3, "d": 40 if projection == "dense" else 32}
        cases += [(eliminate, given) for eliminate in (("none", "Q", "QP", "QKV", "QKVP") if projection == "dense" else ("none", "Q", "QKV"))]
    cases += [
        ("KP", {"layers": 3}),
        ("QP", {"layers": 3, "beside": "mlp", "bias": True}),
        ("none", {"layers": 2, "beside": "glu", "projection": "bh4"}),
        ("Q", {"layers": 3, "parallel": True, "beside": "glu"}),
        ("Q", {"layers": 3, "parallel": True, "bias": True}),
        ("QKV", {"layers": 3, "family": "gpt_neox", "bias": True}),
        ("QKV", {"layers": 3, "family": "roberta", "rope": 0, "causal": False, "positions": 20, "token_types": 1, "bias": True}),
    ]
    count, worst = check_cases(cases, ffn="lookup")
    print(f"ok     blocks: {count} emitted models with lookup FFNs compute what the unfused ones do in NumPy, off by {worst:.1e} at most")
    check_cases([(eliminate, {"layers": layers}) for eliminate, layers in (("QP", 2), ("QKV", 3), ("QKVP", 2))], ffn="lookup", kv_heads=2, bias=True, leave_out=True)
    print("ok     blocks: without any one merged table, projection or matrix they do not")


def check_tables_deliver():
    """Tables whose rows are q, k and v leave no product before attention, those of a dense projection none at all."""
    for eliminate, projection, letters in (("QKV", "bh4", "P"), ("QKV", "dense", "P"), ("QKVP", "dense", "")):
        shape = Shape(d=32, heads=4, kv_heads=2, layers=3, ffn="lookup", projection=projection)
        with open(MODEL, "w") as file:
            file.write(shape.source(eliminate))
        folder = f"{WORK.name}/{eliminate}_{projection}"
        works("emit", MODEL, "-o", folder, "--isa", "scalar")
        with open(folder + "/m__scalar.c") as file:
            text = file.read()
        body = text[text.index("static void m_blocks_block("):text.index("void m_blocks__scalar(")]
        calls = [name for name in re.findall(r"\b(m_\w+)\(", body)[1:] if not re.search("_(at|span)$", name)]
        expected = ["m_blocks_append", "m_blocks_attend", *["m_blocks_multiply_p"] * len(letters), "m_blocks_look_up"]
        check(calls == expected, f"eliminate {eliminate}: calls {calls}")
        product = "/* From templates/model/blocks/product.c. */" in text
        check(product == bool(letters), f"eliminate {eliminate}: there is {'a' if product else 'no'} product")
    print("ok     blocks: where tables deliver q, k and v no product comes before attention")


def check_nothing_is_multiplied():
    """No product with an eliminated matrix is in the emitted code, and none is missing in the other."""
    shape = Shape()
    for eliminate, letters in (("none", "KVQPMO"), ("QP", "KVMO"), ("KP", "VQMO"), ("VP", "KQMO")):
        with open(MODEL, "w") as file:
            file.write(shape.source(eliminate))
        works("emit", MODEL, "-o", WORK.name + "/" + eliminate, "--isa", "scalar")
        with open(f"{WORK.name}/{eliminate}/m__scalar.c") as file:
            text = file.read()
        text = text[text.index("/* From templates/model/blocks/blocks.c. */"):]
        found = "".join(line.strip()[3] for line in text.splitlines() if line.strip().startswith("/* ") and "inputs, " in line)
        check(found == letters and text.count("m_product_f32__scalar(") == len(letters), f"eliminate {eliminate}: products {found}")
        with open(f"{WORK.name}/{eliminate}/m.h") as file:
            header = file.read()
        for letter in "qkvp":
            check((f"*{letter};" in header) == (letter.upper() in letters), f"eliminate {eliminate}: {letter} in the header")
    print("ok     blocks: eliminated products are not in the emitted code")


if __name__ == "__main__":
    check_nothing_is_multiplied()
    check_eliminations()
    check_left_out()
    check_families()
    check_widths()
    check_tables_deliver()
    check_lookups()
