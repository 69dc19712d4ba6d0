"""Training of whole models: the forward pass beside that of inference, parts, dropout, padding, denormals; planted errors are noticed."""
import ctypes
import os
import platform
import subprocess
import sys
import tempfile

import numpy as np

from definitions import GPT, LLAMA, LOOKUP, SHAPED, lookup_gpt_bh4, with_lookup
from lookupc import effort, instruction_sets, read_safetensors, write_safetensors
from model_gradients_test import made, worst_gradient, write_model
from model_training import Trainer
from whole import Decoder, Encoder, aligned, works

STRIDE = effort("train_stride")
SET = "scalar" if STRIDE > 1 else instruction_sets()[-1]

# Powers of two: norms of inference multiply by 1 / d. A tile of 32 keys holds a sequence.
BITWISE = {
    "gpt": GPT.replace("d = 24", "d = 32"),
    "llama": LLAMA.replace("d = 40", "d = 64").replace(", head = { soft_cap = 5 }", ", head = {}"),
    "lookup": with_lookup(GPT, LOOKUP).replace("d = 24", "d = 32"),
}


def sampled(folder, name, source):
    path, weights = write_model(folder, name, source), os.path.join(folder, name + ".safetensors")
    works("sample", path, "-o", weights)
    return path, weights, read_safetensors(weights)[0]


def forward_is_inference(folder):
    """Bit by bit in scalar, and nearly so in vectors, whose sums have another order."""
    good = True
    for name, source in reversed(list(BITWISE.items())[:: -STRIDE]):
        path, weights, tensors = sampled(folder, name, source)
        ids = np.random.default_rng(5).integers(0, 29, (2, 20)).astype(np.int32)
        for isa in ["scalar"] if STRIDE > 1 else [s for s in instruction_sets() if s in ("scalar", "avx512")]:
            t = Trainer(path, f"{folder}/{name}.train.{isa}", isa)
            t.load(tensors)
            write_safetensors(weights, {tensor["name"]: tensors[tensor["name"]] for tensor in t.plan["tensors"]}, "F32")
            decoder = Decoder(path, weights, f"{folder}/{name}.{isa}", isa)
            wanted = np.array([decoder.prefill_all(decoder.start(), row) for row in ids])
            found = t.logits(ids)
            off = np.abs(found - wanted).max() / np.abs(wanted).max()
            head = tensors.get("lm_head.weight", tensors.get("model.embed_tokens.weight"))  # tied
            seen = t.features(ids).astype(np.float64) @ head.astype(np.float64).T
            unlike = np.abs(seen - found).max() / np.abs(found).max()
            print(f"{name:8} {isa:8} logits of training and inference differ by {off:.1e}, from observed features by {unlike:.1e}")
            good = good and (off == 0 if isa == "scalar" else off < 1e-5) and unlike < 1e-5
    return good


def state_of(t):
    return b"".join(array.tobytes() for array in (t.parameters, t.gradients, t.table_state, t.row_uses))


def parts_agree(folder):
    """Bytes of a step in threads, with dropout; gradients of projections are sums of a buffer for each part."""
    good = True
    for name, source in (("lookup", with_lookup(GPT, LOOKUP)), ("dense", GPT))[::STRIDE]:
        path, _, tensors = sampled(folder, name, source)
        t = Trainer(path, f"{folder}/{name}.parts", SET)
        random = np.random.default_rng(3)
        ids, targets = random.integers(0, 29, (5, 20)), random.integers(-1, 29, (5, 20))
        results = []
        for parts in (1, 2, 3, 2):
            t.load(tensors)
            t.table_state[:], t.row_uses[:] = 0, 0
            loss = t.run(ids, targets, parts=parts, dropout=0.1, seed=7, table_rate=0.02)
            results.append((loss, state_of(t), t.gradients.copy()))
        repeats = results[1][:2] == results[3][:2]
        same = all(r[0] == results[0][0] for r in results) and (name == "lookup" or results[0][1] == results[1][1] == results[2][1])
        off = max(np.abs(r[2] - results[0][2]).max() for r in results) / np.abs(results[0][2]).max()
        print(f"{name:8} parts: repeatable {repeats}, the same {same}, gradients differ by {off:.1e}")
        good = good and repeats and same and off < 1e-6
    return good


