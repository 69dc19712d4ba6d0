#!/usr/bin/python3
"""Checks y = LookupFFN(x) outside C: reads the same weights and .npy files and computes the definition in float64 with NumPy.

definition_check.py MODEL.json WEIGHTS.safetensors X.npy Y.npy [--prefix P] [--blocks-in-out] [--tables TYPE] [--projection TYPE] [--arithmetic integer]

MODEL.json is what `lookupc plan MODEL.lua --json` prints. Exit status 1 when a token's |y - reference| / |reference| is above 1e-5; with
tables in i8, whose scores kernels may round to 1/65535 of a token's largest, above 5e-5; with integer arithmetic above 2e-2. Where
two vertices are equally good within the rounding of z a token may take either: such tables are counted, and those that use it are printed.
"""
import argparse
import glob
import itertools
import json
import struct
import sys

import numpy as np

TOLERANCE = {"f32": 1e-5, "bf16": 1e-5, "f16": 1e-5, "i8": 5e-5, "e4m3": 1e-5, "i4": 5e-5}
UNIT = 2.0**-24
INTEGER_TOLERANCE, INTEGER_UNIT = 2e-2, 2.0**-16
FACTOR = 16.0  # z may be off by FACTOR UNIT sqrt(roundings) times the magnitudes that it is summed from
CHOICES = 10   # near vertices of one token that are tried in all combinations


def read_safetensors(path):
    """Tensors by name, as functions that give them in float64."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        start = file.tell()
    raw = np.memmap(path, dtype=np.uint8, mode="r")

    def values(entry):
        first, last = entry["data_offsets"]
        data = raw[start + first:start + last].tobytes()
        if entry["dtype"] == "BF16":
            floats = (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        else:
            floats = np.frombuffer(data, {"F16": "<f2", "F32": "<f4", "F64": "<f8"}[entry["dtype"]])
        return floats.astype(np.float64).reshape(entry["shape"])

    return {name: (lambda entry=entry: values(entry)) for name, entry in header.items() if name != "__metadata__"}


def hadamard(n):
    """H_n, unnormalised, in natural order."""
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h


def layernorm(x, eps, gain, offset):
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * gain + offset


def project_bh4(x, weight, decay, count):
    """z without bias, and the magnitude that rounding is relative to."""
    tokens, d = x.shape
    repeats, _, blocks, b, _ = weight.shape
    n = blocks * b
    padded = np.zeros((tokens, n))
    padded[:, :d] = x
    h = hadamard(n)
    z, size = [], []
    for r in range(repeats):
        y = padded
        relative = 0.0
        for s in range(4):
            before = np.sqrt((y**2).mean(axis=1, keepdims=True))
            y = np.einsum("tni,noi->tno", y.reshape(tokens, blocks, b), weight[r, s]).reshape(tokens, n) @ h.T
            power = np.sqrt((y**2).mean(axis=1, keepdims=True))
            grown = relative * np.linalg.norm(weight[r, s]) * before
            relative = np.sqrt((grown / np.maximum(power, 1e-300)) ** 2 + 1.0)
        z.append(decay * y + (1.0 - decay) * padded)
        size.append(decay * relative * power + (1.0 - decay) * np.abs(padded))
    return np.concatenate(z, axis=1)[:, :count], np.concatenate(size, axis=1)[:, :count]


def vertices(z, kind):
    """For all vertices of every table, z [tokens][h][tau]: what they lack of the best one's <z, S>, halved, and their scores [tokens][h][2^tau]."""
    tau = z.shape[2]
    bits = (np.arange(1 << tau)[:, None] >> np.arange(tau - 1, -1, -1)) & 1
    cost = np.maximum(z, 0.0) @ (1 - bits).T + np.maximum(-z, 0.0) @ bits.T
    share = np.exp(-2.0 * cost - np.log1p(np.exp(-2.0 * np.abs(z))).sum(axis=2, keepdims=True))
    return cost, {"gelu": share * (z @ (2 * bits - 1).T), "softmax": share, "one": np.ones_like(share)}[kind]


def near_swaps(cost, taken, bound):
    """Of one table: pairs of a vertex that is taken and one that float32 may take in its place.  bound [tau]"""
    tau, most, slack = len(bound), cost[taken].max(), bound.sum()
    inside = [c for c in taken if cost[c] >= most - slack]
    outside = np.setdiff1d(np.flatnonzero(cost <= most + slack), taken)
    differing = lambda a, b: bound[[j for j in range(tau) if (a ^ b) >> (tau - 1 - j) & 1]].sum()
    return [(a, b) for a in inside for b in outside if differing(a, b) > 0 and cost[b] - cost[a] <= differing(a, b)]


