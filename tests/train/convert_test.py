#!/usr/bin/python3
"""convert fits the lookup FFNs of small models to random dense ones and distils them end to end: what it writes, what it says of it, and what
it refuses."""
import itertools
import os
import re
import tempfile

import numpy as np

import whole
from lookupc import call, check, effort, instruction_sets, own_cache, read_safetensors, some, write_safetensors
from transformer import NAMES

COMMON = """d = 16, heads = 2, layers = 2, vocab = 256, skip = true, norm = { kind = "%s" }, checkpoint = "%s",
    embedding = {%s}, tokenizer = { kind = "bytes" }, %s"""
ENCODER = COMMON % ("layernorm", "roberta", ' sinusoidal = { order = "halves" } ',
                    'attention = { context = 40, causal = false }, token_types = 2, output = { pool = "mean", dense = { width = 12, activation = "tanh" }, unit = true }')
LLAMA = COMMON % ("rmsnorm", "llama", "", 'attention = { context = 64, rope = {} }, output = { norm = { kind = "rmsnorm" }, head = {} }')
GPT2 = COMMON % ("layernorm", "gpt2", "", 'attention = { context = 64 }, positions = 64, output = { norm = {}, head = {} }, tied = true')
NEOX = COMMON % ("layernorm", "gpt_neox", "", 'attention = { context = 64, rope = {} }, parallel = true, output = { norm = {}, head = {} }')
GPT2, NEOX = (text.replace("norm = {}", 'norm = { kind = "layernorm" }') for text in (GPT2, NEOX))
BERT = ENCODER.replace('norm = { kind = "layernorm" }', 'norm = { kind = "layernorm", place = "post" }')
LOOKUP = 'ffn = { kind = "lookup", h = 16, tau = 4, projection = { %s }, score = "gelu", neighbours = 2 }'
BH4, PROJECTED = LOOKUP % 'kind = "bh4", block = 8', LOOKUP % 'kind = "dense"'
FEW = BH4.replace("h = 16", "h = 4")  # tables which leave something to learn
MLP = 'ffn = { kind = "mlp", f = 32, activation = "gelu" }'
FLAGS = ("--cflags", "-O0")  # compiling takes longer than what is compiled
GLU = 'ffn = { kind = "glu", f = 24, activation = "silu" }'


def works(*arguments, text=b""):
    flags = FLAGS if arguments[0] in ("convert", "embed", "perplexity") else ()
    result = call(*arguments, *flags, text=text)
    check(result.returncode == 0, f"{arguments}: {result}")
    return result.stdout.decode()


def refuses(fragment, *arguments):
    result = call("convert", *arguments, *FLAGS)
    line = result.stderr.decode()
    check(result.returncode != 0 and line.count("\n") == 1 and fragment in line, f"{arguments}: {result}: expected one line with {fragment!r}")


def models(folder, name, common, dense, lookup=BH4):
    """Model files with and without lookup FFNs, and a random checkpoint of the dense one."""
    paths = [f"{folder}/{name}_{kind}.lua" for kind in ("lookup", "dense")]
    for path, ffn in zip(paths, (lookup, dense)):
        with open(path, "w") as file:
            file.write(f'return {{ name = "{os.path.basename(path)[:-4]}", {common}, {ffn} }}\n')
    works("sample", paths[1], "-o", f"{folder}/{name}.safetensors")
    return (*paths, f"{folder}/{name}.safetensors")


def figures(said):
    """Of each layer: unexplained, rows used, entropy and what the imitation missed."""
    return [[float(v) for v in row] for row in re.findall(r"^ +\d+ +([\d.]+) +([\d.]+)% +([\d.]+) +([\d.]+) ", said, re.M)]


def lost(said, when):
    """1 - mean cosine of an encoder, divergence of a decoder."""
    found = re.search(rf"^{when}: (?:mean cosine .* ([\d.-]+)|.* divergence ([\d.]+))$", said, re.M)
    check(found, f"{when}: is missing: {said}")
    return 1 - float(found.group(1)) if found.group(1) else float(found.group(2))


