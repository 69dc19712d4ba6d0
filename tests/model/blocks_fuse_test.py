#!/usr/bin/python3
"""A fused transformer computes in float64 (NumPy) what the unfused one does, and no longer when one merged matrix is left out."""
import itertools
import os
import re
import tempfile

import numpy as np

import transformer
from lookupc import check, read_safetensors, run, some, write_safetensors
from transformer import Shape, difference, most_changed

# in memory where that is possible: every output waits for its disk
WORK = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def fused(shape, eliminate, tensors, dtype, *options):
    model, weights, output = WORK.name + "/m.lua", WORK.name + "/w.safetensors", WORK.name + "/f.safetensors"
    with open(model, "w") as file:
        file.write(shape.source(eliminate))
    write_safetensors(weights, tensors, dtype)
    result = run("fuse", model, "--weights", weights, "-o", output, *options)
    check(result.returncode == 0, f"{shape.source(eliminate)}{result.stderr}")
    return read_safetensors(output)[0]


def eliminated(model, word, layers):
    return [(letter + end, layer) for letter in word for end in ("", ".bias") for layer in range(layers) if (letter + end, layer) in model]


def check_case(seed, eliminate, dtype="F32", tolerance=1e-5, **given):
    """Compares logits; then once for every matrix that fusing changed, with the old one instead. Returns the difference."""
    shape = Shape(**given)
    name = f"seed {seed}, eliminate {eliminate}, {given}"
    unfused = transformer.random_model(shape, seed)
    if dtype == "F32":
        unfused = {key: values.astype(np.float32).astype(np.float64) for key, values in unfused.items()}
    tokens = transformer.some_tokens(shape, seed)
    expected = transformer.logits(shape, unfused, tokens)
    new = transformer.from_fused(shape, fused(shape, eliminate, transformer.to_checkpoint(shape, unfused), dtype))
    off = difference(transformer.logits(shape, new, tokens), expected)
    check(off < tolerance, f"{name}: logits differ by {off}")

    gone = eliminated(unfused, eliminate, shape.layers)
    check(gone and not set(gone) & set(new), f"{name}: {set(gone) & set(new)} is still there")
    check(set(unfused) - set(new) == set(gone), f"{name}: {set(unfused) - set(new) - set(gone)} is lost")
    changed = [key for key in new if key not in unfused or new[key].shape != unfused[key].shape or not np.array_equal(new[key], unfused[key])]
    check(len(changed) >= shape.layers, f"{name}: only {changed} changed")
    for key in changed:
        if key[0] == "K.bias" and not shape.rope:
            continue  # adds the same to all scores of a token: nothing changes with any value
        without = unfused.get(key, np.zeros_like(new[key]))
        if without.shape != new[key].shape:
            without = np.pad(without, [(0, b - a) for a, b in zip(without.shape, new[key].shape)])
        left_out = most_changed(transformer.logits(shape, {**new, key: without}, tokens), expected)
        check(left_out > 1e-3, f"{name}: without the merged {key} logits differ by {left_out} only")
    return off


seeds = itertools.count(1)


