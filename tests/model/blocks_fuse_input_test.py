#!/usr/bin/python3
"""fuse refuses what it cannot fuse exactly in one line and writes nothing; shards in and out hold the same as one file."""
import json
import os
import tempfile

import numpy as np

import transformer
from lookupc import check, read_safetensors, run, write_safetensors
from transformer import Shape

WORK = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
MODEL, WEIGHTS, OUTPUT = (WORK.name + "/" + name for name in ("m.lua", "w.safetensors", "f.safetensors"))


def write_model(source):
    with open(MODEL, "w") as file:
        file.write(source)


def refuses(fragment, *options, weights=WEIGHTS, output=OUTPUT, status=1):
    before = sorted(os.listdir(WORK.name))
    result = run("fuse", MODEL, "--weights", weights, "-o", output, *options)
    check(result.returncode == status and fragment in result.stderr and result.stderr.count("\n") == 1 and not result.stdout,
          f"exit status {result.returncode}, {result.stdout}{result.stderr}; expected {fragment}")
    check(sorted(os.listdir(WORK.name)) == before, f"{fragment}: leaves {set(os.listdir(WORK.name)) - set(before)}")


def works(*options, weights=WEIGHTS, output=OUTPUT):
    result = run("fuse", MODEL, "--weights", weights, "-o", output, *options)
    check(result.returncode == 0 and not result.stderr, f"{options}: {result.stderr}")
    return result.stdout


def content(path=OUTPUT):
    with open(path, "rb") as file:
        return file.read()


SHAPE = Shape(layers=3, kv_heads=2, bias=True)
GOOD = transformer.to_checkpoint(SHAPE, transformer.random_model(SHAPE, 1))
Q = "model.layers.1.self_attn.q_proj.weight"


def changed(changes, shape=SHAPE, dtype="F32"):
    write_model(shape.source("QP"))
    write_safetensors(WEIGHTS, {name: values for name, values in {**GOOD, **changes}.items() if values is not None}, dtype)