def rounded(tables, kind):
    """The values that tables [h][rows][d_out], or weights of a float type, stand for when they are stored as that type."""
    if kind == "i8":
        scale = (np.abs(tables).max(axis=2, keepdims=True) / 127.0).astype(np.float32).astype(np.float64)
        return np.rint(tables / scale) * scale
    if kind == "i4":
        def changed(levels):
            scale = (np.abs(tables).max(axis=2, keepdims=True) / levels).astype(np.float32).astype(np.float64)
            return np.clip(np.rint(tables / scale), -7.0, 7.0) * scale

        choices = [changed(levels) for levels in np.arange(7.0, 14.25, 0.5)]
        best = np.argmin([((values - tables) ** 2).sum(axis=2) for values in choices], axis=0)
        return np.choose(best[:, :, None], choices)
    if kind == "e4m3":
        scale = (np.abs(tables).max(axis=2, keepdims=True) / 1.75).astype(np.float32).astype(np.float64)
        ratio = tables / scale
        unit = 2.0 ** np.maximum(np.floor(np.log2(np.abs(np.where(ratio == 0.0, 1.0, ratio)))) - 3.0, -17.0)
        return np.clip(np.rint(ratio / unit) * unit, -1.75, 1.75) * scale
    if kind == "f16":
        return tables.astype(np.float16).astype(np.float64)
    if kind == "bf16":
        unit = 2.0 ** (np.floor(np.log2(np.abs(np.where(tables == 0.0, 1.0, tables)))) - 7.0)
        return np.rint(tables / unit) * unit
    return tables


def project_folded_bh4(t, weight, gain, decay, count, kind):
    """decay H W4 H W3 H W2 H W1 (t gain), where the stored numbers, H_b W times decay or gain, are rounded to a type."""
    repeats, _, blocks, b, _ = weight.shape
    n = blocks * b
    padded, gains = np.zeros((len(t), n)), np.ones(n)
    padded[:, :t.shape[1]], gains[:t.shape[1]] = t, gain
    stored = np.einsum("po,rsnoi->rsnpi", hadamard(b), weight)
    stored[:, 0] *= gains.reshape(blocks, 1, b)
    stored[:, 3] *= decay
    stored = rounded(stored, kind)
    across = np.kron(hadamard(blocks), np.eye(b))
    z = []
    for r in range(repeats):
        y = padded
        for s in range(4):
            y = np.einsum("tni,noi->tno", y.reshape(-1, blocks, b), stored[r, s]).reshape(-1, n) @ across
        z.append(y)
    return np.concatenate(z, axis=1)[:, :count]


def relative_error(y, expected):
    error = np.linalg.norm(y - expected)
    return 0.0 if error == 0.0 else error / np.linalg.norm(expected)


def nearest(y, expected, score, swaps, tables):
    """The smallest relative error over all choices of the swaps (table, vertex, other), and those made for it."""
    best, made = relative_error(y, expected), ()
    for count in range(1, len(swaps) + 1):
        for choice in itertools.combinations(swaps, count):
            if len({(k, a) for k, a, _ in choice}) < count or len({(k, b) for k, _, b in choice}) < count:
                continue
            changed = expected + sum(score[k, b] * tables[k, b] - score[k, a] * tables[k, a] for k, a, b in choice)
            error = relative_error(y, changed)
            if error < best:
                best, made = error, choice
    return best, made


def loaded(pattern):
    """The rows of all .npy files of that name or pattern, by their names."""
    return np.concatenate([np.load(path) for path in sorted(glob.glob(pattern))]).astype(np.float64)