def check_eliminations():
    for dtype, tolerance in (("F32", 1e-5), ("F64", 1e-11)):
        cases = []
        for layers, kv_heads, bias, ffn in itertools.product((1, 2, 4), (4, 2, 1), (False, True), ("mlp", "glu")):
            given = {"layers": layers, "kv_heads": kv_heads, "bias": bias, "ffn": ffn}
            for eliminate in ("QP", "KP", "VP", "Q", "K", "V"):
                if kv_heads == 4 or eliminate[0] == "Q":
                    cases.append((eliminate, given))
                    if "P" not in eliminate:
                        cases.append((eliminate, {**given, "parallel": True}))
        cases = some("merged", cases, len(cases) // 4)
        worst = max(check_case(next(seeds), eliminate, dtype, tolerance, **given) for eliminate, given in cases)
        print(f"ok     fuse: {dtype}: {len(cases)} models compute what the unfused ones do, logits differ by {worst:.1e} at most")


def check_families():
    for parallel, bias in itertools.product((False, True), (False, True)):
        eliminate = "Q" if parallel else "VP"
        check_case(next(seeds), eliminate, family="gpt_neox", parallel=parallel, bias=bias, rope=0.25, layers=3)
        check_case(next(seeds), eliminate, family="roberta", parallel=parallel, bias=bias, rope=0, causal=False, positions=20, token_types=2, layers=3, tied=True)
    print("ok     fuse: tensor names of GPT-NeoX, interleaved, and RoBERTa, with three embeddings")


def check_mixed_types():
    """Matrices in bfloat16, biases in float32: each merged tensor has the type of the one it replaces."""
    shape = Shape(bias=True)
    tensors = transformer.to_checkpoint(shape, transformer.random_model(shape, 3))
    dtypes = {name: "BF16" if name.endswith(".weight") else "F32" for name in tensors}
    fused(shape, "QP", tensors, dtypes)
    new, written = read_safetensors(WORK.name + "/f.safetensors")
    check(len(new) > 10 and written == {name: dtypes[name] for name in new}, f"types {written}")
    given, _ = read_safetensors(WORK.name + "/w.safetensors")
    k, q = (given[f"model.layers.1.self_attn.{letter}_proj.weight"] for letter in "kq")
    check(difference(new["model.layers.1.self_attn.k_proj.weight"] @ q, k) < 1e-2, "a merged matrix in bfloat16")
    check(difference(new["model.layers.1.self_attn.k_proj.bias"] + new["model.layers.1.self_attn.k_proj.weight"] @ given["model.layers.1.self_attn.q_proj.bias"],
                     given["model.layers.1.self_attn.k_proj.bias"]) < 1e-6, "a merged bias in float32")


def check_sizes():
    check_case(next(seeds), "QP", tied=True, layers=1)
    check_case(next(seeds), "QP", d=208, heads=8, kv_heads=2, f=333, vocab=211, layers=2, ffn="glu")
    check_mixed_types()
    check_case(next(seeds), "KP", d=264, heads=4, f=130, vocab=64, layers=1)
    print("ok     fuse: a tied embedding; sizes that are no multiples of a block")


def check_lookups():
    for bias, kv_heads in itertools.product((False, True), (4, 2)):
        for eliminate in ("Q", "QP", "QKV", "QKVP"):
            check_case(next(seeds), eliminate, ffn="lookup", bias=bias, kv_heads=kv_heads, layers=3)
        for eliminate in ("Q", "QKV"):
            check_case(next(seeds), eliminate, ffn="lookup", bias=bias, kv_heads=kv_heads, layers=3, projection="bh4")
    check_case(next(seeds), "Q", ffn="lookup", layers=2, parallel=True, bias=True)
    check_case(next(seeds), "KP", ffn="lookup", layers=2, bias=True)
    for eliminate, beside in (("Q", "glu"), ("QP", "mlp"), ("KP", "glu")):
        check_case(next(seeds), eliminate, ffn="lookup", beside=beside, layers=3, bias=True)
    check_case(next(seeds), "V", ffn="lookup", beside="mlp", projection="bh4", layers=3)
    check_case(next(seeds), "Q", ffn="lookup", beside="mlp", layers=2, parallel=True, bias=True)
    for eliminate in ("Q", "QKV"):
        check_case(next(seeds), eliminate, ffn="lookup", family="roberta", rope=0, causal=False, positions=20, token_types=1, bias=True)
        check_case(next(seeds), eliminate, ffn="lookup", family="gpt_neox", bias=True)
    print("ok     fuse: Q, or Q, K and V, in the tables of a lookup FFN")


def check_report():
    """What --report prints is what NumPy finds in the files."""
    shape = Shape(layers=3, kv_heads=2)
    unfused = {key: values.astype(np.float32).astype(np.float64) for key, values in transformer.random_model(shape, 7).items()}
    for dtype in ("f32", "bf16", "f16", "f64"):
        tensors = fused(shape, "QP", transformer.to_checkpoint(shape, unfused), "F32", "--type", dtype)
        new = transformer.from_fused(shape, tensors)
        printed = run("fuse", WORK.name + "/m.lua", "--weights", WORK.name + "/w.safetensors", "-o", WORK.name + "/f.safetensors", "--type", dtype, "--report").stdout
        for layer in range(shape.layers):
            q, name = unfused["Q", layer], f"model.layers.{layer}.self_attn."
            condition = float(re.search(re.escape(name + "q_proj") + r" +(\S+)\n", printed).group(1))
            ratio = condition / np.linalg.cond(q, 1)
            check(1 / 3 < ratio < 1.06, f"condition number {condition}, is {np.linalg.cond(q, 1)}")
            for letter in "KV":
                residual, error = (float(word) for word in re.search(re.escape(f"{name}{letter.lower()}_proj.weight") + r" +(\S+) +(\S+)\n", printed).groups())
                is_off = np.linalg.norm(new[letter, layer] @ q - unfused[letter, layer]) / np.linalg.norm(unfused[letter, layer])
                check(0 <= residual < 2e-15, f"{dtype}: residual {residual}")
                check(abs(error - is_off) < 0.06 * is_off + 1e-15, f"{dtype}: says error {error}, is {is_off}")
    print("ok     fuse: condition numbers, residuals and errors of the report")


if __name__ == "__main__":
    check_report()
    check_eliminations()
    check_families()
    check_sizes()
    check_lookups()
