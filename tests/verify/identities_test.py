#!/usr/bin/python3
"""Emitted kernels are what LookupFFN's identities say: one bit and both rows a table are an FFN, all rows a softmax, m rows its m largest terms."""
import os
import tempfile

import numpy as np

from lookupc import check, in_turn, instruction_sets, run, some, write_safetensors

SETS = instruction_sets()
D = 24
TOKENS = (3, 40)  # few, many


def layer(work, keys, tensors, x, isa):
    """What the emitted layer makes of x."""
    model, weights, before, after = (os.path.join(work, name) for name in ("m.lua", "w.safetensors", "x.npy", "y.npy"))
    with open(model, "w") as file:
        file.write(f'return {{ name = "identity", d = {D}, projection = {{ kind = "dense" }}, {keys} }}\n')
    write_safetensors(weights, tensors)
    np.save(before, x.astype("<f4"))
    done = run("run", model, "--weights", weights, "--input", before, "--output", after, "--isa", isa, "--cflags", "-O0")
    check(done.returncode == 0, done.stderr)
    return np.load(after).astype(np.float64)


def near(y, expected, text):
    error = np.linalg.norm(y - expected, axis=1) / np.linalg.norm(expected, axis=1)
    check(error.max() <= 1e-5, f"{text}: relative error {error.max():.2g}")


def ffns(work):
    """tau = 1, T = {0, V}, both rows: z = 0.5 x w and the softmax's weights are a sigmoid FFN. With the score gelu, only the row V counts:
    its weight sigmoid(2 z) times z. z = 0.851 x w, undone in the tables (1.175), is the fast GELU."""
    random = np.random.default_rng(3)
    hidden, d_out = 37, 21
    w, v, bias = random.standard_normal((hidden, D)) / D**0.5, random.standard_normal((hidden, d_out)), random.standard_normal(d_out)
    tables = np.stack((np.zeros_like(v), v), axis=1)
    for tokens in TOKENS:
        x = (random.standard_normal((tokens, D)) * 10.0 ** random.uniform(-1, 1, (tokens, 1))).astype(np.float32).astype(np.float64)
        u = x @ w.T
        for isa in in_turn(SETS, tokens):
            for score, gain, act in (("softmax", 0.5, 1 / (1 + np.exp(-u))), ("gelu", 0.851, u / (1 + np.exp(-1.702 * u)))):
                factor = 1.0 if score == "softmax" else 1 / 0.851
                tensors = {"hash.projection.weight": gain * w, "hash.projection.bias": np.zeros(hidden), "tables": factor * tables, "bias": bias}
                y = layer(work, f'd_out = {d_out}, h = {hidden}, tau = 1, neighbours = 2, score = "{score}"', tensors, x, isa)
                near(y, act @ v + bias, f"{score} FFN, {tokens} tokens, {isa}")


def softmax(work):
    """Rows of the identity show every weight: m rows of a table are the m largest terms of the softmax over all vertices. One row is the
    argmax and p its term. With the score one every row that is taken counts once."""
    random = np.random.default_rng(5)
    h, tau = 19, 4
    rows = 1 << tau
    w = random.standard_normal((h * tau, D)) / D**0.5
    vertices = np.array([[1 if code >> (tau - 1 - j) & 1 else -1 for j in range(tau)] for code in range(rows)])
    tensors = {"hash.projection.weight": w, "hash.projection.bias": np.zeros(h * tau), "tables": np.eye(h * rows).reshape(h, rows, h * rows),
               "bias": np.zeros(h * rows)}
    for tokens in TOKENS:
        x = random.standard_normal((tokens, D)).astype(np.float32).astype(np.float64)
        along = (x @ w.T).reshape(tokens, h, tau) @ vertices.T
        share = np.exp(along) / np.exp(along).sum(axis=2, keepdims=True)
        order = np.argsort(-along, axis=2)
        for neighbours in some("lookups", (2, 1, 3, 15, 5, 8, 16), 2):
            taken = np.zeros(share.shape, dtype=bool)
            np.put_along_axis(taken, order[:, :, :neighbours], True, axis=2)
            for number, (score, weight) in enumerate((("softmax", share), ("gelu", share * along), ("one", np.ones_like(share)))):
                if score == "one" and neighbours == rows:
                    continue  # refused: the same sum for every token
                expected = np.where(taken, weight, 0.0)
                for isa in in_turn(SETS, number + neighbours):
                    text = f"{neighbours} of {rows} rows, {score}, {tokens} tokens, {isa}"
                    y = layer(work, f'd_out = {h * rows}, h = {h}, tau = {tau}, neighbours = {neighbours}, score = "{score}"', tensors, x, isa)
                    y = y.reshape(tokens, h, rows)
                    check(((y != 0) == taken).all(), f"{text}: other rows are taken")
                    check((np.abs(y - expected) <= 1e-5 * share + 1e-6 * np.abs(expected)).all(), f"{text}: another weight")
                    if score == "softmax" and neighbours == rows:
                        check(np.abs(y.sum(axis=2) - 1.0).max() <= 1e-6, f"{text}: the weights do not sum to 1")


with tempfile.TemporaryDirectory() as directory:
    ffns(directory)
    softmax(directory)
print("ok     identities: sigmoid and fast GELU FFN, and the largest terms of the softmax")
