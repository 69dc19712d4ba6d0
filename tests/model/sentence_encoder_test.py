"""The sentence encoder of build/models: vectors of STS-B's sentences are those of NumPy's float64, from text as from ids, and the Pearson
correlation with people's judgement is the same; with rounded weights nearly."""
import csv
import json
import os
import sys
import tempfile

import numpy as np

import sentence_encoder
import tokenizers
import whole
from lookupc import check, effort, instruction_sets, works

STRIDE = 1 if effort("sentences") else 50
FOLDER = os.environ.get("LOOKUPC_MODELS", "build/models")
PEARSON = {"f32": 5e-5, "bf16": 0.002, "i8": 0.005, "i8 by i8": 0.005, "i8 by i7": 0.005}  # of all pairs, how far from that of float64
PEARSON |= {kind + " projected": most for kind, most in PEARSON.items() if kind in ("f32", "i8 by i7")}
OPTIONS = {"i8 by " + inputs: ("--type", "i8", "--activations", inputs) for inputs in ("i8", "i7")}
TOLERANCE = 1e-5
KNOWN = 0.7857  # of the development split, in float64

if not os.path.exists(FOLDER + "/sentence_encoder.lua"):
    print(f"skipped: {FOLDER} has no sentence encoder; ./build.sh models fetches it (LOOKUPC_MODELS names its folder)")
    sys.exit(77)
DATA = whole.data_file("stsb/dev.csv")
MODEL, WEIGHTS, PACKAGE = (FOLDER + "/sentence_encoder" + end for end in (".lua", ".safetensors", "/dist"))


def sentencepiece_ids(folder, tokenizer, sentences):
    """Ids by SentencePiece's library, from a model file made of the pieces; None where the library is missing."""
    try:
        import sentencepiece
    except ImportError:
        return None

    def field(number, value):
        data = value.encode() if isinstance(value, str) else value
        return bytes([number << 3 | 2]) + varint(len(data)) + data

    def varint(value):
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)

    model = b""
    for number, (piece, score) in enumerate(tokenizer.pieces):
        kind = 2 if number == 0 else 3 if number < 6 else 1  # unknown, control, normal
        if kind == 1 and tokenizer.known[piece] != number:  # stands twice: the last one counts
            piece = f"\ue000{number}"
        model += field(1, field(1, piece) + b"\x15" + np.float32(score).tobytes() + b"\x18" + bytes([kind]))
    model += field(2, b"\x18\x01" + b"\xc0\x02\x00")  # unigram; number 0 is the unknown piece
    model += field(3, field(1, "identity") + b"\x18\x01\x20\x00\x28\x01")
    with open(folder + "/made.model", "wb") as file:
        file.write(model)
    processor = sentencepiece.SentencePieceProcessor(model_file=folder + "/made.model")
    return [processor.encode(sentence) for sentence in sentences]


with open(DATA, encoding="utf-8", newline="") as file:
    rows = list(csv.reader(file))[::STRIDE]
sentences, judged = [row[0] for row in rows] + [row[1] for row in rows], np.array([float(row[2]) for row in rows])
tokenizer = sentence_encoder.Tokenizer(PACKAGE)
ids = [tokenizer.encode(sentence) for sentence in sentences]
tokenizers.compare("ids", sentences, tokenizers.tokenize(MODEL, sentences), ids)
with tempfile.TemporaryDirectory() as folder:
    theirs = sentencepiece_ids(folder, tokenizer, sentences)
    if theirs is None:
        print("skipped: python3-sentencepiece is missing")
    else:
        tokenizers.compare("ids of SentencePiece", sentences, ids, theirs)
    expected = sentence_encoder.encode(sentence_encoder.read_tensors(PACKAGE), ids)
    count = len(rows)
    wanted = sentence_encoder.pearson(sentence_encoder.similarity(expected[:count], expected[count:]), judged)
    check(STRIDE > 1 or abs(wanted - KNOWN) < 5e-5, f"float64 gives a Pearson correlation of {wanted}, not {KNOWN}")
    for name, most in PEARSON.items():
        kind, model = name.removesuffix(" projected"), sentence_encoder.projected(MODEL, folder) if name.endswith("projected") else MODEL
        encoder = whole.Encoder(model, WEIGHTS, f"{folder}/{name.replace(' ', '_')}", instruction_sets()[-1], *OPTIONS.get(kind, ("--type", kind)))
        got = np.concatenate([encoder.encode_batch(ids[at : at + 32]) for at in range(0, len(ids), 32)]).astype(np.float64)
        off = np.abs(got - expected).max()
        found = sentence_encoder.pearson(sentence_encoder.similarity(got[:count], got[count:]), judged)
        check(kind != "f32" or off < TOLERANCE, f"a value is off by {off}")
        check(kind != "f32" or np.abs(encoder.encode(ids[0]) - expected[0]).max() < TOLERANCE, "a sentence alone has another vector")
        check(abs(found - wanted) < most, f"{name}: the Pearson correlation is {found}, not {wanted}")
        print(f"ok     {name}: {len(ids)} sentences, off by {off:.1e}, Pearson {found:.4f} (float64 {wanted:.4f})")
    with open(folder + "/pairs.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    found = json.loads(works("similar", MODEL, "--weights", WEIGHTS, "--score", folder + "/pairs.csv", "--json"))
    check(found["pairs"] == len(rows) and abs(found["pearson"] - wanted) < 5e-5, f"similar --score says {found}, not {wanted}")
