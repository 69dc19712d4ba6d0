#!/usr/bin/python3
"""convert fits the lookup FFNs of small models to random dense ones: what it writes, what it says of it, and what it refuses."""
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from lookupc import LOOKUPC, read_safetensors

COMMON = """d = 16, heads = 2, layers = 2, vocab = 256, skip = true, norm = { kind = "%s" }, checkpoint = "%s",
    embedding = {%s}, tokenizer = { kind = "bytes" }, %s"""
ENCODER = COMMON % ("layernorm", "roberta", ' sinusoidal = { order = "halves" } ',
                    'attention = { context = 40, causal = false }, token_types = 2, output = { pool = "mean", unit = true }')
DECODER = COMMON % ("rmsnorm", "llama", "", 'attention = { context = 64, rope = {} }, output = { norm = { kind = "rmsnorm" }, head = {} }')
LOOKUP = 'ffn = { kind = "lookup", h = 16, tau = 4, projection = { kind = "bh4", block = 8 }, score = "gelu", neighbours = 2 }'
DENSE = {"encoder": 'ffn = { kind = "mlp", f = 32, activation = "gelu" }', "decoder": 'ffn = { kind = "glu", f = 24, activation = "silu" }'}


def need(condition, what):
    if not condition:
        sys.exit("FAILED convert: " + what)


def called(*arguments, text=b""):
    return subprocess.run([LOOKUPC, *arguments], input=text, capture_output=True)


def works(*arguments, text=b""):
    result = called(*arguments, text=text)
    need(result.returncode == 0, f"{arguments}: {result}")
    return result.stdout.decode()


def refuses(fragment, *arguments):
    result = called("convert", *arguments)
    line = result.stderr.decode()
    need(result.returncode != 0 and line.count("\n") == 1 and fragment in line, f"{arguments}: {result}: expected one line with {fragment!r}")


def models(folder, name, common):
    """Model files with and without lookup FFNs, and a random checkpoint of the dense one."""
    paths = [f"{folder}/{name}_{kind}.lua" for kind in ("lookup", "dense")]
    for path, ffn in zip(paths, (LOOKUP, DENSE[name])):
        with open(path, "w") as file:
            file.write(f'return {{ name = "{os.path.basename(path)[:-4]}", {common}, {ffn} }}\n')
    works("sample", paths[1], "-o", f"{folder}/{name}.safetensors")
    return (*paths, f"{folder}/{name}.safetensors")


def figures(said):
    return [[float(v) for v in row] for row in re.findall(r"^ +\d+ +([\d.]+) +([\d.]+)% +([\d.]+) ", said, re.M)]


with tempfile.TemporaryDirectory() as folder:
    os.environ["XDG_CACHE_HOME"] = folder
    random = np.random.default_rng(1)
    lines = ["".join(random.choice(list("abcdefgh ,."), 10 + i % 25)) for i in range(1500)]
    text = folder + "/lines.txt"
    with open(text, "w") as file:
        file.write("\n".join(lines) + "\n")
    lookup, dense, weights = models(folder, "encoder", ENCODER)
    given, out = ["--from", weights, "--dense", dense, "--text", text], folder + "/out.safetensors"

    unexplained = {}
    for name, options in (("learned", ["--tokens", "200000"]), ("quick", ["--quick"]), ("hash-w", ["--method", "hash-w"])):
        said = works("convert", lookup, *given, "-o", out, *options)
        rows = figures(said)
        need(len(rows) == 2 and all(1 <= row[1] <= 100 and 0 < row[2] <= 4 for row in rows), f"{name}: rows used and entropy: {said}")
        unexplained[name] = [row[0] for row in rows]
        need(("warning" in said) == (max(unexplained[name]) > 0.25), f"{name}: warns above a quarter: {said}")
        # Everything but the FFNs is the dense model's.
        made, _ = read_safetensors(out)
        trained, _ = read_safetensors(weights)
        shared = [tensor for tensor in made if tensor in trained]
        need(len(shared) >= len(made) - 2 * 6 and all((made[t].astype("f4") == trained[t].astype("f4")).all() for t in shared), f"{name}: other tensors")
        need(any(tensor.endswith("FFN.tables") for tensor in made), f"{name}: has tables: {sorted(made)}")
        # The vectors are as near as it says.
        vectors = []
        for model, checkpoint in ((lookup, out), (dense, weights)):
            works("embed", model, "--weights", checkpoint, "-o", folder + "/v.npy", text="\n".join(lines).encode())
            vectors.append(np.load(folder + "/v.npy").astype(float))
        cosine, told = (vectors[0] * vectors[1]).sum(axis=1).mean(), float(re.search(r"mean cosine .*: ([\d.-]+)", said).group(1))
        need(abs(cosine - told) < 0.02, f"{name}: says cosine {told}, is {cosine}")
        print(f"ok     convert: {name}: unexplained {unexplained[name]}, cosine {told}")
    need(max(unexplained["learned"]) < min(unexplained["hash-w"]) and max(unexplained["quick"]) < min(unexplained["hash-w"]), f"the baseline loses: {unexplained}")
    need(max(unexplained["learned"]) < 0.9 and max(unexplained["quick"]) < 0.9, f"FFNs are learned: {unexplained}")

    # The same seed gives the same bytes.
    again = folder + "/again.safetensors"
    works("convert", lookup, *given, "-o", again, "--method", "hash-w")
    need(open(out, "rb").read() == open(again, "rb").read(), "a second run writes other bytes")

    pair = models(folder, "decoder", DECODER)
    with open(folder + "/text.txt", "w") as file:
        file.write(" ".join(lines))
    said = works("convert", pair[0], "--from", pair[2], "--dense", pair[1], "--text", folder + "/text.txt", "-o", out, "--tokens", "100000")
    need(len(figures(said)) == 2 and max(row[0] for row in figures(said)) < 0.95, f"a decoder with gated FFNs: {said}")
    need("nats a token" in works("perplexity", pair[0], "--weights", out, "--text", text), "a converted decoder predicts")
    print(f"ok     convert: a decoder: {figures(said)}")

    few = folder + "/few.txt"
    with open(few, "w") as file:
        file.write("a few words\n" * 30)
    refuses("--dense is missing", lookup, "--from", weights, "--text", text, "-o", out)
    refuses("at least 20480 are needed", lookup, "--from", weights, "--dense", dense, "--text", few, "-o", out)
    refuses("has no lookup FFN where --dense has another one", dense, *given, "-o", out)
    refuses("as in --dense", pair[0], *given, "-o", out)
    refuses("--quick: cannot be given beside --method hash-w", lookup, *given, "-o", out, "--quick", "--method", "hash-w")
    refuses("-o", lookup, *given, "-o", weights)
    print("ok     convert: refusals are one line")
