"""Calls the training kernels of a LookupFFN that `emit --training` writes, as a trainer does."""
import ctypes
import re
import sys

import numpy as np

from lookupc import WARNINGS, aligned, compiled, works


class Model:
    """One shape, its parameters as float32 and a batch: (d, d_out, h, tau, projection, score, neighbours, scale, tokens)."""

    def __init__(self, number, shape, work):
        self.d, self.d_out, self.h, self.tau, projection, self.score, self.m, self.scale, self.tokens = shape
        self.name, self.work = f"train{number}", work
        words = projection.split()
        self.kind = words[0]
        self.bits, self.rows = self.h * self.tau, 1 << self.tau
        random = self.random = np.random.default_rng(number + 1)
        if self.kind == "bh4":
            self.b, self.decay = int(words[1]), float(words[2])
            self.N = 1 << (self.d - 1).bit_length()
            self.R = -(-self.bits // self.N)
            self.projection_shape = (self.R, 4, self.N // self.b, self.b, self.b)
            text = f'kind = "bh4", block = {self.b}, decay = {self.decay}'
            deviation = (self.b * self.N) ** -0.5
        else:
            self.projection_shape, text, deviation = (self.bits, self.d), 'kind = "dense"', self.d**-0.5
        self.path = f"{work}/{self.name}.lua"
        with open(self.path, "w") as file:
            file.write(f'return {{ name = "{self.name}", d = {self.d}, d_out = {self.d_out}, h = {self.h}, tau = {self.tau}, projection = {{ {text} }},'
                       f' score = "{self.score}", neighbours = {self.m}, scale = "{self.scale}" }}\n')

        def normal(*shape):
            return random.standard_normal(shape).astype("<f4")

        self.W = normal(*self.projection_shape) * np.float32(deviation)
        self.bias_z = normal(self.bits) * np.float32(0.1)
        self.T = normal(self.h, self.rows, self.d_out) * np.float32(0.3)
        self.bias = normal(self.d_out) * np.float32(0.1)
        self.x, self.dy = normal(self.tokens, self.d), normal(self.tokens, self.d_out)


def header_numbers(text):
    return {name: int(value) for name, value in re.findall(r"#define \w+_TRAIN_(\w+) (\d+)u", text)}


class Kernels:
    """The training kernels of a model for one instruction set, compiled."""

    def __init__(self, model, isa, mutate=None):
        self.model, self.isa = model, isa
        folder = f"{model.work}/{model.name}_{isa}"
        # Training takes the kernels for many tokens: so shall inference.
        works("emit", "--training", model.path, "-o", folder, "--isa", isa, "--schedule", "few.threshold=0")
        self.source = own = f"{folder}/{model.name}_train__{isa}.c"
        if mutate:
            with open(own) as file:
                text = file.read()
            changed, count = re.subn(mutate[1], mutate[2], text)
            if count == 0:
                sys.exit(f"FAILED {model.name}: planted: {mutate[0]}: nothing to change")
            with open(own, "w") as file:
                file.write(changed)
        self.library = folder + (".wrong.so" if mutate else ".so")
        warnings = [] if mutate else [*WARNINGS, "-Wmissing-prototypes"]
        compiled(folder, self.library, ["-std=c99", "-O2", *warnings], ["-nostdlib", "-Wl,-z,defs"])
        self.c = ctypes.CDLL(self.library)
        with open(f"{folder}/{model.name}_train.h") as file:
            self.sizes = header_numbers(file.read())
        self.kept = []

    def aligned(self, count, dtype="<f4", fill=None):
        """Memory at 64 bytes, with what must not matter in it."""
        values = aligned(count, dtype)
        self.kept.append(values)
        values[:] = 77 if fill is None else fill
        return values

    def call(self, name, *arguments, result=None):
        function = self.c[f"{self.model.name}_train_{name}__{self.isa}"]
        function.restype = result
        return function(*[ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_size_t(a) if isinstance(a, int) else a for a in arguments])

    def parameters(self, adam=False):
        m, s = self.model, self.sizes

        class Parameters(ctypes.Structure):
            _fields_ = [(n, ctypes.c_void_p) for n in ("projection", "projection_bias", "bias", "tables", "state", "prepared")]

        own = {"projection": m.W, "projection_bias": m.bias_z, "bias": m.bias}
        own["tables"] = self.aligned(m.h * m.rows * s["ROW"])
        own["tables"].reshape(m.h, m.rows, -1)[:, :, : m.d_out] = m.T
        own["state"] = self.aligned(m.h * m.rows * (2 * s["ROW"] if adam else 1), fill=0)
        own["prepared"] = self.aligned(s["PREPARED"])
        struct = Parameters(**{n: a.ctypes.data for n, a in own.items()})
        self.kept += [own, struct]
        return ctypes.byref(struct), own

    def rates(self, **values):
        class Rates(ctypes.Structure):
            _fields_ = [(n, ctypes.c_float) for n in ("rate", "epsilon", "beta1", "beta2", "correction1", "correction2")] + [("adam", ctypes.c_int)]

        struct = Rates(**values)
        self.kept.append(struct)
        return ctypes.byref(struct)

    def tokens(self, **arrays):
        class Tokens(ctypes.Structure):
            _fields_ = [(n, ctypes.c_void_p) for n in ("x", "dy", "y", "dx", "z", "code", "score", "slope", "uses")] + [("count", ctypes.c_size_t)]

        struct = Tokens(**{n: a.ctypes.data for n, a in arrays.items()}, count=self.model.tokens)
        self.kept += [arrays, struct]
        return ctypes.byref(struct)

    def scratch(self):
        with open(f"{self.model.work}/{self.model.name}_{self.isa}/{self.model.name}_train.h") as file:
            fixed, each = re.search(r"TRAIN_SCRATCH_BYTES\(tokens\) \((\d+)u \+ (\d+)u", file.read()).groups()
        return self.aligned(int(fixed) + int(each) * self.model.tokens, "u1")

    def tile(self):
        """Tokens of a tile of codes."""
        with open(f"{self.model.work}/{self.model.name}_{self.isa}/{self.model.name}_train__{self.isa}.c") as file:
            return int(re.search(r"score \[tiles\]\[\d+\](?:\[\d+\])?\[(\d+)\]", file.read()).group(1))


class Batch:
    """A step's buffers; a call for each part of it."""

    def __init__(self, kernels, adam=False, rate=0.5, epsilon=1e-2, pieces=1):
        self.kernels, m, s = kernels, kernels.model, kernels.sizes
        aligned = kernels.aligned
        self.pieces, self.struct_and_own = pieces, kernels.parameters(adam)
        self.struct, self.own = self.struct_and_own
        self.rates = kernels.rates(rate=rate, epsilon=epsilon, beta1=0.9, beta2=0.98, correction1=1 / (1 - 0.9), correction2=1 / (1 - 0.98), adam=int(adam))
        self.scratch = kernels.scratch()
        places = -(-m.tokens // s["TILE"]) * s["TILE"]
        self.y, self.z = aligned(m.tokens * m.d_out), aligned(places * s["Z"])
        self.code, self.score, self.slope = aligned(places * s["SLOTS"], "<u2"), aligned(places * s["SLOTS"]), aligned(places * s["SLOTS"])
        self.dx, self.uses = aligned(m.tokens * m.d), aligned(m.h * m.rows, "<u4", 0)
        self.sums = aligned(pieces * s["SUMS"], fill=0)
        self.all = kernels.tokens(x=m.x, dy=m.dy, y=self.y, dx=self.dx, z=self.z, code=self.code, score=self.score, slope=self.slope, uses=self.uses)
        self.d_projection, self.d_projection_bias, self.d_bias = aligned(m.W.size, fill=0), aligned(m.bits, fill=0), aligned(m.d_out, fill=0)
        self.dT = np.zeros((m.h, m.rows, m.d_out))
        cuts = sorted({min(m.tokens, s["TILE"] * round(i * places / s["TILE"] / pieces)) for i in range(pieces + 1)})
        self.ranges = list(zip(cuts, cuts[1:]))
        cuts = [i * m.h // pieces for i in range(pieces + 1)]
        self.tables = list(zip(cuts, cuts[1:]))

    def prepare(self):
        self.kernels.call("prepare", self.struct, self.own["prepared"], self.scratch)

    def forward(self):
        for first, end in self.ranges:
            self.kernels.call("forward", self.struct, self.all, first, end - first, self.scratch)

    def move_rows(self):
        for first, end in self.tables:
            self.kernels.call("rows", self.struct, self.rates, self.all, first, end, self.scratch)

    def list_rows(self):
        """The same by lists, which become self.dT."""
        m = self.kernels.model
        for first, end in self.tables:
            most = (end - first) * m.rows
            row, gradient = self.kernels.aligned(most, "<u4"), self.kernels.aligned(most * self.kernels.sizes["ROW"])
            count = self.kernels.call("list_rows", self.struct, self.all, first, end, row, gradient, self.scratch, result=ctypes.c_size_t)
            if not (np.diff(row[:count].astype(int)) > 0).all():
                sys.exit(f"FAILED {m.name}: rows are not listed once, in order")
            self.dT.reshape(-1, m.d_out)[row[:count]] = gradient.reshape(-1, self.kernels.sizes["ROW"])[:count, : m.d_out]
            self.kernels.call("apply_rows", self.struct, self.rates, row, gradient, count)

    def project(self):
        for i, (first, end) in enumerate(self.ranges):
            self.kernels.call("project", self.struct, self.all, first, end - first, self.sums[i * self.kernels.sizes["SUMS"] :], self.scratch)

    def finish(self):
        self.kernels.call("finish", self.sums, len(self.ranges), self.d_projection, self.d_projection_bias, self.d_bias, self.scratch)

    def step(self, listed=False):
        """One step. Returns all that it made."""
        m, tile = self.kernels.model, self.kernels.tile()
        for part in (self.prepare, self.forward, self.list_rows if listed else self.move_rows, self.project, self.finish):
            part()

        def by_token(values):
            return values.reshape(-1, m.h, m.m, tile).transpose(0, 3, 1, 2).reshape(-1, m.h, m.m)[: m.tokens]

        return {"y": self.y.reshape(-1, m.d_out), "code": by_token(self.code).astype(int), "score": by_token(self.score), "slope": by_token(self.slope),
                "dx": self.dx.reshape(-1, m.d), "d_projection": self.d_projection.reshape(m.W.shape), "d_projection_bias": self.d_projection_bias, "d_bias": self.d_bias,
                "tables": self.own["tables"].reshape(m.h, m.rows, -1)[:, :, : m.d_out].copy(), "state": self.own["state"].copy(),
                "uses": self.uses.reshape(m.h, m.rows), "dT": self.dT}
