"""A whole model computes the same before and after fuse, in float64 and, trained, as it is emitted; what is not exact is refused."""
import os
import sys
import tempfile

import numpy as np

import any_model
from definitions import Checkpoint
from lookupc import read_safetensors, run, some, works, write_safetensors
from model_shapes import GPT, LLAMA, LOOKUP, MAPPED, MASKED, NEOX, SHAPED, changed


def skipless(m, **more):
    """The model without skip connections and norms between blocks, and with other keys."""
    return changed({key: value for key, value in m.items() if key not in ("skip", "norm")}, **more)


DENSE = {"kind": "lookup", "h": 5, "tau": 4, "projection": {"kind": "dense"}, "score": "gelu", "neighbours": 2}
PARALLEL = {**skipless(SHAPED, tied=True, attention={"eliminate": "none"}), "ffn": DENSE}  # as one is trained that shall be fused
CASES = [
    ("Q", PARALLEL),
    ("V", skipless(SHAPED, attention={"eliminate": "none"})),
    ("K", skipless(NEOX)),
    ("QP", skipless(LLAMA)),
    ("Q", skipless(LOOKUP, embedding={"scale": 1.7})),
    ("KP", skipless(GPT, checkpoint="gpt2", tied=True)),
    ("VP", {**skipless(MASKED), "embedding": {"scale": 2, "first_position": 2}}),
    ("QP", skipless(MAPPED, layers=2)),
    ("QP", {**skipless(MAPPED, layers=[{"count": 1}, {"count": 2}]), "ffn": DENSE}),
    # Of those that cache keys alone values are made of keys, whatever else is merged.
    ("none", changed(LLAMA, kv_heads=4, attention={"cache": "k"})),
    ("none", changed(GPT, checkpoint="gpt2", tied=True, attention={"cache": "k"})),
    ("none", changed(NEOX, attention={"cache": "k"})),
    ("none", changed(LOOKUP, attention={"cache": "k"})),
    ("QP", skipless(LLAMA, kv_heads=4, attention={"cache": "k"})),
    ("K", skipless(NEOX, attention={"cache": "k"})),
]


def definition(tensors, m, ids):
    """Logits in float64; all tensors are needed, and no others."""
    c = Checkpoint(0)
    c.tensors = dict(tensors)
    found = any_model.logits(c, ids, m)
    assert set(c.tensors) == set(tensors), set(c.tensors) ^ set(tensors)
    return found


def after(m, word):
    """The model of what fuse writes: its head is apart unless a map takes what is merged into the embedding."""
    return changed(m, attention={"eliminate": word}, tied=m.get("tied", False) and (word == "none" or "d" in m["embedding"]))


def same_in_float64(folder, number, word, m):
    tensors, ids = any_model.tensors(changed(m, attention={"cache": "kv"}), number), np.random.default_rng(number).integers(0, 29, 40)
    path, weights, fused = any_model.write(folder, "m", m), folder + "/w.safetensors", folder + "/f.safetensors"
    write_safetensors(weights, tensors, "F64")
    works("fuse", path, "--eliminate", word, "--weights", weights, "-o", fused)
    unfused = changed(m, attention={"cache": "kv"})
    wanted, found = definition(tensors, unfused, ids), definition(read_safetensors(fused)[0], after(m, word), ids)
    off = np.abs(found - wanted).max() / np.abs(wanted).max()
    path = any_model.write(folder, "fused", after(m, word))
    works("pack", path, "--weights", fused, "-o", folder + "/f.bin")
    # `sample` draws either checkpoint.
    works("sample", path, "--unfused", "-o", weights)
    works("fuse", path, "--weights", weights, "-o", fused)
    works("pack", path, "--weights", fused, "-o", folder + "/f.bin")
    print(f"{word:2} {m.get('checkpoint', 'llama'):8} {m['ffn']['kind']:6} logits differ by {off:.1e}")
    return off < 1e-10


