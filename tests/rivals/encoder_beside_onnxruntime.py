"""Times the sentence encoder beside ONNX Runtime on one thread, in one run, after comparing their vectors: `./build.sh bench rivals`.
LOOKUPC_ROUNDS says how many rounds are timed; LOOKUPC_MODELS and LOOKUPC_ONNXRUNTIME name the folders of model and package."""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import lookupc
import sentence_encoder
import whole
from sentence_encoder_onnx import Encoder

MODELS = os.environ.get("LOOKUPC_MODELS", "build/models")
RUNTIME = os.path.abspath(os.environ.get("LOOKUPC_ONNXRUNTIME", "build/models/onnxruntime"))
LENGTHS, SENTENCES = (16, 128), 32
ROUNDS = int(os.environ.get("LOOKUPC_ROUNDS", "11"))
SECONDS = 0.1  # a round of a contestant takes about so long
TYPES = {"f32": (), "bf16": ("--type", "bf16"), "i8": ("--type", "i8")}
TYPES |= {"i8 by " + inputs: ("--type", "i8", "--activations", inputs) for inputs in ("i8", "i7")}
PROJECTED = "f32", "i8 by i8", "i8 by i7"  # also of the model that looks up what the first block's maps make
RIVALS = {"f32": ("f32", False), "f32 fused": ("f32", True), "i8": ("i8", False), "i8 fused": ("i8", True)}
MOST_OFF = 1e-4  # of a vector of length 1 in float32
OWN_SHARE = 0.97


class Ours(whole.Encoder):
    """The emitted encoder as users compile it."""

    optimise = "-O2"

    def run(self, ids, calls):
        """CPU time and time in µs of so many calls for ids [sentences][tokens]."""
        sentences, tokens = ids.shape
        flat, offsets = ids.astype(np.int32).ravel(), (np.arange(sentences + 1) * tokens).astype(np.uintp)
        self.y = np.empty((sentences, self.macros["D_OUT"]), np.float32)
        start, began = time.thread_time_ns(), time.perf_counter_ns()
        for _ in range(calls):
            status = self._encode_batch(self.weights, flat, offsets, sentences, self.y, self.scratch)
            assert status == 0, status
        return (time.thread_time_ns() - start) / 1e3, (time.perf_counter_ns() - began) / 1e3


