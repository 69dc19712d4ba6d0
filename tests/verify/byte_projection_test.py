#!/usr/bin/python3
"""A projection in i8 or i7 is that of its definition in 64-bit integers, bit for bit, in all stages, for few tokens and for many, by every instruction
set, with effort full also by those of AArch64 in emulation; and a calibration keeps codes as it says."""
import ctypes
import itertools
import os
import re
import shutil
import subprocess
import tempfile

import numpy as np

from definitions import hadamard
from lookupc import LOOKUPC, aligned, check, effort, in_turn, instruction_sets, pointer, run, write_safetensors

TOKENS = 150
LEVELS = {"i8": 127, "i7": 63}
F32 = np.float32


def rounded_rows(rows, levels):
    """float64 [outputs][inputs] as integers and scales."""
    scale = (np.abs(rows).max(axis=1) / levels).astype(F32).astype(float)
    return np.rint(rows / np.where(scale > 0, scale, 1)[:, None]).clip(-levels, levels).astype(np.int64), scale.astype(F32)


def sums(x, rows, levels):
    """One block: float32 x [tokens][inputs] times rounded rows as integers; the scales of outputs; the units of tokens."""
    largest = np.abs(x).max(axis=1)
    unit = (largest * (F32(1) / F32(levels))).astype(F32)
    inverse = (F32(levels) / np.where(largest > 0, largest, F32(1))).astype(F32)
    integers = np.rint((x * inverse[:, None]).astype(F32)).astype(np.int64)
    weights, scale = rounded_rows(rows, levels)
    return (integers @ weights[:, : x.shape[1]].T).astype(F32), scale, unit[:, None]


def product(x, rows, levels):
    """The same in float32."""
    total, scale, unit = sums(x, rows, levels)
    return ((total * scale).astype(F32) * unit).astype(F32)


def fold(inputs, rows, levels, regime, fused):
    """Several blocks of the last stage that are added up, in turn, with or without FMA, as kernels for few and for many tokens do."""
    y = np.zeros((len(inputs[0]), len(rows[0])), F32)
    for x, part in zip(inputs, rows):
        total, scale, unit = sums(x, part, levels)
        a, b = (total, (scale * unit).astype(F32)) if regime == "few" else ((total * scale).astype(F32), unit)
        y = (np.longdouble(a) * b + y).astype(F32) if fused else ((a * b).astype(F32) + y).astype(F32)
    return y


def butterflies(y, block):
    """The Hadamard transform over whole blocks, widest first, each addition in float32."""
    distance = y.shape[1] // 2
    while distance >= block:
        pairs = y.reshape(len(y), -1, 2, distance)
        y = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2).reshape(len(y), -1)
        distance //= 2
    return y


