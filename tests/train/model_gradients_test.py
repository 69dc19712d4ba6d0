"""Training of whole models of many shapes: logits beside inference, every tensor's gradient beside float64; planted errors are noticed."""
import sys
import tempfile
from pathlib import Path

import numpy as np

import any_model
import table_attention
from any_model import by_tables
from definitions import Checkpoint
from derivatives import Value
from lookupc import effort, in_turn, instruction_sets, some, works, write_safetensors
from model_shapes import LLAMA, SHAPES, changed, drawn
from model_training import Trainer
from whole import Decoder, Encoder

CALL = 12  # tokens of a call, or of a chunk of one
TOKENS = 44  # of some calls: the last has 8, as LookupFFNs add up in another order for one or two
TILE = 32  # keys: sequences of one have a softmax at once in inference, as in training
SETS = [s for s in instruction_sets() if s != "sse4"]


def as_inferred(m):
    """Settings with which training computes what inference does: attention by tables has the model's signs."""
    return {"signs": 2} if by_tables(m) else {}


def worst_difference(found, gradients):
    """The largest difference of a tensor's gradient from `gradients`, and of which: relative to it, or to a hundredth of all, as those of q
    and k may be differences of numbers that are nearly equal, or zeros, as those of biases of keys."""
    whole = np.linalg.norm([np.linalg.norm(g) for g in gradients.values()])
    return max((np.linalg.norm(found[name] - g) / max(np.linalg.norm(g), 1e-2 * whole), name) for name, g in gradients.items())


def chosen(m, number):
    """Random tensors, and sequences with some targets that do not count: no kink is near, where codes and gradients jump, and gradients hardly
    change if tensors are rounded in another way."""
    for seed in range(number, number + 100):
        random, tensors = np.random.default_rng(seed), any_model.tensors(m, seed)
        ids = random.integers(0, 29, (2, 50)).astype(np.int32)
        targets = np.where(random.random(ids.shape) < 0.2, -1, random.integers(0, 29, ids.shape)).astype(np.int32)
        loss, gradients, nearest = any_model.gradients(tensors, m, ids, targets)
        if nearest > 1e-5:
            rounded = {name: values * (1 + 1e-7 * random.standard_normal(values.shape)) for name, values in tensors.items()}
            change = worst_difference(any_model.gradients(rounded, m, ids, targets)[1], gradients)[0]
            if change < 2e-6:
                return tensors, ids, targets, loss, gradients
    raise AssertionError("every point is near a kink, or worse")


def error_beside_differences(m, tensors, ids, targets, gradients):
    """Of the gradients in float64, along a direction in which the loss grows, relative to their length; with attention by tables of those of
    the weights that are expected, whose slopes in training are bounds."""
    if by_tables(m):
        m, Value.true_slopes = {**m, "signs": None}, True
        gradients = any_model.gradients(tensors, m, ids, targets)[1]
        Value.true_slopes = False
    random, ends = np.random.default_rng(len(tensors)), []
    length = np.linalg.norm([np.linalg.norm(g) for g in gradients.values()])
    direction = {name: g / length + random.standard_normal(g.shape) * np.linalg.norm(g) / length / g.size**0.5 for name, g in gradients.items()}
    step = 1e-6
    for sign in (1, -1):
        c = Checkpoint(0)
        c.tensors = {name: values + sign * step * direction[name] for name, values in tensors.items()}
        ends.append(any_model.loss(c, m, ids, targets))
    along = sum((direction[name] * g).sum() for name, g in gradients.items())
    return abs((ends[0] - ends[1]) / (2 * step) - along) / length


def worst_of(t, ids, targets, loss, gradients, **more):
    """The largest relative error of the loss or of a tensor's gradient, and of which."""
    found_loss = t.run(ids, targets, **t.lists(), **more)
    found = {**t.tensors(t.gradients), **t.listed()}
    assert set(found) == set(gradients), set(found) ^ set(gradients)
    return max((abs(found_loss - loss) / loss, "loss"), worst_difference(found, gradients))


def inferred(m, path, weights, folder, isa, ids):
    """Logits of the emitted inference, of so many first tokens."""
    if not m["attention"].get("causal", True):
        looked = any(own["ffn"].get("qkv") for own in any_model.blocks(m))  # all tokens are one chunk
        encoder = Encoder(path, weights, folder, isa, emit=() if looked else ("--schedule", f"chunk.tokens={CALL}"))
        return lambda n: np.array([encoder.encode(row[:n], rows=n) for row in ids])
    decoder = Decoder(path, weights, folder, isa)

    def in_calls(row):
        state = decoder.start()
        return np.concatenate([decoder.prefill_all(state, part) for part in np.split(row, range(CALL, len(row), CALL))])

    return lambda n: np.array([in_calls(row[:n]) for row in ids])


