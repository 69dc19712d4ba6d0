"""Training of whole models: loss and every gradient beside float64 differences of the models' definitions in NumPy."""
import os
import sys
import tempfile

import numpy as np

from definitions import (
    GPT, LLAMA, LOOKUP, LOOKUP_DENSE, SHAPED, SHAPED_ENCODER, Checkpoint, bert_model, gpt, gpt2, llama, lookup_gpt_bh4, lookup_gpt_dense, masked, shaped, shaped_encoder, with_lookup,
)
from lookupc import effort, in_turn, instruction_sets
from model_training import Trainer

LM = "dense = { width = 32, activation = 'gelu', norm = { kind = 'layernorm' } }, head = { bias = true }"
CASES = [
    (lookup_gpt_bh4, with_lookup(GPT, LOOKUP), 20),
    (gpt, GPT, 20),
    (gpt2, GPT.replace('"mingpt"', '"gpt2", tied = true'), 20),
    (llama, LLAMA, 37),
    (lookup_gpt_dense, with_lookup(GPT, LOOKUP_DENSE), 20),
    (shaped_encoder, SHAPED_ENCODER, 37),
    (shaped, SHAPED, 50),
    (masked, bert_model("roberta", 2, LM, "tied = true,", "first_position = 2,"), 32),
]
DIRECTIONS = 1 if effort("train_stride") > 1 else 2  # of each tensor


def loss_of(definition, c, ids, targets):
    """The sum of cross-entropies of targets that are not negative."""
    total = 0.0
    for sequence, wanted in zip(ids, targets):
        logits = definition(c, sequence)
        logits = logits - logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        total -= sum(logits[i, target] for i, target in enumerate(wanted) if target >= 0)
    return total


def check_loss(t, definition, c, ids, targets):
    wanted, found = loss_of(definition, c, ids, targets), t.run(ids, targets, back=False)
    return abs(found - wanted) / abs(wanted)


def worst_gradient(t, definition, c, ids, targets, seed, scale=1.0):
    """Derivatives along random directions, of a tensor each: the largest error, relative to what a gradient of that length has along one."""
    t.run(ids, targets, gradient_scale=scale, **t.lists())
    gradients, random, worst = {**t.tensors(t.gradients), **t.listed()}, np.random.default_rng(seed), (0.0, "")
    # Some gradients are zeros, such as those of biases of keys.
    least = 0.1 * np.linalg.norm(t.gradients.astype(np.float64)) / len(t.gradients) ** 0.5
    for name, gradient in gradients.items():
        kept = c.tensors[name]
        usual = np.linalg.norm(gradient.astype(np.float64)) / gradient.size**0.5
        for _ in range(DIRECTIONS):
            direction = random.standard_normal(gradient.shape)
            direction /= np.linalg.norm(direction)
            step, ends = 1e-6 * max(1.0, np.linalg.norm(kept)), []
            for sign in (1, -1):
                c.tensors[name] = kept.astype(np.float64) + sign * step * direction
                ends.append(loss_of(definition, c, ids, targets))
            c.tensors[name] = kept
            wanted = scale * (ends[0] - ends[1]) / (2 * step)
            found = (gradient.astype(np.float64) * direction).sum()
            error = abs(found - wanted) / max(usual, abs(wanted), least)
            worst = max(worst, (error, name))
    return worst


def made(definition, longest, number):
    """Random tensors, and sequences with some targets that do not count."""
    random, c = np.random.default_rng(number), Checkpoint(number)
    ids = random.integers(0, 29, (DIRECTIONS + 1, longest))
    definition(c, ids[0])
    targets = np.where(random.random(ids.shape) < 0.2, -1, random.integers(0, 29, ids.shape))
    return c, ids, targets


def write_model(folder, number, source):
    path = os.path.join(folder, f"{number}.lua")
    with open(path, "w", encoding="utf-8") as file:
        file.write("return " + source + "\n")
    return path


def main():
    sets, good = instruction_sets(), True
    with tempfile.TemporaryDirectory() as folder:
        for number, (definition, source, longest) in list(enumerate(CASES))[:: effort("train_stride")]:
            path = write_model(folder, number, source)
            c, ids, targets = made(definition, longest, number)
            for isa in in_turn([s for s in sets if s != "sse4"], number):
                t = Trainer(path, os.path.join(folder, f"{number}.{isa}"), isa)
                t.load(c.tensors)
                loss = check_loss(t, definition, c, ids, targets)
                error, name = worst_gradient(t, definition, c, ids, targets, number, scale=0.25)
                print(f"{definition.__name__:16} {isa:8} loss {loss:.1e}, gradients {error:.1e} ({name})")
                good = good and loss <= 1e-6 and error <= 1e-5
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
