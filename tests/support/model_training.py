"""The emitted training of a model as a compiled library, called through ctypes: gradients by the names of tensors."""
import ctypes
import glob
import os
import re
import subprocess
import threading

import numpy as np

from lookupc import WARNINGS, aligned, compiled, works
from table_attention import own_signs

OPTIMISE = "-O0"  # compiling takes most of the time

BARRIER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
CRITERION = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_float), ctypes.c_float, ctypes.c_int)
OBSERVER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_float))


class Settings(ctypes.Structure):
    """<model>_train, the same for every model."""

    _fields_ = (
        [(name, ctypes.c_void_p) for name in ("parameters", "gradients", "table_state", "row_uses", "constants", "lengths")]
        + [(name, ctypes.c_float) for name in ("table_rate", "table_epsilon", "beta1", "beta2", "correction1", "correction2")]
        + [("adam", ctypes.c_int), ("gradient_scale", ctypes.c_float), ("dropout", ctypes.c_float)]
        + [(name, ctypes.c_uint64) for name in ("seed", "step", "first_sequence")]
        + [(name, ctypes.c_size_t) for name in ("part", "parts")]
        + [("barrier", BARRIER)]
        + [(name, ctypes.c_void_p) for name in ("context", "rows", "row_counts", "row_gradients")]
        + [("criterion", CRITERION), ("criterion_context", ctypes.c_void_p), ("observe", OBSERVER), ("signs", ctypes.c_int)]
    )


