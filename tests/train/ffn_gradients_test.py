#!/usr/bin/python3
"""Training kernels of one LookupFFN beside float64 in NumPy, whose gradients finite differences check in turn; planted errors are noticed."""
import ctypes
import os
import re
import tempfile

import numpy as np

import ffn_training
from definitions import bh4
from derivatives import Value
from lookupc import check, in_turn, instruction_sets, run, some, write_safetensors

TOLERANCE = 1e-5  # of the largest element of a gradient

# d, d_out, h, tau, projection, score, neighbours, scale, tokens
SHAPES = [
    (64, 64, 8, 6, "bh4 16 0.7", "gelu", 1, "none", 150),
    (48, 40, 5, 4, "bh4 16 0.7", "softmax", 2, "1/h", 70),
    (32, 24, 9, 3, "dense", "gelu", 2, "none", 65),
    (20, 20, 7, 5, "bh4 4 1", "gelu", 3, "none", 33),
    (37, 51, 4, 2, "dense", "softmax", 4, "none", 90),
    (16, 300, 40, 8, "bh4 8 0.5", "softmax", 1, "none", 40),
    (128, 128, 16, 8, "bh4 32 0.7", "gelu", 2, "none", 200),
    (5, 3, 1, 1, "dense", "gelu", 1, "none", 1),
    (256, 256, 8, 7, "bh4 32 0.7", "gelu", 1, "none", 100),
    (64, 272, 16, 4, "bh4 64 0.7", "gelu", 5, "1/h", 129),
]

# Errors of sign and of factors, planted in the emitted C: what is looked for, in which there is one match at least, and what takes its place.
PLANTED = [
    ("dz of bits that are not set", r"(dz\[\d+\] = z\w+ > |positive0 \? gain0 : )0\.0f - gain0|none - gain0", "gain0"),
    ("the residual's share", r"_add_rows\(dx_tile, dz([^,]*), 0\.\d+f", r"_add_rows(dx_tile, dz\1, -0.3f"),
    ("the unfolded butterfly", r"difference = low\[i\] - high\[i\];\n(\s+low\[i\] = sum;\n\s+high\[i\] = difference;\n\s+}\n\s+}\n\s+for \(size_t o = 0; o < \d+; \+\+o\)\n\s+for \(size_t i = 0; i < \d+; \+\+i\)\n\s+block\[)",
     r"difference = high[i] - low[i];\n\1"),
    ("the direction of a row's step", r"-rates->rate\b", "rates->rate"),
    ("a slope's sign", r"slope\[place\[entry\]\] \+= ", "slope[place[entry]] -= "),
    ("the score's share", r"const float two = 2\.0f", "const float two = -2.0f"),
    ("the bias of z", r"sums\[row\] \+= dz\[0\]", "sums[row] -= dz[0]"),
]


class Model(ffn_training.Model):
    """A shape with its definition, in float64."""

    def project(self, W, bias, x):
        """z."""
        return (x @ W.T if self.kind == "dense" else bh4(x, W, self.decay)[:, : self.bits]) + bias

    def vertices(self, code):
        """[..., tau] of ±1, the first bit the most significant."""
        return 2.0 * (code[..., None] >> np.arange(self.tau - 1, -1, -1) & 1) - 1

    def forward(self, W, bias_z, T, bias, x, code):
        """y, and the scores of the rows code [tokens][h][m]."""
        groups = self.project(W, bias_z, x).reshape(-1, self.h, 1, self.tau)
        along = (groups * self.vertices(code)).sum(axis=3)
        share = np.exp(along - np.log(np.exp(groups) + np.exp(-groups)).sum(axis=3)) * (1 / self.h if self.scale == "1/h" else 1)
        score = share * along if self.score == "gelu" else share
        return bias + np.einsum("tkm,tkmo->to", score, T[np.arange(self.h)[None, :, None], code]), score

    def backward(self, code):
        """y, and gradients of <y, dy>; that of a score is its slope."""
        given = {"d_projection": self.W, "d_projection_bias": self.bias_z, "dT": self.T, "d_bias": self.bias, "dx": self.x}
        values = {name: Value(a.astype(np.float64)) for name, a in given.items()}
        y, score = self.forward(*values.values(), code)
        (y * self.dy.astype(np.float64)).sum().propagate()
        return {"y": y.data, "slope": score.gradient, **{name: value.gradient for name, value in values.items()}}

    def check_differences(self, code, gradients):
        """The gradients along random directions beside central differences of <y, dy>: codes stay as they are."""
        point = [a.astype(np.float64) for a in (self.W, self.bias_z, self.T, self.bias, self.x)]
        names = ("d_projection", "d_projection_bias", "dT", "d_bias", "dx")
        for i, name in enumerate(names):
            direction, step = self.random.standard_normal(point[i].shape), 1e-5
            values = []
            for sign in (1, -1):
                moved = list(point)
                moved[i] = point[i] + sign * step * direction
                values.append((self.forward(*moved, code)[0] * self.dy).sum())
            found, expected = (values[0] - values[1]) / (2 * step), (gradients[name] * direction).sum()
            check(abs(found - expected) <= 1e-6 * np.linalg.norm(gradients[name]) * np.sqrt(direction.size), f"{self.name}: the test's own {name}: {found} {expected}")


def stepped(kernels, listed=False, **how):
    return ffn_training.Batch(kernels, **how).step(listed)


def far(found, expected):
    """The largest difference, relative to the largest element; infinite if one is not a number."""
    difference = np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30)
    return difference if np.isfinite(difference) else np.inf


