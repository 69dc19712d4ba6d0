"""embed and similar on a small random encoder, against `run --ids` of the same bytes and NumPy's cosines and correlations."""
import csv
import itertools
import json
import os
import signal
import subprocess
import tempfile
import time

import numpy as np

from lookupc import LOOKUPC, call, check, own_cache, refuses, some

ENCODER = """return { name = "enc", d = 16, heads = 2, layers = 1, vocab = 256, skip = true, checkpoint = "roberta", token_types = 2,
    norm = { kind = "layernorm", place = "post" }, attention = { context = 40, causal = false },
    ffn = %s, embedding = { sinusoidal = { order = "halves" } },
    output = { pool = "mean", dense = { width = 12, activation = "tanh" }, unit = true }, tokenizer = { kind = "bytes" } }
"""
DENORMAL = """return { name = "denormal", d = 8, heads = 1, layers = 1, vocab = 256, skip = true, attention = { context = 8, causal = false },
    ffn = { kind = "mlp", f = 8, activation = "gelu" }, embedding = {}, output = { pool = "mean" }, tokenizer = { kind = "bytes" } }
"""
MLP = '{ kind = "mlp", f = 32, activation = "gelu" }'
LOOKUP = '{ kind = "lookup", h = 8, tau = 4, projection = { kind = "bh4", block = 8 }, score = "gelu" }'


def works(*arguments, text=b""):
    result = call(*arguments, text=text)
    check(result.returncode == 0 and result.stderr == b"", "%s: %s" % (arguments, result))
    return result.stdout.decode()


def ranks(values):
    """From 1 on, equal values sharing the mean of theirs."""
    values = np.asarray(values)
    return np.array([(values < v).sum() + ((values == v).sum() + 1) / 2 for v in values])