def check(arguments):
    with open(arguments.model) as file:
        model = json.load(file)["model"]
    d, d_out, h, tau = model["d"], model["d_out"], model["h"], model["tau"]
    projection, norm = model["projection"], model.get("norm")
    tensors = read_safetensors(arguments.weights)
    tensor = lambda name: tensors[arguments.prefix + name]()
    x, y = loaded(arguments.x), loaded(arguments.y)
    if x.shape[1:] != (d,) or y.shape != (len(x), d_out):
        sys.exit(f"definition_check: x is {x.shape} and y {y.shape}: must be (tokens, {d}) and (tokens, {d_out})")

    inputs, amplified = x, 1.0
    if norm:
        inputs = layernorm(x, norm["eps"], tensor("LayerNorm.weight"), tensor("LayerNorm.bias"))
        amplified = 1.0 + np.abs(x.mean(axis=1)) / np.sqrt(x.var(axis=1) + norm["eps"])
    weight, bias = tensor("hash.projection.weight"), tensor("hash.projection.bias")
    if projection["kind"] == "bh4":
        if arguments.blocks_in_out:
            weight = weight.swapaxes(3, 4)
        z, size = project_bh4(inputs, weight, projection["decay"], h * tau)
        roundings = projection["block"] + np.log2(weight.shape[2] * weight.shape[3]) + d / 4
    else:
        z, size = inputs @ weight.T, np.sqrt(inputs**2 @ (weight**2).T)
        roundings = d
    if arguments.projection != "f32":
        # By what is stored: the gain is folded in, the offset takes its own way through the exact weights.
        gain, offset = (tensor("LayerNorm.weight"), tensor("LayerNorm.bias")) if norm else (np.ones(d), np.zeros(d))
        t = layernorm(x, norm["eps"], 1.0, 0.0) if norm else x
        if projection["kind"] == "bh4":
            rest = (1.0 - projection["decay"]) * np.pad(t * gain, ((0, 0), (0, weight.shape[2] * weight.shape[3] - d)))
            z = project_folded_bh4(t, weight, gain, projection["decay"], h * tau, arguments.projection)
            z += np.tile(rest, weight.shape[0])[:, :h * tau] + project_bh4(offset[None], weight, projection["decay"], h * tau)[0]
        else:
            z = t @ rounded(weight * gain, arguments.projection).T + weight @ offset
    integers = arguments.arithmetic == "integer"
    bound = FACTOR * (INTEGER_UNIT if integers else UNIT) * np.sqrt(roundings) * (size * np.reshape(amplified, (-1, 1)) + np.abs(bias))
    z = (z + bias).reshape(-1, h, tau)
    bound = bound.reshape(z.shape)

    cost, score = vertices(z, model["score"])
    taken = np.argsort(cost, axis=2, kind="stable")[:, :, : model["neighbours"]]
    factor = 1.0 / h if model.get("scale", "none") == "1/h" else 1.0
    tables, output_bias = rounded(tensor("tables") * factor, arguments.tables), tensor("bias")
    worst, wrong, within, swapped, tolerance = 0.0, 0, 0, 0, INTEGER_TOLERANCE if integers else TOLERANCE[arguments.tables]
    for token in range(len(x)):
        expected = output_bias + sum(score[token, k, taken[token, k]] @ tables[k, taken[token, k]] for k in range(h))
        swaps = [(k, a, b) for k in range(h) for a, b in near_swaps(cost[token, k], taken[token, k], bound[token, k])]
        within += len({k for k, _, _ in swaps})
        error = relative_error(y[token], expected)
        if not error <= tolerance:
            error, made = nearest(y[token], expected, score[token], swaps[:CHOICES], tables)
            for k, a, b in made:
                swapped += 1
                print(f"token {token}, table {k}: row {b} instead of {a}, better by {cost[token, k, b] - cost[token, k, a]:.3g}")
        if not error <= tolerance:
            wrong += 1
            print(f"token {token}: relative error {error:.3g}")
        worst = max(worst, error) if error == error else np.inf
    print(f"{len(x)} tokens: {wrong} wrong, worst relative error {worst:.2g}; in {within} of {len(x) * h} tables rounding may take another row, "
          f"{swapped} did")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("weights")
    parser.add_argument("x", help="inputs: a file, or a pattern of several")
    parser.add_argument("y", help="outputs, likewise")
    parser.add_argument("--prefix", default="", help="stands before the names of the tensors")
    parser.add_argument("--blocks-in-out", action="store_true", help="blocks are stored [b in][b out]")
    parser.add_argument("--tables", choices=tuple(TOLERANCE), default="f32", help="the type that tables are stored as")
    parser.add_argument("--projection", choices=("f32", "bf16"), default="f32", help="the type that the projection is stored as")
    parser.add_argument("--arithmetic", choices=("float", "integer"), default="float", help="what kernels round to")
    return check(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
