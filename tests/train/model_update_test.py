"""Updates of whole models in training: tables with Adagrad and lazy Adam, at once and from lists; a criterion of the caller; from C++."""
import json
import re
import subprocess
import sys
import tempfile

import numpy as np

import any_model
from lookupc import effort, works
from model_shapes import SHAPES
from model_training import CRITERION, Trainer

MODEL = SHAPES["unequal"]
OPTIMISERS = {
    "Adagrad": {"table_rate": 0.04, "table_epsilon": 1e-16},
    "lazy Adam": {"table_rate": 0.01, "table_epsilon": 1e-16, "adam": 1, "beta1": 0.9, "beta2": 0.98},
}


def corrections(more, step):
    return {f"correction{i}": 1 / (1 - more[f"beta{i}"] ** step) for i in (1, 2)} if "adam" in more else {}


class Run:
    """Steps of a trainer with one optimiser; what its tables and states shall be, from gradients in lists."""

    def __init__(self, trainer, tensors, more):
        self.t, self.more, self.step = trainer, more, 0
        trainer.load(tensors)
        trainer.table_state = np.zeros(2 * (trainer.plan["parameters"] - trainer.plan["gradients"]), np.float32)
        self.wanted = {name: value.astype(np.float64) for name, value in trainer.tensors(trainer.parameters).items()}
        self.moments = {}

    def settings(self):
        self.step += 1
        return {**self.more, **corrections(self.more, self.step)}

    def expect(self, gradients, rows):
        """Moves the wanted tables by the definitions; only `rows`, which tokens took."""
        for name, gradient in gradients.items():
            g, met = gradient.astype(np.float64), rows[name][:, :, None]
            first, second = self.moments.setdefault(name, (np.zeros_like(g), np.zeros_like(g)))
            if "adam" in self.more:
                first += met * (1 - self.more["beta1"]) * (g - first)
                second += met * (1 - self.more["beta2"]) * (g * g - second)
                mean, square = (m / (1 - self.more[b] ** self.step) for m, b in ((first, "beta1"), (second, "beta2")))
            else:
                second += (g * g).mean(axis=2, keepdims=True)
                mean, square = g, second
            self.wanted[name] -= met * self.more["table_rate"] * mean / np.sqrt(square + self.more["table_epsilon"])

    def error(self):
        found = self.t.tensors(self.t.parameters)
        return max(np.abs(found[name] - self.wanted[name]).max() for name in self.moments)


def tables_move(t, tensors, batches, more):
    """Errors beside the definition of steps at once, and whether steps from lists give the same bytes."""
    run, states = Run(t, tensors, more), []
    for ids, targets in batches:
        t.run(ids, targets, **t.lists())
        listed, met, settings = t.listed(), t.met(), run.settings()
        t.run(ids, targets, **settings)
        run.expect(listed, met)
        states.append((t.parameters.tobytes(), t.table_state.tobytes()))
    error = run.error()
    again, same = Run(t, tensors, more), True
    for (ids, targets), state in zip(batches, states):
        settings = again.settings()
        t.run(ids, targets, **t.lists())
        t.apply(**settings)
        same = same and (t.parameters.tobytes(), t.table_state.tobytes()) == state
    return error, same


def criterion_of(targets, factor=1.0):
    """The cross-entropy by hand, times a factor."""

    def cost(_, token, row, scale, back):
        logits = np.ctypeslib.as_array(row, (29,))
        share = np.exp(logits.astype(np.float64) - logits.max())
        share /= share.sum()
        loss = -np.log(share[targets.flat[token]])
        if back:
            share[targets.flat[token]] -= 1
            logits[:] = scale * factor * share
        return factor * loss

    return CRITERION(cost)


