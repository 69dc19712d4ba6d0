//$ takes plan
//$ local pooled = plan.output.pool
//$ local what = plan.output.head and (plan.model.output.classes and "scores" or "logits") or pooled and "a vector" or "vectors"
/* $(model): a whole $(plan.causal and "decoder" or "encoder") with its shapes compiled in, from ids to $(what).
