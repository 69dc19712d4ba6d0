//$ takes helper, tape, c
//$ local run, a = tape.layers and "r, layer" or "r", tape.attention
//$ local plain, turned = names.macro("TRAIN_PLAIN"), names.macro("TRAIN_ACROSS")
//$ local set, add = names.macro("TRAIN_SET"), names.macro("TRAIN_ADD")
//$ for _, o in ipairs(tape.back.rows) do
//$ local step = o.step
//$ if o.op == "product" then
//$ local map = o.map
//$ local sizes, weights = listed("r->count", map.inputs, map.outputs), listed(c.weights(map.at), map.step)
//$ local matrices = listed(c.gradient_rows(o.from), weights, c.to.gradient_rows(o.to))
    $(helper)_multiply(r, $(plain), $(map.across and turned or plain), $(sizes), $(matrices), $(o.add and add or set));
//$ elseif o.op == "norm" then
//$ local given = listed(
//$     c.gradient_rows(o.from),
//$     c.rows(step.from),
//$     c.weights(step.gain),
//$     c.value(step.statistics),
//$     o.plus and c.gradient(o.plus) or "NULL",
//$     c.to.gradient_rows(o.to),
//$     "r->count"
//$ )
    $(helper)_$(step.kind)_$(step.width)_back($(given));
//$ elseif o.op == "attend" then
    for (size_t s = 0; s < r->count / r->length; ++s) {
        const size_t at = s * r->length, own = $(helper)_length_of(r, s);
//$ local given = listed(
//$     (a.rope or a.lsh) and "r->t",
//$     a.lsh and (tape.layers and "layer" or 0),
//$     c.sequence(step.q),
//$     c.sequence(step.k),
//$     c.sequence(step.v),
//$     c.gradient_at(o.from),
//$     c.to.sequence(step.softmax or step.sums),
//$     step.scales and c.weights(step.scales),
//$     step.scales and "r->memory + r->scales_at + (r->first / r->length + s) * " .. a.heads,
//$     step.shape and c.weights(step.shape),
//$     step.shape and "r->memory + r->shapes_at + (r->first / r->length + s) * " .. 3 * a.heads,
//$     c.to.gradient_at(o.to_q, step.q),
//$     c.to.gradient_at(o.to_k, step.k),
//$     c.to.gradient_at(o.to_v, step.v),
//$     "r->length, own, r->scratch"
//$ )
        $(a.helper)_attend_back($(given));
    }
//$ elseif o.op == "activate" and step.gate then
//$ local values, gradients = listed(c.value(step.gate), c.value(step.hidden)), listed(c.to.gradient(o.to_gate), c.to.gradient(o.to_hidden))
    $(helper)_$(step.activation)_gate_back($(c.gradient(o.from)), $(values), $(gradients), $(c.pitch(step.hidden)), r->count);
//$ elseif o.op == "activate" then
    $(helper)_$(step.activation)_activate_back($(c.gradient(o.from)), $(c.value(step.hidden)),
        $(c.to.gradient(o.to_hidden)), $(c.pitch(step.hidden)), r->count);
//$ elseif o.op == "lookup" then
//$ local x, d = c.all(step.from), c.all_gradient(o.from)
//$ local kept = listed(c.all(step.z), c.all(step.code), c.all(step.score), c.to.all(step.slope))
    $(helper)_$(tape.word)_look_back($(listed(run, x, d, kept, c.to.all_gradient(o.to))));
//$ elseif o.op == "sum" then
    $(helper)_add($(c.gradient(o.a)), $(c.gradient(o.b)), $(c.to.gradient_rows(o.to)), r->count);
//$ elseif o.op == "copy" then
    $(helper)_copy($(c.gradient(o.from)), $(c.to.gradient_rows(o.to)), r->count);
//$ elseif o.op == "columns" then
//$ local to = listed(c.to.gradient_of_view(o.to, step.from), c.gradient_pitch(o.to))
    $(helper)_columns($(c.gradient_rows(o.from)), $(to), $(step.to.width), r->count);
//$ elseif o.op == "dropout" then
    if (r->drops)
        $(helper)_drop(r->t, $(c.site(o.site)), r->t->first_sequence * r->length + r->first, $(c.gradient(o.from)),
            $(c.to.gradient_rows(o.to)), r->count);
//$ if o.from ~= o.to then
    else
        $(helper)_copy($(c.gradient(o.from)), $(c.to.gradient_rows(o.to)), r->count);
//$ end
//$ end
//$ end
