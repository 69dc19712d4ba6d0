//$ takes helper, tape, c, norm_name
//$ for _, step in ipairs(tape.forward) do
//$ local own = step.op ~= "lookup"
//$ local from, to = own and step.from and c.rows(step.from), own and step.to and c.rows(step.to)
//$ if step.op == "embed" then
    $(helper)_embed(r, &$(to));
//$ elseif step.op == "norm" then
    $(helper)_$(norm_name(step))(&$(tape.table_of[step]), $(c.weights()), &$(from), &$(to), &$(c.rows(step.statistics)), r->count);
//$ elseif step.op == "product" then
    $(helper)_multiply(r, &$(tape.table_of[step.map]), $(c.weights()), &$(from), &$(to), r->count);
//$ elseif step.op == "attend" then
$(include("templates/model/training/attend.c", { attend = "attend", fields = c.attention(step) }))
//$ elseif step.op == "lookup" then
$(include("templates/model/training/look.c", { look = "look_up", fields = c.lookup(step) }))
//$ elseif step.op == "activate" and step.gate then
    $(helper)_$(step.activation)_gate($(c.rows(step.gate)).at, $(c.rows(step.hidden)).at, $(to).at, $(to).step, r->count);
//$ elseif step.op == "activate" then
    $(helper)_$(step.activation)_activate($(c.rows(step.hidden)).at, $(to).at, $(to).step, r->count);
//$ elseif step.op == "add" then
    $(helper)_add($(c.rows(step.a)).at, $(c.rows(step.b)).at, $(to).at, $(to).step, r->count);
//$ elseif step.op == "columns" then
    $(helper)_columns(&$(from), &$(to), $(step.to.width), r->count);
//$ elseif step.op == "dropout" then
    $(helper)_drop(r, $(c.site(step.site)), &$(c.rows(step.value)), &$(c.rows(step.value)));
//$ end
//$ end
