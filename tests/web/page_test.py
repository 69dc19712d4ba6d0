#!/usr/bin/python3
"""Pages of emit --web: in Node their modules give the native library's numbers and say what is wrong, in headless Chromium a query is typed
and the ranking read, a prompt and the text. Refused options write nothing."""
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import browser
from lookupc import check, effort, run, works

WORK = tempfile.TemporaryDirectory()
TOLERANCE = 1e-5
TEXTS = ["a", "The quick brown fox.", "", "Größe \N{SNOWMAN}", "x" * 100]
ENCODER_OF_SENTENCES = os.environ.get("LOOKUPC_MODELS", "build/models") + "/sentence_encoder"
LINES = ["The sun is out.", "<img src=x onerror=\"document.title='bad'\">", "a", "Größe & Gewicht", "a"]
WIDTHS = ((360, 740), (1200, 800))

ENCODER = """return {
    name = "small_encoder", d = 48, heads = 4, layers = 2, vocab = 256, skip = true,
    attention = { causal = false, context = 64 },
    norm = { kind = "layernorm", place = "pre" },
    ffn = { kind = "mlp", f = 96, activation = "gelu" },
    embedding = { sinusoidal = {} },
    output = { pool = "mean", unit = true },
    tokenizer = { file = "vocab.txt", lower = true },
}"""
LOOKUP = ENCODER.replace("small_encoder", "lookup_encoder").replace(
    '{ kind = "mlp", f = 96, activation = "gelu" }', '{ kind = "lookup", h = 8, tau = 5, projection = { kind = "bh4", block = 16 }, score = "gelu" }'
)
DECODER = """return {
    name = "small_decoder", d = 48, heads = 4, layers = 2, vocab = 256, skip = true,
    attention = { context = 3000, rope = {} },
    norm = { kind = "rmsnorm", place = "pre" },
    ffn = { kind = "glu", f = 96, activation = "silu" },
    embedding = {},
    output = { norm = { kind = "rmsnorm" }, head = {} },
    tokenizer = { kind = "bytes" },
}"""
WORDS = DECODER.replace("small_decoder", "word_decoder").replace('kind = "bytes"', 'file = "vocab.txt", lower = true')
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *map(chr, range(33, 127)), *("##" + chr(letter) for letter in range(97, 123))]


class Model:
    """A model file with its weights, its page, and what it computes natively."""

    def __init__(self, path, *options):
        self.path, self.options = path, options
        self.name, self.weights = os.path.basename(path)[:-4], path[:-4] + ".safetensors"
        self.folder = f"{WORK.name}/{self.name}{''.join(options)}"
        works("emit", self.path, "--web", self.folder, "--weights", self.weights, *options)

    def vectors(self, texts):
        """The vectors of texts, in a dictionary; zeros for the empty one if it has no ids."""
        y, given = WORK.name + "/y.npy", sorted(set(texts))
        if given[0] == "" and works("tokenize", self.path, "").strip() == "":
            del given[0]
        works("embed", self.path, "--weights", self.weights, "--truncate", "-o", y, "--cflags", "-O0", *self.options, "--", *given)
        rows = np.load(y).astype(np.float64)
        return {"": np.zeros(rows.shape[1]), **dict(zip(given, rows))}

    def logits(self, ids):
        """The logits of the last id."""
        path, y = WORK.name + "/ids.txt", WORK.name + "/y.npy"
        with open(path, "w") as file:
            file.write(" ".join(map(str, ids)))
        works("run", self.path, "--weights", self.weights, "--ids", path, "--output", y, "--cflags", "-O0")
        return np.load(y)[-1].astype(np.float64)

    @functools.lru_cache(maxsize=None)
    def greedy(self, prompt, most):
        """What generate prints behind a prompt, always the likeliest ids."""
        options = [*f"--temperature 0 --tokens {most} --cflags -O0".split(), *self.options]
        result = subprocess.run([os.environ["LOOKUPC"], "generate", self.path, prompt, "--weights", self.weights, *options], capture_output=True)
        check(result.returncode == 0, f"generate: {result.stderr}")
        return result.stdout.decode(errors="replace").removesuffix("\n")


def sampled(text, *options):
    """The model of a file with that text, with random weights."""
    path = f"{WORK.name}/{text.split(chr(34))[1]}.lua"
    with open(path, "w") as file:
        file.write(text)
    works("sample", path, "--seed", "3", "-o", path[:-4] + ".safetensors")
    return Model(path, *options)