def with_element(name, value):
    values = GOOD[name].copy()
    values.flat[values.size // 2] = value
    return {name: values}


def matrix_of_condition(condition, n=32):
    random = np.random.default_rng(2)
    left, right = (np.linalg.qr(random.standard_normal((n, n)))[0] for _ in range(2))
    return left @ np.diag(np.geomspace(1, 1 / condition, n)) @ right


def check_matrices():
    singular = GOOD[Q].copy()
    singular[5] = 0.0
    changed({Q: singular})
    refuses(f"{WEIGHTS}: layer 1: model.layers.1.self_attn.q_proj: is singular: pivot 32 of 32 is 0")
    changed({Q: np.zeros_like(singular)})
    refuses("layer 1: model.layers.1.self_attn.q_proj: is singular: pivot 1 of 32 is 0")
    # A last matrix without inverse is found before the first product, which would meet a NaN.
    changed({"model.layers.2.self_attn.q_proj.weight": np.zeros_like(singular), **with_element("model.embed_tokens.weight", np.nan)})
    refuses("layer 2: model.layers.2.self_attn.q_proj: is singular: pivot 1 of 32 is 0")
    changed({Q: matrix_of_condition(1e12)}, dtype="F64")
    refuses("layer 1: model.layers.1.self_attn.q_proj: condition number ")
    refuses(": must be at most 1e+10 (--max-condition)")
    refuses(": must be at most 5 (--max-condition)", "--max-condition", "5")
    check("condition numbers up to" in works("--max-condition", "1e15"), "a user may allow ill-conditioned matrices")
    # What float64 can still invert is useless in 16 bits.
    changed({Q: matrix_of_condition(1e5)}, dtype="BF16")
    refuses("layer 1: model.layers.1.self_attn.k_proj.weight: relative error ")
    refuses(" in BF16: must be at most 0.1 (--max-error)")
    works("--type", "f64")
    works("--max-error", "1000")
    changed({}, dtype="F16")
    refuses("a merged value is too large for F16", weights=scaled(3e3), output=OUTPUT + ".new")
    for name in GOOD:
        for value, text in ((np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")):
            changed(with_element(name, value))
            refuses(f"{WEIGHTS}: tensor {name}: element {GOOD[name].size // 2}: {text}: must be finite")
    print("ok     fuse input: singular and ill-conditioned matrices, NaN and infinity in any tensor are refused")


def scaled(factor):
    """A checkpoint of float16 whose merged values exceed it."""
    path = WORK.name + "/scaled.safetensors"
    big = ("embed_tokens.weight", "q_proj.weight", "down_proj.weight")
    write_safetensors(path, {name: values * (factor if name.endswith(big) else 1) for name, values in GOOD.items()}, "F16")
    return path


def check_tensors():
    down = "model.layers.2.mlp.down_proj.weight"
    for changes, fragment in (
            ({down: None}, f"tensor {down} is missing"),
            ({down: GOOD[down].T.copy()}, f"tensor {down}: shape [48][32]: must be [32][48]"),
            ({"model.layers.0.self_attn.k_proj.weight": GOOD[Q]}, "k_proj.weight: shape [32][32]: must be [16][32]"),
            ({"model.layers.0.self_attn.k_proj.bias": np.zeros(32)}, "k_proj.bias: shape [32]: must be [16]"),
            ({"model.embed_tokens.weight": np.zeros((41, 32))}, "model.embed_tokens.weight: shape [41][32]: must be [40][32]"),
            ({"model.layers.3.mlp.up_proj.weight": np.zeros((2, 2))}, "tensor model.layers.3.mlp.up_proj.weight: is no part of model m: the model file has layers = 3; --ignore "),
            ({"model.layers.0.input_layernorm.weight": np.ones(32), "model.layers.1.input_layernorm.weight": np.ones(32)},
             "tensors model.layers.0.input_layernorm.weight, model.layers.1.input_layernorm.weight: are no part of model m: the model file has no norm; --ignore "),
            ({"lm_head.weight": None}, "tensor lm_head.weight is missing; a model whose output embedding is its input embedding says tied = true")):
        changed(changes)
        refuses(fragment)
    changed({}, dtype={name: "I64" if name == Q else "F32" for name in GOOD})
    refuses(f"tensor {Q}: dtype: I64: must be F32, F16, BF16 or F64")
    changed({"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(4), "model.norm.weight": np.ones(32)})
    works()
    found = read_safetensors(OUTPUT)[0]
    check("model.norm.weight" in found and not any("inv_freq" in name for name in found), "buffers go, what follows the last block stays")
    os.remove(OUTPUT)
    print("ok     fuse input: missing, misshapen, unreadable and unknown tensors are refused")


def check_models():
    changed({})
    for eliminate, fragment in (("KP", "--eliminate: KP: needs kv_heads = heads: K is a 32 by 16 matrix and has no inverse; Q can be eliminated"),
                                ("QKV", '--eliminate: QKV: needs ffn.kind = "lookup" in serial blocks'), ("PQ", '--eliminate: "PQ": must be one of none, Q, K'),
                                ("none", "--eliminate: none: names nothing to eliminate")):
        refuses(fragment, "--eliminate", eliminate, status=2)
    for option, value, fragment in (("--max-condition", "x", "--max-condition: x: must be a number above 0"), ("--max-error", "0", "--max-error: 0: must be"),
                                    ("--max-error", "nan", "--max-error: nan: must be"), ("--type", "i8", '--type: "i8": must be one of f32, bf16, f16, f64'),
                                    ("--shard-mib", "0", "--shard-mib: 0: must be at least 1")):
        refuses(fragment, option, value, status=2)
    refuses("-o: " + WEIGHTS + ": is the input", output=WEIGHTS)
    refuses("No such file", weights=WORK.name + "/none")
    source = SHAPE.source("QP").replace("skip = false, ", "")
    for change, fragment in (("skip = true,", "skip = true: fuse merges weights across it, which is exact only without skip connections and norms"),
                             ("norm = { kind = 'rmsnorm' },", "norm: fuse merges weights across it"),
                             ("parallel = true,", 'attention.eliminate = "QP": the P of a parallel block adds to the FFN\'s output and cannot be merged exactly; eliminate Q alone'),
                             ("positions = 4,", "positions = 4: llama checkpoints have no such embeddings"),
                             ('checkpoint = "gpt_neox",', "kv_heads = 2: must be heads: gpt_neox checkpoints hold q, k and v of equal widths")):
        key = change.split()[0]
        given = {"parallel": "parallel = false, ", "checkpoint": 'checkpoint = "llama",'}.get(key, "")
        write_model(source.replace(given, "").replace("return {", "return { " + change))
        refuses(": " + fragment)
    print("ok     fuse input: models and options that cannot be fused are refused")


def write_shards(folder, parts):
    os.makedirs(folder, exist_ok=True)
    names, index = sorted(GOOD), {}
    for i in range(parts):
        part = f"part-{i}.safetensors"
        chosen = names[i::parts]
        index.update({name: part for name in chosen})
        write_safetensors(folder + "/" + part, {name: GOOD[name] for name in chosen}, "F32")
    path = folder + "/model.safetensors.index.json"
    with open(path, "w") as file:
        json.dump({"metadata": {"total_size": 1}, "weight_map": index}, file)
    return path, index


def check_shards():
    changed({})
    report = works("--report")
    check(report.count("q_proj ") == 3 and report.count("k_proj.weight ") >= 3, report)
    single, expected = content(), read_safetensors(OUTPUT)[0]
    works()
    check(content() == single, "the same input gives the same bytes")
    path, index = write_shards(WORK.name + "/in", 3)
    for weights in (path, WORK.name + "/in"):
        works(weights=weights)
        check(content() == single, "shards give the same bytes as one file")
    refuses("in/part-1.safetensors: is the input", weights=path, output=WORK.name + "/in/part-1.safetensors")

    folder = WORK.name + "/out"
    big = "model.embed_tokens.weight"
    write_safetensors(WEIGHTS, {**GOOD, "model.norm.weight": np.arange(600000.0)}, "F32")
    works("--shard-mib", "1", output=folder)
    with open(folder + "/model.safetensors.index.json") as file:
        written = json.load(file)
    files = sorted(set(written["weight_map"].values()))
    check(len(files) >= 2 and files[0] == f"model-00001-of-{len(files):05d}.safetensors" and set(os.listdir(folder)) == {*files, "model.safetensors.index.json"}, f"{files}")
    together = {}
    for name in files:
        tensors = read_safetensors(folder + "/" + name)[0]
        check(all(written["weight_map"][tensor] == name for tensor in tensors), "the index says where a tensor is")
        together.update(tensors)
    check(set(together) == set(written["weight_map"]) == {*expected, "model.norm.weight"} and big in together, "all tensors are in the shards")
    check(all(np.array_equal(together[name], expected[name]) for name in expected), "shards hold the values of one file")
    check(written["metadata"]["total_size"] == 4 * sum(values.size for values in together.values()), "total_size counts bytes")
    refuses("exists: choose another folder", "--shard-mib", "1", output=folder)
    changed({Q: np.zeros((32, 32))})
    refuses("is singular", "--shard-mib", "1", output=WORK.name + "/new")

    for change, fragment in (({Q: "../part-0.safetensors"}, "weight_map: ../part-0.safetensors: must be a file beside it"), ({Q: "none.safetensors"}, "in/none.safetensors: No such file"),
                             ({Q: index["lm_head.weight"] if index[Q] != index["lm_head.weight"] else "part-0.safetensors"}, f"{Q}: is not in part-"),
                             ({Q: 3}, "must be the name of a file"), ({"extra": "part-0.safetensors"}, "extra: is not in part-0.safetensors")):
        with open(path, "w") as file:
            json.dump({"weight_map": {**index, **change}}, file)
        refuses(fragment, weights=path)
    for text, fragment in (("{", "index.json:1: "), ("[]", "weight_map: must be an object"), ('{"weight_map": {}}', "weight_map: is empty"),
                           (json.dumps({"weight_map": {name: part for name, part in index.items() if name != Q}}), f"weight_map: tensor {Q} of {index[Q]} is missing")):
        with open(path, "w") as file:
            file.write(text)
        refuses(fragment, weights=path)
    print("ok     fuse input: shards in and out hold what one file does; bad indices are refused")


check_matrices()
check_tensors()
check_models()
check_shards()
