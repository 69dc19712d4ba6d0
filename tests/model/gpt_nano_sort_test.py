"""gpt-nano-sort, a trained minGPT, sorts every sequence of six digits below 3: on every instruction set, with every type of weights, given
at once, one by one, and to `lookupc generate`; its logits are those of NumPy's float64."""
import itertools
import os
import tempfile

import numpy as np

import any_model
import model_shapes
import whole
from definitions import Checkpoint
from lookupc import check, effort, in_turn, instruction_sets, own_cache, read_safetensors, works

TYPES = ["f32", "i8", "i8 by i8", "i8 by i7", "bf16", "bf16 by bf16", "f16", "e4m3"][: None if effort("sort") else 2]
TOLERANCE = 1e-5  # of f32, relative
DIGITS = 6
SOURCE = whole.data_file("gpt-nano-sort.json")
MODEL = "gen/models/gpt_nano_sort.lua"
KEYS = model_shapes.changed(model_shapes.GPT, d=48, heads=3, layers=3, vocab=3, ffn={"f": 192})


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
    return works("generate", MODEL, "--weights", weights, "--ids", ids, "--tokens", str(DIGITS), "--temperature", "0", "--isa", isa, "--cflags", "-O0", *options)


inputs = np.array(list(itertools.product(range(3), repeat=DIGITS)), np.int32)
full = np.concatenate([inputs, np.sort(inputs, axis=1)[:, :-1]], axis=1)
with tempfile.TemporaryDirectory() as folder:
    weights = folder + "/imported.safetensors"
    works("import", SOURCE, "-o", weights)
    definition = Checkpoint(0)
    definition.tensors = read_safetensors(weights)[0]
    expected = np.array([any_model.logits(definition, ids, KEYS) for ids in full])
    check((expected[:, DIGITS - 1 :].argmax(axis=2) == np.sort(inputs, axis=1)).all(), "float64 does not sort")
    own_cache(folder + "/cache")  # of generate's libraries
    stride = 1 if effort("sort") else 27
    for number, kind in enumerate(TYPES):
        for turn, isa in enumerate(in_turn(instruction_sets(), number)):
            options = ["--type", *kind.replace("by", "--activations").split()]
            model = whole.Decoder(MODEL, weights, os.path.join(folder, isa + kind.replace(" ", "_")), isa, *options)
            sorted_well = 0
            commanded = (9 if effort("sort") else 81) * (1 if number == turn == 0 else 81)
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
