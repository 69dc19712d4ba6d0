//$ takes helper, tape, c
//$ local set, add = names.macro("TRAIN_SET"), names.macro("TRAIN_ADD")
//$ for _, o in ipairs(tape.back.rows) do
//$ local step, op = o.step, o.op == "activate" and o.step.gate and "gate" or o.op
//$ local from, to = op ~= "lookup" and o.from and c.gradient(o.from), op ~= "lookup" and o.to and c.gradient(o.to)
//$ if op == "product" then
    $(helper)_multiply_back(r, &$(tape.table_of[o.map]), $(c.weights()), &$(from), &$(to), $(o.add and add or set), r->count);
//$ elseif op == "norm" then
    $(helper)_$(step.kind)_$(step.width)_back(&$(tape.table_of[step]), $(c.weights()), &$(c.rows(step.from)), &$(c.rows(step.statistics)),
        &$(from), $(o.plus and "&" .. c.gradient(o.plus) or "NULL"), &$(to), r->count);
//$ elseif op == "gate" then
//$ local to_gate, to_hidden = c.gradient(o.to_gate), c.gradient(o.to_hidden)
    $(helper)_$(step.activation)_gate_back($(from).at, $(c.rows(step.gate)).at, $(c.rows(step.hidden)).at, $(to_gate).at,
        $(to_hidden).at, $(to_hidden).step, r->count);
//$ elseif op == "activate" then
//$ local to_hidden = c.gradient(o.to_hidden)
    $(helper)_$(step.activation)_activate_back($(from).at, $(c.rows(step.hidden)).at, $(to_hidden).at, $(to_hidden).step, r->count);
//$ end
$(include("templates/model/training/attend.c", { attend = "attend_back", fields = c.attention(step, o) })) //$ if op == "attend"
$(include("templates/model/training/look.c", { look = "look_back", fields = c.lookup(step, o) })) //$ if op == "lookup"
    $(helper)_add($(c.gradient(o.a)).at, $(c.gradient(o.b)).at, $(to).at, $(to).step, r->count); //$ if op == "sum"
    $(helper)_copy($(from).at, $(to).at, $(to).step, r->count); //$ if op == "copy"
    $(helper)_columns(&$(from), &$(c.gradient_of_view(o.to, step.from)), $(step.to.width), r->count); //$ if op == "columns"
    $(helper)_drop(r, $(c.site(o.site)), &$(from), &$(to)); //$ if op == "dropout"
//$ end