def folds_exactly(m):
    """Whether no folded weights are rounded: inference has 1 / h in its tables."""
    parts = [own["ffn"] for own in any_model.blocks(m)]
    return all(part.get("scale") != "1/h" or part["h"] & (part["h"] - 1) == 0 for part in parts)


def unlike_observed(t, m, tensors, ids, logits, **more):
    """How much they differ from the head's product with the features that an observer sees."""
    names = any_model.NAMES[m.get("checkpoint", "llama")]
    head = tensors[names["word"] if m.get("tied") else names["head"]].astype(np.float64)
    seen = t.features(ids, **more).astype(np.float64) @ head.T + tensors.get("lm_head.bias", 0)
    return np.abs(seen - logits).max() / np.abs(logits).max()


def right(folder, name, m, number, sets):
    """Gradients within 1e-5, logits within 1e-5, and bit by bit in scalar: but for a soft cap, before which training has them."""
    good, path = True, any_model.write(folder, "m", m)
    tensors, ids, targets, loss, gradients = chosen(m, number)
    difference = error_beside_differences(m, tensors, ids, targets, gradients)
    weights, cap = f"{folder}/m.safetensors", m["output"]["head"].get("soft_cap")
    write_safetensors(weights, tensors, "F32")
    for isa in sets:
        t = Trainer(path, f"{folder}/train.{isa}", isa)
        t.load(tensors)
        error, which = worst_of(t, ids, targets, loss, gradients, **as_inferred(m))
        logits, off = inferred(m, path, weights, f"{folder}/{isa}", isa, ids), {}
        for n in (TILE, TOKENS):
            found, wanted = t.logits(ids[:, :n], **as_inferred(m)), logits(n)
            unlike = unlike_observed(t, m, tensors, ids[:, :n], found, **as_inferred(m))
            found = cap * np.tanh(found / cap) if cap else found
            off[n] = np.abs(found - wanted).max() / np.abs(wanted).max()
        exact = isa == "scalar" and not cap and folds_exactly(m)
        tables_alone = all(own["attention"].get("kind") == "lsh" for own in any_model.blocks(m))  # which have no tiles
        same_bits = max(off.values()) == 0 if tables_alone else off[TILE] == 0
        same = ", the same bits" if exact and same_bits else ""
        print(f"{name:14} {isa:8} gradients {error:.1e} ({which}), differences {difference:.0e}, logits {off[TOKENS]:.1e}{same}, features {unlike:.1e}")
        good = good and max(error, difference, off[TOKENS], unlike) < 1e-5 and (same_bits or not exact)
    return good


def all_shapes_learn():
    good = True
    for number, name in enumerate(some("training", list(SHAPES), 3)):
        with tempfile.TemporaryDirectory() as folder:
            good = right(folder, name, SHAPES[name], number, ["scalar", *[s for s in in_turn(SETS, number) if s != "scalar"]]) and good
    return good


def scaled_positions_and_four_norms_learn():
    scaling = {"kind": "yarn", "factor": 4.0, "original": 20, "fast": 4.0}
    with tempfile.TemporaryDirectory() as folder:
        m = changed(LLAMA, norm={"place": "both"}, attention={"rope": {"scaling": scaling}})
        return right(folder, "scaled", m, 0, ["scalar"])


def unit_and_shifted_keys_learn():
    with tempfile.TemporaryDirectory() as folder:
        return right(folder, "shifted", SHAPES["shifted"], 0, ["scalar"])


def tables_of_attention_learn():
    """Weights that are expected, those by signs of a step, and those by the model's."""
    good, seed, step = True, 11, 5
    for number, name in enumerate(("tables", "tables encoder", "tables in part")):
        m = SHAPES[name]
        with tempfile.TemporaryDirectory() as folder:
            t = Trainer(any_model.write(folder, "m", m), f"{folder}/train", "scalar")
            for form, own in enumerate(({"signs": None}, {"signs": lambda *where: table_attention.fresh_signs(seed, step, *where)}, {})):
                tensors, *rest = chosen({**m, **own}, number)
                t.load(tensors)
                error, which = worst_of(t, *rest, signs=form, seed=seed, step=step)
                print(f"{name:14} signs {form} gradients {error:.1e} ({which})")
                good = good and error < 1e-5
    return good


