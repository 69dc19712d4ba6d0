//$ takes helper, tape, c, norm_name
//$ local run, a = tape.layers and "r, layer" or "r", tape.attention
//$ local plain, turned, set = names.macro("TRAIN_PLAIN"), names.macro("TRAIN_ACROSS"), names.macro("TRAIN_SET")
//$ for _, step in ipairs(tape.forward) do
//$ if step.op == "embed" then
    $(helper)_embed(r, $(c.to.value(step.to)));
//$ elseif step.op == "norm" then
//$ local gain, offset = c.weights(step.gain), step.offset and c.weights(step.offset)
    $(helper)_$(norm_name(step))($(listed(c.rows(step.from), gain, offset, c.to.rows(step.to), c.to.value(step.statistics), "r->count")));
//$ elseif step.op == "product" then
//$ local map = step.map
    $(helper)_multiply(r, $(plain), $(map.across and plain or turned), r->count, $(map.outputs), $(map.inputs),
        $(c.rows(step.from)), $(c.weights(map.at)), $(map.step), $(c.to.rows(step.to)), $(set));
    $(helper)_add_bias($(c.weights(map.bias)), $(c.to.rows(step.to)), $(map.outputs), r->count); //$ if map.bias
//$ elseif step.op == "attend" then
    for (size_t s = 0; s < r->count / r->length; ++s) {
        const size_t at = s * r->length, own = $(helper)_length_of(r, s);
//$ local given = listed(
//$     (a.rope or a.lsh) and "r->t",
//$     a.lsh and (tape.layers and "layer" or 0),
//$     c.sequence(step.q),
//$     c.sequence(step.k),
//$     c.sequence(step.v),
//$     c.to.sequence(step.to),
//$     c.to.sequence(step.softmax or step.sums),
//$     step.scales and c.weights(step.scales),
//$     step.shape and c.weights(step.shape),
//$     "r->length, own, r->scratch"
//$ )
        $(a.helper)_attend($(given));
    }
//$ elseif step.op == "lookup" then
//$ local kept = listed(c.to.all(step.z), c.to.all(step.code), c.to.all(step.score))
    $(helper)_$(tape.word)_look_up($(run), $(c.all(step.from)), $(c.to.all(step.to)), $(kept));
//$ elseif step.op == "activate" and step.gate then
    $(helper)_$(step.activation)_gate($(c.value(step.gate)), $(c.value(step.hidden)), $(c.to.rows(step.to)), r->count);
//$ elseif step.op == "activate" then
    $(helper)_$(step.activation)_activate($(c.value(step.hidden)), $(c.to.rows(step.to)), r->count);
//$ elseif step.op == "add" then
    $(helper)_add($(c.value(step.a)), $(c.value(step.b)), $(c.to.rows(step.to)), r->count);
//$ elseif step.op == "columns" then
    $(helper)_columns($(c.rows(step.from)), $(c.to.rows(step.to)), $(step.to.width), r->count);
//$ elseif step.op == "dropout" then
    if (r->drops)
        $(helper)_drop(r->t, $(c.site(step.site)), r->t->first_sequence * r->length + r->first, $(c.value(step.value)),
            $(c.to.rows(step.value)), r->count);
//$ end
//$ end
