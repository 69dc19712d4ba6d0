"""Models as people have them, folders of Llama 3, Qwen 3, SmolLM and Gemma 2 and a GGUF file of Gemma 2 in Q8_0, tiny and with random weights,
go through import, generate, perplexity, bench, emit --profile firmware, which an emulated target runs, and emit --web, which Node runs."""
import json
import os
import subprocess
import tempfile

import numpy as np

import browser
import gguf
from lookupc import LOOKUPC, call, check, some, works, write_safetensors

WORK = tempfile.TemporaryDirectory()
RANDOM = np.random.default_rng(48)
D, F, WIDTH, HEADS, CONTEXT = 64, 96, 16, 4, 32
CONFIG = {"hidden_size": D, "intermediate_size": F, "num_attention_heads": HEADS, "head_dim": WIDTH, "max_position_embeddings": CONTEXT,
          "hidden_act": "silu", "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True,
          "attention_bias": False, "attention_dropout": 0.0, "initializer_range": 0.02, "transformers_version": "4.51.0"}
LLAMA_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
GEMMA = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)),
         "\u2581", "t", "h", "e", "\n", "\u2581t", "th", "the", "\u2581the", "\u2581\u2581"]
MERGES = [("t", "h"), ("th", "e"), ("\u2581", "the"), ("\u2581", "t"), ("\u2581", "\u2581")]


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def added(number, text, special=True):
    return {"id": number, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}


def template(text, number):
    """Puts a piece before every text."""
    items = [{"SpecialToken": {"id": text, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    return {"type": "TemplateProcessing", "single": items, "pair": items, "special_tokens": {text: {"id": text, "ids": [number], "tokens": [text]}}}


def tokenizer(folder, pieces, merges, specials, fields, **model):
    with open(folder + "/tokenizer.json", "w", encoding="utf-8") as file:
        json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": specials, **fields,
                   "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                             "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, **model,
                             "vocab": {piece: i for i, piece in enumerate(pieces)}, "merges": merges}}, file)