def check_vectors(model):
    body = f"""
        const shares = [], texts = {json.dumps(TEXTS)};
        const model = await load({{ base, progress: (share) => shares.push(share) }});
        const batch = model.encode_batch(texts), rows = texts.map((text) => [...model.encode(text)]);
        console.log(JSON.stringify({{ shares, width: model.width, batch: [...batch], rows, none: model.encode_batch([]).length }}));"""
    found = browser.in_node(model.folder, model.name, body)
    check(found["shares"][-1] == 1 and found["none"] == 0, "progress, or an empty batch")
    expected = model.vectors(TEXTS)
    for text, alone, batched in zip(TEXTS, found["rows"], np.reshape(found["batch"], (len(TEXTS), found["width"]))):
        for got in (alone, batched):
            difference = np.abs(np.subtract(got, expected[text])).max()
            check(difference <= TOLERANCE, f"{model.name}: {text[:20]!r} differs by {difference}")


def check_text(model):
    body = """
        const model = await load({ base });
        const said = (work) => { try { work(); return 'nothing'; } catch (error) { return error.message; } };
        const all = (prompt, options) => [...model.generate(prompt, options)];
        const ending = (parts) => {
            for (let part = parts.next(); ; part = parts.next()) if (part.done) return part.value;
        };
        const first = (number) => all('Once', { temperature: 2, most: 1, random: () => number })[0];
        console.log(JSON.stringify({
            text: all('Once', { temperature: 0, most: 4 }).join(''),
            again: all('Once', { temperature: 0, most: 4 }).join(''),
            count: all('x'.repeat(2990), { temperature: 0, most: 1000 }).length,
            endings: [ending(model.generate('x'.repeat(2998), { most: 1000 })), ending(model.generate('Once', { most: 4 }))],
            drawn: Array.from({ length: 400 }, (_, i) => first((i + 0.5) / 400)),
            empty: said(() => all('')),
            long: said(() => all('x'.repeat(3001))),
        }));"""
    found = browser.in_node(model.folder, model.name, body, "application/octet-stream")  # what is not sent as WebAssembly works, too
    expected = model.greedy("Once", 4)
    check(found["text"] == expected == found["again"], f"text {found['text']!r}, natively {expected!r}")
    check(found["count"] == 11, f"{found['count']} parts instead of 3000 - 2990, and the one behind the last id of the context")
    check(found["endings"] == ["context", "most"], f"texts end by {found['endings']}")
    check(found["empty"] == "the prompt is empty", found["empty"])
    check(found["long"] == "the prompt has 3001 ids: the model takes 3000", found["long"])
    # Numbers that cut 0 to 1 into equal parts draw each id as often as its share says.
    shares = np.exp(model.logits(b"Once") / 2)
    shares /= shares.sum()
    for byte in range(128):
        count = found["drawn"].count(chr(byte))
        check(abs(count - 400 * shares[byte]) <= 1, f"id {byte}: drawn {count} times of 400, its share is {shares[byte]}")
    check(len(set(found["drawn"])) > 50, "hardly anything is drawn")


def check_words(model):
    """Ids before and behind a prompt: [CLS] stays, [SEP] is left off; drawn, it ends the text. Hot enough, all ids are alike."""
    body = """
        const model = await load({ base });
        const drawn = (id) => [...model.generate('once', { temperature: 1e6, most: 3, random: () => (id + 0.5) / 256 })];
        console.log(JSON.stringify([[...model.generate('once', { temperature: 0, most: 4 })].join(''), drawn(3), drawn(72), drawn(200)]));"""
    text, end, letters, none = browser.in_node(model.folder, model.name, body)
    check(text == model.greedy("once", 4), f"text {text!r}, natively {model.greedy('once', 4)!r}")
    check((end, none) == ([], [""] * 3) and "".join(letters).split() == list(PIECES[72] * 3), f"{end} {letters} {none}")


