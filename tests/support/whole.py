"""Models, mostly whole ones, as compiled libraries: emitted, packed, compiled with the flags of their manifest, and called through ctypes."""
import ctypes
import os
import subprocess
import sys

import numpy as np

from lookupc import aligned, compiled, works

F32, I32, BYTES = (np.ctypeslib.ndpointer(kind, flags="C") for kind in (np.float32, np.int32, np.uint8))


def data_file(name):
    """The path of a file of the evaluation data, which is no part of the repository, or the test is skipped."""
    folder = os.environ.get("LOOKUPC_DATA", "../shared/data")
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        print(f"skipped: {path} is missing (LOOKUPC_DATA names its folder)")
        sys.exit(77)
    return path


class Library:
    """The emitted C of a model for one instruction set, with its blob."""

    optimise, memory = "-O1", staticmethod(aligned)

    def __init__(self, model, weights, folder, isa, *options, machine="generic", emit=()):
        works("emit", model, "-o", folder, "--isa", isa, "--for", machine, *options, *emit)
        works("pack", model, "--weights", weights, "-o", folder + "/weights.bin", *options)
        self.name = compiled(folder, folder + "/model.so", [self.optimise])["model"]["name"]
        self.macros = self._macros(folder)
        self.library = ctypes.CDLL(os.path.abspath(folder + "/model.so"))
        self.blob = self.memory(os.path.getsize(folder + "/weights.bin"))
        self.blob[:] = np.fromfile(folder + "/weights.bin", np.uint8)
        self.weights = aligned(self.macros["SIZEOF"])
        self.scratch = aligned(max(1, self.macros["SCRATCH_BYTES"]))
        if hasattr(self.library, self.name + "_request_amx"):
            self.function("request_amx", [])()
        bind = self.function("bind", [BYTES, ctypes.c_size_t, BYTES])
        if bind(self.blob, len(self.blob), self.weights) != 0:
            sys.exit("FAILED bind")

    def _macros(self, folder):
        """Values of the macros that the header has, and the size of the struct of weights."""
        prefix, header = self.name.upper() + "_", f"{self.name}.h"
        words = ["SCRATCH_BYTES", "D_OUT", "CONTEXT", "VOCAB", "STATE_BYTES"]
        lines = "".join(f'#ifdef {prefix}{word}\nprintf("{word} %zu\\n", (size_t){prefix}{word});\n#endif\n' for word in words)
        size = f'printf("SIZEOF %zu\\n", sizeof({self.name}_weights));\n'
        text = f'#include "{header}"\n#include <stdio.h>\nint main(void)\n{{\n{lines}{size}return 0;\n}}\n'
        with open(folder + "/macros.c", "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run(["gcc", folder + "/macros.c", "-o", folder + "/macros"], check=True)
        rows = subprocess.run([folder + "/macros"], check=True, capture_output=True, text=True).stdout.split("\n")
        return {row.split()[0]: int(row.split()[1]) for row in rows if row}

    def function(self, word, arguments, result=ctypes.c_int):
        found = self.library[f"{self.name}_{word}"]
        found.argtypes, found.restype = arguments, result
        return found


class Decoder(Library):
    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        size = ctypes.c_size_t
        self._start = self.function("start", [BYTES], None)
        self._prefill = self.function("prefill", [BYTES, BYTES, I32, size, F32, BYTES])
        self._prefill_all = self.function("prefill_all", [BYTES, BYTES, I32, size, F32, BYTES])
        self._step = self.function("step", [BYTES, BYTES, ctypes.c_int32, F32, BYTES])

    def start(self):
        state = aligned(self.macros["STATE_BYTES"])
        self._start(state)
        return state

    def _logits(self, rows):
        return np.empty((rows, self.macros["D_OUT"]), np.float32)

    def prefill(self, state, ids):
        logits = self._logits(1)
        status = self._prefill(self.weights, state, np.asarray(ids, np.int32), len(ids), logits, self.scratch)
        assert status == 0, status
        return logits[0]

    def prefill_all(self, state, ids):
        logits = self._logits(len(ids))
        status = self._prefill_all(self.weights, state, np.asarray(ids, np.int32), len(ids), logits, self.scratch)
        assert status == 0, status
        return logits

    def step(self, state, number):
        logits = self._logits(1)
        status = self._step(self.weights, state, int(number), logits, self.scratch)
        assert status == 0, status
        return logits[0]


class Encoder(Library):
    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        size = ctypes.c_size_t
        sizes = np.ctypeslib.ndpointer(np.uintp, flags="C")
        self._encode = self.function("encode", [BYTES, I32, size, F32, BYTES])
        self._encode_batch = self.function("encode_batch", [BYTES, I32, sizes, size, F32, BYTES])

    def encode(self, ids, rows=1):
        y = np.empty((rows, self.macros["D_OUT"]), np.float32)
        status = self._encode(self.weights, np.asarray(ids, np.int32), len(ids), y, self.scratch)
        assert status == 0, status
        return y if rows > 1 else y[0]

    def encode_batch(self, sequences):
        """A vector of each sequence."""
        offsets = np.cumsum([0] + [len(ids) for ids in sequences]).astype(np.uintp)
        y = np.empty((len(sequences), self.macros["D_OUT"]), np.float32)
        status = self._encode_batch(self.weights, np.concatenate(sequences).astype(np.int32), offsets, len(sequences), y, self.scratch)
        assert status == 0, status
        return y
