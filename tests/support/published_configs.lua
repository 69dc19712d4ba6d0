-- The config.json of published models: all keys that stand in them, each file on few lines.
return {
    ["Llama-2-7b"] = [[{ "_name_or_path": "meta-llama/Llama-2-7b-hf", "architectures": ["LlamaForCausalLM"],
"bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
"intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "llama", "num_attention_heads": 32,
"num_hidden_layers": 32, "num_key_value_heads": 32, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling":
null, "tie_word_embeddings": false, "torch_dtype": "float16", "transformers_version": "4.31.0.dev0", "use_cache":
true, "vocab_size": 32000 }]],
    ["Llama-3.2-1B-Instruct"] = [[{ "architectures": ["LlamaForCausalLM"], "attention_bias": false,
"attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "head_dim": 64,
"hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
"max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32,
"num_hidden_layers": 16, "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {
"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
"rope_type": "llama3" }, "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
"transformers_version": "4.45.0.dev0", "use_cache": true, "vocab_size": 128256, "unsloth_fixed": true,
"pad_token_id": 128004 }]],
    ["SmolLM2-135M"] = [[{ "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
"bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 576, "initializer_range":
0.041666666666666664, "intermediate_size": 1536, "is_llama_config": true, "max_position_embeddings": 8192,
"mlp_bias": false, "model_type": "llama", "num_attention_heads": 9, "num_hidden_layers": 30, "num_key_value_heads":
3, "pad_token_id": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null,
"rope_theta": 100000, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers.js_config": {
"kv_cache_dtype": { "q4f16": "float16" } }, "transformers_version": "4.42.3", "use_cache": true, "vocab_size": 49152
}]],
    ["Mistral-7B-v0.1"] = [[{ "architectures": ["MistralForCausalLM"], "bos_token_id": 1, "eos_token_id": 2,
"hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
"max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32,
"num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.34.0.dev0", "use_cache": true,
"vocab_size": 32000 }]],
    ["Mistral-Nemo"] = [[{ "architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1,
"eos_token_id": 2, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120, "initializer_range": 0.02,
"intermediate_size": 14336, "max_position_embeddings": 131072, "model_type": "mistral", "num_attention_heads": 32,
"num_hidden_layers": 40, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "sliding_window":
null, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.43.0.dev0", "use_cache":
true, "vocab_size": 131072 }]],
    ["Qwen2.5-0.5B"] = [[{ "architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643,
"eos_token_id": 151643, "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02, "intermediate_size":
4864, "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14,
"num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window":
32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.40.1", "use_cache": true,
"use_mrope": false, "use_sliding_window": false, "vocab_size": 151936 }]],
    ["Qwen3-0.6B"] = [[{ "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
"bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024,
"initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28,
"model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps":
1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true,
"torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false,
"vocab_size": 151936 }]],
    -- as versions of transformers from 5 on save it
    ["Qwen3 of transformers 5"] = [[{ "architectures": ["Qwen3ForCausalLM"], "attention_bias": false,
"attention_dropout": 0.0, "bos_token_id": null, "dtype": "bfloat16", "eos_token_id": 151645, "head_dim": 128,
"hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072, "layer_types":
["full_attention", "full_attention"], "max_position_embeddings": 40960, "max_window_layers": 28, "model_type":
"qwen3", "num_attention_heads": 16, "num_hidden_layers": 2, "num_key_value_heads": 8, "pad_token_id": null,
"rms_norm_eps": 1e-06, "rope_parameters": { "rope_theta": 1000000, "rope_type": "default" }, "sliding_window": null,
"tie_word_embeddings": true, "transformers_version": "5.0.0", "use_cache": true, "use_sliding_window": false,
"vocab_size": 151936 }]],
    ["gemma-2b"] = [[{ "architectures": ["GemmaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
"bos_token_id": 2, "eos_token_id": 1, "head_dim": 256, "hidden_act": "gelu", "hidden_activation": null,
"hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 16384, "max_position_embeddings": 8192,
"model_type": "gemma", "num_attention_heads": 8, "num_hidden_layers": 18, "num_key_value_heads": 1, "pad_token_id":
0, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000.0, "torch_dtype": "bfloat16",
"transformers_version": "4.38.0.dev0", "use_cache": true, "vocab_size": 256000 }]],
    ["gemma-2-9b"] = [[{ "architectures": ["Gemma2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
"attn_logit_softcapping": 50.0, "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": 1,
"final_logit_softcapping": 30.0, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "hidden_activation":
"gelu_pytorch_tanh", "hidden_size": 3584, "initializer_range": 0.02, "intermediate_size": 14336,
"max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 16, "num_hidden_layers": 42,
"num_key_value_heads": 8, "pad_token_id": 0, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06, "rope_theta":
10000.0, "sliding_window": 4096, "sliding_window_size": 4096, "torch_dtype": "float32", "transformers_version":
"4.42.0.dev0", "use_bidirectional_attention": null, "use_cache": true, "vocab_size": 256000 }]],
    ["phi-2"] = [[{ "_name_or_path": "microsoft/phi-2", "architectures": ["PhiForCausalLM"], "attention_dropout":
0.0, "bos_token_id": 50256, "embd_pdrop": 0.0, "eos_token_id": 50256, "hidden_act": "gelu_new", "hidden_size": 2560,
"initializer_range": 0.02, "intermediate_size": 10240, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
"model_type": "phi", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
"partial_rotary_factor": 0.4, "qk_layernorm": false, "resid_pdrop": 0.1, "rope_scaling": null, "rope_theta":
10000.0, "tie_word_embeddings": false, "torch_dtype": "float16", "transformers_version": "4.37.0", "use_cache":
true, "vocab_size": 51200 }]],
    ["Phi-3-mini-4k-instruct"] = [[{ "_name_or_path": "Phi-3-mini-4k-instruct", "architectures":
["Phi3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "auto_map": { "AutoConfig":
"configuration_phi3.Phi3Config" }, "bos_token_id": 1, "embd_pdrop": 0.0, "eos_token_id": 32000, "hidden_act":
"silu", "hidden_size": 3072, "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 4096,
"model_type": "phi3", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
"original_max_position_embeddings": 4096, "pad_token_id": 32000, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05,
"rope_scaling": null, "rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": false, "torch_dtype":
"bfloat16", "transformers_version": "4.40.2", "use_cache": true, "vocab_size": 32064 }]],
    ["phi-4"] = [[{ "_name_or_path": "microsoft/phi-4", "architectures": ["Phi3ForCausalLM"], "attention_bias":
false, "attention_dropout": 0.0, "bos_token_id": 100257, "embd_pdrop": 0.0, "eos_token_id": 100257, "full_attn_mod":
1, "hidden_act": "silu", "hidden_size": 5120, "initializer_range": 0.02, "intermediate_size": 17920,
"interpolate_factor": 1, "lm_head_bias": false, "max_position_embeddings": 16384, "mlp_bias": false, "model_type":
"phi3", "num_attention_heads": 40, "num_hidden_layers": 40, "num_key_value_heads": 10,
"original_max_position_embeddings": 16384, "pad_token_id": 100257, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05,
"rope_scaling": null, "rope_theta": 250000, "sliding_window": null, "tie_word_embeddings": false, "torch_dtype":
"bfloat16", "transformers_version": "4.47.0", "use_cache": true, "vocab_size": 100352 }]],
    ["pythia-70m"] = [[{ "architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0,
"hidden_act": "gelu", "hidden_size": 512, "initializer_range": 0.02, "intermediate_size": 2048, "layer_norm_eps":
1e-05, "max_position_embeddings": 2048, "model_type": "gpt_neox", "num_attention_heads": 8, "num_hidden_layers": 6,
"rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": false, "torch_dtype": "float16",
"transformers_version": "4.24.0", "use_cache": true, "use_parallel_residual": true, "vocab_size": 50304 }]],
    ["pythia, saved again"] = [[{ "architectures": ["GPTNeoXForCausalLM"], "attention_bias": true,
"attention_dropout": 0.0, "attention_probs_dropout_prob": 0, "bos_token_id": 0, "classifier_dropout": 0.1,
"eos_token_id": 0, "hidden_act": "gelu", "hidden_dropout": 0.0, "hidden_dropout_prob": 0, "hidden_size": 512,
"initializer_range": 0.02, "intermediate_size": 2048, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
"model_type": "gpt_neox", "num_attention_heads": 8, "num_hidden_layers": 6, "partial_rotary_factor": 0.25,
"rope_scaling": null, "rope_theta": 10000, "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings":
false, "torch_dtype": "float32", "transformers_version": "4.49.0", "use_cache": true, "use_parallel_residual": true,
"vocab_size": 50304 }]],
    gpt2 = [[{ "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
"bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon":
1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
"resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1, "summary_proj_to_labels": true,
"summary_type": "cls_index", "summary_use_proj": true, "task_specific_params": { "text-generation": { "do_sample":
true, "max_length": 50 } }, "vocab_size": 50257 }]],
    distilgpt2 = [[{ "_num_labels": 1, "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
"attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "id2label": { "0": "LABEL_0" },
"initializer_range": 0.02, "label2id": { "LABEL_0": 0 }, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx":
1024, "n_embd": 768, "n_head": 12, "n_layer": 6, "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation":
null, "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj":
true, "task_specific_params": {}, "vocab_size": 50257, "n_inner": null, "reorder_and_upcast_attn": false,
"scale_attn_by_inverse_layer_idx": false, "scale_attn_weights": true, "gradient_checkpointing": false,
"output_past": true, "pruned_heads": {}, "finetuning_task": null }]],
    ["bert-base-uncased"] = [[{ "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
"gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
"initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
"model_type": "bert", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0,
"position_embedding_type": "absolute", "transformers_version": "4.6.0.dev0", "type_vocab_size": 2, "use_cache":
true, "vocab_size": 30522 }]],
    ["bert-base-chinese"] = [[{ "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1,
"directionality": "bidi", "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range":
0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
"num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0, "pooler_fc_size": 768,
"pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3, "pooler_size_per_head": 128, "pooler_type":
"first_token_transform", "type_vocab_size": 2, "vocab_size": 21128 }]],
    ["bge-small-en"] = [[{ "_name_or_path": "/root/bge-small-en", "architectures": ["BertModel"],
"attention_probs_dropout_prob": 0.1, "classifier_dropout": null, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
"hidden_size": 384, "id2label": { "0": "LABEL_0" }, "initializer_range": 0.02, "intermediate_size": 1536,
"label2id": { "LABEL_0": 0 }, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
"num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0, "position_embedding_type": "absolute",
"torch_dtype": "float32", "transformers_version": "4.30.0", "type_vocab_size": 2, "use_cache": true, "vocab_size":
30522 }]],
    ["ms-marco-MiniLM-L6-v2"] = [[{ "architectures": ["BertForSequenceClassification"],
"attention_probs_dropout_prob": 0.1, "gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob":
0.1, "hidden_size": 384, "id2label": { "0": "LABEL_0" }, "initializer_range": 0.02, "intermediate_size": 1536,
"label2id": { "LABEL_0": 0 }, "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert",
"num_attention_heads": 12, "num_hidden_layers": 6, "pad_token_id": 0, "position_embedding_type": "absolute",
"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity", "sentence_transformers": {
"activation_fn": "torch.nn.modules.linear.Identity", "version": "4.1.0.dev0" }, "transformers_version": "4.8.2",
"type_vocab_size": 2, "use_cache": true, "vocab_size": 30522 }]],
    ["roberta-base"] = [[{ "architectures": ["RobertaForMaskedLM"], "attention_probs_dropout_prob": 0.1,
"bos_token_id": 0, "eos_token_id": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
"initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 514,
"model_type": "roberta", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1, "type_vocab_size":
1, "vocab_size": 50265 }]],
    ["roberta of 2020"] = [[{ "architectures": ["RobertaForMaskedLM"], "attention_probs_dropout_prob": 0.1,
"bos_token_id": 0, "do_sample": false, "eos_token_id": 2, "eos_token_ids": null, "finetuning_task": null,
"hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768, "id2label": { "0": "LABEL_0", "1": "LABEL_1"
}, "initializer_range": 0.02, "intermediate_size": 3072, "is_decoder": false, "label2id": { "LABEL_0": 0, "LABEL_1":
1 }, "layer_norm_eps": 1e-05, "length_penalty": 1.0, "max_length": 20, "max_position_embeddings": 514, "model_type":
"roberta", "num_attention_heads": 12, "num_beams": 1, "num_hidden_layers": 12, "num_labels": 2,
"num_return_sequences": 1, "output_attentions": false, "output_hidden_states": false, "output_past": true,
"pad_token_id": 1, "pruned_heads": {}, "repetition_penalty": 1.0, "temperature": 1.0, "top_k": 50, "top_p": 1.0,
"torchscript": false, "type_vocab_size": 1, "use_bfloat16": false, "vocab_size": 50265 }]],
    ["xlm-roberta-large, for questions"] = [[{ "_name_or_path": "xlm-roberta-large", "architectures":
["XLMRobertaModel"], "attention_probs_dropout_prob": 0.1, "bos_token_id": 0, "eos_token_id": 2,
"gradient_checkpointing": false, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 1024,
"initializer_range": 0.02, "intermediate_size": 4096, "language": "english", "layer_norm_eps": 1e-05,
"max_position_embeddings": 514, "model_type": "xlm-roberta", "name": "XLMRoberta", "num_attention_heads": 16,
"num_hidden_layers": 24, "output_past": true, "pad_token_id": 1, "position_embedding_type": "absolute",
"transformers_version": "4.6.1", "type_vocab_size": 1, "use_cache": true, "vocab_size": 250002 }]],
}
