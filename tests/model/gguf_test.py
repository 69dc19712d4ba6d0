"""Models in GGUF files become what the same weights under transformers' names become: every type of tensors, beside an independent
dequantiser, the order of rows in q and k, hyperparameters and tokenizer."""
import json
import os
import tempfile

import numpy as np

import gguf
from lookupc import call, check, works, write_safetensors

WORK = tempfile.TemporaryDirectory()
RANDOM = np.random.default_rng(48)
U32, F32, TEXT, BOOL = 4, 6, gguf.STRING, gguf.BOOL
FILES = {}  # the tensors of each file, by its path without .gguf
NAMES = {
    "llama": {
        "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
    },
    "gpt2": {
        "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj", "attn_norm": "ln_1",
        "ffn_norm": "ln_2",
    },
    "bert": {
        "attn_q": "attention.self.query", "attn_k": "attention.self.key", "attn_v": "attention.self.value",
        "attn_output": "attention.output.dense", "ffn_up": "intermediate.dense", "ffn_down": "output.dense",
        "attn_output_norm": "attention.output.LayerNorm", "layer_output_norm": "output.LayerNorm",
    },
}
NAMES["qwen2"] = NAMES["llama"]
NAMES["qwen3"] = {**NAMES["llama"], "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
NAMES["gemma2"] = {**NAMES["llama"], "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
                   "post_ffw_norm": "post_feedforward_layernorm"}
NAMES["phi2"] = {**{f"attn_{word}": f"self_attn.{word}_proj" for word in "qkv"}, "attn_output": "self_attn.dense", "ffn_up": "mlp.fc1",
                 "ffn_down": "mlp.fc2", "attn_norm": "input_layernorm"}
NAMES["phi2 packed"] = {"attn_qkv": None, **{key: name for key, name in NAMES["phi2"].items() if key[-2:] not in ("_q", "_k", "_v")}}
NAMES["phi3"] = {"attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj", "ffn_up": "mlp.gate_up_proj", "ffn_down": "mlp.down_proj",
                 "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}
LLAMA = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
PHI = {**LLAMA, "output_norm": "model.final_layernorm"}
WITH_OFFSETS = ("gpt2", "bert", "phi2", "phi2 packed")  # of norms
OUTSIDE = {
    "phi2": PHI, "phi2 packed": PHI, "phi3": LLAMA,
    "llama": LLAMA, "qwen2": LLAMA, "qwen3": LLAMA, "gemma2": LLAMA, "gpt2": {"token_embd": "wte", "position_embd": "wpe", "output_norm": "ln_f"},
    "bert": {
        "token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings",
        "token_types": "embeddings.token_type_embeddings", "token_embd_norm": "embeddings.LayerNorm",
    },
}
LAYER = {**dict.fromkeys(NAMES, "model.layers.%s."), "gpt2": "h.%s.", "bert": "encoder.layer.%s."}


def halves_apart(values, heads):
    """The rows of q or k as transformers has them, from those whose pairs are neighbours."""
    return values.reshape(heads, -1, 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


class Model:
    """Tensors of a GGUF file, and the same under transformers' names."""

    def __init__(self, architecture, types, heads, kv_heads, tied):
        self.architecture, self.types, self.heads, self.kv_heads, self.tied = architecture, list(types), heads, kv_heads, tied
        self.file, self.folder, self.matrices = {}, {}, 0
        self.apart = {}  # what the folder has in another order than the file

    def add(self, name, shape):
        kind = "F32"
        if len(shape) > 1:
            self.matrices += 1
            kind = self.types[self.matrices % len(self.types)]
        raw = gguf.some_blocks(kind, int(np.prod(shape)), RANDOM)
        less_one = self.architecture == "gemma2" and "norm" in name  # gains, which its folders hold so: exact in both
        if less_one:
            raw = (1 + RANDOM.integers(-99, 99, shape) / 256).astype("<f4").tobytes()
        self.file[name] = (kind, shape, raw)
        values = gguf.dequantised(kind, raw).reshape(shape) - less_one
        stem, end = name.rsplit(".", 1)
        if stem.startswith("blk."):
            _, layer, part = stem.split(".")
            if not NAMES[self.architecture][part]:  # q, k and v, which the folder has apart
                for word, rows in zip("qkv", np.split(values, 3)):
                    self.folder[f"model.layers.{layer}.self_attn.{word}_proj.{end}"] = rows
                return
            own = LAYER[self.architecture] % layer + NAMES[self.architecture][part]
            if self.architecture == "llama" and part in ("attn_q", "attn_k"):
                self.apart[f"{own}.{end}"] = halves_apart(values, self.heads if part == "attn_q" else self.kv_heads)
            if self.architecture == "gpt2" and len(shape) > 1:
                values = values.T
        else:
            own = OUTSIDE[self.architecture][stem]
        self.folder[f"{own}.{end}"] = values

    def add_all(self, d, f, layers, vocab, positions):
        e = d // self.heads * self.kv_heads
        self.add("token_embd.weight", (vocab, d))
        for name, rows in (("position_embd", positions), ("token_types", 2)):
            if name in OUTSIDE[self.architecture]:
                self.add(name + ".weight", (rows, d))
        shapes = {"attn_q": (d, d), "attn_k": (e, d), "attn_v": (e, d), "attn_qkv": (d + 2 * e, d), "attn_output": (d, d),
                  "ffn_gate": (f, d), "ffn_up": (f, d), "ffn_down": (d, f), "attn_q_norm": (d // self.heads,), "attn_k_norm": (d // self.heads,)}
        if self.architecture == "phi3":
            shapes["ffn_up"] = (2 * f, d)
        biased = {"llama": ("attn_q", "attn_k"), "qwen2": ("attn_q", "attn_k", "attn_v"), "qwen3": (), "gemma2": (), "phi3": ()}.get(self.architecture, shapes)
        for layer in range(layers):
            for part in NAMES[self.architecture]:
                shape = shapes.get(part, (d,))
                self.add(f"blk.{layer}.{part}.weight", shape)
                if part in biased or part.endswith("norm") and self.architecture in WITH_OFFSETS:
                    self.add(f"blk.{layer}.{part}.bias", shape[:1])
        for name in ("token_embd_norm", "output_norm", "output"):
            if name in OUTSIDE[self.architecture] and not (name == "output" and self.tied):
                shape = (vocab, d) if name == "output" else (d,)
                self.add(name + ".weight", shape)
                if self.architecture in WITH_OFFSETS:  # only a phi2 has an output of its own here
                    self.add(name + ".bias", shape[:1])


def vocabulary():
    """The characters of bytes, as byte-level BPE writes them, and two pieces made of them."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    characters = [chr(byte if byte in printable else next(others)) for byte in range(256)]
    return characters + ["th", "the", "<|end|>"], ["t h", "th e"]


def write(name, architecture, config, keys, types, tokenizer, vocab, **shape):
    """Writes NAME.gguf, and the folder NAME with the same as config.json, tokenizer.json and model.safetensors."""
    base, model_type = f"{WORK.name}/{name}", {"phi2": "phi"}.get(architecture.split()[0], architecture)
    os.makedirs(base)
    heads = shape.pop("heads")
    kv_heads = shape.pop("kv_heads", heads)
    model = Model(architecture, types, heads, kv_heads, config.get("tie_word_embeddings"))
    model.add_all(vocab=vocab, **shape)
    d, f, layers, positions = (shape[key] for key in ("d", "f", "layers", "positions"))
    architecture = architecture.split()[0]
    metadata = {"general.architecture": (TEXT, architecture), "general.name": (TEXT, name)}
    own = {"embedding_length": (U32, d), "feed_forward_length": (U32, f), "block_count": (U32, layers), "context_length": (U32, positions),
           "attention.head_count": (U32, heads), **keys}
    if kv_heads != heads:
        own["attention.head_count_kv"] = (U32, kv_heads)
    metadata.update({f"{architecture}.{key}": entry for key, entry in own.items()})
    metadata.update({f"tokenizer.ggml.{key}": entry for key, entry in tokenizer.items()})
    gguf.write(base + ".gguf", metadata, model.file)
    FILES[base] = model.file
    write_safetensors(base + "/model.safetensors", {**model.folder, **model.apart})
    write_safetensors(base + ".safetensors", model.folder)
    with open(base + "/config.json", "w", encoding="utf-8") as file:
        json.dump({"model_type": model_type, "_name_or_path": name, **config}, file)
    return base


def models_of(base, *options):
    """Paths of the model files that both become, and what import prints of the GGUF file."""
    printed = works("import", base + ".gguf", "-o", base + "_gguf.lua", *options)
    source = base if not options else base + "/config.json"
    works("import", source, "-o", base + "_folder.lua", *options)
    return base + "_gguf.lua", base + "_folder.lua", printed


DIGEST = slice(16, 32)  # of the model file, which names its tokenizer and its kind of checkpoint


def packed(model, weights, *options):
    works("pack", model, "--weights", weights, "-o", model + ".bin", *options)
    with open(model + ".bin", "rb") as file:
        blob = bytearray(file.read())
    blob[DIGEST] = bytes(16)
    return blob


def same_blobs(base):
    """The blobs are the same; of a llama, if the other weights lie in the file's order, which its model file must say."""
    ours, theirs, printed = models_of(base)
    with open(theirs, encoding="utf-8") as file:
        source = file.read()
    if not any(word in base for word in ("qwen", "gemma", "phi")):
        source = source.replace("share = 1 }", "share = 1, pairs = 'interleaved' }")
    with open(base + "_order.lua", "w", encoding="utf-8") as file:
        file.write(source)
    check(packed(ours, base + ".gguf") == packed(base + "_order.lua", base + ".safetensors"), f"{base}: blobs differ")
    return printed


def tokenizer_json(base, pre_tokenizers, normalizer=None):
    texts, merges = vocabulary()
    added = [{"id": len(texts) - 1, "content": texts[-1], "special": True, "normalized": False}]
    with open(base + "/tokenizer.json", "w", encoding="utf-8") as file:
        json.dump({"version": "1.0", "added_tokens": added, "normalizer": normalizer, "decoder": {"type": "ByteLevel"},
                   "pre_tokenizer": {"type": "Sequence", "pretokenizers": pre_tokenizers},
                   "model": {"type": "BPE", "vocab": {text: i for i, text in enumerate(texts)}, "merges": merges}}, file)


BYTES = {"type": "ByteLevel", "add_prefix_space": False}
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def bpe(pre):
    texts, merges = vocabulary()
    return {"model": (TEXT, "gpt2"), "pre": (TEXT, pre), "tokens": ([TEXT], texts), "merges": ([TEXT], merges),
            "token_type": ([5], [1] * (len(texts) - 1) + [3]), "eos_token_id": (U32, len(texts) - 1)}


def llama_config(heads, kv_heads, d, f, layers, positions, vocab, **more):
    return {"hidden_size": d, "intermediate_size": f, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "num_hidden_layers": layers,
            "max_position_embeddings": positions, "vocab_size": vocab, "hidden_act": "silu", "rms_norm_eps": 1e-5, **more}


def every_type():
    """A llama with a tensor of every type: rows in another order, biases, heads of its own."""
    shape = dict(d=256, f=256, layers=2, positions=32)
    config = llama_config(4, 2, vocab=259, rope_theta=50000.0, **shape)
    keys = {"attention.layer_norm_rms_epsilon": (F32, 1e-5), "rope.freq_base": (F32, 50000.0), "rope.dimension_count": (U32, 64),
            "vocab_size": (U32, 259), "expert_count": (U32, 0)}
    base = write("every", "llama", config, keys, gguf.TYPES, bpe("smollm"), 259, heads=4, kv_heads=2, **shape)
    tokenizer_json(base, [{"type": "Digits", "individual_digits": True}, BYTES])
    printed = same_blobs(base)
    line = "tensors become float32 when they are read: " + ", ".join(f"{kind} (1)" for kind in sorted(gguf.TYPES) if "Q" in kind)
    check(line in printed, f"{printed!r} has no line {line!r}")
    logits = []
    with open(base + ".txt", "w", encoding="utf-8") as file:
        file.write("7 1 258 100 3")
    for end, weights in (("_gguf.lua", base + ".gguf"), ("_folder.lua", base)):
        works("run", base + end, "--weights", weights, "--ids", base + ".txt", "--output", base + ".npy", "--isa", "scalar", "--cflags", "-O0")
        logits.append(np.load(base + ".npy"))
    error = np.abs(logits[0] - logits[1]).max() / np.abs(logits[1]).max()
    check(error < 1e-5, f"logits differ by {error}")


def fused():
    """fuse takes a GGUF file as it takes a folder."""
    base, blobs = f"{WORK.name}/qwen2", []
    ours, theirs, _ = models_of(base, "--skipless", "--eliminate", "QP")
    for model, weights in ((ours, base + ".gguf"), (theirs, base)):
        works("fuse", model, "--weights", weights, "--ignore", "*norm*", "-o", base + ".fused", "--type", "f32")
        blobs.append(packed(model, base + ".fused", "--ignore", "*norm*"))
    check(blobs[0] == blobs[1], "fused blobs differ")


def qwen(architecture):
    """Rows of q and k in the order of transformers, and a normalizer; of Qwen 3 norms of heads."""
    shape = dict(d=64, f=96, layers=1, positions=32)
    config = llama_config(4, 4, vocab=259, rope_theta=1e6, head_dim=16, **shape)
    keys = {"attention.layer_norm_rms_epsilon": (F32, 1e-5), "rope.freq_base": (F32, 1e6)}
    base = write(architecture, architecture, config, keys, ["Q8_0", "F16"], bpe("qwen2"), 259, heads=4, **shape)
    split = {"type": "Split", "pattern": {"Regex": QWEN}, "behavior": "Isolated"}
    tokenizer_json(base, [split, {**BYTES, "use_regex": False}], {"type": "NFC"})
    same_blobs(base)


def gemma2():
    """Four norms a block, whose gains are 1 less in folders, windows in turn, soft caps and a tied head."""
    shape = dict(d=64, f=96, layers=3, positions=32)
    caps = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
    config = llama_config(4, 2, vocab=259, tie_word_embeddings=True, head_dim=16, sliding_window=8, query_pre_attn_scalar=16, **caps, **shape)
    config["hidden_activation"] = config.pop("hidden_act").replace("silu", "gelu_pytorch_tanh")
    keys = {"attention.layer_norm_rms_epsilon": (F32, 1e-5), "attention.sliding_window": (U32, 8), "attention.key_length": (U32, 16),
            "attention.value_length": (U32, 16), **{key: (F32, cap) for key, cap in caps.items()}}
    base = write("gemma2", "gemma2", config, keys, ["Q8_0", "F16"], bpe("gpt-2"), 259, heads=4, kv_heads=2, **shape)
    tokenizer_json(base, [BYTES])
    same_blobs(base)


def phi2(packed):
    """A norm for attention and FFN, biases everywhere, q, k and v apart or in one tensor."""
    shape = dict(d=64, f=256, layers=2, positions=32)
    config = {**llama_config(4, None, vocab=259, partial_rotary_factor=0.5, **shape), "rms_norm_eps": None, "hidden_act": "gelu_new", "layer_norm_eps": 1e-5}
    keys = {"attention.layer_norm_epsilon": (F32, 1e-5), "rope.dimension_count": (U32, 8), "attention.head_count_kv": (U32, 4)}
    base = write("phi2" + packed, "phi2" + packed, config, keys, ["Q8_0", "F16", "Q4_0"], bpe("phi-2"), 259, heads=4, **shape)
    tokenizer_json(base, [BYTES])
    same_blobs(base)


def phi3():
    """Fused tensors, some of whose blocks are packed as they are; what else is done with a model."""
    shape = dict(d=64, f=96, layers=2, positions=32)
    config = llama_config(4, 2, vocab=259, sliding_window=9, original_max_position_embeddings=32, rope_scaling=None, **shape)
    keys = {"attention.layer_norm_rms_epsilon": (F32, 1e-5), "attention.sliding_window": (U32, 9), "rope.dimension_count": (U32, 16),
            "rope.scaling.original_context_length": (U32, 32), "rope.freq_base": (F32, 1e4)}
    base = write("phi3", "phi3", config, keys, ["Q4_0"], bpe("gpt-2"), 259, heads=4, kv_heads=2, **shape)
    tokenizer_json(base, [BYTES])
    same_blobs(base)
    i4, model = ["--type", "i4,embedding=i4"], base + "_gguf.lua"
    printed = works("pack", model, "--weights", base + ".gguf", *i4, "-o", base + ".i4.bin")
    check("relative error up to 0 " in printed, printed)
    works("quantise", base + ".gguf", "--model", model, *i4, "-o", base + ".i4.safetensors")
    works("pack", model, "--weights", base + ".i4.safetensors", *i4, "-o", base + ".again.bin")
    with open(base + ".i4.bin", "rb") as first, open(base + ".again.bin", "rb") as second:
        check(first.read() == second.read(), "quantise packs to another blob")
    with open(base + ".txt", "w", encoding="ascii") as file:
        file.write("the other thing\n" * 20)
    quickly = ["--isa", "scalar", "--cflags", "-O0"]
    found = json.loads(works("perplexity", model, "--weights", base + ".gguf", *i4, "--text", base + ".txt", "--json", *quickly))
    check(0 < found["nats_per_token"] < 50, f"perplexity: {found}")
    made = call("generate", model, "the ", "--weights", base + ".gguf", *i4, "--tokens", "6", "--temperature", "0", *quickly)
    check(made.returncode == 0 and made.stdout, f"generate: {made}")


def gpt2():
    shape = dict(d=64, f=256, layers=2, positions=48)
    config = {"n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 48, "vocab_size": 259, "activation_function": "gelu_new"}
    base = write("gpt", "gpt2", config, {"attention.layer_norm_epsilon": (F32, 1e-5)}, ["F16", "Q4_0", "Q8_0"], bpe("gpt-2"), 259, heads=4, **shape)
    tokenizer_json(base, [BYTES])
    same_blobs(base)
    ids = ["--ids", "116,104,101", "--temperature", "0", "--tokens", "6", "--isa", "scalar"]
    ours, theirs = (call("generate", base + end, "--weights", weights, *ids) for end, weights in (("_gguf.lua", base + ".gguf"), ("_folder.lua", base)))
    check(ours.returncode == 0 and ours.stdout and ours.stdout == theirs.stdout, f"generate: {ours} is not {theirs}")


def bert():
    shape = dict(d=64, f=96, layers=1, positions=40)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "look", "##up", "a", "##b"]
    phantom = [word[2:] if word.startswith("##") else word if word.startswith("[") else "\u2581" + word for word in words]
    tokenizer = {"model": (TEXT, "bert"), "tokens": ([TEXT], phantom), "token_type": ([5], [3, 2, 3, 3, 3, 1, 1, 1, 1])}
    keys = {"attention.layer_norm_epsilon": (F32, 1e-12), "attention.causal": (BOOL, False), "pooling_type": (U32, 1)}
    config = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 1, "max_position_embeddings": 40,
              "vocab_size": 9, "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "architectures": ["BertModel"]}
    base = write("bert", "bert", config, keys, ["F32", "Q5_1"], tokenizer, 9, heads=4, **shape)
    with open(base + "/vocab.txt", "w", encoding="utf-8") as file:
        file.write("\n".join(words) + "\n")
    with open(base + "/modules.json", "w", encoding="utf-8") as file:
        json.dump([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                   {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}], file)
    os.makedirs(base + "/1_Pooling")
    with open(base + "/1_Pooling/config.json", "w", encoding="utf-8") as file:
        json.dump({"word_embedding_dimension": 64, "pooling_mode_mean_tokens": True}, file)
    same_blobs(base)


def in_panels(kind, shape, raw, panel):
    """A matrix of Q4_0, Q4_1 or Q8_0 as docs/types.md lays it out: scales, minima and integers of the file, `panel` rows side by side."""
    rows, groups, halves = shape[0], shape[1] // 32, 2 if kind == "Q4_1" else 1
    blocks = np.zeros((-(-rows // panel) * panel, groups, gguf.TYPES[kind][2]), np.uint8)
    blocks[:rows] = np.frombuffer(raw, np.uint8).reshape(rows, groups, -1)
    scales = blocks[..., : 2 * halves].copy().view("<u2")  # [rows][groups][halves]
    if kind == "Q8_0":
        blocks[:rows, :, 2:] ^= 128  # rows that fill up a panel stay zeros
        words = blocks[..., 2:].copy().view("<u4")  # [rows][groups][8]
    else:
        integers = gguf.nibbles(blocks[..., 2 * halves :].reshape(-1, 16)).reshape(len(blocks), groups, 4, 2, 4)
        words = (integers[:, :, :, 0] | integers[:, :, :, 1] << 4).copy().view("<u4")[..., 0]  # [rows][groups][4]
    sides = [part.reshape(-1, panel, groups, part.shape[-1]).transpose(0, 2, 3, 1) for part in (scales, words)]
    return np.concatenate([np.ascontiguousarray(side).view(np.uint8).reshape(*side.shape[:2], -1) for side in sides], axis=2).tobytes()


def kept(kind, type_):
    """Blocks of 32 are packed in the type that has the same scales, minima and integers, bit by bit, and verify knows it."""
    shape = dict(d=64, f=96, layers=1, positions=16)
    config = llama_config(2, 2, vocab=259, **shape)
    keys = {"attention.layer_norm_rms_epsilon": (F32, 1e-5), "rope.freq_base": (F32, 1e4)}
    base = write("kept_" + type_, "llama", config, keys, [kind], bpe("smollm"), 259, heads=2, **shape)
    printed = works("import", base + ".gguf", "-o", base + ".lua")
    check(f"{kind} stays as it is with --type {type_}" in printed, printed)
    types = ["--weights", base + ".gguf", "--type", f"{type_},embedding={type_}"]
    printed = works("pack", base + ".lua", *types, "-o", base + ".bin")
    check("relative error up to 0 " in printed, printed)
    with open(base + ".bin", "rb") as file:
        blob = file.read()
    for name, panel in (("token_embd", 2), ("output", 32), ("blk.0.attn_q", 32), ("blk.0.ffn_down", 32)):
        matrix = in_panels(*FILES[base][name + ".weight"], panel)
        check(matrix in blob, f"{name} in {kind} is not packed as it is")
    works("verify", base + ".lua", *types, "--isa", "scalar", "--cflags", "-O0")


def main():
    kept("Q4_0", "i4")
    kept("Q4_1", "u4")
    kept("Q8_0", "q8")
    every_type()
    qwen("qwen2")
    qwen("qwen3")
    gemma2()
    phi2("")
    phi2(" packed")
    phi3()
    fused()
    gpt2()
    bert()


main()
