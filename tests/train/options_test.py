#!/usr/bin/python3
"""Every option of `lookupc train` changes a run of small models as docs/training.md says it does."""
import json
import math
import os
import re
import subprocess
import tempfile
import time

import numpy as np

from lookupc import LOOKUPC, check, own_cache, read_safetensors, some

COMMON = """d = 16, heads = 2, vocab = 320, positions = 127, skip = true, norm = { kind = "layernorm" }, checkpoint = "gpt2",
    embedding = {}, output = { norm = { kind = "layernorm" }, head = {} }"""
LOOKUP = 'ffn = { kind = "lookup", h = 4, tau = 4, projection = { kind = "bh4", block = 8 }, score = "gelu", neighbours = 2 }'
BLOCKS = f"layers = 1, {LOOKUP}"
MIXED = f'layers = {{ {{ {LOOKUP} }}, {{}} }}, ffn = {{ kind = "mlp", f = 24, activation = "gelu" }}'
TABLES = "transformer.h.0.mlp.tables"
PROJECTION = "transformer.h.0.mlp.hash.projection.weight"
EMBEDDING = "transformer.wte.weight"
MATRIX = "transformer.h.0.attn.c_attn.weight"
BIAS = "transformer.h.0.attn.c_proj.bias"
STILL = ("--rate", "1e-12", "--table-rate", "1e-12")  # weights stay where they begin
TESTED_ELSEWHERE = {
    "--text", "-o", "--threads", "--resume", "--save-every", "--html", "--log",  # tests/train/train_test.sh
    "--isa", "--cc", "--cflags",  # of every command that compiles
}


class Run:
    """A run of `lookupc train`: its weights, and the lines of its log."""

    def __init__(self, model, *options, text="text.txt"):
        result = subprocess.run([LOOKUPC, "train", model + ".lua", "--text", text, "--isa", "scalar", "--cflags", "-O0", "--threads", "1", "-o", "w.safetensors", *options],
                                capture_output=True, text=True)
        check(result.returncode == 0, f"{options}: {result.stderr}")
        self.weights = {name: values.astype(float) for name, values in read_safetensors("w.safetensors")[0].items()}
        with open("w.jsonl") as file:
            first, *self.lines = [json.loads(line) for line in file]
        self.settings, self.last = first["settings"], self.lines[-1]


def moves(run, start, name):
    """How far numbers move; 0: not at all, but for what `start` itself moves."""
    moved = run.weights[name] - start.weights[name]
    return np.where(np.abs(moved) > 1e-9, moved, 0)


def same(one, other):
    return all((one.weights[name] == other.weights[name]).all() for name in one.weights)


def one_step(*options, model="decoder"):
    return Run(model, "--steps", "1", "--batch", "1", "--valid", "text.txt", *options)


def tested(*names):
    def mark(function):
        function.names = names
        return function
    return mark


def check_step(run, name, rate, decay=0.0, before=None):
    """The first step of Adam moves what has a gradient by the rate, beside the decay."""
    before = before or start
    moved = moves(run, before, name) + rate * decay * before.weights[name]
    moved = np.abs(moved[moved != 0])
    check(moved.size > 0 and abs(np.median(moved) / rate - 1) < 0.01 and moved.max() < 1.01 * rate, f"{name} moves by {np.median(moved)}, not {rate}")


@tested("--rate")
def rates_of_kinds():
    for rate in (2e-3, 5e-3):
        run = one_step("--rate", str(rate))
        check_step(run, MATRIX, rate, decay=0.01)
        check_step(run, EMBEDDING, rate)
        check_step(run, BIAS, rate)
        check_step(run, PROJECTION, 0.03 * rate)
        check(run.last["rate"] == rate, f"{run.last}")
    check(np.abs(moves(run, start, EMBEDDING)[128:]).max() == 0, "embeddings of bytes that the text does not have move")


@tested("--projection-rate")
def rate_of_projections():
    check_step(one_step("--projection-rate", "0.5"), PROJECTION, 0.5 * 2e-3)
    check((moves(one_step("--projection-rate", "0"), start, PROJECTION) == 0).all(), "--projection-rate 0 moves projections")
    check_step(one_step(model="mixed"), PROJECTION, 0.03 * 2e-3, before=one_step(*STILL, model="mixed"))