with tempfile.TemporaryDirectory() as folder:
    own_cache(folder)
    model, weights, vectors = (os.path.join(folder, name) for name in ("enc.lua", "enc.safetensors", "v.npy"))
    with open(model, "w") as file:
        file.write(ENCODER % MLP)
    works("sample", model, "-o", weights)
    given = [model, "--weights", weights, "--isa", "scalar"]

    # More lines than a batch, of many lengths, the last one without a line feed; carriage returns are not part of one.
    random = np.random.default_rng(1)
    lines = ["".join(random.choice(list("abcdefgh ,\u00e9"), 1 + i % 20)) for i in range(1500)]
    ends = ["\r\n" if i % 7 == 0 else "\n" for i in range(len(lines))]
    text = "".join(line + end for line, end in zip(lines, ends)).rstrip("\r\n").encode()
    works("embed", *given, "-o", vectors, text=text)
    y = np.load(vectors)
    check(y.shape == (1500, 12) and y.dtype == np.float32, "shape %s" % (y.shape,))

    # Rows are those of the texts alone, as run makes them of ids.
    for i in (0, 1499):
        ids, alone = os.path.join(folder, "ids.npy"), os.path.join(folder, "alone.npy")
        np.save(ids, np.frombuffer(lines[i].encode(), np.uint8).astype(np.int32))
        works("run", *given, "--ids", ids, "--output", alone)
        check(np.abs(np.load(alone)[0] - y[i]).max() < 1e-6, "row %d" % i)

    # Numbers and JSON say the same.
    printed = works("embed", *given, lines[0], lines[1]).splitlines()
    check(np.abs(np.array([row.split() for row in printed], float) - y[:2]).max() < 1e-5, "numbers")
    check(len(set(map(len, printed))) == 1, "numbers do not stand in columns")
    rows = [json.loads(row) for row in works("embed", *given, "--json", text="\n".join(lines[:3]).encode()).splitlines()]
    check([row["text"] for row in rows] == lines[:3], "JSON: texts")
    check([row["tokens"] for row in rows] == [len(line.encode()) for line in lines[:3]], "JSON: tokens")
    check(np.abs(np.array([row["vector"] for row in rows]) - y[:3]).max() < 1e-6, "JSON: vectors")
    check(json.loads(works("embed", *given, "--json", b"\xff\xfe"))["text"] is None, "JSON: bytes")

    # What embed refuses leaves the old file.
    before = open(vectors, "rb").read()
    refuses("standard input:2: has no tokens", "embed", *given, "-o", vectors, text=b"a\n\nb\n")
    refuses("standard input:3: has 41 tokens: must be at most attention.context = 40", "embed", *given, text=b"a\nb\n" + b"x" * 41)
    refuses("text 2: has no tokens", "embed", *given, "-o", vectors, "a", "")
    check(open(vectors, "rb").read() == before, "a failure changed the output")
    cut, whole = works("embed", *given, "--truncate", "y" * 41, "y" * 40).splitlines()
    check(cut == whole, "--truncate")
    refuses("is the input", "embed", *given, "-o", weights, "a")
    refuses("--json", "embed", *given, "-o", vectors, "--json", "a")

    # So does an interrupt, while it works and while it waits for a line.
    names = sorted(os.listdir(folder))
    for source in (["yes", "a text"], ["sleep", "60"]):
        with subprocess.Popen(source, stdout=subprocess.PIPE) as lines_source:
            child = subprocess.Popen([LOOKUPC, "embed", *given, "-o", vectors], stdin=lines_source.stdout, stdout=subprocess.PIPE)
            time.sleep(1)
            child.send_signal(signal.SIGINT)
            output, _ = child.communicate(timeout=30)
            lines_source.kill()
        check(child.returncode == -signal.SIGINT and output == b"", "interrupted: %s" % child)
    check(open(vectors, "rb").read() == before and sorted(os.listdir(folder)) == names, "an interrupt left %s" % os.listdir(folder))

    # A reader that goes away ends it quietly, long before there is no more to read.
    pipe = subprocess.run("yes abc | '%s' embed '%s' --weights '%s' | head -n 2" % (LOOKUPC, model, weights), shell=True, capture_output=True, timeout=60)
    check(pipe.stdout.count(b"\n") == 2 and pipe.stderr == b"", "a closed pipe: %s" % pipe)

    # similar ranks by the angle, or the cosine; empty lines are none.
    query, texts = lines[5], lines[:40]
    unit = y[:40].astype(float)
    cosine = (unit @ unit[5]) / np.linalg.norm(unit, axis=1) / np.linalg.norm(unit[5])
    for kind, values in (("angle", 1 - np.arccos(np.minimum(cosine, 1)) / np.pi), ("cosine", cosine)):
        found = works("similar", *given, query, "--top", "7", "--similarity", kind, "--json", text="\n\n".join(texts).encode())
        rows = [json.loads(row) for row in found.splitlines()]
        order = sorted(range(40), key=lambda i: (-values[i], i))[:7]
        check(np.abs([row["similarity"] for row in rows] - values[order]).max() < 1e-3 ** (1 + (kind == "cosine")), kind)
        check(rows[0]["text"] == query and rows[0]["line"] == 11, "%s: %s" % (kind, rows[0]))
        check(np.abs([values[texts.index(row["text"])] - row["similarity"] for row in rows]).max() < 1e-3, "%s: lines" % kind)
    check(works("similar", *given, query, text=query.encode()).split() == ["1.0000", *query.split()], "as text")
    path = os.path.join(folder, "lines.txt")
    open(path, "w").write("\n".join(texts))
    check(works("similar", *given, query, "--lines", path).count("\n") == 10, "--lines")

    # Pairs with quotes, commas, line feeds in a field, and a heading.
    pairs = [(lines[2 * i], lines[2 * i + 1], float(random.integers(0, 11)) / 2) for i in range(60)]
    pairs[3] = ('say "a", he', "two\nlines, one", 1.0)
    pairs[4] = ("abc", "", 2.0)
    texts = [t for pair in pairs for t in pair[:2]]
    path = os.path.join(folder, "pairs.csv")

    def write(rows, dialect="unix"):
        with open(path, "w", newline="") as file:
            csv.writer(file, dialect).writerows(rows)

    write([("one", "other", "score"), *pairs])
    refuses("pairs.csv:7: has no tokens", "similar", *given, "--score", path)
    pairs[4] = ("abc", "\u00e9", 2.0)
    texts[9] = "\u00e9"
    both = [json.loads(row)["vector"] for row in works("embed", *given, "--json", *texts).splitlines()]
    a, b = np.array(both[::2]), np.array(both[1::2])
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    scores = [pair[2] for pair in pairs]
    for kind, values in (("angle", 1 - np.arccos(cosine) / np.pi), ("cosine", cosine)):
        for dialect in ("unix", "excel"):
            write([("one", "other", "score"), *pairs] if dialect == "unix" else pairs, dialect)
            found = json.loads(works("similar", *given, "--score", path, "--similarity", kind, "--json"))
            check(found["pairs"] == 60, "pairs: %s" % found)
            check(abs(found["pearson"] - np.corrcoef(values, scores)[0, 1]) < 1e-6, "Pearson")
            check(abs(found["spearman"] - np.corrcoef(ranks(values), ranks(scores))[0, 1]) < 1e-6, "Spearman")
    check("Pearson %.4f, Spearman %.4f" % (found["pearson"], found["spearman"]) in works("similar", *given, "--score", path, "--similarity", "cosine"), "as text")
    # --budget: what types lose of it; scores that are the similarities in float32 leave nothing but a loss.
    write([(*pair[:2], "%.9g" % value) for pair, value in zip(pairs, values)])
    budgeted = ["similar", *given, "--score", path, "--similarity", "cosine", "--type", "e4m3", "--json", "--budget"]
    found = json.loads(works(*budgeted, "0.5"))
    check(abs(found["float32"] - 1) < 1e-6 and abs(found["loss"] - (1 - found["pearson"])) < 1e-6 < found["loss"] and found["ok"], "%s" % found)
    result = subprocess.run([LOOKUPC, *budgeted, "0"], capture_output=True, text=True)
    check(result.returncode == 1 and json.loads(result.stdout) == {**found, "budget": 0, "ok": False}, "%s" % result)
    check(result.stderr == "lookupc: --budget: Pearson's correlation: these types lose %.4g against float32, the budget is 0\n" % found["loss"], "%s" % result)
    refuses("--budget: x: must be a number not below 0", *budgeted, "x")
    refuses("--budget: 1: needs --score", "similar", *given, "a", "--budget", "1")

    # An encoder that looks up, with every type of tables and projection, whose vectors are their own.
    lookup, tables, seen = os.path.join(folder, "lookup.lua"), os.path.join(folder, "lookup.safetensors"), []
    with open(lookup, "w") as file:
        file.write(ENCODER % LOOKUP)
    works("sample", lookup, "-o", tables)
    write(pairs)
    kinds = [("i8", "i8", "i8"), ("bf16", "bf16", "bf16"), ("e4m3", "i16", "f32"), ("f16", "bf16", "f16"), ("i8", "f32", "e4m3")]
    for kinds_of_run in some("lookups", kinds, 1):
        typed = [lookup, "--weights", tables, "--isa", "scalar", "--cflags", "-O0", *itertools.chain(*zip(("--tables", "--projection", "--type"), kinds_of_run))]
        works("embed", *typed, "-o", vectors, *(t for pair in pairs for t in pair[:2]))
        a, b = np.load(vectors).astype(float).reshape(-1, 2, 12).transpose(1, 0, 2)
        found = json.loads(works("similar", *typed, "--score", path, "--similarity", "cosine", "--json"))
        cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        check(abs(found["pearson"] - np.corrcoef(cosine, scores)[0, 1]) < 1e-6, "%s: %s" % (kinds_of_run, found))
        check(all(np.abs(a - other).max() > 1e-7 for other in seen), "%s: the vectors of other types" % (kinds_of_run,))
        seen.append(a)

    for bad, rule in (('"a,b,1\n', ":1: a quoted field has no end"), ("a,b\n", ":1: 2 columns"), ('a,b,1\n"a"x,b,2\n', ":2: text stands"),
                      ("a,b,1\n\na,b,x\n", ':3: "x": must be a number'), ("a,b,nan\na,b,1\nc,d,2\n", ':1: "nan": must be a number'),
                      ("a,b,1e999\na,b,1\nc,d,2\n", ':1: "1e999": must be a number'), ("a,b,1\n", "fewer than two")):
        open(path, "w").write(bad)
        refuses("pairs.csv" + rule if rule[0] == ":" else rule, "similar", *given, "--score", path)

    open(path, "wb").write(b"a,b,1\ncaf\xe9,b,2\n")
    refuses("--score: " + path + ": byte 10, in line 2: is not UTF-8", "similar", *given, "--score", path)

    refuses("a text is missing", "similar", *given)
    refuses("takes no text", "similar", *given, "a", "--score", path)
    refuses("--top: 3: is for a text", "similar", *given, "--top", "3", "--score", path)
    refuses('--similarity: "dot"', "similar", *given, "a", "--similarity", "dot")

    # Denormal numbers are zeros to embed, which would take long with them, but not to run, which is compared with frameworks.
    with open(model, "w") as file:
        file.write(DENORMAL)
    works("sample", model, "-o", weights)
    with open(weights, "r+b") as file:
        file.seek(8 + int.from_bytes(file.read(8), "little"))
        count = (os.path.getsize(weights) - file.tell()) // 4
        np.where(np.arange(count) < 256 * 8, 1e-39, 0).astype("<f4").tofile(file)
    open(path, "w").write("97 98\n")
    works("run", *given, "--cflags", "-O0", "--ids", path, "--output", vectors)
    check(np.abs(np.load(vectors) - 1e-39).max() < 1e-44, "denormal numbers in run: %s" % np.load(vectors))
    works("embed", *given, "--cflags", "-O0", "-o", vectors, "ab")
    check(not np.load(vectors).any(), "denormal numbers in embed: %s" % np.load(vectors))

    # Models that have no vectors of texts.
    for change, rule in (('pool = "mean", ', "output.pool: is missing"), (', tokenizer = { kind = "bytes" }', "tokenizer: is missing"),
                         ("causal = false", "attention.causal = true: is a decoder")):
        other = (ENCODER % MLP).replace(change, "causal = true" if "causal" in change else "")
        if "causal" in change:
            other = other.replace('pool = "mean", ', "")
        open(model, "w").write(other)
        for command in ("embed", "similar"):
            refuses(rule, command, *given, "a")
    refuses("embed takes whole models", "embed", "gen/models/tiny.lua", "--weights", weights, "a")
