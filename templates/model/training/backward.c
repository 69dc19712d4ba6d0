//$ takes helper, tape, c
//$ local set, add = names.macro("TRAIN_SET"), names.macro("TRAIN_ADD")
//$ for _, o in ipairs(tape.back.rows) do
//$ local step, own = o.step, o.op ~= "lookup"
//$ local from, to = own and o.from and c.gradient(o.from), own and o.to and c.gradient(o.to)
//$ if o.op == "product" then
    $(helper)_multiply_back(r, &$(tape.table_of[o.map]), $(c.weights()), &$(from), &$(to), $(o.add and add or set), r->count);
//$ elseif o.op == "norm" then
    $(helper)_$(step.kind)_$(step.width)_back(&$(tape.table_of[step]), $(c.weights()), &$(c.rows(step.from)), &$(c.rows(step.statistics)),
        &$(from), $(o.plus and "&" .. c.gradient(o.plus) or "NULL"), &$(to), r->count);
//$ elseif o.op == "attend" then
$(include("templates/model/training/attend.c", { attend = "attend_back", fields = c.attention(step, o) }))
//$ elseif o.op == "lookup" then
$(include("templates/model/training/look.c", { look = "look_back", fields = c.lookup(step, o) }))
//$ elseif o.op == "activate" and step.gate then
//$ local to_gate, to_hidden = c.gradient(o.to_gate), c.gradient(o.to_hidden)
    $(helper)_$(step.activation)_gate_back($(from).at, $(c.rows(step.gate)).at, $(c.rows(step.hidden)).at, $(to_gate).at,
        $(to_hidden).at, $(to_hidden).step, r->count);
//$ elseif o.op == "activate" then
//$ local to_hidden = c.gradient(o.to_hidden)
    $(helper)_$(step.activation)_activate_back($(from).at, $(c.rows(step.hidden)).at, $(to_hidden).at, $(to_hidden).step, r->count);
//$ elseif o.op == "sum" then
    $(helper)_add($(c.gradient(o.a)).at, $(c.gradient(o.b)).at, $(to).at, $(to).step, r->count);
//$ elseif o.op == "copy" then
    $(helper)_copy($(from).at, $(to).at, $(to).step, r->count);
//$ elseif o.op == "columns" then
    $(helper)_columns(&$(from), &$(c.gradient_of_view(o.to, step.from)), $(step.to.width), r->count);
//$ elseif o.op == "dropout" then
    $(helper)_drop(r, $(c.site(o.site)), &$(from), &$(to));
//$ end
//$ end
