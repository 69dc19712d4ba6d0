//$ takes whole
//$ local pooled = whole.output.pool
//$ local what = whole.output.head and (whole.model.output.classes and "scores" or "logits") or pooled and "a vector" or "vectors"
/* $(model): a whole $(whole.causal and "decoder" or "encoder") with its shapes compiled in, from ids to $(what).
