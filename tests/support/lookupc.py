"""What the Python tests share: the program under test, and a checkpoint out of arrays."""
import ctypes
import functools
import json
import os
import struct
import subprocess
import sys

import numpy as np

LOOKUPC = os.environ["LOOKUPC"]


def run(*arguments):
    return subprocess.run([LOOKUPC, *arguments], capture_output=True, text=True)


def check(condition, text):
    """What does not hold ends the test."""
    if not condition:
        sys.exit(f"FAILED {os.path.basename(sys.argv[0])}: {text}")


def call(*arguments, text=b""):
    """The program with bytes for standard input, and from it."""
    return subprocess.run([LOOKUPC, *arguments], input=text, capture_output=True)


def refuses(fragment, *arguments, text=b""):
    """It says one line, with that fragment, and nothing else."""
    result = call(*arguments, text=text)
    line = result.stderr.decode()
    good = result.returncode != 0 and result.stdout == b"" and line.count("\n") == 1 and fragment in line
    check(good, "%s: %s: expected one line with %r" % (arguments, result, fragment))


def works(*arguments):
    result = run(*arguments)
    check(result.returncode == 0, f"{' '.join(arguments)}: {result.stderr}")
    return result.stdout


def aligned(count, dtype=np.uint8):
    """`count` zeros at a multiple of 64 bytes."""
    size = count * np.dtype(dtype).itemsize
    room = np.zeros(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size].view(dtype)


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


WARNINGS = ["-Werror", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wcast-align"]


def compiled(folder, library, flags, link=()):
    """The manifest of a bundle whose C files became `library`, each with its own flags and these; its objects lie beside it."""
    with open(folder + "/MANIFEST.json", encoding="utf-8") as file:
        manifest = json.load(file)
    objects, shared = [], f"-D{manifest['model']['name'].upper()}_SHARED"
    for entry in manifest["files"]:
        if entry["name"].endswith(".c"):
            path = f"{folder}/{entry['name']}"
            objects.append(path[:-2] + ".o")
            subprocess.run(["gcc", "-fPIC", shared, *flags, *entry.get("flags", []), "-c", path, "-o", objects[-1]], check=True)
    subprocess.run(["gcc", "-shared", *link, *objects, "-o", library], check=True)
    return manifest


def own_cache(folder):
    """Makes `folder` the cache of the program from now on; precompiled headers it shares with other tests."""
    shared, own = (os.path.join(path, "lookupc", "headers") for path in (os.environ["XDG_CACHE_HOME"], folder))
    os.makedirs(shared, exist_ok=True)
    os.makedirs(os.path.dirname(own), exist_ok=True)
    os.symlink(shared, own)
    os.environ["XDG_CACHE_HOME"] = folder


@functools.lru_cache(maxsize=None)
def effort(name):
    """A number of tests/effort.lua, or a word."""
    value = subprocess.run(["lua5.4", "tests/effort.lua", name], check=True, capture_output=True, text=True).stdout.strip()
    return int(value) if value.isdigit() else value


def some(name, cases, count):
    """All cases, or with effort quick so many of them, at equal distances from the first one on; tests/effort.lua has the name."""
    return cases if effort(name) else [cases[i * len(cases) // count] for i in range(count)]


def instruction_sets(*types):
    """The names of those that this CPU runs, slowest first, with a type also those for it."""
    return subprocess.run(["lua5.4", "tests/support/isa.lua", LOOKUPC, *types], check=True, capture_output=True, text=True).stdout.split()


def in_turn(sets, number):
    """Of the instruction sets those that case `number` is for: all, or with effort quick one, the same on every commit."""
    return sets if effort("instruction_sets") else [sets[(effort("seed") // 64 + number) % len(sets)]]


def bf16(values):
    """float64 rounded to 8 significant bits, subnormal below 2^-126: as upper halves of float32, and as numbers."""
    exponent = np.maximum(np.frexp(values)[1] - 8, -133)
    rounded = np.ldexp(np.rint(np.ldexp(values, -exponent)), exponent)
    return (rounded.astype("<f4").view("<u4") >> 16).astype("<u2"), rounded


def encoded(values, dtype):
    if dtype == "BF16":
        return bf16(values)[0].tobytes()
    return values.astype({"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8"}[dtype]).tobytes()


def write_safetensors(path, tensors, dtype="F64"):
    """dtype: of all tensors, or a dictionary of those that have another one than F64."""
    header, data = {}, b""
    for name, values in tensors.items():
        own = dtype if isinstance(dtype, str) else dtype.get(name, "F64")
        raw = encoded(np.asarray(values), own)
        header[name] = {"dtype": own, "shape": list(np.shape(values)), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    """{ name: array of float64 } and { name: dtype }."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    tensors, dtypes = {}, {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        raw = data[slice(*entry["data_offsets"])]
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
        else:
            values = np.frombuffer(raw, {"F64": "<f8", "F32": "<f4", "F16": "<f2"}[entry["dtype"]])
        tensors[name] = values.astype(np.float64).reshape(entry["shape"])
        dtypes[name] = entry["dtype"]
    return tensors, dtypes