def check_damage(model):
    """A module says in a line that its weights are wrong; `check` of the folder that they were edited."""
    check(run("check", model.folder).stdout == f"{model.folder}: fresh\n", "a page is not fresh")
    with open(f"{model.folder}/{model.name}.bin", "rb") as file:
        good = file.read()
    wrong = f"{model.name}.bin: is not of {model.name}.wasm, or damaged ({model.name}_bind returned %d)"
    cases = [(good[:-64], wrong % 3), (good + bytes(1 << 20), wrong % 3), (good[:-1] + b"\x55", wrong % 7)]
    cases += [(None, f"{model.name}.bin: the server says 404 File not found"), (good, "nothing")]
    urls = []
    for number, (bad, _) in enumerate(cases):
        folder = f"{WORK.name}/damaged_{number}"
        shutil.copytree(model.folder, folder)
        os.remove(f"{folder}/{model.name}.bin")
        if bad:
            with open(f"{folder}/{model.name}.bin", "wb") as file:
                file.write(bad)
        urls.append(browser.serve(folder))
    body = f"""
        const said = [];
        for (const base of {json.dumps(urls)}) said.push(await load({{ base }}).then(() => 'nothing', ({{ message }}) => message));
        console.log(JSON.stringify(said));"""
    for said, (_, expected) in zip(browser.in_node(model.folder, model.name, body), cases):
        check(said == expected, f"{said} instead of {expected}")
    edited = f"{WORK.name}/damaged_2"
    check(run("check", edited).stderr == f"lookupc check: {edited}/{model.name}.bin: edited\n", "edited weights are not found")


def check_form(page):
    """Everything that is typed into has a label, nothing is wider than a phone, and the browser has nothing to complain about."""
    check(page.evaluate("[...document.querySelectorAll('input, textarea')].every((field) => field.labels.length === 1)"), "a field without a label")
    for width, height in WIDTHS:
        page.resize(width, height)
        check(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"wider than {width} pixels")
    check(page.problems() == [], f"the browser says {page.problems()}")


def check_search(page, model):
    page.open(browser.serve(model.folder))
    page.wait("document.querySelectorAll('#ranking li').length === 12")  # of the lines that are there
    page.type("lines", "\n".join(LINES) + "\n\n  \n")
    page.wait("document.getElementById('status').textContent === '4 lines'")
    queries = ("sunny", "Weight and size")
    vectors = model.vectors([*LINES, *queries])
    for query in queries:
        page.type("query", query)
        expected = sorted(((float(vectors[line] @ vectors[query]), line) for line in set(LINES)), reverse=True)
        page.wait(f"document.querySelector('#ranking li span:last-child').textContent === '{expected[0][0]:.3f}'")
        rows = page.evaluate("[...document.querySelectorAll('#ranking li')].map((row) => [...row.children].map((cell) => cell.textContent))")
        check([line for line, _ in rows] == [line for _, line in expected], f"{query}: {rows}, natively {expected}")
        check(all(abs(float(shown) - score) < 0.00051 for (_, shown), (score, _) in zip(rows, expected)), f"{query}: {rows}, {expected}")
    check(page.evaluate("document.title") == "Search by meaning: small_encoder", "a line was taken as HTML")
    check(page.evaluate("document.querySelector('#ranking img')") is None, "a line was taken as HTML")
    page.type("query", "")
    page.wait("document.querySelectorAll('#ranking li').length === 0")
    page.type("lines", "\n".join(f"line {i}" for i in range(300)))
    page.type("query", "line 7")
    page.wait("document.getElementById('status').textContent === '300 lines, the first 50 shown'")
    check(page.evaluate("document.querySelector('#ranking li span').textContent") == "line 7", "a line is not its own nearest")
    check_form(page)


STATUS = "document.getElementById('status').textContent"


def check_written(page, model, prompt, most):
    """The page goes on with a prompt as the program does, always by the likeliest id."""
    page.open(browser.serve(model.folder))
    page.wait("!document.getElementById('go').disabled")
    page.evaluate("document.getElementById('temperature').value = 0, document.getElementById('temperature').dispatchEvent(new Event('input'))")
    check(page.evaluate("document.getElementById('degrees').value") == "0.0", "the temperature is not shown")
    page.type("prompt", prompt)
    page.type("most", str(most))
    page.press("Enter")
    page.wait(f"{STATUS}.includes('tokens/s')")
    made, shown = model.greedy(prompt, most), page.evaluate("document.getElementById('text').textContent")
    check(shown == prompt + made, f"{model.name}: {shown!r}, natively {prompt + made!r}")
    check(page.evaluate(STATUS).startswith(f"{most} tokens, "), "the tokens are not counted")


def tiny_writer():
    """The model of examples/tiny-writer as its make.sh makes the page, with its trained weights."""
    for name in ("tiny_writer.lua", "tiny_writer.safetensors", "pieces.model"):
        shutil.copy("examples/tiny-writer/" + name, WORK.name)
    return Model(WORK.name + "/tiny_writer.lua", "--type", "i8", "--cache", "i8")