def moved(model, dT, adam, rate=0.5):
    """The tables after the first step."""
    T, met = model.T.astype(np.float64), np.abs(dT).max(axis=2, keepdims=True) > 0
    if adam:
        step = rate * dT / np.sqrt(dT**2 + 1e-2)
    else:
        step = rate * dT / np.sqrt((dT**2).mean(axis=2, keepdims=True) + 1e-2)
    return np.where(met, T - step, T)


def wrong_of(model, kernels):
    """What differs from the definition: the first line of it, or None."""
    made = stepped(kernels, listed=True)
    z = model.project(model.W.astype(np.float64), model.bias_z.astype(np.float64), model.x.astype(np.float64))
    code = made["code"]
    best = ((z > 0).reshape(-1, model.h, model.tau) @ (1 << np.arange(model.tau - 1, -1, -1)))
    near = np.abs(z.reshape(-1, model.h, model.tau)).min(axis=2) < 1e-4
    if model.m == 1:
        if not ((code[:, :, 0] == best) | near).all():
            return "codes"
    elif not ((code == best[:, :, None]).any(axis=2) | near).all():
        return "codes"
    expected = model.backward(code)
    model.check_differences(code, expected)
    for name in ("y", "slope", "dx", "d_projection", "d_projection_bias", "d_bias", "dT"):
        error = far(made[name], expected[name])
        if not error <= TOLERANCE:
            return f"{name} differs by {error:.1e} of its largest element"
    if (made["uses"] != np.apply_along_axis(lambda c: np.bincount(c, minlength=model.rows), 0, code.transpose(0, 2, 1).reshape(-1, model.h)).T).any():
        return "uses"
    for adam in (False, True):
        plain = stepped(kernels, adam=adam)
        if not far(plain["tables"], moved(model, expected["dT"], adam)) <= 1e-4:
            return f"tables moved by {'Adam' if adam else 'Adagrad'}"
        listed = made if not adam else stepped(kernels, adam=True, listed=True)
        for name in ("tables", "state", "slope", "dx", "d_projection"):
            if plain[name].tobytes() != listed[name].tobytes():
                return f"{name}: lists of rows give other bits"
    pieces = stepped(kernels, pieces=3)
    plain = stepped(kernels)
    for name in ("y", "tables", "state", "slope", "dx", "uses"):
        if plain[name].tobytes() != pieces[name].tobytes():
            return f"{name}: ranges of tokens and tables give other bits"
    if not far(pieces["d_projection"], expected["d_projection"]) <= TOLERANCE:
        return "d_projection of three threads"
    return None


def inference(model, isa, kernels):
    """y of the inference kernels with packed weights."""
    weights, blob = f"{model.work}/{model.name}.safetensors", f"{model.work}/{model.name}.bin"
    write_safetensors(weights, {"hash.projection.weight": model.W, "hash.projection.bias": model.bias_z, "tables": model.T, "bias": model.bias})
    packed = run("pack", model.path, "--weights", weights, "-o", blob)
    check(packed.returncode == 0, packed.stderr)
    data = kernels.aligned(os.path.getsize(blob), "u1")
    data[:] = np.fromfile(blob, "u1")
    bound = kernels.aligned(16, "<u8", 0)
    bind = kernels.c[model.name + "_bind"]
    check(bind(ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(len(data)), ctypes.c_void_p(bound.ctypes.data)) == 0, f"{model.name}: bind")
    with open(f"{model.work}/{model.name}_{isa}/{model.name}.h") as file:
        scratch = kernels.aligned(int(re.findall(r"SCRATCH_BYTES (\d+)u", file.read())[-1]), "u1")
    y = kernels.aligned(model.tokens * model.d_out)
    kernels.c[model.name + "_ffn"](*[ctypes.c_void_p(a.ctypes.data) for a in (bound, model.x, y)], ctypes.c_size_t(model.tokens), ctypes.c_void_p(scratch.ctypes.data))
    return y.reshape(-1, model.d_out)


def main():
    sets = [name for name in instruction_sets() if name in ("scalar", "avx2", "avx512")]
    with tempfile.TemporaryDirectory() as work:
        shapes = some("training", list(enumerate(SHAPES)), len(SHAPES) // 3)
        for number, shape in shapes:
            model = Model(number, shape, work)
            for isa in in_turn(sets, number):
                kernels = ffn_training.Kernels(model, isa)
                wrong = wrong_of(model, kernels)
                check(wrong is None, f"{shape} {isa}: {wrong}")
                exact = model.scale == "none" or model.h & (model.h - 1) == 0
                if exact and (isa == "scalar" or number == 0):
                    scalar = kernels if isa == "scalar" else ffn_training.Kernels(model, "scalar")
                    check(inference(model, "scalar", scalar).tobytes() == stepped(scalar)["y"].tobytes(), f"{shape}: forward is not inference, bit for bit")
        print(f"ok     training: {len(shapes)} shapes agree with float64 to {TOLERANCE:g}, forward with inference bit for bit")
        with open(ffn_training.Kernels(Model(89, SHAPES[0], work), "scalar").source) as file:
            text = file.read()
        lost = [name for name, place, _ in PLANTED if not re.search(place, text)] # only some are compiled
        check(not lost, f"planted: not in the emitted C: {lost}")
        for number, planted in enumerate(some("planted", PLANTED, 3)):
            model = Model(90 + number, SHAPES[0], work)
            wrong = wrong_of(model, ffn_training.Kernels(model, "scalar", planted))
            check(wrong is not None, f"planted: {planted[0]}: nobody noticed")
            print(f"ok     training: planted: {planted[0]}: {wrong}")


main()