def constants_of(section):
    """Rotary angles, sines of positions, or signs of attention by tables."""
    k = np.arange(section["elements"])
    if "signs" in section:
        count = section["signs"]
        return np.concatenate([own_signs(section["seed"], section["first_layer"] + i, count) for i in range(len(k) // count)])
    if "angles" in section:
        half = section["half"]
        frequencies = section.get("frequencies", section["theta"] ** (-np.arange(half) / half))
        angle = (k // half) * np.array(frequencies)[k % half]
        return section.get("factor", 1) * (np.cos(angle) if section["angles"] == "cosines" else np.sin(angle))
    columns, halves = section["columns"], section["sinusoids"] == "halves"
    column = k % columns
    angle = (k // columns) * section["max"] ** (-(column % (columns // 2) if halves else column // 2) / section["steps_of"])
    return np.where(column < columns // 2 if halves else column % 2 == 0, np.sin(angle), np.cos(angle))


class Trainer:
    """Model file `model`, emitted into `folder` for instruction set `isa`."""

    def __init__(self, model, folder, isa, optimise=OPTIMISE, changed=None, more=()):
        works("emit", model, "-o", folder, "--isa", isa, "--training", *more)
        for path in glob.glob(folder + "/*_train__*.c") if changed else ():
            with open(path, encoding="utf-8") as file:
                text = file.read()
            assert changed[0] in text, changed[0]
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(*changed))
        manifest = compiled(folder, folder + "/train.so", [optimise, "-std=c99", "-ffp-contract=off", "-DLOOKUPC_TILES_IN_C=static", *WARNINGS])
        for path in glob.glob(folder + "/*_train__*.o"):
            self._check_imports(path, manifest["model"]["name"])
        self.folder = folder
        self.library = ctypes.CDLL(os.path.abspath(folder + "/train.so"))
        self.plan, self.name, self.isa = manifest["trained"], manifest["model"]["name"], isa
        plan, size = self.plan, ctypes.c_size_t
        self.vocab = manifest["model"]["vocab"]
        self.parameters = aligned(4 * plan["parameters"]).view(np.float32)
        self.gradients = aligned(4 * plan["gradients"]).view(np.float32)
        self.table_state = aligned(4 * max(1, plan["table_rows"])).view(np.float32)
        self.row_uses = aligned(4 * max(1, plan["table_rows"])).view(np.uint32)
        self.rows, self.row_counts = np.zeros(max(1, plan["table_rows"]), np.uint32), np.zeros(max(1, plan["table_rows"]), np.uint32)
        self.row_gradients = np.zeros(max(1, plan["parameters"] - plan["gradients"]), np.float32)
        self.constants = aligned(4 * max(1, plan["constants"])).view(np.float32)
        for section in plan["sections_of_constants"]:
            self.constants[section["at"] : section["at"] + section["elements"]] = constants_of(section)
        self._bytes = self._function("workspace", [size, size, size], size)
        ids = np.ctypeslib.ndpointer(np.int32, flags="C")
        parameters = [ctypes.POINTER(Settings), ids, ids, size, size, ctypes.c_void_p]
        if plan["table_rows"]:
            self._apply = self._function("apply", [ctypes.POINTER(Settings)], None)
        self._step, self._loss = self._function("step", parameters, ctypes.c_double), self._function("loss", parameters, ctypes.c_double)

    @staticmethod
    def _check_imports(path, name):
        """They import nothing but functions of the model."""
        listed = subprocess.run(["nm", "-u", path], check=True, capture_output=True, text=True).stdout.split()
        others = [word for word in listed if word != "U" and not word.startswith((name + "_", "_GLOBAL_OFFSET_TABLE_"))]
        assert not others, others

    def _function(self, word, arguments, result):
        found = self.library[f"{self.name}_train_{word}__{self.isa}"]
        found.argtypes, found.restype = arguments, result
        return found

    def view(self, array, tensor):
        """The place of a tensor in a flat array, [rows][columns]."""
        columns = tensor["shape"][-1] if len(tensor["shape"]) > 1 else int(np.prod(tensor["shape"]))
        rows, pitch = int(np.prod(tensor["shape"])) // columns, tensor.get("pitch") or columns
        place = array[tensor["at"] : tensor["at"] + rows * pitch]
        return place.reshape(rows, pitch)[:, :columns]

    def load(self, tensors):
        """Takes the parameters from arrays by name; all must be there."""
        for tensor in self.plan["tensors"]:
            view = self.view(self.parameters, tensor)
            view[:] = tensors[tensor["name"]].reshape(view.shape)

    def logits(self, ids, **more):
        """Those of every token, out of a pass forward."""
        found = {}

        def take(_, token, row, scale, back):
            found[token] = np.ctypeslib.as_array(row, (self.vocab,)).copy()
            return 0.0

        self.run(ids, np.zeros_like(ids), back=False, criterion=CRITERION(take), **more)
        return np.array([found[token] for token in range(ids.size)]).reshape(*ids.shape, self.vocab)

    def features(self, ids, **more):
        """What the criterion's rows are made of, of every token, as an observer sees it."""
        with open(f"{self.folder}/{self.name}_train.h", encoding="utf-8") as file:
            width, pitch = (int(v) for v in re.search(r"in\s+rows\s+of\s+(\d+)\s+floats,\s+(\d+)\s+apart", file.read()).groups())
        found = []

        def observe(_, features):
            found.append(np.ctypeslib.as_array(features, (ids.size, pitch))[:, :width].copy())

        self.run(ids, np.zeros_like(ids), back=False, observe=OBSERVER(observe), **more)
        assert len(found) == 1, "the observer is called once"
        return found[0].reshape(*ids.shape, width)

    def tensors(self, array):
        return {t["name"]: self.view(array, t).reshape(t["shape"]).copy() for t in self.plan["tensors"] if t["kind"] != "tables" or array is self.parameters}

    def settings(self, **more):
        values = {"gradient_scale": 1.0, "parts": 1, "table_epsilon": 1e-10, **more}
        places = {name: getattr(self, name).ctypes.data for name in ("parameters", "gradients", "table_state", "row_uses", "constants")}
        return Settings(**{**places, **values})

    def listed(self):
        """Gradients of tables out of the lists of rows, by name."""
        found = {}
        for tensor in self.plan["tensors"]:
            if tensor["kind"] == "tables":
                h, rows, width = tensor["shape"]
                of = found[tensor["name"]] = np.zeros((h * rows, width), np.float32)
                for table in range(h):
                    first = tensor["state_at"] + table * rows
                    count = self.row_counts[tensor["first_table"] + table]
                    at = tensor["at"] - self.plan["gradients"] + table * rows * tensor["pitch"]
                    listed = self.row_gradients[at : at + count * tensor["pitch"]].reshape(count, tensor["pitch"])
                    of[self.rows[first : first + count]] = listed[:, :width]
                found[tensor["name"]] = of.reshape(tensor["shape"])
        return found

    def met(self):
        """Which rows of tables the lists have, by name: [tables][rows]."""
        found = {}
        for tensor in self.plan["tensors"]:
            if tensor["kind"] == "tables":
                h, rows, _ = tensor["shape"]
                of = found[tensor["name"]] = np.zeros(h * rows, bool)
                for table in range(h):
                    first = tensor["state_at"] + table * rows
                    of[self.rows[first : first + self.row_counts[tensor["first_table"] + table]]] = True
                found[tensor["name"]] = of.reshape(h, rows)
        return found

    def lists(self):
        """Settings with which rows are listed instead of moved."""
        return {name: getattr(self, name).ctypes.data for name in ("rows", "row_counts", "row_gradients")}

    def apply(self, **more):
        """Moves rows of tables by the lists of the last step."""
        self._apply(ctypes.byref(self.settings(**self.lists(), **more)))

    def workspace_bytes(self, sequences, length, parts=1):
        return self._bytes(sequences, length, parts)

    def step_once(self, settings, ids, targets, workspace):
        """One step as a trainer takes it, with settings and memory that are there already; returns the sum of cross-entropies."""
        return self._step(ctypes.byref(settings), ids, targets, *ids.shape, workspace.ctypes.data)

    def run(self, ids, targets, back=True, parts=1, lengths=None, **more):
        """The sum of cross-entropies; gradients are cleared before. parts: so many threads."""
        ids, targets = np.ascontiguousarray(ids, np.int32), np.ascontiguousarray(targets, np.int32)
        workspace = aligned(self.workspace_bytes(*ids.shape, parts))
        workspace.view(np.float32)[:] = np.nan
        self.gradients[:] = 0
        if lengths is not None:
            lengths = np.ascontiguousarray(lengths, np.uint32)
            more["lengths"] = lengths.ctypes.data
        call, results = self._step if back else self._loss, [None] * parts
        meeting = threading.Barrier(parts)
        barrier = BARRIER(lambda _: meeting.wait() and None)

        def work(part):
            settings = self.settings(part=part, parts=parts, barrier=barrier, **more)
            results[part] = call(ctypes.byref(settings), ids, targets, *ids.shape, workspace.ctypes.data)

        threads = [threading.Thread(target=work, args=(part,)) for part in range(parts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(results)) == 1, results
        return results[0]