@tested("--table-rate")
def rate_of_tables():
    """Adagrad's first step moves a row by the rate, in the mean square of its numbers."""
    for options, rate in (((), 0.04), (("--table-rate", "0.01"), 0.01)):
        moved = moves(one_step(*options), start, TABLES)
        rows = np.sqrt((moved ** 2).mean(-1))
        check((np.abs(rows[rows != 0] / rate - 1) < 0.01).all(), f"rows of tables move by {rows}, not {rate}")


@tested("--table-optimiser")
def lazy_adam():
    """It moves each number of a row by the rate, three times --rate, and a row that no token takes not at all."""
    few = ("--context", "2")  # two tokens take four rows of a table at most
    for options, rate in (((), 6e-3), (("--rate", "1e-3"), 3e-3), (("--table-rate", "0.02"), 0.02)):
        moved = moves(one_step("--table-optimiser", "adam", *few, *options), start, TABLES)
        met = (moved != 0).any(-1)
        check(4 <= met.sum() <= 16, f"{met.sum()} rows move")
        check(abs(np.median(np.abs(moved[met])) / rate - 1) < 0.01, f"{options}: numbers of tables move by {np.median(np.abs(moved[met]))}, not {rate}")


@tested("--steps", "--evaluate")
def warm_up_and_cosine():
    """The rate rises for a twentieth of the steps, and falls to a tenth by half a cosine."""
    run = Run("decoder", "--steps", "40", "--batch", "1", "--context", "4", "--evaluate", "15", "--rate", "3e-3")
    for line in run.lines:
        share = (line["step"] - 2) / 38
        factor = line["step"] / 2 if line["step"] <= 2 else 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * share))
        check(abs(line["rate"] / 3e-3 - factor) < 1e-9, f"step {line['step']}: rate {line['rate']}")
    check(len(run.lines) == 40 and [line["step"] for line in run.lines if "validation" in line] == [15, 30, 40], "steps of validations")


@tested("--table-rate", "--table-optimiser", "--quantise", "--projection-rate")
def without_tables():
    """A model without a LookupFFN refuses what only one reads."""
    with open("plain.lua", "w") as file:
        file.write(f'return {{ name = "plain", {COMMON}, layers = 1, ffn = {{ kind = "mlp", f = 8, activation = "gelu" }},'
                   ' attention = { context = 127 }, tokenizer = { kind = "bytes" } }')
    for name, value in (("--table-rate", "0.1"), ("--table-optimiser", "adagrad"), ("--quantise", "i8"), ("--projection-rate", "1")):
        said = subprocess.run([LOOKUPC, "train", "plain.lua", "--text", "text.txt", "--steps", "1", "-o", "w", name, value], capture_output=True, text=True)
        check((said.returncode, said.stderr) == (2, f"lookupc: {name}: {value}: plain.lua has no LookupFFN\n"), said.stderr)


@tested("--dropout")
def dropout():
    """It changes what is learned from, and no validation."""
    dropped = [one_step(*STILL, "--dropout", "0.5", "--seed", seed) for seed in "11"] + [one_step("--dropout", "0.5")]
    check(dropped[0].last["loss"] != start.last["loss"] and dropped[0].last["validation"] == start.last["validation"], "loss and validation")
    check(dropped[0].last["loss"] == dropped[1].last["loss"], "the same seed drops others")
    check(not same(dropped[2], one_step()), "weights learned with dropout")


@tested("--type")
def types():
    """Products in bf16 change losses by rounding, those of validations, too; f32 is the default."""
    rounded, plain = one_step(*STILL, "--type", "bf16"), one_step("--type", "f32")
    off = [abs(rounded.last[key] - start.last[key]) for key in ("loss", "validation")]
    check(1e-7 < min(off) and max(off) < 2e-2, f"{off} beside f32")
    check(same(plain, one_step()), "--type f32 learns other weights")


@tested("--seed")
def seeds():
    other = one_step(*STILL, "--seed", "2")
    check((other.weights[MATRIX] != start.weights[MATRIX]).mean() > 0.9, "weights begin at the same numbers")
    check(same(one_step(), one_step()) and not same(one_step(), one_step("--seed", "2")), "the same seed")


@tested("--tokens", "--batch", "--context")
def lengths():
    run = Run("decoder", "--tokens", "1e2", "--batch", "3", "--context", "8")
    check(run.settings["steps"] == 5 and run.last["tokens"] == 5 * 3 * 8, f"{run.last}")
    check((moves(run, start, "transformer.wpe.weight")[:8] != 0).all() and (moves(run, start, "transformer.wpe.weight")[8:] == 0).all(), "positions that are seen")


