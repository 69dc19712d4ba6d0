"""Times decoding and prefill of a model beside llama.cpp on one thread, in one interleaved run:
`./build.sh bench llama LLAMA_BENCH [MODEL.gguf]`, with a random model in Q4_0 where none is given. LOOKUPC_ROUNDS says how many rounds are
timed, LOOKUPC_PROMPT how many tokens prefill takes."""
import ctypes
import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import gguf
import lookupc
import whole

ROUNDS = int(os.environ.get("LOOKUPC_ROUNDS", "9"))
PROMPT = int(os.environ.get("LOOKUPC_PROMPT", "512"))  # tokens of prefill
TOKENS = -(-PROMPT // 8)  # of decoding, from an empty cache
TYPES = "--type", "i4", "--activations", "i8"
D, KV, F, LAYERS, HEADS, VOCAB = 1024, 256, 3584, 28, 16, 32000  # Mistral-7B, each width a quarter of its


def write_random(path):
    """A llama of 0.44 B parameters in Q4_0, without a tokenizer."""
    numbers, tensors, own = np.random.default_rng(1), {}, "llama."
    shapes = {"attn_norm": (D,), "attn_q": (D, D), "attn_k": (KV, D), "attn_v": (KV, D), "attn_output": (D, D), "ffn_norm": (D,),
              "ffn_gate": (F, D), "ffn_up": (F, D), "ffn_down": (D, F)}
    shapes = {f"blk.{layer}.{part}": shape for layer in range(LAYERS) for part, shape in shapes.items()}
    shapes |= {"token_embd": (VOCAB, D), "output_norm": (D,), "output": (VOCAB, D)}
    for name, shape in shapes.items():
        kind = "Q4_0" if len(shape) > 1 else "F32"
        tensors[name + ".weight"] = kind, shape, gguf.some_blocks(kind, int(np.prod(shape)), numbers)
    counts = {"embedding_length": D, "block_count": LAYERS, "context_length": 1024, "feed_forward_length": F, "attention.head_count": HEADS,
              "attention.head_count_kv": HEADS * KV // D, "vocab_size": VOCAB}
    metadata = {"general.architecture": (gguf.STRING, "llama"), "general.name": (gguf.STRING, "random"),
                "tokenizer.ggml.model": (gguf.STRING, "no_vocab"), own + "attention.layer_norm_rms_epsilon": (6, 1e-5)}
    gguf.write(path, metadata | {own + key: (4, count) for key, count in counts.items()}, tensors)


def large(count):
    """`count` bytes in large pages, where there are some."""
    memory = mmap.mmap(-1, count, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(memory, np.uint8)
    array[:] = 1  # pages that nobody wrote are one page of zeros
    return array


class Ours(whole.Decoder):
    """The emitted model as users compile it."""

    optimise, memory = "-O2", staticmethod(large)

    def seconds(self):
        """CPU time of a token by call."""
        ids, state = np.random.default_rng(2).integers(self.macros["VOCAB"], size=PROMPT, dtype=np.int32), self.start()
        began = time.thread_time()
        for number in ids[:TOKENS]:
            logits = self.step(state, number)
        decoded, state = time.thread_time(), self.start()
        again = time.thread_time()
        self.prefill(state, ids)
        prefilled = time.thread_time()
        lookupc.check(np.isfinite(logits).all(), "logits must be finite")
        return {"decode": (decoded - began) / TOKENS, "prefill": (prefilled - again) / PROMPT}


class Theirs:
    def __init__(self, program, model, clock):
        self.command = [program, "-m", model, "-t", "1", "-p", str(PROMPT), "-n", str(TOKENS), "-r", "1", "-o", "json"]
        self.clock, self.said = clock, None

    def seconds(self):
        done = subprocess.run(self.command, env={**os.environ, "LD_PRELOAD": self.clock}, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"FAILED {self.command[0]}: {done.stderr.strip()[-300:]}")
        self.said = json.loads(done.stdout)
        return {"prefill" if row["n_prompt"] else "decode": row["avg_ns"] / 1e9 / (row["n_prompt"] or row["n_gen"]) for row in self.said}


class Reading:
    """Reading what a token reads, and nothing else, as often as tokens are decoded."""

    def __init__(self, limits, memory):
        self.read, self.memory = ctypes.CDLL(limits).limits_read, memory

    def seconds(self):
        began = time.thread_time()
        for _ in range(TOKENS):
            self.read(lookupc.pointer(self.memory), ctypes.c_size_t(len(self.memory)))
        return {"decode": (time.thread_time() - began) / TOKENS}


def library(folder, name, *sources):
    path = f"{folder}/{name}.so"
    subprocess.run(["gcc", "-O3", "-I.", "-shared", "-fPIC", *sources, "-o", path], check=True)
    return path


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: decoder_beside_llama_cpp.py LLAMA_BENCH [MODEL.gguf]")
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        source = sys.argv[2] if len(sys.argv) == 3 else folder + "/random.gguf"
        if len(sys.argv) == 2:
            write_random(source)
        model, isa = folder + "/model.lua", lookupc.instruction_sets()[-1]
        lookupc.works("import", source, "-o", model)
        cpu = json.loads(lookupc.works("doctor", "--json"))["cpu"]
        ours = Ours(model, source, folder + "/bundle", isa, *TYPES, machine=cpu["machine"])
        plan = json.loads(lookupc.works("plan", model, "--json", *TYPES))
        met = [part for part in plan["flash"]["parts"] if part["name"] != "embedding" or plan["model"].get("tied")]
        read = large(sum(part["bytes"] for part in met))
        theirs = Theirs(sys.argv[1], source, library(folder, "clock", "tests/rivals/cpu_clock.c"))
        contestants = {"lookupc": ours, "again": ours, "llama.cpp": theirs,
                       "reading": Reading(library(folder, "limits", "harness/measure/limits.c"), read)}
        samples = {name: [] for name in contestants}
        for _ in range(ROUNDS):
            for name in random.sample(list(contestants), len(contestants)):
                samples[name].append(contestants[name].seconds())
    us = {name: {call: 1e6 * statistics.median(row[call] for row in rows) for call in rows[0]} for name, rows in samples.items()}
    said = theirs.said[0]
    print(f"{os.path.basename(source)} on {said['cpu_info']}, one thread: lookupc {isa}, i4 by i8; llama.cpp {said['build_commit']}, "
          f"{said['model_type']}, cache in {said['type_k']}")
    print(f"{'':10} {'decode tokens/s':>15} {'x llama.cpp':>11} {'of read':>8} {'prefill tokens/s':>16} {'x llama.cpp':>11}")
    for name in ("lookupc", "llama.cpp"):
        decode, prefill = us[name]["decode"], us[name]["prefill"]
        times = {call: us["llama.cpp"][call] / us[name][call] for call in us[name]}
        print(f"{name:10} {1e6 / decode:15.1f} {times['decode']:11.2f} {us['reading']['decode'] / decode:8.0%} "
              f"{1e6 / prefill:16.1f} {times['prefill']:11.2f}")
    print(f"Medians of {ROUNDS} interleaved CPU times, {TOKENS} tokens from an empty cache and {PROMPT} at once. of read: {len(read) / 2**20:.0f} MiB "
          f"that a token reads, at {len(read) / 1e3 / us['reading']['decode']:.1f} GB/s.")
    print("A/A control: lookupc measured twice differs by " + ", ".join(
        f"{abs(us['again'][call] / us['lookupc'][call] - 1):.1%} ({call})" for call in us["again"]))


main()
