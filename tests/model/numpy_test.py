"""Whole models, from ids to results: `lookupc run --ids` beside their definition in NumPy, float64."""
import json
import os
import sys
import tempfile

import numpy as np

import any_model
import model_shapes
from definitions import SENTENCE, Checkpoint, bert_model, classified, last, masked, pooled, sentence, summed
from lookupc import in_turn, instruction_sets, run, some, write_safetensors
from model_shapes import changed

LM = "dense = { width = 32, activation = 'gelu', norm = { kind = 'layernorm' } }, head = { bias = true }"
TANH = "dense = { width = 32, activation = 'tanh' }"


def projected(source):
    """The model whose first block's maps are looked up."""
    if isinstance(source, dict):
        return changed(source, embedding={"projected": True})
    return source.replace("embedding = {", "embedding = { projected = true,")


GPT = changed(model_shapes.GPT, positions=20, attention={"context": 20})
GPT2 = changed(GPT, checkpoint="gpt2", tied=True)
LLAMA = changed(model_shapes.LLAMA, output={"head": {"soft_cap": 5}})
SHAPED = changed(model_shapes.SHAPED, d=32, heads=4)
MISTRAL = changed(model_shapes.LLAMA, tied=False, attention={"window": 9, "rope": {"theta": 1e6}}, embedding={"scale": 1})
QWEN2 = changed(model_shapes.LLAMA, tied=False, attention={"rope": {"theta": 1e6}}, embedding={"scale": 1}, qkv_biased=True)
NEOX = changed(model_shapes.NEOX, d=32, heads=4, layers=2, vocab=37, attention={"context": 48, "rope": {"share": 0.25}})