NEOX = """{ name = "m", d = 40, heads = 5, layers = 3, vocab = 33, parallel = true, skip = true, norm = { kind = "layernorm" },
    attention = { context = 70, rope = { share = 0.5 } }, ffn = { kind = "mlp", f = 50, activation = "gelu" }, embedding = {},
    output = { norm = { kind = "layernorm" }, head = {} }, checkpoint = "gpt_neox" }"""
MAPPED = """{ name = "m", d = 32, heads = 4, layers = { { d_in = 24, head_dim = 8, heads = 3 }, { count = 2 }, { ffn = { kind = "lookup", h = 5,
    tau = 4, projection = { kind = "dense" }, score = "gelu", scale = "1/h" } } }, vocab = 29, skip = true, norm = { kind = "layernorm" },
    attention = { causal = false, context = 50 }, ffn = { kind = "mlp", f = 36, activation = "relu" },
    embedding = { d = 18, scale = 2, sinusoidal = { order = "halves", steps = "n-1" }, norm = { kind = "layernorm" } },
    output = { head = { bias = true } }, checkpoint = "roberta" }"""
# Shapes that the definitions in NumPy do not have.
OTHERS = {
    "neox": NEOX,
    "windowed": NEOX.replace("context = 70", "context = 70, window = 9"),
    "near": NEOX.replace("context = 70", "context = 70, causal = false, window = 9"),
    "eliminated": LLAMA.replace("rope = {}", "rope = {}, eliminate = 'QP'"),
    "post": LLAMA.replace("eps = 1e-6 },\n", "eps = 1e-6, place = 'post' },\n"),
    "mapped": MAPPED,
    "interleaved": LLAMA.replace("rope = {}", "rope = { pairs = 'interleaved' }").replace("40", "256").replace("heads = 4, kv_heads = 2", "heads = 2, kv_heads = 1"),
    "plain": SHAPED.replace("shaped = true, ", ""),
}


def other_shapes(folder):
    """Logits of training and inference; gradients beside differences of losses, which float32 makes coarse."""
    good = True
    for number, (name, source) in list(enumerate(OTHERS.items()))[:: len(OTHERS) if STRIDE > 1 else 1]:
        path, weights, tensors = sampled(folder, name, source)
        sets = [s for s in instruction_sets() if s != "sse4"]
        isa, step = sets[number % len(sets)], 2e-3
        t = Trainer(path, f"{folder}/{name}.train", isa)
        own = {tensor["name"]: tensors[tensor["name"]] for tensor in t.plan["tensors"]}
        t.load(own)
        write_safetensors(weights, own, "F32")
        random, causal = np.random.default_rng(number), "causal = false" not in source
        ids, targets = (random.integers(0, 29, (2, 50)).astype(np.int32) for _ in range(2))
        if causal:
            model = Decoder(path, weights, f"{folder}/{name}.d", isa)
            wanted = np.array([model.prefill_all(model.start(), row) for row in ids])
        else:
            model = Encoder(path, weights, f"{folder}/{name}.d", isa)
            wanted = np.array([model.encode(row, rows=50) for row in ids])
        capped = 5 * np.tanh(t.logits(ids) / 5) if "soft_cap" in source else t.logits(ids)
        off = np.abs(capped - wanted).max() / np.abs(wanted).max()
        t.run(ids, targets, **t.lists())
        gradient, kept, worst = t.gradients.astype(np.float64), t.parameters.copy(), 0.0
        for _ in range(3):
            direction = np.where(gradient != 0, random.standard_normal(gradient.size), 0.0) * np.linalg.norm(gradient) / gradient.size**0.5 + gradient
            direction /= np.linalg.norm(direction)
            ends = []
            for sign in (1, -1):
                t.parameters[: gradient.size] = kept[: gradient.size] + sign * step * direction
                ends.append(t.run(ids, targets, back=False))
            t.parameters[:] = kept
            wanted, found = (ends[0] - ends[1]) / (2 * step), gradient @ direction
            worst = max(worst, abs(wanted - found) / np.linalg.norm(gradient))
        print(f"{name:12} {isa:8} logits {off:.1e}, gradients {worst:.1e}")
        good = good and off < 1e-5 and (worst < 2e-3 or "lookup" in source)
    return good