class Runtime:
    """ONNX Runtime in a process of its own, which waits while others are timed."""

    def __init__(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnxruntime.js")
        self.child = subprocess.Popen(["node", script, RUNTIME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request):
        self.child.stdin.write(json.dumps(request) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            sys.exit("FAILED: ONNX Runtime ended")
        return json.loads(line)


class Theirs:
    def __init__(self, runtime, name, path):
        self.runtime, self.name = runtime, name
        self.version = runtime.ask(load=path, name=name)["version"]

    def run(self, ids, calls):
        found = self.runtime.ask(name=self.name, ids=ids.ravel().tolist(), tokens=ids.shape[1], calls=calls)
        if found["vectors"]:
            self.y = np.array(found["vectors"], np.float32).reshape(len(ids), -1)
        return found["cpu"], found["wall"]


def timed(contestants, ids):
    """Medians of CPU time a sentence by name, in µs, and the least share of the CPU."""
    calls, samples, shares = {}, {name: [] for name in contestants}, []
    for name, one in contestants.items():
        one.run(ids, 2)
        calls[name] = max(2, round(SECONDS * 1e6 / (one.run(ids, 2)[0] / 2)))
    for _ in range(ROUNDS):
        for name in random.sample(list(contestants), len(contestants)):
            cpu, wall = contestants[name].run(ids, calls[name])
            samples[name].append(cpu / calls[name] / len(ids))
            shares.append(cpu / wall)
    return {name: statistics.median(list_) for name, list_ in samples.items()}, statistics.median(shares)


def of_cpu(field):
    """What /proc/cpuinfo says, or nothing."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(": ", 1)[1].strip() for line in file if line.startswith(field)), "")


def fma_gflops():
    """What multiply-adds of floats reach on this core, as `lookupc bench` measures it."""
    found = lookupc.run("bench", "gen/models/tiny.lua", "--batch", "1", "--repetitions", "3", "--json")
    if found.returncode != 0:
        sys.exit("FAILED: " + found.stderr)
    return json.loads(found.stdout)["limits"]["fma_gflops"]


def least(products, of_bytes):
    """The least time of so many multiplications by type, in µs. VNNI's take four bytes where an FMA takes a float, as often.
    Without it pairs of products are added by a second multiplication. AMX multiplies 16 by 16 by 64 bytes in 16 cycles."""
    floats = 2 * products / fma_gflops() / 1e3
    return {"f32": floats, "i8": floats / (32 if "amx" in of_bytes else 4 if "vnni" in of_cpu("flags") else 2)}


def main():
    random.seed(1)
    tensors = sentence_encoder.read_tensors(MODELS + "/sentence_encoder/dist")
    numbers = np.random.default_rng(1)
    isa, runtime, contestants = lookupc.instruction_sets()[-1], Runtime(), {}
    of_bytes = lookupc.instruction_sets("tile_dot_i8")[-1]  # a matrix engine's, if there is one
    with tempfile.TemporaryDirectory() as folder:
        whole_model, weights = MODELS + "/sentence_encoder.lua", MODELS + "/sentence_encoder.safetensors"
        models = [(whole_model, kind, kind) for kind in TYPES]
        here = json.loads(lookupc.works("doctor", "--json"))["cpu"]["machine"]  # the defaults that commands take here, too
        models += [(sentence_encoder.projected(whole_model, folder), kind, kind + " projected") for kind in PROJECTED]
        for model, kind, name in models:
            path = f"{folder}/{name.replace(' ', '_')}"
            contestants["lookupc " + name] = Ours(model, weights, path, of_bytes if kind == "i8 by i8" else isa, *TYPES[kind], machine=here)
        for name, (kind, fused) in RIVALS.items():
            path = f"{folder}/{name.replace(' ', '_')}.onnx"
            encoder = Encoder(tensors, kind, fused)
            encoder.save(path)
            contestants["ONNX Runtime " + name] = Theirs(runtime, name, path)
        version = contestants["ONNX Runtime f32"].version
        limits = least(encoder.token_products, of_bytes)
        sets = f"{isa}, i8 by i8 {of_bytes}"
        print(f"sentence_encoder on {of_cpu('model name') or 'unknown CPU'}, {sets}, one thread, {SENTENCES} sentences a call, beside ONNX Runtime {version}")
        print(f"{'':26} {'tokens':>6} {'us/sentence':>11} {'us/token':>8} {'max error':>9} {'x f32':>6} {'x i8':>6}")
        for tokens in LENGTHS:
            ids = numbers.integers(6, tensors["module/Embeddings_en"].shape[0], (SENTENCES, tokens))
            wanted, off = sentence_encoder.encode_equal(tensors, ids), {}
            for name, one in contestants.items():
                one.run(ids, 1)
                off[name] = float(np.abs(one.y - wanted).max())
                if "f32" in name and not off[name] < MOST_OFF:
                    sys.exit(f"FAILED {name}: {tokens} tokens: {off[name]:.2g} off float64: must be less than {MOST_OFF:g}")
            us, share = timed({**contestants, "again": contestants["lookupc f32"]}, ids)
            best = {kind: min(us["ONNX Runtime " + name] for name in (kind, kind + " fused")) for kind in ("f32", "i8")}
            for name in contestants:
                row = f"{name:26} {tokens:6} {us[name]:11.1f} {us[name] / tokens:8.3f} {off[name]:9.1e}"
                print(row + f" {best['f32'] / us[name]:6.2f} {best['i8'] / us[name]:6.2f}")
            for kind, limit in limits.items():
                limit *= 1 - encoder.last_products / encoder.token_products * (1 - 1 / tokens)
                row = f"{'limit of products ' + kind:26} {tokens:6} {limit * tokens:11.1f} {limit:8.3f} {'':>9}"
                print(row + f" {best['f32'] / limit / tokens:6.2f} {best['i8'] / limit / tokens:6.2f}")
            print(f"A/A control: lookupc f32 measured twice differs by {abs(us['again'] / us['lookupc f32'] - 1):.1%}.")
            if share < OWN_SHARE:
                print(f"These lines do not count: CPU time is {share:.0%} of wall time, other work shared the core.")
    print("Medians of interleaved CPU times. x: how many times as fast as ONNX Runtime with that type, the faster of its two models.")
    print("projected: what the first block's maps make of words and positions is looked up (embedding.projected).")
    print("fused: attention as ONNX Runtime's own operator. max error: of an element of a vector of length 1, against float64.")
    print("limit of products: the linear maps, the last block's last one once a sentence, at the rate of this core; nothing else.")
    runtime.child.stdin.close()
    runtime.child.wait()


main()
