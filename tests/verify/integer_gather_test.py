#!/usr/bin/python3
"""Rows of i8 and i4 that AVX-512, AVX-VNNI and AVX2 sum as integers: with two rows of a table no score is negative, however close the signs are, and y is bit for bit
what NumPy makes of the scores as integers, with one row of a table and with two. Scores in bytes also with functions in C for instructions."""
import ctypes
import glob
import re
import subprocess
import sys
import tempfile

import numpy as np

from lookupc import aligned, check, in_turn, instruction_sets, pointer, run, write_safetensors

MODEL = """return { name = "sums", d = %d, d_out = %d, h = %d, tau = %d, neighbours = %d, projection = { kind = "dense" }, score = "%s" }\n"""
TOKENS = 150
# Of instruction sets: flags, tokens of four vectors, and the largest integers that a score becomes, of two halves and of a byte.
SETS = {
    "avx512": (["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mavx512vnni"], 64, (65535, 255)),
    "avx_vnni": (["-mavx2", "-mfma", "-mf16c", "-mavxvnni"], 32, (65535, 255)),
    "avx2": (["-mavx2", "-mfma", "-mf16c"], 32, (32767, 127)),
}


def inputs(random, h, tau):
    """z of every table: any numbers, ties, numbers next to each other, zeros, tiny and large ones, with any signs."""
    z = np.abs(random.standard_normal((TOKENS, h, tau)))
    for token in range(TOKENS):
        kind = token % 6
        if kind == 1:
            z[token] = z[token, :, :1]
        elif kind == 2:
            z[token] = np.nextafter(z[token, :, :1].astype(np.float32), np.float32(9) * random.integers(0, 2, (h, tau)).astype(np.float32))
        elif kind == 3:
            z[token] *= random.integers(0, 2, (h, tau))
        elif kind == 4:
            z[token] *= 2.0 ** random.integers(-140, 1, (h, tau))
        elif kind == 5:
            z[token] = z[token, :, :1] * 2.0 ** -random.integers(0, 25, (h, tau))
    z[0] = 0.0
    return (z * random.choice([-1.0, 1.0], z.shape)).astype(np.float32).reshape(TOKENS, h * tau)


def expected(codes, scores, rows, spans, count, levels, factor):
    """y [tokens][d_out] of codes and scores [tokens][h][m]: the arithmetic of float32, one operation after the other. Elements are multiplied by `factor`."""
    y = np.zeros((count, rows.shape[2]), np.float32)
    for tables in spans:
        part = scores[:, tables].reshape(count, -1)
        largest, number = part.max(axis=1), np.float32(levels)
        with np.errstate(all="ignore"):
            whole = np.rint(part * (number / largest)[:, None])
        whole = np.where(largest[:, None] > 0, whole, 0).astype(np.int64)
        met = factor * np.stack([rows[k, codes[:, k]] for k in range(rows.shape[0])[tables]], axis=1).astype(np.int64)  # [tokens][h][m][d_out]
        sums = (whole[:, :, None] * met.reshape(count, whole.shape[1], -1)).sum(axis=1).astype(np.float32)
        unit = largest * (np.float32(1) / (number * np.float32(factor)))
        y = (unit[:, None].astype(np.longdouble) * sums + y).astype(np.float32)
    return y


def from_tiles(array, slots, tile):
    """[tiles][slots][tile] as [tokens][slots]."""
    return array.reshape(-1, slots, tile).swapaxes(1, 2).reshape(-1, slots)[:TOKENS]


