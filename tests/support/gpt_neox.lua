-- The config.json of a small GPT-NeoX.
return [[
{ "model_type": "gpt_neox", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100,
  "intermediate_size": 256, "hidden_act": "gelu", "max_position_embeddings": 32, "rotary_pct": 0.25,
  "rotary_emb_base": 10000, "layer_norm_eps": 1e-05, "use_parallel_residual": true }
]]
