#!/usr/bin/python3
"""Packs weights in every type and compares the bytes of the blob with NumPy: rounding once, from float64, to nearest, ties to even."""
import json
import os
import re
import tempfile

import numpy as np

from lookupc import bf16, check, run, write_safetensors

H, ROWS, D_OUT = 3, 4, 70  # rows of more than a cache line in every type
MODEL = 'return { name = "types", d = 4, d_out = 70, h = 3, tau = 2, projection = { kind = "dense" }, score = "softmax", scale = "%s" }\n'


def e4m3(values):
    """The nearest of the 127 magnitudes that a byte of fp8 E4M3 may have, by their definition; the even byte of two that are as near."""
    magnitudes = np.array([((8 if byte >> 3 else 0) + byte % 8) * 2.0 ** (max(byte >> 3, 1) - 10) for byte in range(127)])
    check(magnitudes[1] == 2.0**-9 and magnitudes[8] == 2.0**-6 and magnitudes[126] == 448.0, "the definition of E4M3")
    size = np.minimum(np.abs(values), 448.0)
    above = np.clip(np.searchsorted(magnitudes, size), 1, 126)
    nearer = (magnitudes[above] - size) - (size - magnitudes[above - 1])
    byte = np.where((nearer < 0) | ((nearer == 0) & (above % 2 == 0)), above, above - 1)
    return (byte + 128 * np.signbit(values)).astype("u1"), np.copysign(magnitudes[byte], values)


def rounded(kind, values):
    """The elements as stored, the scales or None, and the values they stand for."""
    if kind == "f32":
        stored = values.astype("<f4")
        return stored, None, stored.astype(np.float64)
    if kind == "bf16":
        stored, meant = bf16(values)
        return stored, None, meant
    if kind == "f16":
        stored = values.astype("<f2")
        return stored.view("<u2"), None, stored.astype(np.float64)
    if kind == "e4m3":  # kernels read 1/256 of what a byte means
        scales = (np.abs(values).max(axis=2) / (448.0 / 256.0)).astype("<f4")
        units = scales.astype(np.float64)[:, :, None] / 256.0
        stored, meant = e4m3(np.where(units > 0, values / np.where(units > 0, units, 1), 0.0))
        return stored, scales, meant * units
    if kind == "i4":  # of these scales the first one with the least error; sums in the order of the row
        scales = stored = least = None
        for levels in np.arange(7.0, 14.25, 0.5):
            units = (np.abs(values).max(axis=2) / levels).astype("<f4")
            wide = units.astype(np.float64)[:, :, None]
            elements = np.where(wide > 0, np.clip(np.rint(values / np.where(wide > 0, wide, 1)), -7, 7), 0)
            error = np.add.accumulate((elements * wide - values) ** 2, axis=2)[:, :, -1]
            better = error < least if levels > 7.0 else np.full(error.shape, True)
            scales = np.where(better, units, scales) if levels > 7.0 else units
            stored = np.where(better[:, :, None], elements, stored) if levels > 7.0 else elements
            least = np.where(better, error, least) if levels > 7.0 else error
        return stored.astype("i1"), scales.astype("<f4"), stored * scales.astype("<f4").astype(np.float64)[:, :, None]
    check(kind == "i8", "a type without a definition: " + kind)
    scales = (np.abs(values).max(axis=2) / 127.0).astype("<f4")
    divisor = np.where(scales > 0, scales, 1).astype(np.float64)[:, :, None]
    stored = np.where(scales[:, :, None] > 0, np.clip(np.rint(values / divisor), -127, 127), 0)
    return stored.astype("i1"), scales, stored * scales[:, :, None].astype(np.float64)


def tables():
    random = np.random.default_rng(5)
    values = random.standard_normal((H, ROWS, D_OUT))
    values[0, 1] = 0.0
    values[0, 2] *= 1e-6   # subnormal in f16
    values[0, 3] *= 1e-39  # subnormal in bf16 and f32
    values[1, 0] *= 1e3
    # Ties, and what is a tie only after rounding to float32: rounding twice would go the wrong way.
    for i, bits in enumerate((8, 8, 11, 11)):
        values[1, 1, 4 * i : 4 * i + 4] = (1.0, 1.0 + 2.0**-bits, 1.0 + 3 * 2.0**-bits, 1.0 + 2.0**-bits + (-1) ** i * 2.0**-40)
    values[1, 2, :] = np.arange(D_OUT) / 2  # multiples of half the scale for the maximum 63.5
    values[1, 2, 0] = 63.5
    values[1, 3] = -values[1, 2]
    values[1, 2, 1:9] = 63.5 * np.array([1.0, -1.0, 15.0, 17.0, -0.5, 1.5, 2.5, 0.25]) * 2.0**-9 / 448.0  # subnormal in e4m3 or a tie of two
    values[2, 3, :9] = np.array([448.0, 17.0, -19.0, 34.0, 2.0**-9, 2.0**-10, 3 * 2.0**-10, -0.0, 2.0**-6]) / 448.0  # ties in e4m3
    values[2, 0] *= 1e-50  # too small for anything but 0
    values[2, 1, 5] = 60000.0
    values[2, 2, :3] = (2.0**-24, 2.0**-25, 3 * 2.0**-26)
    return values