def check_encoder(folder, lines, text):
    lookup, dense, weights = models(folder, "encoder", ENCODER, MLP, FEW)
    given, out = ["--from", weights, "--dense", dense, "--text", text], folder + "/out.safetensors"
    unexplained = {}
    for name, options in (("learned", ["--tokens", "200000", "--end-to-end", "30000"]), ("quick", ["--quick"]), ("hash-w", ["--method", "hash-w"])):
        said = works("convert", lookup, *given, "-o", out, *options)
        rows = re.findall(r"^ +\d+ +([\d.]+) +([\d.]+)% +([\d.]+) +([\d.-]+) ", said, re.M)
        check(len(rows) == 2 and all(1 <= float(row[1]) <= 100 and 0 < float(row[2]) <= 4 for row in rows), f"{name}: rows used and entropy: {said}")
        unexplained[name] = [float(row[0]) for row in rows]
        check(("warning" in said) == (max(unexplained[name]) > 0.25), f"{name}: warns above a quarter: {said}")
        check(name == "hash-w" or all(float(row[3]) < 0.1 for row in rows), f"{name}: z imitates neurons: {said}")
        if name == "learned":
            check(lost(said, "end to end") < 0.9 * lost(said, "fitted"), f"learning end to end helps: {said}")
        # Everything but the FFNs is the dense model's, until it learns end to end; embeddings are it even then.
        made, _ = read_safetensors(out)
        trained, _ = read_safetensors(weights)
        shared = [tensor for tensor in made if tensor in trained and (name != "learned" or "embeddings.word" in tensor)]
        check(shared and all((made[t].astype("f4") == trained[t].astype("f4")).all() for t in shared), f"{name}: other tensors")
        check(any(tensor.endswith("FFN.tables") for tensor in made), f"{name}: has tables: {sorted(made)}")
        # The vectors are as near as it says.
        vectors = []
        for model, checkpoint in ((lookup, out), (dense, weights)):
            works("embed", model, "--weights", checkpoint, "-o", folder + "/v.npy", text="\n".join(lines).encode())
            vectors.append(np.load(folder + "/v.npy").astype(float))
        cosine = (vectors[0] * vectors[1]).sum(axis=1).mean()
        told = 1 - lost(said, "end to end" if name == "learned" else "fitted")
        check(abs(cosine - told) < 0.02, f"{name}: says cosine {told}, is {cosine}")
        print(f"ok     convert: {name}: unexplained {unexplained[name]}, cosine {told}")
    check(max(unexplained["learned"]) < min(unexplained["quick"]), f"learning helps: {unexplained}")
    check(max(unexplained["quick"]) < min(unexplained["hash-w"]), f"the baseline loses: {unexplained}")

    # The same seed gives the same bytes.
    again = folder + "/again.safetensors"
    works("convert", lookup, *given, "-o", again, "--method", "hash-w")
    check(open(out, "rb").read() == open(again, "rb").read(), "a second run writes other bytes")

    few = folder + "/few.txt"
    with open(few, "w") as file:
        file.write("a few words\n" * 30)
    latin = folder + "/latin.txt"
    with open(latin, "wb") as file:
        file.write(b"one\ncaf\xe9\n")
    refuses("--text: " + latin + ": byte 8, in line 2: is not UTF-8", lookup, "--from", weights, "--dense", dense, "--text", latin, "-o", out)
    refuses("--dense is missing", lookup, "--from", weights, "--text", text, "-o", out)
    refuses("few.txt: has 330 tokens in 30 sequences: at least 20480 in 20 are needed", lookup, "--from", weights, "--dense", dense, "--text", few, "-o", out)
    refuses("has no lookup FFN where --dense has another one", dense, *given, "-o", out)
    other = folder + "/other.lua"
    with open(lookup) as file, open(other, "w") as to:
        to.write(file.read().replace("context = 40", "context = 41"))
    refuses("attention: must be the same as in --dense", other, *given, "-o", out)
    refuses("--tokens: 2000: takes 2", lookup, *given, "-o", out, "--tokens", "2000", "--end-to-end", "0")
    # What was learned by one model is not computed by another.
    for before, after, message in (
        ("heads = 2", "heads = 4", "heads = 4: must be 2, as in --dense, layer 0"),
        ("layers = 2", "layers = { {}, { heads = 4 } }", "heads = 4: must be 2, as in --dense, layer 1"),
        ("layers = 2", "layers = { {}, { %s } }" % MLP.replace("32", "40"), "ffn: must be the same as in --dense, layer 1: only lookup FFNs take the place of others"),
        ("heads = 2", "heads = 2, head_dim = 4", "head_dim = 4: must be absent, as in --dense, layer 0"),
        ("skip = true", "skip = true, parallel = true", "parallel = true: must be false, as in --dense"),
        ("token_types = 2", "token_types = 3", "token_types = 3: must be 2, as in --dense"),
    ):
        with open(lookup) as file, open(other, "w") as to:
            to.write(file.read().replace(before, after))
        refuses(message, other, *given, "-o", out)
    looked, parallel, other_weights = models(folder, "looked", NEOX, MLP, BH4.replace("tau", "qkv = true, tau"))
    refuses("ffn.qkv = true: must be absent where an FFN is converted", looked, "--from", other_weights, "--dense", parallel, "--text", text, "-o", out)
    refuses("-o", lookup, *given, "-o", weights)
    refuses("--text is missing: ", lookup, *given[:4], "-o", out)
    refuses("is for decoders", lookup, *given[:4], "--ids", text, "-o", out)
    refuses('--layers: "1-": must be auto, or numbers', lookup, *given, "-o", out, "--layers", "1-")
    refuses("--layers: 2: layer 2 of", lookup, *given, "-o", out, "--layers", "0,2")
    refuses("--most-loss: much: must be a number", lookup, *given, "-o", out, "--most-loss", "much", "--layers", "auto")
    print("ok     convert: refusals are one line")