@tested("--tokens", "--steps")
def too_many():
    """What is refused leaves the log of an earlier run."""
    one_step()
    with open("w.jsonl") as file:
        log = file.read()
    for name, value in (("--tokens", "1e30"), ("--tokens", "nan"), ("--tokens", "0"), ("--steps", "3000000000")):
        said = subprocess.run([LOOKUPC, "train", "decoder.lua", "--text", "text.txt", "-o", "w.safetensors", name, value], capture_output=True, text=True)
        check(said.returncode == 2 and said.stderr.startswith(f"lookupc: {name}: {value}: must be "), said.stderr)
        check(open("w.jsonl").read() == log, f"{name} {value} lost a log")


@tested("--time")
def time_to_train():
    run = Run("decoder", "--time", "0.3s", "--batch", "1", "--context", "8")
    check(run.settings["time"] == 0.3 and run.last["share"] == 1 and run.last["seconds"] < 20, f"{run.last}")  # the machine may be busy


@tested("--valid")
def validation():
    """The loss of another text; without one that of a tenth of the text, which is not trained on."""
    with open("a.txt", "w") as file:
        file.write("a" * 200)
    run = Run("decoder", "--steps", "30", "--rate", "0.02", "--batch", "1", "--context", "16", "--valid", "a.txt", text="a.txt")
    other = Run("decoder", "--steps", "30", "--rate", "0.02", "--batch", "1", "--context", "16", "--valid", "text.txt", text="a.txt")
    check(same(run, other), "weights depend on the text for validation")
    check(run.last["validation"] < 1 < other.last["validation"], f"{run.last['validation']} and {other.last['validation']}")


@tested("--masked", "--mask-id")
def masks():
    """Of the tokens to be found 80 % are replaced by an id, that behind the tokenizer's or --mask-id, and 10 % by a random one: the embedding
    of a token that the text has once, and that is replaced, gets no gradient."""
    begin = one_step(*STILL, model="encoder")

    def moved(*options):
        return (moves(one_step(*options, model="encoder"), begin, EMBEDDING) != 0).any(-1)
    for share, options in ((0.15, ()), (0.15, ("--mask-id", "300")), (0.6, ("--masked", "0.6"))):
        rows = moved(*options)
        mask = 300 if "--mask-id" in options else 256
        check(rows[mask] and not rows[556 - mask], f"{options}: the mask's embedding")
        replaced, expected = (~rows[1:128]).sum(), 127 * 0.9 * share
        check(abs(replaced - expected) < 4 * math.sqrt(expected), f"{options}: {replaced} tokens are replaced, not about {expected:.0f}")


@tested("--quantise")
def quantised():
    """Validations are those of the packed weights: the same loss as that of perplexity, without the text's first token of each window."""
    with open("valid.txt", "w") as file:
        file.write(VALID)
    spread = {}
    for types in TYPES:
        tables, projection = (types + "," + types).split(",")[:2]
        run = Run("decoder", "--steps", "20", "--batch", "2", "--context", "20", "--table-rate", "0.3", "--valid", "valid.txt", "--quantise", types)

        def perplexity(*options):
            said = subprocess.run([LOOKUPC, "perplexity", "decoder.lua", "--weights", "w.safetensors", "--text", "valid.txt", "--context", "21", "--stride", "20",
                                   "--isa", "scalar", "--cflags", "-O0", "--json", *options], capture_output=True, check=True)
            return json.loads(said.stdout)
        packed, plain = perplexity("--tables", tables, "--projection", projection), perplexity()
        check(packed["scored"] == len(VALID) - 1 and (packed["tables"], packed["projection"]) == (tables, projection), f"{packed}")
        off, rounding = abs(packed["nats_per_token"] - run.last["validation"]), abs(plain["nats_per_token"] - run.last["validation"])
        bound = {"i7": 5e-3, "i8": 5e-3, "i16": 1e-3}.get(projection, 2e-6)  # these kernels round inputs, too, and the code of a token may be another one
        check(off < bound and rounding > 2e-6, f"{types}: packed {off} beside the validation, unrounded {rounding}")
        spread[types] = rounding, off
    print("ok     train --quantise: nats by which rounding changes the loss, and packing:", ", ".join(f"{types} {a:.1e} {b:.1e}" for types, (a, b) in spread.items()))


