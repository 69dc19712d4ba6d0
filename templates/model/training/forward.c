//$ takes helper, tape, c, norm_name
//$ local run, a = tape.layers and "r, layer" or "r", tape.attention
//$ for _, step in ipairs(tape.forward) do
//$ if step.op == "embed" then
    $(helper)_embed(r, $(c.value(step.to)));
//$ elseif step.op == "norm" then
    $(helper)_$(norm_name(step))($(c.rows(step.from)), $(c.weights(step.gain)), $(step.offset and c.weights(step.offset) .. ", " or "")$(c.rows(step.to)), $(c.value(step.statistics)), r->count);
//$ elseif step.op == "product" then
//$ local map = step.map
    $(helper)_multiply(r, 0, $(map.across and 0 or 1), r->count, $(map.outputs), $(map.inputs), $(c.rows(step.from)), $(c.weights(map.at)), $(map.step), $(c.rows(step.to)), 0);
//$ if map.bias then
    $(helper)_add_bias($(c.weights(map.bias)), $(c.rows(step.to)), $(map.outputs), r->count);
//$ end
//$ elseif step.op == "attend" then
    for (size_t s = 0; s < r->count / r->length; ++s) {
        const size_t at = s * r->length, own = r->t->lengths ? r->t->lengths[r->first / r->length + s] : r->length;
        $(a.helper)_attend($(a.rope and "r->t, " or "")$(c.sequence(step.q)), $(c.sequence(step.k)), $(c.sequence(step.v)), $(c.sequence(step.to)), $(c.sequence(step.softmax)), $(step.shape and c.weights(step.shape) .. ", " or "")r->length, own, r->scratch);
    }
//$ elseif step.op == "lookup" then
    $(helper)_$(tape.word)_look_up($(run), $(c.all(step.from)), $(c.all(step.to)), $(c.all(step.z)), $(c.all(step.code)), $(c.all(step.score)));
//$ elseif step.op == "activate" and step.gate then
    $(helper)_$(step.activation)_gate($(c.value(step.gate)), $(c.value(step.hidden)), $(c.rows(step.to)), r->count);
//$ elseif step.op == "activate" then
    $(helper)_$(step.activation)_activate($(c.value(step.hidden)), $(c.rows(step.to)), r->count);
//$ elseif step.op == "add" then
    $(helper)_add($(c.value(step.a)), $(c.value(step.b)), $(c.rows(step.to)), r->count);
//$ elseif step.op == "dropout" then
    if (r->drops)
        $(helper)_drop(r->t, $(c.site(step.site)), r->t->first_sequence * r->length + r->first, $(c.value(step.value)), $(c.rows(step.value)), r->count);
//$ end
//$ end