def check_rounded(folder, lines, text):
    """Tables that have learned in i4 stand in for the dense FFNs about as well in i4 as in float32; rounded afterwards they are 6 % farther off."""
    lookup, dense, weights = models(folder, "rounded", ENCODER, MLP, FEW)
    out = folder + "/rounded_lookup.safetensors"
    said = works("convert", lookup, "--from", weights, "--dense", dense, "--text", text, "-o", out, "--tokens", "30000", "--end-to-end", "20000", "--quantise", "i4")
    check(lost(said, "end to end") < lost(said, "fitted"), f"rounded: learning end to end helps: {said}")
    check("fitted weights are written" not in said, f"rounded: {said}")

    def vectors(model, checkpoint, *types):
        works("embed", model, "--weights", checkpoint, "-o", folder + "/v.npy", *types, text="\n".join(lines).encode())
        return np.load(folder + "/v.npy").astype(float)

    wanted = vectors(dense, weights)
    off = [1 - (vectors(lookup, out, "--tables", type) * wanted).sum(axis=1).mean() for type in ("i4", "f32")]
    check(off[0] < 1.04 * off[1], f"rounded: 1 - cosine in i4 and float32: {off}")
    print(f"ok     convert: through rounding to i4: 1 - cosine {off[0]:.2e} in i4, {off[1]:.2e} in float32")


def check_some(folder, text):
    """--layers leaves FFNs dense, in a model file of its own."""
    lookup, dense, weights = models(folder, "some", LLAMA, GLU)
    given, out = ["--from", weights, "--dense", dense, "--text", text, "--tokens", "20000", "--end-to-end", "0"], folder + "/some_out.safetensors"
    said = works("convert", lookup, *given, "-o", out, "--layers", "1")
    check(len(figures(said)) == 1 and "1 of 2 FFNs look up" in said, f"one layer is converted: {said}")
    names = read_safetensors(out)[0]
    check({name.split(".")[2] for name in names if "tables" in name} == {"1"} and any("layers.0.mlp.gate_proj" in name for name in names), sorted(names))
    check("nats a token" in works("perplexity", folder + "/some_out.lua", "--weights", out, "--text", text), "a model of both FFNs predicts")
    # The best subset is no larger than what may be lost, and all where that is much.
    said = works("convert", lookup, *given, "-o", out, "--layers", "auto", "--most-loss", "10")
    check("\nlayers 0,1\n" in said, f"all layers may be lost: {said}")
    alone = [float(v) for v in re.findall(r"alone it loses ([\d.-]+)", said)]
    together = float(re.search(r"2 of 2 together lose ([\d.-]+)", said).group(1))
    check(len(alone) == 2 and together > max(0, min(alone)), f"both lose more than one: {said}")
    if max(alone) < together:
        said = works("convert", lookup, *given, "-o", out, "--layers", "auto", "--most-loss", str((min(alone) + together) / 2))
        check(f"\nlayers {alone.index(min(alone))}\n" in said, f"the better layer stays alone: {said}")
    refuses("--most-loss: 0: the layer that loses least", lookup, *given, "-o", out, "--layers", "auto", "--most-loss", "0")
    # A fit that is no number ends it.
    tensors, large = read_safetensors(weights)[0], folder + "/large.safetensors"
    tensors["model.layers.0.mlp.down_proj.weight"] *= 1e25
    write_safetensors(large, tensors, "F32")
    refuses("large.safetensors: layer 1: its outputs leave the range of float32", lookup, "--from", large, *given[2:6], "--quick", "-o", folder + "/none.safetensors")
    check(not os.path.exists(folder + "/none.safetensors"), "weights that are no numbers are written")
    print(f"ok     convert: --layers, alone {alone}, together {together}")


