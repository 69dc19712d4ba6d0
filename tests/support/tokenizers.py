"""Small tokenizers of every kind, made from the documentation's text, and lookupc tokenize on many lines."""
import collections
import glob
import json
import os
import random
import subprocess
import sys
import unicodedata

LOOKUPC = os.environ["LOOKUPC"]


def text():
    return "".join(open(path, encoding="utf-8").read() for path in ("docs/emitted-code.md", "docs/model-files.md", "README.md", "ARCHITECTURE.md", "docs/where.md"))


def effort(name):
    return int(subprocess.run(["lua5.4", "tests/effort.lua", name], check=True, capture_output=True, text=True).stdout)


def assigned(character):
    return unicodedata.category(character) not in ("Cn", "Cs", "Co")


def random_line(random_state):
    """Letters, marks, spaces and signs of all scripts, often such as normalisation changes."""
    line = ""
    favourites = "  \u3000\u2581\t\u200b\u00ad\u0130\u017f\ufdfa\uac00\uac01\u1100\u1161\u11a8's'LL\u0301\u0323\u0344\u1e9b\u212b\ufb01"
    while len(line) < 60 and random_state.random() > 0.02:
        kind = random_state.random()
        first, last = (32, 127) if kind < 0.4 else (0xA0, 0x600) if kind < 0.6 else (0x600, 0xFFFF) if kind < 0.8 else (0x10000, 0x2FFFF)
        character = random_state.choice(favourites) if kind > 0.9 else chr(random_state.randrange(first, last))
        if assigned(character) and character not in "\n\r":
            line += character
    return line


def installed_lines(count):
    """Up to `count` lines of the licences that Debian installs, each once: names of people and places of many languages among them."""
    found = {}
    for path in sorted(glob.glob("/usr/share/doc/*/copyright")):
        if len(found) >= count:
            break
        with open(path, encoding="utf-8", errors="replace") as file:
            found.update((line.strip("\r\n"), None) for line in file if not {"\r", "\0"} & set(line.strip("\r\n")))
    return list(found)[:count]


def lines(count, seed=1):
    """`count` lines: of the documentation and of what is installed, words in another order, and of random characters."""
    state = random.Random(seed)
    words = text().split()
    made = [line for line in text().split("\n") if line]
    made += installed_lines(count * 2 // 3 - len(made))
    while len(made) < count:
        made.append(random_line(state) if state.random() < 0.3 else state.choice([" ", "  "]).join(state.choices(words, k=12)))
    state.shuffle(made)
    return made[:count]


def byte_characters():
    """GPT-2's printable character of each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


def train_bpe(words, alphabet, merges):
    """The merges, { word: count } being lists of symbols to be merged, and the vocabulary."""
    vocabulary, rules = {symbol: i for i, symbol in enumerate(alphabet)}, []
    words = {tuple(word): count for word, count in words.items()}
    for _ in range(merges):
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        rules.append(best)
        vocabulary.setdefault("".join(best), len(vocabulary))
        words = {merge(word, best): count for word, count in words.items()}
    return rules, vocabulary


def merge(word, pair):
    merged, i = [], 0
    while i < len(word):
        if word[i:i + 2] == pair:
            merged.append(word[i] + word[i + 1])
            i += 2
        else:
            merged.append(word[i])
            i += 1
    return tuple(merged)


def write_model(folder, name, fields):
    path = os.path.join(folder, name + ".lua")
    with open(path, "w") as file:
        file.write('return { name = "%s", tokenizer = { %s } }\n' % (name, fields))
    return path


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False)


def tokenize(model, many):
    """The ids of lines, bytes or text without ends of lines, by lookupc."""
    data = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in many)
    result = subprocess.run([LOOKUPC, "tokenize", model], input=data, capture_output=True)
    if result.returncode != 0:
        sys.exit("%s: %s" % (model, result.stderr.decode()))
    return [[int(word) for word in row.split()] for row in result.stdout.decode().split("\n")[:-1]]


def tokenize_texts(model, many):
    """The ids of texts with ends of lines among them, by lookupc."""
    result = subprocess.run([LOOKUPC, "tokenize", model, "--cflags", "-O0", "--", *many], capture_output=True)
    if result.returncode != 0:
        sys.exit("%s: %s" % (model, result.stderr.decode()))
    return [[int(word) for word in row.split()] for row in result.stdout.decode().split("\n")[:-1]]


def compare(name, many, got, wanted):
    """Ends the test at the first line with other ids than wanted."""
    if len(got) != len(many):
        sys.exit("%s: %d rows for %d lines" % (name, len(got), len(many)))
    for line, ours, theirs in zip(many, got, wanted):
        if ours != theirs:
            sys.exit("%s: %r:\n got    %s\n wanted %s" % (name, line, ours, theirs))
    print("%s: %d lines, %d ids, all the same" % (name, len(many), sum(map(len, got))))
