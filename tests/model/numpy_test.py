"""Whole models, from ids to results: `lookupc run --ids` beside their definition in NumPy, float64."""
import json
import os
import sys
import tempfile

import numpy as np

from definitions import (
    GPT, GPT_NEOX, LLAMA, MISTRAL, QWEN2, SENTENCE, SHAPED, SHAPED_ENCODER, Checkpoint, bert_model, classified, gpt, gpt2, gpt_neox,
    gpt_neox_in_turn, last, llama, masked, mistral, pooled, qwen2, sentence, shaped, shaped_encoder, summed,
)
from lookupc import effort, in_turn, instruction_sets, run, write_safetensors

LM = "dense = { width = 32, activation = 'gelu', norm = { kind = 'layernorm' } }, head = { bias = true }"
TANH = "dense = { width = 32, activation = 'tanh' }"


def projected(source):
    """The model whose first block's maps are looked up."""
    return source.replace("embedding = {", "embedding = { projected = true,")


CASES = [
    (gpt, GPT, 20),
    (gpt2, GPT.replace('"mingpt"', '"gpt2", tied = true'), 20),
    (llama, LLAMA, 37),
    (masked, bert_model("roberta", 2, LM, "tied = true,", "first_position = 2,"), 32),
    (pooled, bert_model("bert", 0, "pool = 'mean', unit = true, " + TANH, "", "d = 18,"), 34),
    (classified, bert_model("bert", 0, "pool = 'first', classes = 5, " + TANH), 9),
    (summed, bert_model("roberta", 2, "pool = 'sqrt_n'", "", "first_position = 2,"), 7),
    (last, bert_model("roberta", 2, "pool = 'last'", "", "first_position = 2,"), 7),
    (sentence, SENTENCE, 33),
    (shaped, SHAPED, 70),
    (shaped_encoder, SHAPED_ENCODER, 50),
    (mistral, MISTRAL, 41),
    (qwen2, QWEN2, 30),
    (gpt_neox, GPT_NEOX, 33),
    (gpt_neox_in_turn, {**GPT_NEOX, "use_parallel_residual": False}, 48),
    (gpt2, projected(GPT.replace('"mingpt"', '"gpt2", tied = true')), 20),
    (llama, projected(LLAMA), 37),
    (masked, projected(bert_model("roberta", 2, LM, "tied = true,", "first_position = 2,")), 32),
    (sentence, projected(SENTENCE), 33),
]
FLAGS = () if effort("level") == "full" else ("--cflags", "-O0")  # compiling takes longer than what is compiled
DECODED = (gpt, llama, shaped, mistral, qwen2, gpt_neox)


def check(folder, number, definition, source, longest, isa):
    ids = np.random.default_rng(number).integers(0, 29, longest)
    c = Checkpoint(number)
    wanted = definition(c, ids)
    paths = {name: os.path.join(folder, f"{number}.{name}") for name in ("lua", "safetensors", "ids", "npy")}
    if isinstance(source, dict):  # config.json, to be imported
        os.makedirs(os.path.join(folder, str(number)), exist_ok=True)
        with open(os.path.join(folder, str(number), "config.json"), "w") as file:
            json.dump(source, file)
        done = run("import", os.path.join(folder, str(number)), "-o", paths["lua"])
        assert done.returncode == 0, done.stderr
    else:
        with open(paths["lua"], "w") as file:
            file.write("return " + source + "\n")
    write_safetensors(paths["safetensors"], c.tensors, "F32")
    if number % 2:
        np.save(paths["ids"] + ".npy", ids)
        os.rename(paths["ids"] + ".npy", paths["ids"])
    else:
        with open(paths["ids"], "w") as file:
            file.write(" ".join(map(str, ids)))
    worst = 0.0
    for more in ([], ["--decode"]) if definition in DECODED else ([],):
        done = run("run", paths["lua"], "--weights", paths["safetensors"], "--ids", paths["ids"], "--output", paths["npy"], "--isa", isa, *FLAGS, *more)
        assert done.returncode == 0, done.stderr
        found = np.load(paths["npy"])
        assert found.shape == wanted.shape, (found.shape, wanted.shape)
        worst = max(worst, np.linalg.norm(found - wanted, axis=1).max() / np.linalg.norm(wanted, axis=1).max())
    print(f"{definition.__name__:12} {isa:8} {worst:.1e}")
    return worst <= 1e-5


def main():
    sets, good = instruction_sets(), True
    with tempfile.TemporaryDirectory() as folder:
        for number, (definition, source, longest) in enumerate(CASES):
            for isa in in_turn(sets, number):
                good = check(folder, number, definition, source, longest, isa) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