def dropout_is_a_mask(folder):
    """It changes with seed, step and the number of a sequence, and nothing else; its gradient is that of the loss with the same mask."""
    path, _, tensors = sampled(folder, "dropped", GPT)
    t = Trainer(path, f"{folder}/dropped.d", SET)
    t.load(tensors)
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
    encoder = GPT.replace("context = 20", "context = 20, causal = false")
    for name, source in (("causal", GPT), ("encoder", encoder))[::STRIDE]:
        path, _, tensors = sampled(folder, "padded_" + name, source)
        t = Trainer(path, f"{folder}/padded_{name}.d", SET)
        t.load(tensors)
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


# A piece of the emitted C, and the same with an error.
PLANTED = [
    ("level = sum * ", "level = 0.5f * sum * "),
    ("statistics, d_stream, own_d_in", "statistics, NULL, own_d_in"),
    ("rest = d[k] - level", "rest = d[k] + level"),
    ("logits[target] -= scale;", "logits[target] += scale;"),
    ("norm_sums(d_second_normed", "norm_sums(r ? d_first_normed : d_second_normed"),
    ("ffn.bias = parameters + ", "ffn.bias = parameters + 1 + "),
]


# x86 notes in a register whether an operand was a denormal.
NOTED = """#include <xmmintrin.h>
unsigned noted(void) { const unsigned word = _mm_getcsr(); _mm_setcsr(word & ~2u); return word & 2u; }
"""


def no_denormals_are_met(folder):
    """CPUs take a hundred times longer for them. Those of positions that a token does not see are noticed."""
    if platform.machine() != "x86_64":
        print("skipped: no_denormals_are_met: this CPU does not note them as x86 does")
        return True
    with open(folder + "/noted.c", "w", encoding="ascii") as file:
        file.write(NOTED)
    subprocess.run(["gcc", "-shared", "-fPIC", folder + "/noted.c", "-o", folder + "/noted.so"], check=True)
    noted, good = ctypes.CDLL(folder + "/noted.so").noted, True
    path, _, tensors = sampled(folder, "gpt", with_lookup(GPT, LOOKUP))
    ids = np.random.default_rng(5).integers(0, 29, (2, 20)).astype(np.int32)
    for number, change in enumerate([None, ("score[k] = none", "score[k] += none")]):
        t = Trainer(path, f"{folder}/denormals.{number}", SET, changed=change)
        t.load(tensors)
        workspace, settings = aligned(t.workspace_bytes(*ids.shape)), t.settings(table_rate=0.01, gradient_scale=1 / ids.size)
        noted()
        t.step_once(settings, ids, ids, workspace)
        found = noted() != 0
        print(f"{'weights that are not 0 outside a mask' if change else 'as emitted':60} {'denormals' if found else 'none'}")
        good = good and found == (change is not None)
    return good


def errors_are_noticed(folder):
    source, good = with_lookup(GPT, LOOKUP), True
    path = write_model(folder, "planted", source)
    c, ids, targets = made(lookup_gpt_bh4, 20, 1)
    for number, change in enumerate([*PLANTED, None][::STRIDE]):
        t = Trainer(path, f"{folder}/planted.{number}", "scalar", changed=change)
        t.load(c.tensors)
        error, name = worst_gradient(t, lookup_gpt_bh4, c, ids, targets, number)
        print(f"{change[1] if change else 'as emitted':60} {error:.1e} ({name})")
        good = good and (error > 1e-3 if change else error < 1e-5)
    return good


def main():
    good = True
    for test in (forward_is_inference, other_shapes, parts_agree, dropout_is_a_mask, padding_does_not_count, no_denormals_are_met, errors_are_noticed):
        with tempfile.TemporaryDirectory() as folder:
            good = test(folder) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