def byte_level(folder, splits, specials, **fields):
    """Bytes, and pieces that merges make of them."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    pieces = [chr(byte if byte in printable else next(others)) for byte in range(256)] + ["th", "the", "Ġt", "Ġthe"]
    whole = fields.pop("ignore_merges", False)
    fields = {"normalizer": None, "post_processor": None, "decoder": {"type": "ByteLevel"}, **fields}
    fields["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": splits}
    rows = [added(len(pieces) + i, text) for i, text in enumerate(specials)]
    tokenizer(folder, pieces, ["t h", "th e", "Ġ t", "Ġ the"], rows, fields, ignore_merges=whole)
    return len(pieces) + len(specials)


def weights(folder, config, vocab, layers=2, kv_heads=2, norms=("input_layernorm", "post_attention_layernorm"), head_norms=(), gain=1.0):
    """config.json and model.safetensors, the head tied. Returns the tensors."""
    tensors = {"model.embed_tokens.weight": (vocab, D), "model.norm.weight": (D,)}
    e = kv_heads * WIDTH
    shapes = {"self_attn.q_proj": (HEADS * WIDTH, D), "self_attn.k_proj": (e, D), "self_attn.v_proj": (e, D), "self_attn.o_proj": (D, HEADS * WIDTH),
              "mlp.gate_proj": (F, D), "mlp.up_proj": (F, D), "mlp.down_proj": (D, F), **dict.fromkeys(norms, (D,)), **dict.fromkeys(head_norms, (WIDTH,))}
    for layer in range(layers):
        tensors.update({f"model.layers.{layer}.{name}.weight": shape for name, shape in shapes.items()})
    for name, shape in tensors.items():
        drawn = RANDOM.standard_normal(shape)
        tensors[name] = (gain + np.round(drawn * 32) / 256 if len(shape) == 1 else drawn * shape[1] ** -0.5).astype(np.float32)
    write_safetensors(folder + "/model.safetensors", tensors)
    with open(folder + "/config.json", "w", encoding="utf-8") as file:
        json.dump({**CONFIG, "vocab_size": vocab, "num_hidden_layers": layers, "num_key_value_heads": kv_heads, **config}, file)
    return tensors


def llama3(folder):
    first = template("<|begin_of_text|>", 260)
    vocab = byte_level(folder, [split(LLAMA_SPLIT), BYTES], ["<|begin_of_text|>", "<|end_of_text|>"], ignore_merges=True,
                       post_processor={"type": "Sequence", "processors": [{**BYTES, "trim_offsets": False}, first]})
    scaling = {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 64, "rope_type": "llama3"}
    weights(folder, {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "rope_theta": 5e5, "rope_scaling": scaling, "mlp_bias": False,
                     "pretraining_tp": 1, "bos_token_id": 260, "eos_token_id": [261]}, vocab)
    return [260, 257, 32, 49, 50, 259]


def qwen3(folder):
    splits = [split(LLAMA_SPLIT.replace("{1,3}", "")), BYTES]
    vocab = byte_level(folder, splits, ["<|endoftext|>", "<|im_end|>"], normalizer={"type": "NFC"}, post_processor=BYTES)
    weights(folder, {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "rope_theta": 1000000, "max_window_layers": 2, "rope_scaling": None,
                     "sliding_window": None, "use_sliding_window": False}, vocab, head_norms=("self_attn.q_norm", "self_attn.k_norm"))
    return [257, 32, 49, 50, 259]


def smollm(folder):
    vocab = byte_level(folder, [{"type": "Digits", "individual_digits": True}, {**BYTES, "use_regex": True}], ["<|endoftext|>", "<|im_end|>"])
    weights(folder, {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "rope_theta": 10000.0, "rope_scaling": None, "pad_token_id": 2,
                     "rope_interleaved": False, "is_llama_config": True, "transformers.js_config": {"dtype": {"q4": "q4"}}}, vocab, kv_heads=4)
    return [257, 32, 49, 50, 259]


GEMMA_IDS = [2, 267, 260, 53, 54, 268]


def gemma2(folder):
    specials = [added(i, text) for i, text in enumerate(GEMMA[:4])] + [added(GEMMA.index(text), text, False) for text in ("\n", "\u2581\u2581")]
    space = {"String": " "}
    tokenizer(folder, GEMMA, MERGES, specials, {
        "normalizer": {"type": "Replace", "pattern": space, "content": "\u2581"}, "post_processor": template("<bos>", 2), "decoder": {"type": "Fuse"},
        "pre_tokenizer": {"type": "Split", "pattern": space, "behavior": "MergedWithPrevious", "invert": False},
    }, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    config = {"model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "hidden_act": "gelu_pytorch_tanh", "query_pre_attn_scalar": 16,
              "hidden_activation": "gelu_pytorch_tanh", "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "sliding_window": 16,
              "cache_implementation": "hybrid", "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0, "rope_theta": 10000.0}
    norms = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")
    return weights(folder, config, len(GEMMA), 3, norms=norms, gain=0.0)


# What stands in the names of a GGUF file.
IN_FILE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "model.layers.": "blk.", "self_attn.q_proj": "attn_q",
           "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate",
           "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
           "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}


def gemma2_gguf(tensors, path):
    """The same model, its matrices in Q8_0: gains whole, and the tokenizer by scores."""
    u32, f32, ranks = 4, 6, ["".join(pair) for pair in MERGES]
    kinds = [3, 3, 3, 2] + [6] * 256 + [4 if text in ("\n", "\u2581\u2581") else 1 for text in GEMMA[260:]]
    scores = [-float(ranks.index(text)) if text in ranks else -1000.0 for text in GEMMA]
    own = {"embedding_length": (u32, D), "feed_forward_length": (u32, F), "block_count": (u32, 3), "context_length": (u32, CONTEXT),
           "attention.head_count": (u32, HEADS), "attention.head_count_kv": (u32, 2), "attention.key_length": (u32, WIDTH),
           "attention.value_length": (u32, WIDTH), "attention.layer_norm_rms_epsilon": (f32, 1e-5), "attention.sliding_window": (u32, 16),
           "attn_logit_softcapping": (f32, 50.0), "final_logit_softcapping": (f32, 30.0)}
    words = {"model": (gguf.STRING, "llama"), "pre": (gguf.STRING, "default"), "tokens": ([gguf.STRING], GEMMA), "scores": ([f32], scores),
             "token_type": ([5], kinds), "bos_token_id": (u32, 2), "eos_token_id": (u32, 1), "unknown_token_id": (u32, 3), "padding_token_id": (u32, 0),
             "add_bos_token": (gguf.BOOL, True), "add_eos_token": (gguf.BOOL, False), "add_space_prefix": (gguf.BOOL, False)}
    file = {}
    for name, values in tensors.items():
        values = values + np.float32(len(values.shape) == 1)
        for here, there in IN_FILE.items():
            name = name.replace(here, there)
        file[name] = ("F32", values.shape, values.tobytes()) if values.ndim == 1 else ("Q8_0", values.shape, gguf.in_bytes(values))
    gguf.write(path, {"general.architecture": (gguf.STRING, "gemma2"), "general.name": (gguf.STRING, "gemma2"),
                      **{f"gemma2.{key}": entry for key, entry in own.items()}, **{f"tokenizer.ggml.{key}": entry for key, entry in words.items()}}, file)


QUICKLY = ("--isa", "scalar", "--cflags", "-O0")
PROMPT, TOKENS = "the the", 6


def generate(model, given):
    made = call("generate", model, PROMPT, *given, "--tokens", str(TOKENS), "--temperature", "0", *QUICKLY)
    check(made.returncode == 0 and made.stdout, f"generate: {made}")
    return made.stdout.decode(errors="replace").removesuffix("\n")


def perplexity(model, given):
    with open(model + ".txt", "w", encoding="ascii") as file:
        file.write("the 12 the\n" * 20)
    found = json.loads(works("perplexity", model, *given, "--text", model + ".txt", "--json", *QUICKLY))
    check(0 < found["nats_per_token"] < 12, f"perplexity: {found}")


def bench(model, given, *_):
    found = json.loads(works("bench", model, *given, "--lengths", "8", "--repetitions", "1", "--json", *QUICKLY))
    check(found["results"], f"bench: {found}")


def firmware(model, given, _, target):
    """Its self-test passes, its tokenizer gives the ids that lookupc gives, and no more memory is taken than it declares."""
    words = {"LOOKUPC_TEST": "the_self_test_passes_on_" + target.replace("-", "_"), "FIRMWARE_TARGET": target, "FIRMWARE_MODEL": model,
             "FIRMWARE_WEIGHTS": given[1], "FIRMWARE_OPTIONS": " ".join(given[2:])}
    test = [os.path.dirname(LOOKUPC) + "/lua_runner", ".", LOOKUPC, "tests/firmware/targets_test.lua"]
    result = subprocess.run(test, env={**os.environ, **words}, capture_output=True, text=True)
    check(result.returncode == 0, f"firmware: {result.stdout}{result.stderr}")


def web(model, given, text, _):
    """The page's module goes on with a prompt as the program does."""
    folder, name = model[:-4] + "_web", os.path.basename(model)[:-4]
    works("emit", model, "--web", folder, *given)
    body = f"""
        const model = await load({{ base }});
        console.log(JSON.stringify([...model.generate({json.dumps(PROMPT)}, {{ temperature: 0, most: {TOKENS} }})].join('')));"""
    found = browser.in_node(folder, name, body)
    check(found == text, f"web: {name} writes {found!r}, natively {text!r}")


def main():
    rows = []  # path, ids of a text, types, target of firmware
    for make, target in ((llama3, "cortex-m4f"), (qwen3, "aarch64"), (smollm, "cortex-m0plus")):
        folder = f"{WORK.name}/{make.__name__}"
        os.makedirs(folder)
        rows.append((folder, make(folder), [], target))
    folder = WORK.name + "/gemma2"
    os.makedirs(folder)
    gemma2_gguf(gemma2(folder), folder + ".gguf")
    rows += [(folder, GEMMA_IDS, [], "generic"), (folder + ".gguf", GEMMA_IDS, ["--type", "q8,embedding=q8"], "cortex-m55")]
    for number, (path, ids, options, target) in enumerate(rows):
        name = os.path.basename(path).replace(".", "_")
        model = f"{WORK.name}/{name}.lua"
        works("import", path, "--name", name, "-o", model)
        found = works("tokenize", model, "the 12 the")
        check(list(map(int, found.split())) == ids, f"{path}: tokens {found}")
        given = ["--weights", path, *options]
        text = generate(model, given)
        perplexity(model, given)
        commands = [bench, firmware, web] * 2
        for command in some("published", commands[number % 3:][:3], 1):
            command(model, given, text, target)


main()
