//$ takes helper, tape, c
//$ for _, o in ipairs(tape.back.parameters) do
//$ local step, from = o.step, o.from and c.gradient(o.from)
//$ if o.op == "product" then
    $(helper)_multiply_sums(r, &$(tape.table_of[o.map]), $(c.sums()), &$(c.rows(o.x)), &$(from), r->sequences * r->length);
//$ elseif o.op == "norm" then
    $(helper)_norm_sums(r, &$(tape.table_of[step]), $(c.sums()), &$(c.rows(step.from)), &$(c.rows(step.statistics)), &$(from));
//$ elseif o.op == "embed" then
    $(helper)_embed_back(r, &$(from));
//$ elseif o.op == "shape" or o.op == "scales" then
    $(helper)_sequence_sums(r, $(c.scalars(o.op)), $(c.sums()) + $(tape.place("tensor", step[o.op])));
//$ elseif o.op == "lookup" then
    $(helper)_$(tape.word)_look_sums(r);
//$ end
//$ end
