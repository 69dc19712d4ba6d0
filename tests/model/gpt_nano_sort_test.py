"""gpt-nano-sort, a trained minGPT, sorts every sequence of six digits below 3: on every instruction set, with every type of weights, given
at once, one by one, and to `lookupc generate`; its logits are those of NumPy's float64."""
import itertools
import os
import sys
import tempfile

import numpy as np

import whole
from lookupc import effort, in_turn, instruction_sets, own_cache, read_safetensors

TYPES = ["f32", "i8", "i8 by i8", "i8 by i7", "bf16", "bf16 by bf16", "f16", "e4m3"][: effort("weight_types")]
TOLERANCE = 1e-5  # of f32, relative
DIGITS = 6
SOURCE = whole.data_file("gpt-nano-sort.json")
MODEL = "gen/models/gpt_nano_sort.lua"


def check(condition, text):
    if not condition:
        sys.exit("FAILED gpt_nano_sort: " + text)


def norm(w, name, x):
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * w[name + ".weight"] + w[name + ".bias"]


def linear(w, name, x):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def logits(w, ids, layers=3, heads=3):
    """minGPT's definition in float64, of ids [sequences][tokens]."""
    sequences, n = ids.shape
    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][:n]
    d = x.shape[-1]
    for layer in range(layers):
        name = f"transformer.h.{layer}."
        qkv = linear(w, name + "attn.c_attn", norm(w, name + "ln_1", x))
        q, k, v = (part.reshape(sequences, n, heads, d // heads).transpose(0, 2, 1, 3) for part in np.split(qkv, 3, axis=-1))
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(d // heads) + np.triu(np.full((n, n), -np.inf), 1)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (weights / weights.sum(axis=-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(sequences, n, d)
        x = x + linear(w, name + "attn.c_proj", mixed)
        hidden = linear(w, name + "mlp.c_fc", norm(w, name + "ln_2", x))
        hidden = 0.5 * hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3)))
        x = x + linear(w, name + "mlp.c_proj", hidden)
    return norm(w, "transformer.ln_f", x) @ w["lm_head.weight"].T


def finished(model, given, at_once):
    """The digits that follow, each the likeliest: of prefill and step, or of steps alone."""
    state, digits = model.start(), []
    if at_once:
        row = model.prefill(state, given)
    else:
        for digit in given:
            row = model.step(state, digit)
    for _ in range(DIGITS):
        digits.append(int(row.argmax()))
        if len(digits) < DIGITS:
            row = model.step(state, digits[-1])
    return digits


def generated(weights, given, isa, options):
    """What `lookupc generate` makes of the digits."""
    ids = ",".join(map(str, given))
    return whole.works("generate", MODEL, "--weights", weights, "--ids", ids, "--tokens", str(DIGITS), "--temperature", "0", "--isa", isa, "--cflags", "-O1", *options)


inputs = np.array(list(itertools.product(range(3), repeat=DIGITS)), np.int32)
full = np.concatenate([inputs, np.sort(inputs, axis=1)[:, :-1]], axis=1)
with tempfile.TemporaryDirectory() as folder:
    weights = folder + "/imported.safetensors"
    whole.works("import", SOURCE, "-o", weights)
    tensors = {name: values.astype(np.float64) for name, values in read_safetensors(weights)[0].items()}
    expected = logits(tensors, full)
    check((expected[:, DIGITS - 1 :].argmax(axis=2) == np.sort(inputs, axis=1)).all(), "float64 does not sort")
    own_cache(folder + "/cache")  # of generate's libraries
    stride = effort("sort_stride")
    for number, kind in enumerate(TYPES):
        for turn, isa in enumerate(in_turn(instruction_sets(), number)):
            options = ["--type", *kind.replace("by", "--activations").split()]
            model = whole.Decoder(MODEL, weights, os.path.join(folder, isa + kind.replace(" ", "_")), isa, *options)
            sorted_well = 0
            commanded = effort("generate_stride") * (1 if number == turn == 0 else 81)
            for row, digits in enumerate(inputs):
                found = finished(model, digits, True)
                if row % stride == 0:
                    other = finished(model, digits, False)
                    check(found == other, f"{isa}, {kind}: {digits}: prefill gives {found}, step {other}")
                if row % commanded == commanded - 1:
                    made = generated(weights, digits, isa, options)
                    check(made.split() == list(map(str, found)), f"{isa}, {kind}: {digits}: prefill and step give {found}, generate {made!r}")
                sorted_well += found == sorted(digits)
            check(sorted_well == len(inputs), f"{isa}, {kind}: {sorted_well} of {len(inputs)} are sorted")
            got = np.array([model.prefill_all(model.start(), ids) for ids in full[::9]])
            off = np.abs(got - expected[::9]).max() / np.abs(expected).max()
            check(kind != "f32" or off < TOLERANCE, f"{isa}: logits are off by {off}")
            print(f"ok     {isa}, {kind}: {sorted_well} of {len(inputs)} sorted, logits off by {off:.1e}")
