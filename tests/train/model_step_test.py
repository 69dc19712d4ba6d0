"""A step of training whole models: in threads, with dropout, with padding, without denormals."""
import ctypes
import platform
import subprocess
import sys
import tempfile

import numpy as np

import any_model
from lookupc import aligned, effort, instruction_sets, some
from model_shapes import SHAPES, changed
from model_training import Trainer

SET = instruction_sets()[-1] if effort("training") else "scalar"


def trainer(folder, name, m, isa=SET, **more):
    """With random tensors, loaded."""
    t = Trainer(any_model.write(folder, name, m), f"{folder}/{name}.d", isa, **more)
    t.load(any_model.tensors(m, 1))
    return t


def state_of(t):
    return b"".join(array.tobytes() for array in (t.parameters, t.gradients, t.table_state, t.row_uses))


def parts_agree(folder):
    """Bytes of a step in threads, with dropout; gradients of projections are sums of a buffer for each part."""
    good = True
    for name in some("training", ("lookup", "gpt"), 1):
        t = trainer(folder, name, SHAPES[name])
        kept, random = t.parameters.copy(), np.random.default_rng(3)
        ids, targets = random.integers(0, 29, (5, 20)), random.integers(-1, 29, (5, 20))
        results = []
        for parts in (1, 2, 3, 2):
            t.parameters[:] = kept
            t.table_state[:], t.row_uses[:] = 0, 0
            loss = t.run(ids, targets, parts=parts, dropout=0.1, seed=7, table_rate=0.02)
            results.append((loss, state_of(t), t.gradients.copy()))
        repeats = results[1][:2] == results[3][:2]
        same = all(r[0] == results[0][0] for r in results) and (name == "lookup" or results[0][1] == results[1][1] == results[2][1])
        off = max(np.abs(r[2] - results[0][2]).max() for r in results) / np.abs(results[0][2]).max()
        print(f"{name:8} parts: repeatable {repeats}, the same {same}, gradients differ by {off:.1e}")
        good = good and repeats and same and off < 1e-6
    return good


def dropout_is_a_mask(folder):
    """It changes with seed, step and the number of a sequence, and nothing else; its gradient is that of the loss with the same mask."""
    t = trainer(folder, "dropped", SHAPES["gpt"])
    random = np.random.default_rng(4)
    ids, targets = random.integers(0, 29, (4, 20)), random.integers(0, 29, (4, 20))
    loss = {}
    for key, more in {"": {}, "seed": {"seed": 2}, "step": {"step": 3}, "number": {"first_sequence": 4}, "none": {"dropout": 0.0}}.items():
        loss[key] = t.run(ids, targets, **{"dropout": 0.2, "seed": 1, "step": 1, **more})
    halves = sum(t.run(ids[at : at + 2], targets[at : at + 2], dropout=0.2, seed=1, step=1, first_sequence=at) for at in (0, 2))
    good = len(set(loss.values())) == len(loss) and abs(halves - loss[""]) < 1e-6 * loss[""]
    more = {"dropout": 0.2, "seed": 1, "step": 1}
    t.run(ids, targets, **more)
    gradients, kept = t.gradients.copy(), t.parameters.copy()
    direction = random.standard_normal(gradients.size) * (gradients != 0)
    step, ends = 1e-3 / np.linalg.norm(direction) * np.linalg.norm(kept), []
    for sign in (1, -1):
        t.parameters[:] = (kept + sign * step * direction).astype(np.float32)
        ends.append(t.run(ids, targets, **more))
    wanted, found = (ends[0] - ends[1]) / (2 * step), float(gradients.astype(np.float64) @ direction)
    print(f"dropout: {good}, along a direction {found:.4f}, by differences {wanted:.4f}")
    return good and abs(found - wanted) < 0.01 * np.linalg.norm(gradients)


def padding_does_not_count(folder):
    """Sequences of several lengths beside each alone."""
    good = True
    models = {"causal": SHAPES["gpt"], "encoder": changed(SHAPES["gpt"], attention={"causal": False}), "shaped": SHAPES["shaped encoder"]}
    for name, m in some("training", list(models.items()), 1):
        t = trainer(folder, "padded_" + name, m)
        random = np.random.default_rng(6)
        ids, targets, lengths = random.integers(0, 29, (3, 20)), random.integers(0, 29, (3, 20)), (7, 20, 1)
        for row, length in enumerate(lengths):
            targets[row, length:] = -1
        loss, sums = 0.0, 0.0
        for row, length in enumerate(lengths):
            loss += t.run(ids[row : row + 1, :length], targets[row : row + 1, :length])
            sums = sums + t.gradients.astype(np.float64)
        together = t.run(ids, targets, lengths=lengths)
        off = np.linalg.norm(t.gradients - sums) / np.linalg.norm(sums)
        print(f"{name:8} padding: losses {abs(loss - together) / loss:.1e}, gradients {off:.1e}")
        good = good and abs(loss - together) < 1e-6 * loss and off < 1e-6
    return good


# x86 notes in a register whether an operand was a denormal. leave_some() fills the free stack with them: nothing may compute with what
# it never wrote.
NOTED = """#include <xmmintrin.h>
unsigned noted(void) { const unsigned word = _mm_getcsr(); _mm_setcsr(word & ~2u); return word & 2u; }
void leave_some(void) { volatile unsigned left[1 << 16]; for (int i = 0; i < 1 << 16; ++i) left[i] = 1; }
"""


def no_denormals_are_met(folder):
    """CPUs take a hundred times longer for them. Those of positions that a token does not see are noticed."""
    if platform.machine() != "x86_64":
        print("skipped: no_denormals_are_met: this CPU does not note them as x86 does")
        return True
    with open(folder + "/noted.c", "w", encoding="ascii") as file:
        file.write(NOTED)
    subprocess.run(["gcc", "-shared", "-fPIC", folder + "/noted.c", "-o", folder + "/noted.so"], check=True)
    library, good = ctypes.CDLL(folder + "/noted.so"), True
    ids = np.random.default_rng(5).integers(0, 29, (2, 20)).astype(np.int32)
    for number, change in enumerate([None, ("score[k] = none", "score[k] += none")]):
        t = trainer(folder, f"denormals_{number}", SHAPES["lookup"], instruction_sets()[-1], changed=change)
        workspace, settings = aligned(t.workspace_bytes(*ids.shape)), t.settings(table_rate=0.01, gradient_scale=1 / ids.size)
        library.leave_some()
        library.noted()
        t.step_once(settings, ids, ids, workspace)
        found = library.noted() != 0
        print(f"{'weights that are not 0 outside a mask' if change else 'as emitted':60} {'denormals' if found else 'none'}")
        good = good and found == (change is not None)
    return good


def main():
    good = True
    for test in (parts_agree, dropout_is_a_mask, padding_does_not_count, no_denormals_are_met):
        with tempfile.TemporaryDirectory() as folder:
            good = test(folder) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