def check_tables():
    with tempfile.TemporaryDirectory() as work:
        weights, blob = work + "/w.safetensors", work + "/w.bin"
        kinds = run("plan", "gen/models/tiny.lua", "--tables", "none").stderr.strip().split("must be one of ")[1].split(", ")
        random = np.random.default_rng(1)
        tensors = {"hash.projection.weight": random.standard_normal((2 * H, 4)), "hash.projection.bias": random.standard_normal(2 * H),
                   "tables": tables(), "bias": random.standard_normal(D_OUT)}
        write_safetensors(weights, tensors)
        for scale, factor in (("none", 1.0), ("1/h", 1.0 / H)):
            model = work + "/" + scale.replace("/", "_") + ".lua"
            with open(model, "w") as file:
                file.write(MODEL % scale)
            values = tensors["tables"] * factor
            for kind in kinds:
                packed = run("pack", model, "--weights", weights, "-o", blob, "--tables", kind)
                check(packed.returncode == 0, packed.stderr)
                plan = json.loads(run("plan", model, "--json", "--tables", kind).stdout)
                section = {entry["name"]: entry for entry in plan["sections"]}
                stored, scales, meant = rounded(kind, values)
                if scales is not None:  # rows are rounded before the factor, which is their scales'
                    stored, scales, meant = rounded(kind, tensors["tables"])
                    scales, meant = (scales.astype(np.float64) * factor).astype("<f4"), meant * factor
                raw = open(blob, "rb").read()
                at, count = section["tables"]["offset"], section["tables"]["elements"]
                if kind == "i4":  # two to a byte, the first one in the low bits
                    pairs = np.frombuffer(raw, "u1", count // 2, at)
                    found = (np.stack((pairs & 15, pairs >> 4), axis=-1).reshape(H, ROWS, -1) ^ 8).astype("i1") - 8
                    padded = found.shape[2] == D_OUT + D_OUT % 2  # a row is shorter than a cache line
                else:
                    found = np.frombuffer(raw, stored.dtype, count, at).reshape(H, ROWS, -1)
                    padded = found.shape[2] * stored.itemsize // 64 % 2 == 1  # an odd number of lines
                check(section["tables"]["type"] == kind and padded, kind + ": where rows lie")
                wrong = np.argwhere(found[:, :, :D_OUT].view(f"V{stored.itemsize}") != stored.view(f"V{stored.itemsize}"))
                check(len(wrong) == 0, f"{kind}, scale {scale}: element {wrong[:1]} of the tables")
                check(not found[:, :, D_OUT:].any(), kind + ": padding is not zero")
                if scales is not None:
                    found = np.frombuffer(raw, "<f4", H * ROWS, section["table_scales"]["offset"]).reshape(H, ROWS)
                    check((found == scales).all(), f"{kind}, scale {scale}: scales")
                error = np.linalg.norm(meant - values) / np.linalg.norm(values)
                said = float(re.search(r"tables in " + kind + r", relative error (\S+)", packed.stdout).group(1))
                check(abs(said - error) <= 0.06 * error, f"{kind}: says error {said}, is {error}")

        os.remove(blob)
        model = work + "/none.lua"
        for kind, value in (("f16", 65520.0), ("bf16", 3.3962e38), ("f32", 3.5e38), ("i8", 1e41), ("e4m3", 1e39), ("i4", 1e41)):
            tensors["tables"][2, 1, 5] = value
            write_safetensors(weights, tensors)
            packed = run("pack", model, "--weights", weights, "-o", blob, "--tables", kind)
            check(packed.returncode == 1 and packed.stderr.endswith(f"tensor tables: a folded value is too large for {kind}\n"), f"{kind}: {packed}")
            check(packed.stderr.count("\n") == 1 and not os.path.exists(blob), kind + ": a refusal is one line and writes nothing")
    print(f"ok     types: tables in {', '.join(kinds)} are what NumPy rounds to; too large values are refused")


def sections_of(model, *options):
    return {entry["name"]: entry for entry in json.loads(run("plan", model, "--json", *options).stdout)["sections"]}


def i16(values):
    """[..., outputs, inputs] as integers, their scales, and the values they stand for: no integer and no row's sum needs more than 16 bits."""
    size = np.abs(values)
    scales = np.maximum(size.max(axis=-1) / 32767.0, size.sum(axis=-1) / (65534.0 - values.shape[-1] / 2)).astype("<f4")
    wide = scales.astype(np.float64)[..., None]
    stored = np.clip(np.rint(values / wide), -32767, 32767)
    check(np.abs(stored).sum(axis=-1).max() < 65536, "a row's sum fits")
    return stored.astype("<i2"), scales, stored * wide


def check_projection(work, kind, name, source, h, weight, gain, folded):
    """The blob of a model of h tables, 2 bits each, must have `folded` [..., outputs, inputs], none wider than a panel, in that type."""
    model, weights, blob = f"{work}/{name}.lua", f"{work}/{name}.safetensors", work + "/w.bin"
    with open(model, "w") as file:
        file.write(source)
    random = np.random.default_rng(8)
    d = len(gain)
    tensors = {"hash.projection.weight": weight, "hash.projection.bias": random.standard_normal(2 * h), "tables": np.ones((h, 4, d)),
               "bias": np.zeros(d), "LayerNorm.weight": gain, "LayerNorm.bias": random.standard_normal(d)}
    write_safetensors(weights, tensors)
    packed = run("pack", model, "--weights", weights, "-o", blob, "--projection", kind)
    check(packed.returncode == 0, packed.stderr)
    raw, section = open(blob, "rb").read(), sections_of(model, "--projection", kind)
    if kind == "bf16":
        stored, meant = bf16(folded)
    else:
        stored, scales, meant = i16(folded)
        found = np.frombuffer(raw, "<f4", scales.size, section["projection_scales"]["offset"])
        check(section["projection_scales"]["elements"] == scales.size and (found == scales.ravel()).all(), name + ": scales of the projection")
        stored = stored.view("<u2")
    stored = np.swapaxes(stored, -1, -2)  # [..., inputs, outputs]
    if stored.shape[-2] % 2:
        stored = np.concatenate([stored, np.zeros_like(stored[..., :1, :])], axis=-2)
    pairs = stored.reshape(*stored.shape[:-2], -1, 2, stored.shape[-1]).swapaxes(-1, -2)  # [..., words of inputs, outputs, 2]
    at, count = section["projection"]["offset"], section["projection"]["elements"]
    check(section["projection"]["type"] == kind and count == pairs.size, f"{name}: {count} elements")
    found = np.frombuffer(raw, "<u2", count, at).reshape(pairs.shape)
    wrong = np.argwhere(found != pairs)
    check(len(wrong) == 0, f"{name}: element {wrong[:1]} of the projection")
    said = float(re.search(rf"projection in {kind}, relative error (\S+),", packed.stdout).group(1))
    error = np.linalg.norm(meant - folded) / np.linalg.norm(folded)
    check(abs(said - error) <= 0.06 * error, f"{name}: says error {said}, is {error}")

    os.remove(blob)
    if kind == "i16":
        return
    weight.flat[0] = 3.4e38
    gain[0] = 1.0
    write_safetensors(weights, tensors)
    packed = run("pack", model, "--weights", weights, "-o", blob, "--projection", kind)
    refusal = "tensor hash.projection.weight: a folded value is too large for bf16\n"
    check(packed.returncode == 1 and packed.stderr.endswith(refusal), f"{name}: {packed}")
    check(packed.stderr.count("\n") == 1 and not os.path.exists(blob), name + ": a refusal is one line and writes nothing")


def check_projections():
    random = np.random.default_rng(9)
    with tempfile.TemporaryDirectory() as work:
        # d = 7: the last word of an output holds one weight. Ties of two roundings, as for tables, in the first row.
        weight, gain = random.standard_normal((10, 7)), random.standard_normal(7)
        gain[:4] = 1.0
        weight[0, :4] = (1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8, 1.0 + 2.0**-8 + 2.0**-40, 1.0 + 2.0**-8 - 2.0**-40)
        source = ('return { name = "odd", d = 7, h = 5, tau = 2, projection = { kind = "dense" }, score = "gelu", '
                  'norm = { kind = "layernorm" } }')
        check_projection(work, "i16", "odd", source, 5, weight, gain, weight * gain)
        check_projection(work, "bf16", "odd", source, 5, weight, gain, weight * gain)

        # Blocks of 4 by H_4 from the left, the first step by the gain, the fourth by decay; every output is read.
        weight, gain = random.standard_normal((2, 4, 2, 4, 4)), random.standard_normal(8)
        h2 = np.array([[1.0, 1.0], [1.0, -1.0]])
        folded = np.einsum("po,rsnoi->rsnpi", np.kron(h2, h2), weight)
        folded[:, 0] *= gain.reshape(2, 1, 4)
        folded[:, 3] *= 0.7
        source = ('return { name = "blocks", d = 8, h = 8, tau = 2, projection = { kind = "bh4", block = 4 }, score = "gelu", '
                  'norm = { kind = "layernorm" } }')
        check_projection(work, "i16", "blocks", source, 8, weight, gain, folded)
        check_projection(work, "bf16", "blocks", source, 8, weight, gain, folded)
    print("ok     types: projections in bf16 and i16 are what NumPy rounds and lays out; too large values are refused")


check_tables()
check_projections()
