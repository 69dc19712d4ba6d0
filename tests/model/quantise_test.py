"""quantise --calibrate-ids: with matrices rounded for the ids, logits are nearer to the exact ones than with each weight rounded to the
nearest, by NumPy; and packed they stay as they are."""
import json
import re
import struct
import tempfile

import numpy as np

import any_model
from definitions import Checkpoint
from lookupc import check, run, works, write_safetensors
from model_shapes import GPT, LLAMA, LOOKUP, changed

MODELS = [(changed(LLAMA, tied=False, ffn={"f": 66}), "i4"), (changed(GPT, d=48, ffn={"f": 70}), "u4"), (changed(LOOKUP, d=32), "i4,head=u4")]


def dequantised(path):
    """The tensors of a checkpoint that quantise wrote, in float64, as docs/model-files.md describes them."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()

    def get(name):
        entry = header[name]
        own = {"U8": "u1", "I8": "i1", "F32": "<f4", "F16": "<f2"}[entry["dtype"]]
        return np.frombuffer(data[slice(*entry["data_offsets"])], own).reshape(entry["shape"]).astype(np.int64 if own[-1] == "1" else float)

    tensors = {}
    for name, entry in header.items():
        values = get(name)
        if entry["dtype"] == "U8":
            values = np.stack([values & 15, values >> 4], -1).reshape(len(values), -1)
            columns = values.shape[1]
            if name + "_groups_i4" in header:
                values = np.where(values > 7, values - 16, values) * np.repeat(get(name + "_groups_i4"), 32, 1)[:, :columns]
            else:
                scale, low = np.moveaxis(np.repeat(get(name + "_groups_u4"), 32, 1)[:, :columns], -1, 0)
                values = values * scale + low
        elif entry["dtype"] == "I8":
            values = values * get(name + "_scale")[..., None]
        tensors[name] = values
    return tensors


def off(tensors, sequences, exact, m):
    c = Checkpoint(0)
    c.tensors = tensors
    return sum(((any_model.logits(c, ids, m) - y) ** 2).sum() for ids, y in zip(sequences, exact)) ** 0.5


with tempfile.TemporaryDirectory() as folder:
    for number, (m, types) in enumerate(MODELS):
        path, weights, listed = any_model.write(folder, "m", m), folder + "/w.safetensors", folder + "/ids.txt"
        tensors, context = any_model.tensors(m, number), m["attention"]["context"]
        write_safetensors(weights, tensors, "F32")
        # words that follow each other, so that inputs are alike
        ids = (np.random.default_rng(number).integers(0, 3, 8 * context).cumsum()) % m["vocab"]
        with open(listed, "w") as file:
            file.write(" ".join(map(str, ids)))
        sequences = ids.reshape(-1, context)
        c = Checkpoint(0)
        c.tensors = tensors
        exact = [any_model.logits(c, own, m) for own in sequences]
        files, errors = {}, {}
        for how in ([], ["--calibrate-ids", listed]):
            name = folder + ("/calibrated" if how else "/nearest")
            works("quantise", weights, "--type", types, "--model", path, *how, "-o", name)
            files[bool(how)], errors[bool(how)] = dequantised(name), off(dequantised(name), sequences, exact, m)
            said = run("pack", path, "--weights", name, "--type", types, "-o", folder + "/blob").stdout
            check(float(re.search("relative error up to (\\S+)", said)[1]) < 1e-6, said)
        check(errors[True] < 0.9 * errors[False], f"{m['name']} in {types}: off by {errors}")
        changes = [name for name in tensors if (files[True][name] != files[False][name]).any()]
        check(all(tensors[name].ndim == 2 for name in changes) and len(changes) > 3, changes)
        print(f"{types}: logits are off by {errors[True]:.3g}, by the nearest {errors[False]:.3g}")
