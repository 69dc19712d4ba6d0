"""lookupc tokenizer: what it trains is read by lookupc and by SentencePiece alike, and keeps text as it is; what cannot be is one line."""
import os
import subprocess
import sys
import tempfile

try:
    import sentencepiece
except ImportError:
    print("skipped: python3-sentencepiece is missing")
    sys.exit(77)

import tokenizers

LOOKUPC = tokenizers.LOOKUPC
if not os.path.exists(os.path.join(os.path.dirname(LOOKUPC), "lookupc-tokenizer")):
    print("skipped: built without LOOKUPC_TRAIN")
    sys.exit(77)


def train(*arguments):
    return subprocess.run([LOOKUPC, "tokenizer", *arguments], capture_output=True, text=True)


def works(*arguments):
    result = train(*arguments)
    assert result.returncode == 0 and not result.stderr, result


def refuses(words, *arguments):
    result = train(*arguments)
    lines = result.stderr.splitlines()
    assert result.returncode != 0 and not result.stdout and len(lines) == 1 and words in lines[0], (words, result)


with tempfile.TemporaryDirectory() as folder:
    def path(name, contents=None):
        name = os.path.join(folder, name)
        if contents is not None:
            with open(name, "wb") as file:
                file.write(contents)
        return name

    text = tokenizers.text()
    half = len(text) // 2
    files = [path("a.txt", text[:half].encode()), path("b.txt", text[half:].encode())]
    for name, options in {"bpe": ["--kind", "bpe"], "unigram": ["--kind", "unigram"], "bytes": ["--byte-fallback"]}.items():
        model = path(name + ".model")
        works("--text", *files, "--pieces", "900", *options, "-o", model)
        with open(model, "rb") as file:
            first = file.read()
        works("--text", *files, "--pieces", "900", *options, "-o", model)
        with open(model, "rb") as file:
            assert file.read() == first, name + ": the same text makes another model"
        theirs = sentencepiece.SentencePieceProcessor(model_file=model)
        assert theirs.get_piece_size() == 900
        for part in (text[:3000], text[-3000:], " two  spaces\n\nand lines\n"):
            assert theirs.decode(theirs.encode(part)) == part, name
        lines = [line.encode() for line in text.split("\n") if line][:200]
        ours = tokenizers.tokenize(tokenizers.write_model(folder, name, 'file = "%s.model"' % name), lines)
        tokenizers.compare(name, lines, ours, [theirs.encode(line) for line in lines])

    small, out = path("small.txt", b"to be or not to be"), path("kept.model", b"kept")
    refuses("--pieces: 900: must be at most", "--text", small, "--pieces", "900", "-o", out)
    refuses("--pieces: 5: must be at least 10", "--text", small, "--pieces", "5", "-o", out)
    refuses("--coverage: 2: must be", "--text", small, "--pieces", "20", "--coverage", "2", "-o", out)
    refuses('tokenizer = { kind = "bytes" }', "--text", small, "--pieces", "20", "--kind", "bytes", "-o", out)
    refuses("empty.txt: is empty", "--text", small, path("empty.txt", b""), "--pieces", "20", "-o", out)
    refuses("byte 8, in line 2: is not UTF-8", "--text", path("latin.txt", b"one\ncaf\xe9\n"), "--pieces", "20", "-o", out)
    refuses("byte 2, in line 1: is zero", "--text", path("zero.txt", b"a\0b"), "--pieces", "20", "-o", out)
    refuses("must end in .model", "--text", small, "--pieces", "20", "-o", path("out.bin"))
    refuses("is the input", "--text", path("in.model", b"text to be read"), "--pieces", "15", "-o", path("in.model"))
    refuses("--text: needs a value", "--text", "--pieces", "20", "-o", out)
    refuses("absent.txt", "--text", path("absent.txt"), "--pieces", "20", "-o", out)
    with open(out, "rb") as file:
        assert file.read() == b"kept"
    assert not [name for name in os.listdir(folder) if name.startswith(".") or name == "out.bin"], "something was left behind"