def bh4(x, w, decay, bits, product, fold=None):
    """w [repeats][4][blocks][out][in]; z [tokens][bits], to which the residual is not added. With `fold` blocks of the last
    repeat are folded first where it has fewer outputs."""
    repeats, _, blocks, block, _ = w.shape
    z = []
    for repeat in range(repeats):
        y = np.zeros((len(x), blocks * block), x.dtype)
        y[:, : x.shape[1]] = x
        for stage in range(4):
            weights = hadamard(block) @ w[repeat, stage] * (decay if stage == 3 else 1)
            inputs = x.shape[1] if stage == 0 else blocks * block
            ends = [min((b + 1) * block, inputs) for b in range(blocks) if b * block < inputs]
            parts = [product(y[:, b * block : end], weights[b]) for b, end in enumerate(ends)]
            parts += [np.zeros((len(x), block), x.dtype)] * (blocks - len(parts))
            if stage == 3 and fold:
                wanted = 1 << (-(-(bits - repeat * blocks * block) // block) - 1).bit_length()
                if wanted < blocks:
                    inputs = [y[:, b * block : end] for b, end in enumerate(ends)]
                    parts = [fold(inputs[o::wanted], weights[o::wanted]) for o in range(wanted)]
            y = butterflies(np.concatenate(parts, axis=1), block)
        z.append(y)
    return np.concatenate(z, axis=1)[:, :bits]


# Those of AArch64 and CPUs that the emulator has; build.sh makes a lookupc for them with effort full.
EMULATED = {"neon": "cortex-a72", "dotprod": "neoverse-n1", "sve": "max,sve256=on", "i8mm": "max,sve=off"}
OTHER_LOOKUPC = os.path.join(os.path.dirname(os.path.abspath(LOOKUPC)), "aarch64", "lookupc")


def run_on(isa, *arguments):
    if isa not in EMULATED:
        return run(*arguments)
    emulator = ["qemu-aarch64-static", "-cpu", EMULATED[isa], "-L", "/usr/aarch64-linux-gnu"]
    return subprocess.run([*emulator, OTHER_LOOKUPC, *arguments, "--cc", "aarch64-linux-gnu-gcc"], capture_output=True, text=True)


def emulated_sets():
    if not effort("instruction_sets"):
        return []
    if not os.path.exists(OTHER_LOOKUPC) or not shutil.which("qemu-aarch64-static") or not shutil.which("aarch64-linux-gnu-gcc"):
        print("skipped: instruction sets of AArch64: no emulator, compiler or lookupc for them")
        return []
    return list(EMULATED)


def check_model(work, name, d, bits, block, decay, kind, sets):
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
    x = random.standard_normal((TOKENS, d)) * 2.0 ** random.integers(-10, 30, (TOKENS, 1))
    x *= np.where(random.random(x.shape) < 0.02, 50, 1)
    x[3], x[5], x[7, : d // 2] = 0, np.sign(x[5]), 0  # all zeros; all as large as can be; a few blocks of zeros
    x = x.astype(F32)
    np.save(given, x)
    for isa, (regime, threshold) in itertools.product(sets, (("few", 256), ("many", 0))):
        levels, fused = LEVELS[kind], isa not in ("scalar", "sse4")
        z = product(x, w, levels) if not block else bh4(
            x, w, decay, bits, lambda x, rows: product(x, rows, levels), lambda x, rows: fold(x, rows, levels, regime, fused))
        if block and decay < 1:
            z[:, : min(d, bits)] += F32(1 - decay) * x[:, :bits]  # decay 0.5: exact, with FMA and without
        expected = z / (1 + np.exp(-2 * np.abs(z.astype(float))))
        large = np.abs(z) > 16  # 1 + exp(-2 |z|) is 1: y is z, bit for bit
        check(large.mean() > 0.5, f"{name}: {large.mean():.2g} of z are large")
        done = run_on(isa, "run", model, "--weights", weights, "--input", given, "--output", found, "--projection", kind, "--isa", isa,
                      "--schedule", f"few.threshold={threshold}", "--cflags", "-O0")
        check(done.returncode == 0, done.stderr)
        y = np.load(found)
        wrong = np.argwhere(large & (y != z))
        check(len(wrong) == 0, f"{kind}, {name}, {isa}, {regime}: {len(wrong)} of {large.sum()} differ, first {wrong[:1]}")
        off = np.abs(y - expected).max(axis=1) / np.abs(expected).max(axis=1).clip(1e-30)
        check(off.max() < 1e-5, f"{kind}, {name}, {isa}, {regime}: token {off.argmax()} is off by {off.max():.2g}")
    print(f"ok     projection in {kind}: {name}, {', '.join(sets)}, few and many tokens")


def codes_of(bundle, name, blob, x, tables):
    """Of kernels for few tokens, one after the other."""
    library = ctypes.CDLL(bundle + ".so")  # without __ELF__ kernels are not hidden
    packed, bound, scratch = (aligned(size) for size in (os.path.getsize(blob), 4096, 1 << 20))
    packed[:] = np.fromfile(blob, np.uint8)
    check(getattr(library, name + "_bind")(pointer(packed), ctypes.c_size_t(len(packed)), pointer(bound)) == 0, "bind")
    codes, score = np.zeros((len(x), tables), np.uint16), np.zeros(tables, F32)
    project = getattr(library, name + "_project__scalar_few")
    for token in range(len(x)):
        project(pointer(bound), pointer(x[token]), ctypes.c_size_t(1), pointer(codes[token]), pointer(score), pointer(scratch))
    return codes.astype(int)


def check_calibration(work, name, d, tables, tau, block, norm, kind):
    """pack --calibrate: fewer codes flip in inputs that it did not see, and as many as it says."""
    random, bits, decay = np.random.default_rng(d + tau), tables * tau, 0.7 if block else 1.0
    model, weights, inputs, bundle = (f"{work}/{name}{end}" for end in (".lua", ".safetensors", "_x.npy", ""))
    projection = f'kind = "bh4", block = {block}, decay = {decay}' if block else 'kind = "dense"'
    layernorm = ', norm = { kind = "layernorm" }' if norm else ""
    with open(model, "w") as file:
        file.write(f'return {{ name = "{name}", d = {d}, h = {tables}, tau = {tau}, projection = {{ {projection} }}, score = "gelu"{layernorm} }}\n')
    padded = 1 << (d - 1).bit_length()
    w = random.standard_normal((-(-bits // padded), 4, padded // block, block, block) if block else (bits, d)) / np.sqrt(block * padded if block else d)
    bias, gain, offset = 0.1 * random.standard_normal(bits), 1 + 0.1 * random.standard_normal(d), 0.1 * random.standard_normal(d)
    tensors = {"hash.projection.weight": w, "hash.projection.bias": bias, "tables": np.zeros((tables, 1 << tau, d)), "bias": np.zeros(d)}
    write_safetensors(weights, {**tensors, **({"LayerNorm.weight": gain, "LayerNorm.bias": offset} if norm else {})})
    x = random.standard_normal((1200, d // 6)) @ random.standard_normal((d // 6, d)) + 0.2 * random.standard_normal((1200, d)) + 0.5
    x = x.astype(F32)
    np.save(inputs, x)
    held = x[3::4]
    v = held.astype(float)
    if norm:
        v = (v - v.mean(axis=1, keepdims=True)) / np.sqrt(v.var(axis=1, keepdims=True) + 1e-5) * gain + offset
    z = bh4(v, w, decay, bits, lambda x, rows: x @ rows[:, : x.shape[1]].T) if block else v @ w.T
    for first in range(0, bits if block else 0, padded):
        z[:, first : first + d] += (1 - decay) * v[:, : bits - first]
    exact = ((z + bias > 0).reshape(len(held), tables, tau) << np.arange(tau - 1, -1, -1)).sum(axis=2)
    done = run("emit", model, "--projection", kind, "--isa", "scalar", "-o", bundle)
    check(done.returncode == 0, done.stderr)
    sources = [f"{bundle}/{file}" for file in sorted(os.listdir(bundle)) if file.endswith(".c")]
    done = subprocess.run(["gcc", "-std=c99", "-O0", "-fPIC", "-U__ELF__", "-shared", "-o", bundle + ".so", *sources], capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    flips = []
    for more in ([], ["--calibrate", inputs]):
        done = run("pack", model, "--weights", weights, "--projection", kind, *more, "-o", bundle + ".bin")
        check(done.returncode == 0, done.stderr)
        flips.append((codes_of(bundle, name, bundle + ".bin", held, tables) != exact).mean())
    said = re.search(r"; of (\d+) rows held back z is off by [\d.]+ and ([\d.]+) % of the codes flip, calibrated [\d.]+ and ([\d.]+) %$", done.stdout.strip())
    check(said and int(said.group(1)) == 300, done.stdout)
    check(flips[1] < 0.9 * flips[0], f"{name}: {flips}")
    for found, text in zip(flips, said.groups()[1:]):
        check(abs(found - float(text) / 100) <= 0.02 * found + 2 / exact.size, f"{name}: {text} % of the codes should flip, {100 * found:.3g} % do")
    np.save(inputs, x[:63])
    for more, status, rule in ((kind, 1, "63 rows: calibration takes at least 64"), ("i16", 2, "is for LookupFFNs with --projection i8 or i7")):
        done = run("pack", model, "--weights", weights, "--projection", more, "--calibrate", inputs, "-o", bundle + ".no")
        check(done.returncode == status and rule in done.stderr and done.stderr.count("\n") == 1 and not os.path.exists(bundle + ".no"), done.stderr)
    print(f"ok     projection in {kind}: {name}, calibrated: {100 * flips[0]:.2g} % of the codes flip, then {100 * flips[1]:.2g} %")


def main():
    sets = instruction_sets("i8")
    with tempfile.TemporaryDirectory() as work:
        check_calibration(work, "calibrated_blocks", 100, 20, 8, 32, True, "i8")
        check_calibration(work, "calibrated_dense", 60, 90, 6, 0, False, "i7")
        # In "residual" the inputs of 8 blocks, of 4 and of half a one are rounded.
        models = (("dense", 70, 37, 0, 1.0), ("blocks", 100, 178, 32, 1.0), ("residual", 800, 1024, 64, 0.5), ("one_block", 61, 100, 64, 1.0))
        for number, model in enumerate(models):
            for kind in in_turn(list(LEVELS), number):
                check_model(work, *model, kind, in_turn(sets[::-1], number) + emulated_sets())
        # 178 outputs of repeats of 128: the last one adds up folds. All inputs of a token have one unit in i16.
        done = run("verify", work + "/blocks.lua", "--projection", "i16", "--isa", sets[-1], "--cflags", "-O0")
        check(done.returncode == 0, done.stderr)


main()
