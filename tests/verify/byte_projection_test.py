#!/usr/bin/python3
"""A projection in i8 is that of its definition in 64-bit integers: every input, weight and sum of a product is the integer that NumPy finds, in
all stages, for few tokens and for many, by every instruction set."""
import sys
import tempfile

import numpy as np

from lookupc import in_turn, instruction_sets, run, write_safetensors

TOKENS = 150
F32 = np.float32


def check(condition, text):
    if not condition:
        sys.exit("FAILED projection in i8: " + text)


def rounded_rows(rows):
    """float64 [outputs][inputs] as integers and scales."""
    scale = (np.abs(rows).max(axis=1) / 127).astype(F32).astype(float)
    return np.rint(rows / np.where(scale > 0, scale, 1)[:, None]).clip(-127, 127).astype(np.int64), scale.astype(F32)


def product(x, rows):
    """One block: float32 x [tokens][inputs] times rounded rows, in float32 but for the sums."""
    largest = np.abs(x).max(axis=1)
    unit = (largest * (F32(1) / F32(127))).astype(F32)
    inverse = (F32(127) / np.where(largest > 0, largest, F32(1))).astype(F32)
    integers = np.rint((x * inverse[:, None]).astype(F32)).astype(np.int64)
    weights, scale = rounded_rows(rows)
    sums = integers @ weights[:, : x.shape[1]].T
    return ((sums.astype(F32) * scale).astype(F32) * unit[:, None]).astype(F32)


def butterflies(y, block):
    """The Hadamard transform over whole blocks, widest first, each addition in float32."""
    distance = y.shape[1] // 2
    while distance >= block:
        pairs = y.reshape(len(y), -1, 2, distance)
        y = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2).reshape(len(y), -1)
        distance //= 2
    return y


def hadamard(size):
    h = np.ones((1, 1))
    while len(h) < size:
        h = np.block([[h, h], [h, -h]])
    return h


def bh4(x, w, decay, bits):
    """w [repeats][4][blocks][out][in]; z [tokens][bits], to which the residual is not added."""
    repeats, _, blocks, block, _ = w.shape
    z = []
    for repeat in range(repeats):
        y = np.zeros((len(x), blocks * block), F32)
        y[:, : x.shape[1]] = x
        for stage in range(4):
            folded = hadamard(block) @ w[repeat, stage] * (decay if stage == 3 else 1)
            inputs = x.shape[1] if stage == 0 else blocks * block
            ends = [min((b + 1) * block, inputs) for b in range(blocks) if b * block < inputs]
            parts = [product(y[:, b * block : end], folded[b]) for b, end in enumerate(ends)]
            parts += [np.zeros((len(x), block), F32)] * (blocks - len(parts))
            y = butterflies(np.concatenate(parts, axis=1), block)
        z.append(y)
    return np.concatenate(z, axis=1)[:, :bits].astype(float)


def check_model(work, name, d, bits, block, decay, sets):
    """Tables of one bit each: a column of y is z's share of it, z / (1 + exp(-2 |z|))."""
    random = np.random.default_rng(d + bits)
    model, weights, given, found = (f"{work}/{name}{end}" for end in (".lua", ".safetensors", ".npy", "_y.npy"))
    projection = f'kind = "bh4", block = {block}, decay = {decay}' if block else 'kind = "dense"'
    with open(model, "w") as file:
        file.write(f'return {{ name = "{name}", d = {d}, d_out = {bits}, h = {bits}, tau = 1, projection = {{ {projection} }}, score = "gelu" }}\n')
    padded = 1 << (d - 1).bit_length()
    shape = (-(-bits // padded), 4, padded // block, block, block) if block else (bits, d)
    w = random.standard_normal(shape) / np.sqrt(block * padded if block else d)
    w *= np.where(random.random(w.shape) < 0.02, 9, 1)  # some weights are far larger than others
    tables = np.zeros((bits, 2, bits))
    tables[np.arange(bits), 0, np.arange(bits)], tables[np.arange(bits), 1, np.arange(bits)] = -1, 1
    write_safetensors(weights, {"hash.projection.weight": w, "hash.projection.bias": np.zeros(bits), "tables": tables, "bias": np.zeros(bits)})
    x = random.standard_normal((TOKENS, d)) * 2.0 ** random.integers(-20, 20, (TOKENS, 1))
    x *= np.where(random.random(x.shape) < 0.02, 50, 1)
    x[3], x[5], x[7, : d // 2] = 0, np.sign(x[5]), 0  # all zeros; all as large as can be; a few blocks of zeros
    x = x.astype(F32)
    np.save(given, x)
    z = bh4(x, w, decay, bits) if block else product(x, w).astype(float)
    if block and decay < 1:
        z[:, : min(d, bits)] += (1 - decay) * x.astype(float)[:, :bits]
    expected = z / (1 + np.exp(-2 * np.abs(z)))
    for isa in sets:
        for regime, threshold in (("few", 256), ("many", 0)):
            done = run("run", model, "--weights", weights, "--input", given, "--output", found, "--projection", "i8", "--isa", isa,
                       "--schedule", f"few.threshold={threshold}", "--cflags", "-O1")
            check(done.returncode == 0, done.stderr)
            off = np.abs(np.load(found) - expected).max(axis=1) / np.abs(expected).max(axis=1).clip(1e-30)
            check(off.max() < 1e-5, f"{name}, {isa}, {regime}: token {off.argmax()} is off by {off.max():.2g}")
    print(f"ok     projection in i8: {name}, {', '.join(sets)}, few and many tokens")


def main():
    sets = instruction_sets()
    with tempfile.TemporaryDirectory() as work:
        for number, (name, d, bits, block, decay) in enumerate((
                ("dense", 70, 37, 0, 1.0), ("blocks", 50, 150, 16, 1.0), ("residual", 200, 256, 64, 0.5), ("one_block", 61, 100, 64, 1.0))):
            check_model(work, name, d, bits, block, decay, in_turn(sets[::-1], number))
        # 150 outputs of repeats of 64: the last one adds up folds. All inputs of a token have one unit in i16.
        done = run("verify", work + "/blocks.lua", "--projection", "i16", "--isa", sets[-1], "--cflags", "-O1")
        check(done.returncode == 0, done.stderr)


main()