def criterion_counts(t, tensors, ids, targets):
    """Loss and gradients of a criterion beside those of the cross-entropy, and of twice it: the largest error."""
    t.load(tensors)
    counted = np.where(targets < 0, 0, targets)
    wanted_loss = t.run(ids, targets, gradient_scale=0.5, **t.lists())
    wanted, length, worst = t.gradients.copy(), np.linalg.norm(t.gradients), 0.0
    rows = t.listed()
    for factor in (1.0, 2.0):
        loss = t.run(ids, targets, gradient_scale=0.5, criterion=criterion_of(counted, factor), **t.lists())
        worst = max(worst, abs(loss / factor - wanted_loss) / wanted_loss, np.linalg.norm(t.gradients / factor - wanted) / length)
        for name, gradient in t.listed().items():
            worst = max(worst, np.linalg.norm(gradient / factor - rows[name]) / np.linalg.norm(rows[name]))
    return worst


# A piece of the emitted C, and the same with an error; what notices it.
PLANTED = [
    ("rates->correction1 = t->correction1;", "rates->correction1 = -t->correction1;"),
    ("= t->criterion(", "= -t->criterion("),
    ("t->row_counts[", "t->row_counts[0 * "),
    ("rates->adam = t->adam;", "rates->adam = 0;"),
    ("table_state + (", "table_state + 0 * ("),
    ("t->row_gradients + ", "t->row_gradients + 0 * "),
]


def worst_of(t, tensors, batches):
    """The largest error of all checks; infinite where bytes differ."""
    worst = criterion_counts(t, tensors, *batches[0])
    print(f"    criterion: {worst:.1e}")
    for name, more in OPTIMISERS.items():
        error, same = tables_move(t, tensors, batches, more)
        print(f"    {name}: {error:.1e}, from lists {'the same' if same else 'other'} bytes")
        worst = max(worst, error) if same else float("inf")
    return worst


FFN = 'return { name = "m", d = 16, h = 4, tau = 4, projection = { kind = "bh4", block = 8 }, score = "gelu" }'
# The address of every function of the header, and a member of each struct.
CONSUMER = """#include "m_train.h"
int main() {
    %s;
    const void *all[] = { %s };
    return all[0] != nullptr && sizeof call > 8 ? 0 : 1;
}
"""


def compiles_as_cpp(folder, struct):
    """A C++ program links what `emit --training` wrote into the folder, without warnings."""
    with open(folder + "/m_train.h", encoding="utf-8") as file:
        functions = sorted(set(re.findall(r"\b(m_\w*train_\w+__scalar)\(", file.read())))
    with open(folder + "/MANIFEST.json", encoding="utf-8") as file:
        sources = [entry["name"] for entry in json.load(file)["files"] if entry["name"].endswith(".c")]
    with open(folder + "/main.cc", "w", encoding="utf-8") as file:
        addresses = ", ".join(f"reinterpret_cast<const void *>(&{name})" for name in functions)
        file.write(CONSUMER % (f"{struct} call = {struct}()", addresses))
    for words in (["gcc", "-std=c99", "-O0", "-c", *sources], ["g++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Wold-style-cast", "-Werror", "-c", "main.cc"]):
        subprocess.run(words, check=True, cwd=folder)
    subprocess.run(["g++", "main.o", *[source[:-2] + ".o" for source in sources], "-o", "main"], check=True, cwd=folder)
    print(f"    C++: {len(functions)} functions of {struct}")
    return len(functions) > 2 and subprocess.run([folder + "/main"]).returncode == 0


def main():
    good = True
    random = np.random.default_rng(8)
    with tempfile.TemporaryDirectory() as folder:
        path = any_model.write(folder, "m", MODEL)
        tensors = any_model.tensors(MODEL, 1)
        batches = [(random.integers(0, 29, (2, 20)), random.integers(-1, 29, (2, 20))) for _ in range(4)]
        for number, change in enumerate([None, *PLANTED][: None if effort("planted") else 3]):
            t = Trainer(path, f"{folder}/{number}", "scalar", changed=change)
            print(change[1] if change else "as emitted")
            worst = worst_of(t, tensors, batches)
            good = good and (worst < 1e-5 if change is None else worst > 1e-3)
        good = compiles_as_cpp(folder + "/0", "m_train") and good
        with open(folder + "/ffn.lua", "w", encoding="utf-8") as file:
            file.write(FFN)
        works("emit", folder + "/ffn.lua", "-o", folder + "/ffn", "--isa", "scalar", "--training")
        good = compiles_as_cpp(folder + "/ffn", "m_train_parameters") and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