def check_nothing_to_learn(folder, text):
    """Where learning end to end makes a model worse that is fitted well, the fitted weights are written."""
    lookup, dense, weights = models(folder, "learned", BERT, MLP)
    given, out, files = ["--from", weights, "--dense", dense, "--text", text, "--tokens", "40000"], folder + "/out.safetensors", []
    for tokens in ("20000", "0"):
        said = works("convert", lookup, *given, "-o", out, "--end-to-end", tokens)
        with open(out, "rb") as file:
            files.append((file.read(), said))
    (learned, said), (fitted, _) = files
    worse = "end to end: no better on held-out text" in said
    check(worse == (learned == fitted), f"writes the better weights: {said}")
    check(lost(said, "end to end") == lost(said, "fitted") or worse == (lost(said, "end to end") > lost(said, "fitted")), f"knows the better weights: {said}")
    print(f"ok     convert: {'the fitted' if worse else 'the learned'} weights are better")


def check_beside(folder, text, prose):
    """Neurons of the dense FFN that stay beside a lookup FFN are its own, those that the model needs most."""
    few = BH4.replace("h = 16", "h = 2")

    def beside(dense):
        return few[:-2] + ", dense = " + re.sub(r"f = \d+", "f = 8", dense[6:]) + " }"

    cases = [("roberta", BERT, MLP, "M"), ("llama", LLAMA, GLU, "GM"), ("gpt2", GPT2, MLP, "M")]
    for name, common, dense, letters in some("training", cases, 1):
        alone, path, weights = models(folder, name + "_alone", common, dense, few)
        both = models(folder, name + "_beside", common, dense, beside(dense))[0]
        out, given = folder + "/beside.safetensors", ["--from", weights, "--dense", path, "--text", text if name == "roberta" else prose]
        losses = []
        for model in (alone, both):
            said = works("convert", model, *given, "-o", out, "--tokens", "20000", "--end-to-end", "0")
            losses.append((max(row[0] for row in figures(said)), lost(said, "fitted")))
        check(losses[1][0] < losses[0][0] and losses[1][1] < losses[0][1], f"{name}: neurons beside tables help: {losses}")
        made, trained = read_safetensors(out)[0], read_safetensors(weights)[0]
        names, numbers = NAMES[name], []
        for letter in letters + "O":
            tensor = names["layer"] % 1 + names[letter] + ".weight"
            own, all_rows = (t[tensor].T if (name == "gpt2") != (letter == "O") else t[tensor] for t in (made, trained))
            check(own.shape == (8, 16), f"{name}: {tensor} is {own.shape}")
            numbers.append([int(np.flatnonzero((all_rows == row).all(axis=1))[0]) for row in own])
        check(all(n == numbers[0] for n in numbers) and numbers[0] == sorted(set(numbers[0])), f"{name}: neurons of the dense FFN: {numbers}")
        bias = names["layer"] % 1 + names["O"] + ".bias"
        check(bias not in trained or (made[bias] == trained[bias]).all(), f"{name}: the bias of its outputs stays")
        print(f"ok     convert: {name}: neurons beside tables: unexplained and lost {losses[1]}, without them {losses[0]}")

    lookup, path, weights = models(folder, "refused", ENCODER, MLP, beside(MLP))
    for before, after, message in (('"gelu" }', '"relu" }', 'ffn.dense.activation = "relu": must be gelu, as the FFN in --dense, layer 0'),
                                   ('"mlp"', '"glu"', 'ffn.dense.kind = "glu": must be mlp, as the FFN in --dense, layer 0'),
                                   ("f = 8", "f = 32", "ffn.dense.f = 32: must be less than 32, as the FFN in --dense has, layer 0")):
        with open(lookup) as file, open(folder + "/other.lua", "w") as to:
            to.write(file.read().replace(before, after))
        refuses(message, folder + "/other.lua", "--from", weights, "--dense", path, "--text", text, "-o", folder + "/beside.safetensors")