def check_generation(page, model):
    check_written(page, model, "Once", 4)
    page.type("most", "5000")
    page.evaluate("document.getElementById('go').click()")
    page.wait("document.getElementById('made').textContent !== ''")
    page.evaluate("document.getElementById('stop').click()")
    page.wait("!document.getElementById('go').disabled")
    check(int(page.evaluate(STATUS).split()[0]) < 2997, "it does not stop")
    page.type("most", "4")
    page.type("prompt", "<b>")
    page.evaluate("document.getElementById('go').click()")
    page.wait("document.getElementById('text').textContent.startsWith('<b>') && !document.getElementById('go').disabled")
    page.type("prompt", "")
    page.evaluate("document.getElementById('go').click()")
    page.wait(f"{STATUS} === 'This does not work: the prompt is empty'")
    page.type("prompt", "x" * 2998)
    page.evaluate("document.getElementById('go').click()")
    page.wait(f"{STATUS}.endsWith('tokens/s; the context of 3000 tokens is full')")
    check(page.evaluate("!document.getElementById('go').disabled && document.getElementById('stop').disabled"), "the buttons are stuck")
    check_form(page)


def check_refusals():
    """What has no page is one line, and nothing is written."""
    folder, weights = WORK.name + "/refused", WORK.name + "/none.safetensors"

    def refused(said, path, *options, web=("--web", folder), environment=None):
        result = subprocess.run([shutil.which(os.environ["LOOKUPC"]), "emit", path, *web, *options], capture_output=True, text=True, env=environment)
        check(result.returncode != 0 and said in result.stderr and result.stderr.count("\n") == 1, f"{result.stderr!r} instead of {said}")
        check(not os.path.exists(folder), f"{said}: something was written")

    def model(text):
        path = WORK.name + "/refused.lua"
        with open(path, "w") as file:
            file.write(text)
        return path

    given = ("--weights", weights)
    refused("--weights: is missing: --web needs it", model(ENCODER))
    refused("--web: cannot be given beside -o", model(ENCODER), *given, "-o", folder)
    refused("--web: cannot be given beside --isa", model(ENCODER), *given, "--isa", "avx2")
    refused("--web: cannot be given beside --profile", model(ENCODER), *given, "--profile", "firmware")
    refused("--web: tiny: is for whole models", "gen/models/tiny.lua", *given)
    refused("tokenizer: is missing", model(ENCODER.replace('tokenizer = { file = "vocab.txt", lower = true },', "")), *given)
    refused("output.pool: is missing", model(ENCODER.replace('pool = "mean", unit = true', "")), *given)
    refused("output.classes", model(ENCODER.replace("unit = true", "classes = 3")), *given)
    refused("output.head: is missing", model(DECODER.replace(", head = {}", "")), *given)
    refused("MiB, but WebAssembly addresses 4096", model(DECODER.replace("context = 3000", "context = 16777216")), *given)
    tools = WORK.name + "/tools"
    os.mkdir(tools)
    os.symlink(shutil.which("sh"), tools + "/sh")
    refused("(Debian packages: clang-19, lld-19)", model(ENCODER), *given, environment={**os.environ, "PATH": tools})


def compiles():
    result = shutil.which("clang-19") and subprocess.run(["clang-19", "--print-prog-name=wasm-ld"], capture_output=True, text=True)
    return result and os.access(result.stdout.strip(), os.X_OK)


with open(WORK.name + "/vocab.txt", "w") as file:
    file.write("\n".join(PIECES) + "\n")
check_refusals()
if not compiles():
    print("skipped: clang-19 or its wasm-ld is missing")
    sys.exit(77)
encoder, decoder = sampled(ENCODER), sampled(DECODER)
if shutil.which("node"):
    check_vectors(encoder)
    check_text(decoder)
    check_damage(encoder)
    if effort("web"):
        check_words(sampled(WORDS))
    for number in range(5 if effort("web") else 0):
        check_vectors(sampled(LOOKUP if number % 2 else ENCODER, "--type", ("i8", "bf16", "f16", "e4m3", "q8")[number]))
    if os.path.exists(ENCODER_OF_SENTENCES + ".lua"):
        check_vectors(Model(ENCODER_OF_SENTENCES + ".lua"))
    else:
        print("skipped: " + ENCODER_OF_SENTENCES + ".lua is missing: a real encoder in WebAssembly")
else:
    print("skipped: node is missing: numbers in WebAssembly")
if browser.missing:
    print("skipped: " + browser.missing + ": pages in a browser")
else:
    with browser.Browser() as page:
        check_search(page, encoder)
        check_generation(page, decoder)
        check_written(page, tiny_writer(), "hacker:", 30)
