"""generate and perplexity on a small random decoder, against NumPy on the logits that `run` writes."""
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import numpy as np

from lookupc import LOOKUPC, call, check, own_cache, read_safetensors, refuses, write_safetensors

DECODER = """return { name = "dec", d = 24, heads = 3, layers = 2, vocab = 256, positions = 32, skip = true,
    norm = { kind = "layernorm" }, attention = { context = 32 }, ffn = { kind = "mlp", f = 48, activation = "gelu" },
    checkpoint = "gpt2", tied = true, embedding = {}, output = { norm = { kind = "layernorm" }, head = {} },
    tokenizer = { kind = "bytes" } }
"""


def works(*arguments, text=b""):
    result = call(*arguments, text=text)
    check(result.returncode == 0, "%s: %s" % (arguments, result))
    return result.stdout


with tempfile.TemporaryDirectory() as folder:
    own_cache(folder)
    model, weights, ids_file, logits_file, text_file = (
        os.path.join(folder, name) for name in ("dec.lua", "dec.safetensors", "ids.npy", "logits.npy", "text.txt"))
    with open(model, "w") as file:
        file.write(DECODER)
    works("sample", model, "-o", weights)
    given = [model, "--weights", weights, "--isa", "scalar"]

    def logits(ids):
        np.save(ids_file, np.array(ids, np.int32))
        works("run", *given, "--ids", ids_file, "--output", logits_file)
        return np.load(logits_file).astype(np.float64)

    def generated(*arguments):
        return json.loads(works("generate", *given, "--json", *arguments))

    # Greedy: every id is the argmax of the logits behind all before it; then the context is full.
    prompt = b"Hello"
    full = generated("Hello", "--temperature", "0")
    check(full["prompt"] == list(prompt) and full["ended"] == "context" and len(full["ids"]) == 32 - 5 + 1, "the context: %s" % full)
    rows = logits(full["prompt"] + full["ids"][:-1])
    check(list(rows[4:].argmax(1)) == full["ids"], "greedy")
    result = call("generate", *given, "Hello", "--temperature", "0")
    check(result.stdout == bytes(full["ids"]) + b"\n", "text is not that of the ids: %s" % result)
    check(re.fullmatch(rb"lookupc: the context of 32 tokens is full\n5 tokens of prompt in \d+ ms; 28 tokens, [\d.]+ tokens/s\n", result.stderr), "%s" % result)

    # The same seed makes the same text, another one another; the ids of a prompt stand for it.
    first = generated("Hello", "--tokens", "12", "--seed", "7", "--temperature", "2")
    check(first["ended"] == "tokens" and len(first["ids"]) == 12, "tokens: %s" % first)
    check(generated("--ids", "72,101 108,108,111", "--tokens", "12", "--seed", "7", "--temperature", "2")["ids"] == first["ids"], "--ids, seed")
    check(generated("Hello", "--tokens", "12", "--seed", "8", "--temperature", "2")["ids"] != first["ids"], "another seed")

    # What ends a text: an id, or a text, which is not printed.
    ids = full["ids"]
    check(generated("Hello", "--temperature", "0", "--stop-ids", "%d,%d" % (ids[6], ids[6]))["ids"] == ids[: ids.index(ids[6])], "--stop-ids")
    with open(model, "w") as file:
        file.write(DECODER.replace('"bytes"', '"bytes", ends = { %d }' % ids[6]))
    ended = generated("Hello", "--temperature", "0")
    check(ended["ids"] == ids[: ids.index(ids[6])] and ended["ended"] == "id %d" % ids[6], "tokenizer.ends: %s" % ended)
    for arguments in (["none"], [str(next(i for i in range(256) if i not in ids))]):
        check(generated("Hello", "--temperature", "0", "--stop-ids", *arguments)["ids"] == ids, "--stop-ids %s" % arguments)

    # A model whose logits are known: no blocks to speak of, and a head that gives each id the bias of the norm.
    # The last norm's gain is 0 and its offset the first unit vector, so the logits are column 0 of the embedding.
    tensors, _ = read_safetensors(weights)
    word = next(name for name in tensors if name.endswith("wte.weight"))
    norm = next(name for name in tensors if name.endswith("ln_f.weight"))[: -len("weight")]
    tensors[norm + "weight"][:] = 0
    tensors[norm + "bias"][:] = np.eye(24)[0]
    share = np.full(256, 1e-9)
    share[[65, 66, 67, 68]] = 0.4, 0.3, 0.2, 0.1
    tensors[word][:, 0] = np.log(share)
    known = os.path.join(folder, "known.safetensors")
    given[2] = known

    with open(model, "w") as file:
        file.write(DECODER.replace("= 32", "= 1024"))
    wpe = next(name for name in tensors if name.endswith("wpe.weight"))
    tensors[wpe] = np.zeros((1024, 24))
    write_safetensors(known, tensors, "F32")

    def shares(*arguments):
        ids = generated("x", "--tokens", "1000", *arguments)["ids"]
        check(len(ids) == 1000, "tokens")
        return np.bincount(ids, minlength=256) / 1000

    for arguments, wanted in ((["--temperature", "1"], share / share.sum()),
                              (["--temperature", "0.5"], share**2 / (share**2).sum()),
                              (["--temperature", "1", "--top-p", "0.65"], [0.4 / 0.7, 0.3 / 0.7, 0, 0]),
                              (["--temperature", "1", "--top-p", "0.75"], [0.4 / 0.9, 0.3 / 0.9, 0.2 / 0.9, 0]),
                              (["--temperature", "1", "--top-k", "2"], [0.4 / 0.7, 0.3 / 0.7, 0, 0])):
        found = shares(*arguments)
        wanted = np.array(wanted[65:69]) if len(wanted) == 256 else np.array(wanted)
        check(found[[65, 66, 67, 68]].sum() > 0.999, "%s: others were drawn" % arguments)
        check((found[65:69][wanted == 0] == 0).all(), "%s: %s" % (arguments, found[65:69]))
        check(np.abs(found[65:69] - wanted).max() < 4 * np.sqrt(0.25 / 1000), "%s: %s, expected %s" % (arguments, found[65:69], wanted))

    # perplexity: windows as the definition has them, log softmax in float64.
    given[2] = weights
    with open(model, "w") as file:
        file.write(DECODER)
    text = "It was the best of times, it was the worst of times. \u00e9\u00e8 "
    raw = text.encode()
    open(text_file, "wb").write(raw)
    for context, stride in ((32, 16), (32, 32), (20, 7)):
        nats, scored, done, at, ranges = 0.0, 0, 1, 0, {}
        while done < len(raw):
            last = min(at + context, len(raw))
            rows = logits(list(raw[at:last]))
            logp = rows - np.log(np.exp(rows - rows.max(1, keepdims=True)).sum(1, keepdims=True)) - rows.max(1, keepdims=True)
            for i in range(max(done, at + 1), last):
                own = -logp[i - at - 1, raw[i]]
                nats, scored = nats + own, scored + 1
                ranges.setdefault((i - at).bit_length(), []).append((own, logp[i - at - 1].argmax() == raw[i]))
            done, at = last, at + stride
        arguments = ["--context", str(context), "--stride", str(stride)]
        found = json.loads(works("perplexity", *given, "--text", text_file, "--json", *arguments))
        check(found["tokens"] == len(raw) and found["scored"] == scored, "%d, %d: %s" % (context, stride, found))
        check(abs(found["nats_per_token"] - nats / scored) < 1e-5 and abs(found["perplexity"] / np.exp(nats / scored) - 1) < 1e-5, "%s" % found)
        check(abs(found["bits_per_byte"] - nats / np.log(2) / scored) < 1e-5, "%s" % found)  # a token is a byte
        # By how many tokens of the window stand before the predicted one: 1, 2 to 3, 4 to 7 and so on.
        check([(r["from"], r["to"], r["scored"]) for r in found["positions"]]
              == [(1 << bits >> 1, min(1 << bits, context) - 1, len(ranges[bits])) for bits in sorted(ranges)], "%s" % found)
        for r, bits in zip(found["positions"], sorted(ranges)):
            check(np.abs([r["nats_per_token"], r["accuracy"]] - np.mean(ranges[bits], axis=0)).max() < 1e-5, "%s" % r)
        check(abs(found["accuracy"] - np.mean([hit for of in ranges.values() for _, hit in of])) < 1e-9, "%s" % found)
    # --budget: what types lose against float32, of which both figures are known.
    narrow = ["--text", text_file, "--type", "e4m3", "--cache", "i8"]
    exact, rounded = (json.loads(works("perplexity", *given, "--json", *more))["nats_per_token"] for more in (narrow[:2], narrow))
    check(abs(rounded - exact) > 1e-5, "nothing is lost or gained")
    budgeted = ["perplexity", *given, *narrow, "--json", "--budget"]
    found = json.loads(works(*budgeted, "1"))
    check([found[key] for key in ("nats_per_token", "float32", "budget", "ok")] == [rounded, exact, 1, True], "%s" % found)
    check(abs(found["loss"] - (rounded - exact)) < 1e-9, "%s" % found)
    check("loss" not in json.loads(works("perplexity", *given, "--json", *narrow)), "a loss without --budget")
    check("; %.4f in float32, loss %.4f" % (exact, rounded - exact) in works("perplexity", *given, *narrow, "--budget", "1").decode(), "as text")
    if rounded > exact:  # less than nothing cannot be asked for
        result = call(*budgeted, "0")
        check(result.returncode == 1 and not json.loads(result.stdout)["ok"] and result.stderr.count(b"\n") == 1, "%s" % result)
        check(b"nats a token: these types lose %.4g against float32, the budget is 0\n" % (rounded - exact) in result.stderr, "%s" % result)
    for bad in ("-1", "a", "nan", "1%"):
        refuses("--budget: %s: must be a number not below 0" % bad, "perplexity", *given, *narrow, "--budget", bad)

    slow = json.loads(works("perplexity", *given, "--text", text_file, "--json", "--stride", "1"))
    check(slow["scored"] == len(raw) - 1 and slow["windows"] == len(raw) - 32 + 1, "%s" % slow)
    default = json.loads(works("perplexity", *given, "--text", text_file, "--json"))
    check((default["context"], default["stride"]) == (32, 16), "%s" % default)
    line = works("perplexity", *given, "--text", "-", text=raw).decode()
    check(line == "%d tokens, %.4f nats a token, perplexity %.4f, %.4f bits per byte\n" % tuple(
        default[key] for key in ("scored", "nats_per_token", "perplexity", "bits_per_byte")), line)
    lines = works("perplexity", *given, "--text", text_file, "--positions").decode().splitlines()
    check(lines[0] + "\n" == line and lines[2:] == ["%14s %12d %12.4f %7.2f %%" % (
        "1" if r["to"] == 1 else "%d to %d" % (r["from"], r["to"]), r["scored"], r["nats_per_token"], 100 * r["accuracy"])
        for r in default["positions"]], "%s" % lines)
    np.save(ids_file, np.frombuffer(raw, np.uint8).astype(np.int32))
    by_ids = json.loads(works("perplexity", *given, "--ids", ids_file, "--json"))
    check(by_ids["perplexity"] == default["perplexity"] and "bits_per_byte" not in by_ids, "%s" % by_ids)
    for kind in ("bf16",):
        other = json.loads(works("perplexity", *given, "--text", text_file, "--json", "--type", kind))
        check(other["type"] == kind and 0 < abs(other["perplexity"] / default["perplexity"] - 1) < 0.05, "%s" % other)

    # An interrupt says how far it came and leaves nothing in TMPDIR.
    temporary = os.path.join(folder, "tmp")
    os.mkdir(temporary)
    open(text_file, "wb").write(raw * 9000)
    for seconds in (1.5, 5, 20):  # until it has got somewhere, also on a busy machine
        child = subprocess.Popen([LOOKUPC, "perplexity", *given, "--text", text_file, "--stride", "1"],
                                 env={**os.environ, "TMPDIR": temporary}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(seconds)
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=20)
        check(output == b"" and child.returncode == -signal.SIGINT, "interrupted: %s %s" % (child.returncode, output))
        if errors:
            break
    check(re.fullmatch(rb"lookupc: interrupted, so far: [\d,]+ tokens, [\d.]+ nats a token, perplexity [\d.]+\n", errors), "interrupted: %s" % errors)
    check(os.listdir(temporary) == [], "left behind: %s" % os.listdir(temporary))

    # What is refused, in one line.
    open(text_file, "wb").write(b"x")
    refuses("has no token with another one before it", "perplexity", *given, "--text", text_file)
    open(text_file, "wb").write(b"")
    refuses("text.txt: is empty", "perplexity", *given, "--text", text_file)
    open(text_file, "wb").write(b"one\ncaf\xe9\n")
    refuses("text.txt: byte 8, in line 2: is not UTF-8", "perplexity", *given, "--text", text_file)
    refuses("--text is missing", "perplexity", *given)
    refuses("--stride: 33", "perplexity", *given, "--text", text_file, "--stride", "33")
    refuses("--context: 1:", "perplexity", *given, "--text", text_file, "--context", "1")
    refuses("the prompt is missing", "generate", *given)
    refuses("the prompt has no tokens", "generate", *given, "")
    refuses("the prompt has 33 tokens", "generate", *given, "x" * 33)
    refuses("--temperature: hot", "generate", *given, "x", "--temperature", "hot")
    refuses("--top-p: 0:", "generate", *given, "x", "--top-p", "0")
    refuses("--ids: 256: must be below vocab", "generate", *given, "--ids", "256")
    refuses("leave it out", "generate", *given, "x", "--ids", "1")
    with open(model, "w") as file:
        file.write(DECODER.replace(', head = {}', "").replace("tied = true, ", ""))
    refuses("output.head: is missing", "generate", *given, "x")
    with open(model, "w") as file:
        file.write(DECODER.replace(',\n    tokenizer = { kind = "bytes" }', ""))
    refuses("tokenizer: is missing", "generate", *given, "x")
    refuses("tokenizer: is missing", "perplexity", *given, "--text", text_file)
    check(works("generate", *given, "--ids", "72,101,108,108,111", "--temperature", "0", "--tokens", "3").decode().split() ==
         [str(id) for id in ids[:3]], "ids without a tokenizer")
    with open(model, "w") as file:
        file.write(DECODER.replace("context = 32", "context = 32, causal = false"))
    refuses("is an encoder", "generate", *given, "x")
    refuses("is an encoder", "perplexity", *given, "--text", text_file)