def check_sort(folder):
    """A trained decoder still sorts with its FFNs converted."""
    source = whole.data_file("gpt-nano-sort.json")
    weights, out, lookup = folder + "/sort.safetensors", folder + "/sort_out.safetensors", folder + "/sort.lua"
    works("import", source, "-o", weights)
    dense = "gen/models/gpt_nano_sort.lua"
    with open(dense, encoding="utf-8") as file, open(lookup, "w", encoding="utf-8") as to:
        to.write(re.sub(r"ffn = .*", 'ffn = { kind = "lookup", h = 32, tau = 6, projection = { kind = "bh4", block = 16 }, score = "gelu", neighbours = 2 },', file.read()))
    digits = np.random.default_rng(1).integers(0, 3, (6000, 6))
    np.save(folder + "/ids.npy", np.concatenate([digits, np.sort(digits, axis=1)[:, :-1]], axis=1).reshape(-1).astype(np.int32))
    said = works("convert", lookup, "--from", weights, "--dense", dense, "--ids", folder + "/ids.npy", "-o", out, "--tokens", "60000", "--end-to-end", "60000")
    inputs = np.array(list(itertools.product(range(3), repeat=6)), np.int32)
    full = np.concatenate([inputs, np.sort(inputs, axis=1)[:, :-1]], axis=1)
    model = whole.Decoder(lookup, out, folder + "/sort", instruction_sets()[-1])
    logits = np.array([model.prefill_all(model.start(), ids) for ids in full])
    well = (logits[:, 5:].argmax(axis=2) == np.sort(inputs, axis=1)).all(axis=1).mean()
    check(lost(said, "end to end") < lost(said, "fitted"), f"learning end to end helps: {said}")
    check(well > 0.9, f"{well} are sorted: {said}")
    print(f"ok     convert: gpt-nano-sort: {well:.3f} sorted, loses {lost(said, 'fitted'):.4f}, then {lost(said, 'end to end'):.4f}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        own_cache(folder)
        random = np.random.default_rng(1)
        lines = ["".join(random.choice(list("abcdefgh ,."), 10 + i % 25)) for i in range(1500)]
        text, prose = folder + "/lines.txt", folder + "/text.txt"
        with open(text, "w") as file:
            file.write("\n".join(lines) + "\n")
        with open(prose, "w") as file:
            file.write(" ".join(lines))
        check_encoder(folder, lines, text)
        check_rounded(folder, lines, text)

        # What the FFN reads lies elsewhere in blocks of each kind: a wrong place shows in what the whole model loses.
        cases = [("llama", LLAMA, GLU, FEW), ("bert", BERT, MLP, FEW), ("neox", NEOX, MLP, FEW), ("gpt2", GPT2, MLP, PROJECTED)]
        for name, common, dense, lookup in some("training", cases, 1):
            pair = models(folder, name, common, dense, lookup)
            given = ["--from", pair[2], "--dense", pair[1], "--text", text if name == "bert" else prose]
            said = works("convert", pair[0], *given, "-o", folder + "/out.safetensors", "--tokens", "40000", "--end-to-end", "20000")
            rows = figures(said)
            check(len(rows) == 2 and max(row[0] for row in rows) < 0.25, f"{name}: FFNs are learned: {said}")
            bad = works("convert", pair[0], *given, "-o", folder + "/out.safetensors", "--method", "hash-w")
            check(lost(said, "fitted") < 0.5 * lost(bad, "fitted"), f"{name}: is better than the baseline: {said} {bad}")
            check(lost(said, "end to end") < lost(said, "fitted"), f"{name}: learning end to end helps: {said}")
            print(f"ok     convert: {name}: {rows}, loses {lost(said, 'fitted'):.4f}, then {lost(said, 'end to end'):.4f}")
        check_beside(folder, text, prose)
        if effort("training"):
            check_some(folder, prose)
            check_nothing_to_learn(folder, text)
            check_sort(folder)


if __name__ == "__main__":
    main()