@tested("--attention")
def attention_by_tables():
    """Validations are those of inference, behind steps through tables; with --attention exact they are of expected weights to the end."""
    with open("valid.txt", "w") as file:
        file.write(VALID)
    losses = []
    for options in ((), ("--attention", "exact")):
        run = Run("tables", "--steps", "20", "--batch", "2", "--context", "20", "--rate", "0.01", "--valid", "valid.txt", *options)
        said = subprocess.run([LOOKUPC, "perplexity", "tables.lua", "--weights", "w.safetensors", "--text", "valid.txt", "--context", "21", "--stride", "20",
                               "--isa", "scalar", "--cflags", "-O0", "--json"], capture_output=True, check=True)
        off = abs(json.loads(said.stdout)["nats_per_token"] - run.last["validation"])
        check(off > 1e-4 if options else off < 2e-6, f"{options}: {off} beside perplexity")
        losses.append([line["loss"] for line in run.lines])
    same_steps = [one == other for one, other in zip(*losses)]
    check(same_steps == 10 * [True] + 10 * [False], f"{losses}")
    said = subprocess.run([LOOKUPC, "train", "decoder.lua", "--text", "text.txt", "--steps", "1", "-o", "w", "--attention", "exact"], capture_output=True, text=True)
    check((said.returncode, said.stderr) == (2, 'lookupc: --attention: exact: attention of decoder.lua has no tables: kind = "lsh"\n'), said.stderr)


@tested("--tokenizer")
def tokenizer_of_a_file():
    """--tokenizer trains what a model file with that tokenizer does."""
    subprocess.run([LOOKUPC, "tokenizer", "--text", "words.txt", "--pieces", "40", "-o", "pieces.model"], check=True, capture_output=True)
    with open("named.lua", "w") as file:
        file.write(f'return {{ name = "decoder", {COMMON}, {BLOCKS}, attention = {{ context = 127 }}, tokenizer = {{ file = "pieces.model" }} }}')
    with open("unnamed.lua", "w") as file:
        file.write(f'return {{ name = "decoder", {COMMON}, {BLOCKS}, attention = {{ context = 127 }} }}')
    options = ("--steps", "2", "--batch", "1", "--context", "8")
    one, other = Run("named", *options, text="words.txt"), Run("unnamed", *options, "--tokenizer", "pieces.model", text="words.txt")
    check(same(one, other), "other weights than with the tokenizer in the model file")


TYPES = some("training", ["i8", "i8,f32", "e4m3,bf16", "f16,i16", "bf16,i8", "i8,bf16", "i8,i7"], 2)
VALID = "".join(chr(c) for c in range(60, 121)) + "abcd" * 25  # 8 windows of 20 tokens, and one token more

ALL = [value for value in list(globals().values()) if hasattr(value, "names")]
CHECKS = some("training", ALL, len(ALL) // 4)

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    own_cache(folder)
    for kind, blocks, causal in (("decoder", BLOCKS, "true"), ("encoder", BLOCKS, "false"), ("mixed", MIXED, "true")):
        with open(kind + ".lua", "w") as file:
            file.write(f'return {{ name = "{kind}", {COMMON}, {blocks}, attention = {{ context = 127, causal = {causal} }}, tokenizer = {{ kind = "bytes" }} }}')
    with open("tables.lua", "w") as file:
        file.write(f'return {{ name = "tables", {COMMON}, {BLOCKS}, attention = {{ kind = "lsh", tables = 4, tau = 2, window = 3, context = 127 }},'
                   ' tokenizer = { kind = "bytes" } }')
    with open("text.txt", "w") as file:
        file.write("".join(chr(c) for c in range(1, 128)) * 3)  # each window has each byte once
    with open("words.txt", "w") as file:
        file.write("one or two words of a text to train on\n" * 9)
    start = one_step(*STILL)
    for test in CHECKS:
        begun = time.monotonic()
        test()
        print(f"ok     train options: {' '.join(test.names)} ({time.monotonic() - begun:.1f} s)")
    options = set(re.findall(r"^  (-\S+) ", subprocess.run([LOOKUPC, "help", "train"], capture_output=True, text=True).stdout, re.M))
    known = {name for test in ALL for name in test.names} | TESTED_ELSEWHERE
    check(options == known, f"without a test: {options - known}; no options: {known - options}")
