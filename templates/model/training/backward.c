//$ takes helper, tape, c
//$ local run, a = tape.layers and "r, layer" or "r", tape.attention
//$ for _, o in ipairs(tape.back.rows) do
//$ local step = o.step
//$ if o.op == "product" then
//$ local map = o.map
    $(helper)_multiply(r, 0, $(map.across and 1 or 0), r->count, $(map.inputs), $(map.outputs), $(c.gradient_rows(o.from)), $(c.weights(map.at)), $(map.step), $(c.gradient_rows(o.to)), $(o.add and 1 or 0));
//$ elseif o.op == "norm" then
    $(helper)_$(step.kind)_$(step.width)_back($(c.gradient_rows(o.from)), $(c.rows(step.from)), $(c.weights(step.gain)), $(c.value(step.statistics)), $(o.plus and c.gradient(o.plus) or "NULL"), $(c.gradient_rows(o.to)), r->count);
//$ elseif o.op == "attend" then
    for (size_t s = 0; s < r->count / r->length; ++s) {
        const size_t at = s * r->length, own = r->t->lengths ? r->t->lengths[r->first / r->length + s] : r->length;
//$ local shapes = step.shape and ", r->memory + r->shapes_at + (r->first / r->length + s) * " .. 3 * a.heads or ""
        $(a.helper)_attend_back($(a.rope and "r->t, " or "")$(c.sequence(step.q)), $(c.sequence(step.k)), $(c.sequence(step.v)), $(c.gradient_at(o.from)), $(c.sequence(step.softmax)), $(step.shape and c.weights(step.shape) .. shapes .. ", " or "")$(c.gradient_at(o.to_q, step.q)), $(c.gradient_at(o.to_k, step.k)), $(c.gradient_at(o.to_v, step.v)), r->length, own, r->scratch);
    }
//$ elseif o.op == "activate" and step.gate then
    $(helper)_$(step.activation)_gate_back($(c.gradient(o.from)), $(c.value(step.gate)), $(c.value(step.hidden)), $(c.gradient(o.to_gate)), $(c.gradient(o.to_hidden)), $(c.pitch(step.hidden)), r->count);
//$ elseif o.op == "activate" then
    $(helper)_$(step.activation)_activate_back($(c.gradient(o.from)), $(c.value(step.hidden)), $(c.gradient(o.to_hidden)), $(c.pitch(step.hidden)), r->count);
//$ elseif o.op == "lookup" then
    $(helper)_$(tape.word)_look_back($(run), $(c.all(step.from)), $(c.all_gradient(o.from)), $(c.all(step.z)), $(c.all(step.code)), $(c.all(step.score)), $(c.all(step.slope)), $(c.all_gradient(o.to)));
//$ elseif o.op == "sum" then
    $(helper)_add($(c.gradient(o.a)), $(c.gradient(o.b)), $(c.gradient_rows(o.to)), r->count);
//$ elseif o.op == "copy" then
    $(helper)_copy($(c.gradient(o.from)), $(c.gradient_rows(o.to)), r->count);
//$ elseif o.op == "dropout" then
    if (r->drops)
        $(helper)_drop(r->t, $(c.site(o.site)), r->t->first_sequence * r->length + r->first, $(c.gradient(o.from)), $(c.gradient_rows(o.to)), r->count);
//$ if o.from ~= o.to then
    else
        $(helper)_copy($(c.gradient(o.from)), $(c.gradient_rows(o.to)), r->count);
//$ end
//$ end
//$ end