# Of config.json `lookupc import` makes the model file.
OF_LLAMA = {"hidden_size": 40, "intermediate_size": 33, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3,
            "vocab_size": 70, "max_position_embeddings": 64, "hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 1e6}
MISTRAL_CONFIG = {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 9, **OF_LLAMA}
QWEN2_CONFIG = {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "sliding_window": 9, "use_sliding_window": False, **OF_LLAMA}
LINEAR_CONFIG = {"model_type": "llama", "rope_scaling": {"type": "linear", "factor": 4.0}, **OF_LLAMA}
LLAMA3_CONFIG = {"model_type": "llama", **OF_LLAMA, "hidden_size": 64, "max_position_embeddings": 300, "rope_theta": 5e5, "rope_scaling": {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}
MIXED_CONFIG = {**QWEN2_CONFIG, "use_sliding_window": True, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
QWEN3_CONFIG = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], **OF_LLAMA, "head_dim": 16}
NEOX_CONFIG = {"model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], "hidden_size": 32, "intermediate_size": 50,
               "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 37, "max_position_embeddings": 48, "hidden_act": "gelu"}
GEMMA_CONFIG = {"model_type": "gemma", "architectures": ["GemmaForCausalLM"], **OF_LLAMA, "hidden_act": "gelu", "head_dim": 16}
GEMMA2_CONFIG = {"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], **OF_LLAMA, "hidden_activation": "gelu_pytorch_tanh", "head_dim": 16,
                 "max_position_embeddings": 150, "sliding_window": 9, "query_pre_attn_scalar": 24, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 5.0}

PHI_CONFIG = {"model_type": "phi", "architectures": ["PhiForCausalLM"], **OF_LLAMA, "num_key_value_heads": None, "rms_norm_eps": None, "hidden_act": "gelu_new",
              "partial_rotary_factor": 0.4, "layer_norm_eps": 1e-5, "qk_layernorm": False}
PHI3_CONFIG = {"model_type": "phi3", "architectures": ["Phi3ForCausalLM"], **OF_LLAMA, "sliding_window": 9, "partial_rotary_factor": 0.6, "rope_scaling": None}

# Contexts beyond that of training, in windows too, where angles are sums of those of bytes.
LINEAR = changed(model_shapes.LLAMA, tied=False, attention={"rope": {"theta": 1e6, "scaling": {"kind": "linear", "factor": 4.0}}}, embedding={"scale": 1})
LLAMA3 = changed(LINEAR, d=64, attention={"context": 300, "rope": {"theta": 500000, "scaling": {
    "kind": "llama3", "factor": 8.0, "original": 64, "slow": 1.0, "fast": 4.0}}})
YARN = changed(LINEAR, d=64, attention={"context": 300, "window": 40, "rope": {"theta": 10000, "share": 0.5, "scaling": {
    "kind": "yarn", "factor": 4.0, "original": 60, "slow": 1.0, "fast": 8.0, "truncate": False}}})
QWEN3 = changed(LINEAR, head_dim=16, attention={"rope": {"theta": 1e6, "scaling": {"kind": "linear", "factor": 1}}, "qk_norm": {}})
MIXED = changed(MISTRAL, attention={"full_layers": [1]})
CAPPED = changed(MIXED, kv_heads=1, attention={"full_layers": [0, 2], "causal": False, "scale": 0.9, "soft_cap": 0.7}, output={"head": {"soft_cap": 5}})
PHI = changed(model_shapes.NEOX, heads=4, vocab=70, checkpoint="phi", norm={"shared": True}, output={"head": {"bias": True}},
              attention={"context": 64, "rope": {"theta": 1e6, "share": 0.4}}, ffn={"f": 33, "activation": "gelu_tanh"})
PHI3 = changed(MISTRAL, checkpoint="phi3", attention={"rope": {"theta": 1e6, "share": 0.6}})
KEYS = changed(model_shapes.LLAMA, kv_heads=4, attention={"cache": "k"}, tied=False)
LOOKED = changed(model_shapes.SHAPES["looked"], tied=False, attention={"window": 9})
LOOKING_BACK = changed(LLAMA, attention={"unit": True, "shifted": 1, "window": 9})
TABLES = changed(LLAMA, attention={"kind": "lsh", "tau": 3, "tables": 9, "seed": 7, "window": 5, "shifted": 1})
NORMED = changed(model_shapes.LLAMA, heads=5, kv_heads=5, attention={"causal": False, "context": 40, "qk_norm": {"eps": 1e-3}, "eliminate": "VP"})
GEMMA = changed(model_shapes.LLAMA, head_dim=16, checkpoint="gemma", attention={"rope": {"theta": 1e6}}, ffn={"activation": "gelu_tanh"}, embedding={"scale": 40**0.5})
GEMMA2 = changed(GEMMA, norm={"place": "both"}, attention={"context": 150, "window": 9, "full_layers": [1], "scale": 24**-0.5, "soft_cap": 2}, output={"head": {"soft_cap": 5}})
BOTH = changed(GEMMA2, parallel=True, checkpoint="llama", attention={"causal": False, "context": 40, "qk_norm": {}})

# A name, the definition or the keys of a model, its model file or config.json, how many ids, and whether they are also decoded.
CASES = [
    ("gpt", GPT, GPT, 20, True),
    ("gpt2", GPT2, GPT2, 20, False),
    ("llama", LLAMA, LLAMA, 37, True),
    ("masked", masked, bert_model("roberta", 2, LM, "tied = true,", "first_position = 2,"), 32, False),
    ("pooled", pooled, bert_model("bert", 0, "pool = 'mean', unit = true, " + TANH, "", "d = 18,"), 34, False),
    ("classified", classified, bert_model("bert", 0, "pool = 'first', classes = 5, " + TANH), 9, False),
    ("summed", summed, bert_model("roberta", 2, "pool = 'sqrt_n'", "", "first_position = 2,"), 7, False),
    ("last", last, bert_model("roberta", 2, "pool = 'last'", "", "first_position = 2,"), 7, False),
    ("sentence", sentence, SENTENCE, 33, False),
    ("shaped", SHAPED, SHAPED, 70, True),
    ("shaped encoder", *[changed(SHAPED, attention={"causal": False})] * 2, 50, False),
    ("mistral", MISTRAL, MISTRAL_CONFIG, 41, True),
    ("qwen2", QWEN2, QWEN2_CONFIG, 30, True),
    ("gpt_neox", NEOX, NEOX_CONFIG, 33, True),
    ("gpt_neox in turn", changed(NEOX, parallel=False), {**NEOX_CONFIG, "use_parallel_residual": False}, 48, False),
    ("gpt2", GPT2, projected(GPT2), 20, False),
    ("llama", LLAMA, projected(LLAMA), 37, True),
    ("masked", masked, projected(bert_model("roberta", 2, LM, "tied = true,", "first_position = 2,")), 32, False),
    ("sentence", sentence, projected(SENTENCE), 33, False),
    ("linear", LINEAR, LINEAR_CONFIG, 30, False),
    ("llama3", LLAMA3, LLAMA3_CONFIG, 90, True),
    ("yarn", YARN, YARN, 280, False),
    ("qwen3", QWEN3, QWEN3_CONFIG, 30, True),
    ("mixed windows", MIXED, MIXED_CONFIG, 50, True),
    ("capped encoder", CAPPED, CAPPED, 64, False),
    ("normed encoder", NORMED, NORMED, 40, False),
    ("normed ring", *[changed(NORMED, attention={"causal": True, "window": 9, "eliminate": "none"})] * 2, 40, True),
    ("qwen3", QWEN3, projected(QWEN3), 30, False),
    ("gemma", GEMMA, GEMMA_CONFIG, 30, False),
    ("gemma2", GEMMA2, GEMMA2_CONFIG, 140, True),
    ("gemma2", *[f(changed(GEMMA2, attention={"qk_norm": {}})) for f in (dict, projected)], 30, False),
    ("both", BOTH, BOTH, 40, False),
    ("unit and shifted ring", LOOKING_BACK, projected(LOOKING_BACK), 40, True),
    ("shifted encoder", *[changed(SHAPED, attention={"causal": False, "shifted": 2})] * 2, 50, False),
    ("mixed and shifted", *[changed(MIXED, attention={"shifted": 1})] * 2, 40, True),
    ("tables", TABLES, TABLES, 40, True),
    ("tables of an encoder", *[changed(TABLES, attention={"causal": False, "qk_norm": {}, "window": 0})] * 2, 40, False),
    ("phi", PHI, PHI_CONFIG, 40, True),
    ("phi encoder", *[changed(PHI, attention={"causal": False, "eliminate": "VP"})] * 2, 40, False),
    ("phi3", PHI3, PHI3_CONFIG, 40, True),
    ("looked", LOOKED, LOOKED, 50, True),
    ("looked encoder", *[model_shapes.SHAPES["looked encoder"]] * 2, 50, False),
    ("cached keys", KEYS, KEYS, 50, True),
    ("ring of keys", *[changed(NEOX, attention={"cache": "k", "window": 9})] * 2, 48, True),
    ("gemma2 of keys", *[changed(GEMMA2, head_dim=10, kv_heads=4, attention={"cache": "k"})] * 2, 140, True),
]
FLAGS = ("--cflags", "-O0")  # compiling takes longer than what is compiled


def check(folder, number, isa):
    name, definition, source, longest, decoded = CASES[number]
    ids = np.random.default_rng(number).integers(0, 29, longest)
    c = Checkpoint(number)
    wanted = any_model.logits(c, ids, definition) if isinstance(definition, dict) else definition(c, ids)
    paths = {name: os.path.join(folder, f"{number}.{name}") for name in ("lua", "safetensors", "ids", "npy")}
    if "hidden_size" in source:  # config.json, to be imported
        os.makedirs(os.path.join(folder, str(number)), exist_ok=True)
        with open(os.path.join(folder, str(number), "config.json"), "w") as file:
            json.dump(source, file)
        done = run("import", os.path.join(folder, str(number)), "-o", paths["lua"])
        assert done.returncode == 0, done.stderr
    else:
        with open(paths["lua"], "w") as file:
            file.write("return " + (any_model.lua(source) if isinstance(source, dict) else source) + "\n")
    write_safetensors(paths["safetensors"], c.tensors, "F32")
    if number % 2:
        np.save(paths["ids"] + ".npy", ids)
        os.rename(paths["ids"] + ".npy", paths["ids"])
    else:
        with open(paths["ids"], "w") as file:
            file.write(" ".join(map(str, ids)))
    worst = 0.0
    for more in ([], ["--decode"]) if decoded else ([],):
        done = run("run", paths["lua"], "--weights", paths["safetensors"], "--ids", paths["ids"], "--output", paths["npy"], "--isa", isa, *FLAGS, *more)
        assert done.returncode == 0, done.stderr
        found = np.load(paths["npy"])
        assert found.shape == wanted.shape, (found.shape, wanted.shape)
        worst = max(worst, np.linalg.norm(found - wanted, axis=1).max() / np.linalg.norm(wanted, axis=1).max())
    print(f"{name:16} {isa:8} {worst:.1e}")
    return worst <= 1e-5


def main():
    sets, good = instruction_sets(), True
    with tempfile.TemporaryDirectory() as folder:
        for number in some("transformers", list(range(len(CASES))), len(CASES) // 2):
            for isa in in_turn(sets, number):
                good = check(folder, number, isa) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
