//$ takes helper, tape, c, norm_name
//$ for _, step in ipairs(tape.forward) do
//$ local op = step.gate and "gate" or step.op
//$ local from = op ~= "lookup" and step.from and c.rows(step.from)
//$ local to = op ~= "lookup" and step.to and c.rows(step.to)
//$ if op == "norm" then
    $(helper)_$(norm_name(step))(&$(tape.table_of[step]), $(c.weights()), &$(from), &$(to), &$(c.rows(step.statistics)), r->count);
//$ elseif op == "gate" then
    $(helper)_$(step.activation)_gate($(c.rows(step.gate)).at, $(c.rows(step.hidden)).at, $(to).at, $(to).step, r->count);
//$ end
    $(helper)_embed(r, &$(to)); //$ if op == "embed"
    $(helper)_multiply(r, &$(tape.table_of[step.map]), $(c.weights()), &$(from), &$(to), r->count); //$ if op == "product"
$(include("templates/model/training/attend.c", { attend = "attend", fields = c.attention(step) })) //$ if op == "attend"
$(include("templates/model/training/look.c", { look = "look_up", fields = c.lookup(step) })) //$ if op == "lookup"
    $(helper)_$(step.activation)_activate($(c.rows(step.hidden)).at, $(to).at, $(to).step, r->count); //$ if op == "activate"
    $(helper)_add($(c.rows(step.a)).at, $(c.rows(step.b)).at, $(to).at, $(to).step, r->count); //$ if op == "add"
    $(helper)_columns(&$(from), &$(to), $(step.to.width), r->count); //$ if op == "columns"
    $(helper)_drop(r, $(c.site(step.site)), &$(c.rows(step.value)), &$(c.rows(step.value))); //$ if op == "dropout"
//$ end