def library(bundle, flags):
    path, whole = bundle + ".so", "".join(f'#include "{name}"\n' for name in sorted(glob.glob(bundle + "/*.c")))  # one unit is read in no time
    done = subprocess.run(["gcc", "-std=c99", "-O0", "-Werror", "-fPIC", "-U__ELF__", "-ffp-contract=off", "-shared", *flags, "-o", path, "-xc", "-"],
                          input=whole, capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    return ctypes.CDLL(path)  # without __ELF__ kernels are not hidden


def check_model(work, isa, h, tau, m, score, d_out, kind="i8", byte_scores=0, stand_in=None):
    random, (flags, tile, levels) = np.random.default_rng(h + m), SETS[isa]
    most_element, factor = (127, 1) if kind == "i8" else (7, 16)
    if kind == "i4" and isa == "avx_vnni":
        levels = SETS["avx2"][2]  # whose words it has
    levels = levels[byte_scores]
    model, weights, blob, bundle = (work + "/" + name for name in ("sums.lua", "w.safetensors", "w.bin", f"{isa}_{kind}_{h}_{tau}_{m}_{byte_scores}"))
    with open(model, "w") as file:
        file.write(MODEL % (h * tau, d_out, h, tau, m, score))
    rows = random.integers(1 - most_element, most_element, (h, 2**tau, d_out))
    rows[:, :, 0] = most_element  # the scale of every row is 1
    write_safetensors(weights, {"hash.projection.weight": np.eye(h * tau), "hash.projection.bias": np.zeros(h * tau),
                                "tables": rows, "bias": np.zeros(d_out)})
    for done in (run("emit", model, "--isa", isa, "--tables", kind, "--schedule",
                     f"tile.vectors=4,few.group={min(h, 256 // m)},gather.byte_scores={byte_scores},few.byte_scores={byte_scores}", "-o", bundle),
                 run("pack", model, "--tables", kind, "--weights", weights, "-o", blob)):
        check(done.returncode == 0, done.stderr)
    text = "".join(open(name).read() for name in glob.glob(bundle + "/*.c"))
    check(("scores_to_integers" in text) == (m == 1 or m == 2 and tau > 1), f"m {m}, tau {tau}: sums of integers")
    if m > 2 or m == 2 and tau == 1:
        return
    code = binding = library(bundle, [*SETS["avx2"][0], "-include", stand_in, "-D__asm__(...)=", "-Wno-psabi"] if stand_in else flags)
    if stand_in:  # all sets have one struct of weights: one that runs here fills it
        done = run("emit", model, "--isa", "scalar", "--tables", kind, "-o", bundle + "_scalar")
        check(done.returncode == 0, done.stderr)
        binding = library(bundle + "_scalar", [])
    header = open(bundle + "/sums.h").read()
    scratch = aligned(int(re.search(r"define SUMS_SCRATCH_BYTES (\d+)", header).group(1)))
    raw = np.fromfile(blob, np.uint8)
    memory, bound = aligned(len(raw)), aligned(4096)
    memory[:] = raw
    check(binding.sums_bind(pointer(memory), ctypes.c_size_t(len(raw)), pointer(bound)) == 0, "bind")
    names = {"few": (f"sums_project__{isa}_few", f"sums_gather_{kind}__{isa}_few"),
             "many": (f"sums_project__{isa}_many", re.search(rf"sums_gather_{kind}__{isa}_t{tile}\w+", text).group())}
    x = inputs(random, h, tau)
    for regime, (project, gather) in names.items():
        slots, padded = h * m, -(-TOKENS // tile) * tile
        codes, scores, y = aligned(padded * slots, np.uint16), aligned(padded * slots, np.float32), np.full((TOKENS, d_out), 7, np.float32)
        step = tile if regime == "many" else 16  # a chunk has as many at least
        for at in range(0, TOKENS, step):
            count = min(step, TOKENS - at)
            getattr(code, project)(pointer(bound), pointer(x[at:]), ctypes.c_size_t(count), pointer(codes[at * slots :]), pointer(scores[at * slots :]), pointer(scratch))
        if regime == "many":
            found_codes, found_scores = from_tiles(codes, slots, tile), from_tiles(scores, slots, tile)
        else:
            found_codes, found_scores = codes.reshape(-1, slots)[:TOKENS], scores.reshape(-1, slots)[:TOKENS]
        found_codes, found_scores = found_codes.reshape(TOKENS, h, m).astype(int), found_scores.reshape(TOKENS, h, m).copy()
        what = f"{isa}, {kind}, {regime}, h {h}, tau {tau}, m {m}, {score}, scores up to {levels}"
        check((found_scores >= 0).all(), f"{what}: the least score is {found_scores.min()}")
        check((found_scores[:, :, 0] >= found_scores[:, :, -1]).all(), what + ": the best row has the largest score")
        for at in range(0, TOKENS, step):
            count = min(step, TOKENS - at)
            getattr(code, gather)(pointer(bound), pointer(codes[at * slots :]), pointer(scores[at * slots :]), pointer(y[at:]), ctypes.c_size_t(count), pointer(scratch))
        most = 256 // m
        spans = [slice(first, min(first + most, h)) for first in range(0, h, most)]
        wanted = expected(found_codes, found_scores, rows, spans, TOKENS, levels, factor)
        wrong = np.argwhere(y.view(np.uint32) + 0 != (wanted + np.float32(0)).view(np.uint32))
        check(len(wrong) == 0, f"{what}: {len(wrong)} outputs differ, first {wrong[:1]}: {y[tuple(wrong[0])] if len(wrong) else 0}")
    print(f"ok     integer gather: {isa}, {kind}, h {h}, tau {tau}, m {m}, {score}, scores up to {levels}: no score below 0, y is that of integers")


def check_whole_rows(work, isa):
    """Tokens that gather whole rows, some tables at a time, get the bits of those that gather slices, copied as they come."""
    random, y = np.random.default_rng(5), []
    model, weights, x, found = (work + "/" + name for name in ("whole.lua", "whole.safetensors", "x.npy", "y.npy"))
    with open(model, "w") as file:
        file.write(MODEL.replace('"sums"', '"whole"') % (36, 200, 140, 3, 2, "gelu"))  # more rows than share a unit of scores
    write_safetensors(weights, {"hash.projection.weight": random.standard_normal((420, 36)), "hash.projection.bias": np.zeros(420),
                                "tables": random.standard_normal((140, 8, 200)), "bias": random.standard_normal(200)})
    np.save(x, random.standard_normal((TOKENS, 36)).astype(np.float32))
    copied = "whole.tokens=0,gather.columns=64,gather.group=8,gather.pack=3,gather.prefetch_codes=1,tile.vectors=1"
    for whole in (copied, "whole.tokens=256,whole.group=8", "whole.tokens=256,whole.group=128"):
        done = run("run", model, "--weights", weights, "--input", x, "--output", found, "--tables", "i8", "--isa", isa,
                   "--schedule", "few.threshold=0," + whole, "--cflags", "-O0")
        check(done.returncode == 0, done.stderr)
        y.append(np.load(found))
        check(np.array_equal(y[0].view(np.uint32), y[-1].view(np.uint32)), f"{whole}: y differs by {np.abs(y[0] - y[-1]).max()}")
    print(f"ok     integer gather: {isa}, whole rows, y is that of slices")


def main():
    with open("/proc/cpuinfo") as file:
        flags = file.read().split()
    sets = [isa for isa in instruction_sets("i8") if isa in SETS and (isa != "avx512" or "avx512_vnni" in flags)]
    stand_ins = ("avx512", "avx_vnni") if "avx2" in flags else ()
    if not sets and not stand_ins:
        print("skipped: needs AVX2, AVX-VNNI or AVX-512 with VNNI")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        for isa in sets and in_turn(sets, 0):
            check_whole_rows(work, isa)
        for number, case in enumerate(((37, 2, 2, "gelu", 70), (130, 3, 2, "gelu", 33), (9, 5, 1, "softmax", 66), (4, 1, 2, "gelu", 8),
                                       (5, 4, 3, "gelu", 8), (37, 2, 2, "gelu", 71, "i4"), (9, 5, 1, "softmax", 130, "i4"),
                                       (130, 3, 2, "gelu", 33, "i8", 1), (9, 5, 1, "softmax", 130, "i4", 1))):
            for isa in sets and in_turn(sets, number):
                check_model(work, isa, *case)
        for isa in stand_ins:
            check_model(work, isa, 37, 2, 2, "gelu", 71, "i8", 1, stand_in=f"tests/isa/stand_ins/{isa}.h")


main()
