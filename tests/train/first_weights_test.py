#!/usr/bin/python3
"""Where `lookupc train` starts: heads of rotary decoders find tokens like their own, P is V transposed and the first head looks at the token before."""
import os
import subprocess
import tempfile

import numpy as np

from definitions import rotated
from lookupc import LOOKUPC, check, read_safetensors

COMMON = 'vocab = 256, embedding = {}, output = { head = {} }, tokenizer = { kind = "bytes" }'
LOOKUP = '{ kind = "lookup", h = 4, tau = 4, projection = { kind = "bh4", block = 8 }, score = "gelu" }'
DENSE = '{ kind = "mlp", f = 24, activation = "gelu" }'
D, HEADS, LAYERS = 64, 4, 2
WIDTH = D // HEADS


def first(rope="{}", ffn=LOOKUP, kv_heads=HEADS, norm="rmsnorm", more="", attention="", skip="true"):
    """The weights that a run begins with: its only step moves nothing that a float32 can hold."""
    with open("m.lua", "w") as file:
        print(f'return {{ name = "m", d = {D}, heads = {HEADS}, kv_heads = {kv_heads}, layers = {LAYERS}, {COMMON}, skip = {skip}, norm = {{ kind = "{norm}" }}, '
              f"ffn = {ffn}, attention = {{ context = 24, {f'rope = {rope}, ' if rope else ''}{attention} }}, {more} }}", file=file)
    options = ["--steps", "1", "--batch", "1", "--rate", "1e-12", "--isa", "scalar", "--cflags", "-O0", "--threads", "1"]
    options += ["--table-rate", "1e-12"] if "lookup" in ffn else []
    result = subprocess.run([LOOKUPC, "train", "m.lua", "--text", "text.txt", *options, "-o", "w.safetensors"], capture_output=True, text=True)
    check(result.returncode == 0, result.stderr)
    return {name: values.astype(float) for name, values in read_safetensors("w.safetensors")[0].items()}


def llama(weights, layer):
    """Embeddings, and q, k, v and P of a layer, [out][in]."""
    stem = f"model.layers.{layer}.self_attn."
    return weights["model.embed_tokens.weight"], *(weights[f"{stem}{letter}_proj.weight"] for letter in "qkvo")


def neox(weights, layer):
    stem = f"gpt_neox.layers.{layer}.attention."
    packed = weights[stem + "query_key_value.weight"].reshape(HEADS, 3, WIDTH, D)
    return weights["gpt_neox.embed_in.weight"], *(packed[:, part].reshape(D, D) for part in range(3)), weights[stem + "dense.weight"]


def looks_back(embedding, q, k, share=1.0, interleaved=False):
    """The share of random tokens of which the first head prefers the one before to all others up to it."""
    x = embedding[np.random.default_rng(1).integers(0, 256, 24)]
    x = x / np.sqrt((x**2).mean(1, keepdims=True))
    q, k = (rotated(x @ rows[:WIDTH].T, 1, 1e4, share, interleaved) for rows in (q, k))
    score = q @ k.T
    return np.mean([score[at, :at + 1].argmax() == at - 1 for at in range(1, len(x))])


def starts_right(name, read, kv_heads=HEADS, share=1.0, interleaved=False, **model):
    weights, group = first(kv_heads=kv_heads, **model), HEADS // kv_heads
    for layer in range(LAYERS):
        embedding, q, k, v, p = read(weights, layer)
        q, k, v = q.reshape(HEADS, WIDTH, D), k.reshape(kv_heads, WIDTH, D), v.reshape(kv_heads, WIDTH, D)
        for head in range(HEADS):
            check(np.abs(p[:, head * WIDTH:(head + 1) * WIDTH] - v[head // group].T).max() < 1e-7, f"{name}: layer {layer}: P of head {head} is not V transposed")
            if head % group == 0 and layer + head > 0:
                check(np.abs(q[head] - k[head // group]).max() < 1e-7, f"{name}: layer {layer}: K of head {head} is not Q")
                check(q[head].std() > 0.5 * v.std(), f"{name}: layer {layer}: Q of head {head} is not random")
    embedding, q, k, _, _ = read(weights, 0)
    found = looks_back(embedding, q, k, share, interleaved), looks_back(embedding, q[WIDTH:], k[k.shape[0] // kv_heads:] if kv_heads > 1 else k, share, interleaved)
    check(found[0] > 0.7, f"{name}: the first head looks at the token before in {found[0]:.2f} of all places only")
    check(found[1] < 0.3, f"{name}: the second head does so in {found[1]:.2f}")


def main():
    os.chdir(tempfile.mkdtemp())
    with open("text.txt", "wb") as file:
        file.write(np.random.default_rng(7).integers(32, 127, 2000).astype(np.uint8).tobytes())
    starts_right("Llama", llama)
    starts_right("Llama with two heads of keys", llama, kv_heads=2)
    starts_right("NeoX, pairs side by side, half of a head", neox, rope='{ share = 0.5, pairs = "interleaved" }', share=0.5, interleaved=True, norm="layernorm", more='checkpoint = "gpt_neox"')
    # A dense model's heads find tokens like their own, and no more.
    _, q, k, v, p = llama(first(ffn=DENSE), 0)
    check(np.abs(q - k).max() < 1e-7 and np.abs(p - v.T).max() > 0.1, "a dense model: P, or the first head, does not start at random")
    # Shaped attention passes on more of the input from layer to layer where it takes the place of a skip connection beside the FFN.
    for more, skip, shapes, share in (("parallel = true", "false", [[0.3, 1.8, 1.2], [0.6, 1.8, 1.2]], 3), ("parallel = true", "true", [[1, 6, 0]] * 2, 3),
                                      ("", "false", [[1, 6, 0]] * 2, 1)):
        weights = first(attention="shaped = true", more=more, skip=skip)
        passes = shapes[0] != shapes[1]
        for layer, shape in enumerate(shapes):
            found, (_, q, _, v, p) = weights[f"model.layers.{layer}.attention_shape"], llama(weights, layer)
            check(np.abs(found - shape).max() < 1e-6, f"{more}, skip = {skip}: layer {layer}: α, β and γ start at {found[0]}")
            check(abs(q[WIDTH:].std() * np.sqrt(share * D) - 1) < 0.1, f"{more}, skip = {skip}: layer {layer}: a deviation of q of {q.std():.3f}")
            check(max(np.abs(v - np.eye(D)).max(), np.abs(p - np.eye(D)).max()) < 1e-7 if passes else abs(v.std() * np.sqrt(share * D) - 1) < 0.1,
                 f"{more}, skip = {skip}: layer {layer}: V")
    # Rows of tables that hold q, k, v and the FFN's output, which is small at first.
    weights = first(ffn=LOOKUP.replace("tau", "qkv = true, tau"), more="parallel = true")
    q, k, v, y = np.split(weights["model.layers.1.mlp.tables"], 4, axis=2)
    check(np.abs(q - k).max() < 1e-7 and abs(v.std() - 0.5) < 0.02 and abs(y.std() - 0.02) < 1e-3, f"tables: {q.std()}, {v.std()}, {y.std()}")
    # Without rotary positions nothing was measured: all is random.
    _, q, k, v, p = llama(first(rope=None), 1)
    check(np.abs(q - k).max() > 0.1 and np.abs(p - v.T).max() > 0.1, "a model without rotary positions does not start at random")
    print("train first weights: 3 layouts of checkpoints, 3 models with shaped attention, and 2 models that start otherwise")


main()