def same_when_trained(folder):
    """The parallel shaped block with lookup FFNs, through train, fuse and run."""
    m = {**PARALLEL, "d": 32, "heads": 4, "vocab": 256, "tokenizer": {"kind": "bytes"}}
    weights, fused = folder + "/w.safetensors", folder + "/f.safetensors"
    paths = {weights: any_model.write(folder, "m", m), fused: any_model.write(folder, "f", after(m, "Q"))}
    works("train", paths[weights], "--text", "README.md", "--steps", "8", "--batch", "4", "--isa", "scalar", "-o", weights)
    works("fuse", paths[weights], "--eliminate", "Q", "--weights", weights, "-o", fused)
    with open(folder + "/ids", "w", encoding="ascii") as file:
        file.write(" ".join(str(byte) for byte in b"A token attends to those before it, and to itself."))
    logits = []
    for of, path in paths.items():
        works("run", path, "--weights", of, "--ids", folder + "/ids", "--output", folder + "/y.npy", "--isa", "scalar")
        logits.append(np.load(folder + "/y.npy"))
    off = np.abs(logits[1] - logits[0]).max() / np.abs(logits[0]).max()
    moved = np.abs(read_safetensors(weights)[0]["model.layers.0.attention_shape"] - [0.3, 1.8, 1.2]).max()
    print(f"trained, which moved shapes of attention by {moved:.2f}: logits differ by {off:.1e}")
    return off < 1e-4 and 1e-3 < moved < 0.5  # float32, whose rounding such attention amplifies; float64 above


REFUSED = [
    (skipless(GPT, embedding={"norm": {"kind": "layernorm"}}, checkpoint="roberta"), "Q", "embedding.norm: fuse merges weights into rows"),
    (skipless(SHAPED, embedding={"sinusoidal": {}}), "Q", "embedding.sinusoidal: fuse merges weights into rows"),
    (skipless(LLAMA, attention={"eliminate": "Q"}), "Q", "tied = true: fuse parts the head from the embedding"),
    (skipless(SHAPED, embedding={"d": 8}), "Q", "embedding.d = 8: llama checkpoints have no map to the blocks"),
    (skipless(GPT, embedding={"projected": True}), "Q", "embedding.projected = true: must be absent: fuse merges the maps"),
    (GPT, "Q", "skip = true: fuse merges weights across it"),
    (skipless(GPT, layers=[{"count": 1}, {"ffn": DENSE}]), "Q", "layers: fuse merges weights of blocks that are all of one shape"),
    (skipless(LOOKUP), "QP", '--eliminate: QP: P cannot be merged into ffn.projection.kind = "bh4"'),
    (skipless(LOOKUP, parallel=True), "Q", '--eliminate: Q: Q^-1 cannot be merged into ffn.projection.kind = "bh4"'),
    (skipless(LOOKUP), "QKV", "--eliminate: QKV: whole models have q, k and v of their own"),
]


def others_are_refused(folder):
    good = True
    for m, word, message in REFUSED:
        result = run("fuse", any_model.write(folder, "m", m), "--eliminate", word, "--weights", "none.safetensors", "-o", folder + "/f.safetensors")
        right = result.returncode == (2 if message.startswith("--") else 1) and message in result.stderr and result.stderr.count("\n") == 1 and not os.path.exists(folder + "/f.safetensors")
        if not right:
            print(f"FAILED: {result.stderr}; expected {message}")
        good = good and right
    return good


def main():
    good = True
    with tempfile.TemporaryDirectory() as folder:
        good = others_are_refused(folder) and good
    for number, (word, m) in enumerate(some("merged", CASES, len(CASES) // 4)):
        with tempfile.TemporaryDirectory() as folder:
            good = same_in_float64(folder, number, word, m) and good
    with tempfile.TemporaryDirectory() as folder:
        good = same_when_trained(folder) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