def large_tables_of_attention_learn():
    """Those of more rows than a sequence meets, which alone are cleared; the decoder has no window."""
    good = True
    for number, name in enumerate(some("training", ["tables", "tables encoder"], 1)):
        with tempfile.TemporaryDirectory() as folder:
            attention = {"tau": 8, "tables": 6, "window": 4 * number}
            good = right(folder, name, changed(SHAPES[name], attention=attention), number, ["scalar"]) and good
    return good


def q_k_and_v_out_of_tables_learn():
    with tempfile.TemporaryDirectory() as folder:
        return right(folder, "looked", SHAPES["looked encoder"], 0, ["scalar"])


def scores_of_minus_infinity_are_nan():
    """A softmax of nothing else: tokens that are masked do not take their place."""
    m = {**LLAMA, "attention": {"context": 64}}
    tensors = any_model.tensors(m, 0)
    for layer in range(m["layers"]):
        name = f"model.layers.{layer}.self_attn."
        k = tensors[name + "k_proj.weight"] * 1e20
        heads = np.repeat(k.reshape(m["kv_heads"], -1, m["d"]), m["heads"] // m["kv_heads"], axis=0)
        tensors |= {name + "k_proj.weight": k, name + "q_proj.weight": -heads.reshape(m["d"], m["d"])}
    ids = np.full((2, 20), 7, np.int32)
    with tempfile.TemporaryDirectory() as folder:
        t = Trainer(any_model.write(folder, "m", m), f"{folder}/train", "scalar")
        t.load(tensors)
        loss = t.run(ids, ids)
    print(f"minus infinity: loss {loss}")
    return np.isnan(loss)


def products_in_bf16_learn():
    """Within what rounding the factors costs, which is seen; the same on every instruction set, but for the order of sums, which may flip a
    code of a random model."""
    good = True
    heads_of_32 = changed(SHAPES["gpt"], d=64, heads=2)  # rows of a head are as far apart as what is rounded at once
    shapes = {"gpt": SHAPES["gpt"], "heads of 32": heads_of_32, "wide heads": SHAPES["wide heads"], "tables": SHAPES["tables"]}
    # beside scalar: the order of sums moves single roundings by a unit, 2^-8
    cases = [(name, shapes[name], 2e-3, 4e-2, 4e-3) for name in some("training", list(shapes), 2)]
    cases += [(f"random {number}", drawn(number), 1e-4, 2, 0.2) for number in range(effort("trained_models"))]
    for name, m, least, most, apart in cases:
        first = None
        tensors, ids, targets, loss, gradients = chosen(m, 0)
        looks_up = any(own["ffn"]["kind"] == "lookup" for own in any_model.blocks(m))
        more = ("--type", "bf16", *(("--tables", "f32") if looks_up else ()))
        for isa in ("scalar", instruction_sets("tile_dot_bf16")[-1]):
            with tempfile.TemporaryDirectory() as folder:
                t = Trainer(any_model.write(folder, "m", m), f"{folder}/train", isa, more=more)
                t.load(tensors)
                error, which = worst_of(t, ids, targets, loss, gradients, **as_inferred(m))
                found = t.tensors(t.gradients)
            first = first or found
            unlike = worst_difference(found, first)[0]
            print(f"{name:14} in bf16 {isa:11} gradients {error:.1e} ({which}), beside scalar {unlike:.1e}")
            good = good and least < error < most and unlike < apart
    return good


def random_shapes_learn():
    good = True
    for number in range(effort("trained_models")):
        m = drawn(number)
        with tempfile.TemporaryDirectory() as folder:
            if not right(folder, f"random {number}", m, number, in_turn(SETS, number)):
                good = False
                print("FAILED", any_model.lua(m))
    return good


# A shape, a piece of its emitted C, and the same with an error, most of them of signs.
PLANTED = [
    # attention
    ("gpt", "rest = d[k] - level", "rest = d[k] + level"),
    ("gpt", "p = weight[k] * shares", "p = -weight[k] * shares"),
    ("neox", "back ? -sine[i] : sine[i]", "back ? sine[i] : sine[i]"),
    ("interleaved", "back ? -sine[i] : sine[i]", "back ? sine[i] : -sine[i]"),
    ("shaped", "*gamma -= sum", "*gamma += sum"),
    ("shaped", "along += sum", "along -= sum"),
    ("shaped encoder", "*alpha += slope", "*alpha -= slope"),
    ("shaped encoder", "* weight[k] - level", "* weight[k] + level"),
    ("unit", "rest = d[i] - slopes", "rest = d[i] + slopes"),
    ("unit", "*along += product", "*along -= product"),
    ("shifted", "dkeys[i + 10] += dkeys[i]", "dkeys[i + 10] -= dkeys[i]"),
    # norms
    ("gpt", "rest = g - level - normal", "rest = g + level - normal"),
    ("gpt", "normal * dy[i] + gain[i]", "gain[i] - normal * dy[i]"),
    ("gpt", "&all_d.second_normed);", "r ? &all_d.first_normed : &all_d.second_normed);"),
    ("gpt", "&own_d.stream, &own_d.in", "NULL, &own_d.in"),
    ("llama", "rest = g - normal * slope", "rest = g + normal * slope"),
    ("masked", "(x[i] - means) * factors", "(x[i] + means) * factors"),
    ("post", "rest * factors;", "-rest * factors;"),
    # embedding and head
    ("llama", "row[i] += 1.5f * d[i]", "row[i] -= 1.5f * d[i]"),
    ("gpt", "place[i] += d[i]", "place[i] -= d[i]"),
    ("gpt", "logits[target] -= scale;", "logits[target] += scale;"),
    ("interleaved", "1.0f - own * own", "1.0f + own * own"),
    ("masked", "y[i + k] += x[i + k]", "y[i + k] -= x[i + k]"),
    ("masked", "one, r->d_out", "-one, r->d_out"),
    # MLP and GLU
    ("neox", "return x * density + share", "return share - x * density"),
    ("llama", "return share + along", "return share - along"),
    ("llama", "dgate[i] = d * slope * x[i]", "dgate[i] = -d * slope * x[i]"),
    ("llama", "dx[i] = d * open", "dx[i] = -d * open"),
    ("mapped", "right ? one : zero", "right ? -one : zero"),
    # lookups
    ("lookup", "positive0 ? gain0 : none - gain0", "positive0 ? gain0 : gain0"),
    ("lookup", "total + (weights + change1)", "total + (weights - change1)"),
    ("lookup", "const float sum = low[i] + high[i], difference = low[i] - high[i]", "const float sum = low[i] + high[i], difference = sum"),
    ("lookup", "sum0 = sum0 + row[column]", "sum0 = sum0 - row[column]"),
    ("lookup", "ffn->bias = parameters + ", "ffn->bias = parameters + 1 + "),
    ("dense lookup", "gradient0 = factor * dy0 + gradient0", "gradient0 = gradient0 - factor * dy0"),
    ("dense lookup", "slope[place[entry]] += along", "slope[place[entry]] -= along"),
    ("dense lookup", "sums[row] += dz[0]", "sums[row] -= dz[0]"),
    ("eight", "weights + change0", "weights - change0"),
    # attention by tables
    ("tables", "rest = dy[i] - slope", "rest = dy[i] + slope"),
    ("tables encoder", "half_tau = 1.5f", "half_tau = -1.5f"),
    ("tables", "(length - 1 - row)", "row"),
]


def errors_have_their_places():
    """All of them: only some are compiled, which are changed wherever they are."""
    with tempfile.TemporaryDirectory() as folder:
        for name in {name for name, *_ in PLANTED}:
            bundle = f"{folder}/{name}"
            works("emit", any_model.write(folder, "m", SHAPES[name]), "-o", bundle, "--isa", "scalar", "--training")
            text = Path(bundle, "m_train__scalar.c").read_text(encoding="utf-8")
            lost = [old for own, old, _ in PLANTED if own == name and old not in text]
            if lost:
                print(f"FAILED {name}: not in the emitted C: {lost}")
                return False
    return True


def errors_are_noticed():
    good = True
    for number, (name, *change) in enumerate(some("planted", PLANTED, 2)):
        with tempfile.TemporaryDirectory() as folder:
            tensors, *rest = chosen(SHAPES[name], number)
            t = Trainer(any_model.write(folder, "m", SHAPES[name]), f"{folder}/train", "scalar", changed=change)
            t.load(tensors)
            error, which = worst_of(t, *rest, **as_inferred(SHAPES[name]))
        print(f"{name:14} {change[1]:60} {error:.1e} ({which})")
        good = good and not error < 1e-3
    return good


def main():
    good = True
    tests = (all_shapes_learn, scaled_positions_and_four_norms_learn, unit_and_shifted_keys_learn, tables_of_attention_learn,
             large_tables_of_attention_learn, q_k_and_v_out_of_tables_learn, scores_of_minus_infinity_are_nan,
             products_in_bf16_learn, random_shapes_learn, errors_have_their_places, errors_are_noticed)
    for test in tests:
        good = test() and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
