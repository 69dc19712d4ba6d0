#!/usr/bin/python3
"""The dense FFN of --baseline computes what NumPy computes from the definition: float32 to 1e-5, integers to 2 %."""
import ctypes
import glob
import math
import subprocess
import sys
import tempfile

import numpy as np

from lookupc import read_safetensors, run

MODEL = """return { name = "head", d = %d, d_out = %d, h = 4, tau = 4, projection = { kind = "dense" }, score = "gelu"%s }\n"""


def check(condition, text):
    if not condition:
        sys.exit("FAILED baseline: " + text)


def expected(x, tensors, norm):
    if norm:
        x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    hidden = x @ tensors["ffn.first.weight"].T + tensors["ffn.first.bias"]
    hidden = hidden * 0.5 * (1.0 + np.vectorize(math.erf)(hidden / math.sqrt(2.0)))
    return hidden @ tensors["ffn.second.weight"].T + tensors["ffn.second.bias"]


def library(work, bundle, flags):
    path = work + "/" + bundle.split("/")[-1] + ".so"
    done = subprocess.run(["gcc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Werror", "-fPIC", "-DHEAD_DENSE_SHARED", "-shared", *flags, "-o", path, *glob.glob(bundle + "/*.c")],
                          capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    return ctypes.CDLL(path)


def aligned(count):
    raw = np.zeros(count + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + count]


def outputs(code, header, blob, x, d_out, dtype):
    sizes = {}
    for line in open(header):
        words = line.split()
        if len(words) > 2 and words[0] == "#define" and words[2].rstrip("u").isdigit():
            sizes[words[1]] = int(words[2].rstrip("u"))
    memory, scratch, weights = aligned(len(blob)), aligned(sizes["HEAD_DENSE_SCRATCH_BYTES"]), aligned(256)
    memory[:] = np.frombuffer(blob, np.uint8)
    pointer = lambda a: ctypes.c_void_p(a.ctypes.data)
    check(code.head_dense_bind(pointer(memory), ctypes.c_size_t(len(blob)), pointer(weights)) == 0, "bind")
    y = np.zeros((len(x), d_out), dtype)
    code.head_dense_ffn(pointer(weights), pointer(x), pointer(y), ctypes.c_size_t(len(x)), pointer(scratch))
    memory[len(blob) // 2] ^= 1
    check(code.head_dense_bind(pointer(memory), ctypes.c_size_t(len(blob)), pointer(weights)) != 0, "a damaged blob is bound")
    return y.astype(np.float64)


def main():
    random = np.random.default_rng(3)
    for d, d_out, norm in ((64, 64, True), (24, 32, False), (40, 96, True)):
        with tempfile.TemporaryDirectory() as work:
            model, weights = work + "/head.lua", work + "/w.safetensors"
            with open(model, "w") as file:
                file.write(MODEL % (d, d_out, ', norm = { kind = "layernorm", eps = 1e-5 }' if norm else ""))
            check(run("sample", model, "--baseline", "-o", weights).returncode == 0, "sample")
            tensors = read_safetensors(weights)[0]
            units = np.clip(np.rint(random.standard_normal((50, d)) * 4096), -32768, 32767).astype(np.int16)
            real = units / 4096.0
            exact = expected(real, tensors, norm)
            for name, words, x, dtype, unit, most in (
                    ("f32", ("--isa", "scalar"), real.astype(np.float32), np.float32, 1.0, 1e-5),
                    ("i16", ("--arithmetic", "integer"), units, np.int32, 2.0**-16, 0.005),
                    ("i8", ("--arithmetic", "integer", "--projection", "i8"), units, np.int32, 2.0**-16, 0.02)):
                bundle, blob = work + "/" + name, work + "/" + name + ".bin"
                pack = [word for word in words if word not in ("--isa", "scalar")]
                for done in (run("emit", model, "--baseline", *words, "-o", bundle), run("pack", model, "--baseline", *pack, "--weights", weights, "-o", blob), run("check", bundle)):
                    check(done.returncode == 0, done.stderr)
                flags = ["-mgeneral-regs-only"] if dtype == np.int32 else []
                with open(blob, "rb") as file:
                    y = outputs(library(work, bundle, flags), bundle + "/head_dense.h", file.read(), np.ascontiguousarray(x), d_out, dtype) * unit
                error = np.linalg.norm(y - exact) / np.linalg.norm(exact)
                check(error < most, "d %d, d_out %d, %s: relative error %g" % (d, d_out, name, error))
                print("d %d d_out %d norm %s %s: relative error %.2g" % (d, d_out, norm, name, error))
    refused = run("emit", "gen/models/mistral_7b_skipless.lua", "--baseline", "-o", "/nonexistent/x")
    check(refused.returncode == 2 and "--baseline: true: is for a LookupFFN" in refused.stderr, refused.stderr)


main()
