//$ takes helper, v, step, names_of, tiles, gains_of, by_count, limited
//$ -- One step of a block, of the `count` tokens of a chunk from token number `at` of a call on.
//$ local op, macro = step.op, names.constant
//$ local spans, joined = op == "append" or op == "attend" or op == "sum", tiles and step.of
//$ local looked, skipped = step.b_at and macro("LOOKED_OUTPUT"), step.a == "in" and shape.projected and macro("IN_SKIPPED")
//$ local first = step.constant and macro(step.constant)
//$ local y = "call->y + at * " .. macro "D" .. ", " .. macro "D"
//$ local most = limited and (step.appends or op == "attend" or op == "append" and shape.ring) and v.queries .. ", " or limited and "count, " or ""
//$ -- The rows of a buffer, from the element with that name on; and of one of its tokens.
//$ local function rows(name, first) return sum("b." .. name .. ".at", first or 0) .. ", b." .. name .. ".step" end
//$ local function row_of(name, first) return sum("b." .. name .. ".at", first or 0, "token * b." .. name .. ".step") end
        $(names_of.norm(step))($(rows(step.from)), $(gains_of(step)), $(rows(step.to)), count); //$ if op == "norm"
//$ if op == "norm_heads" then
//$ local gains, width = listed(shape.width, gains_of(step)), shape.width
        for (size_t token = 0; token < count; ++token)
            $(names_of.norm(step))($(row_of(step.from, first)), $(gains), $(row_of(step.to)), $(width), $(step.width // width));
//$ end
        $(names_of.copy(step.width))($(rows(step.from)), $(rows(step.to)), count); //$ if op == "copy"
        $(names_of.round(step.inputs))($(rows(step.from)), $(rows(step.rounded)), count); //$ if op == "round"
        /* $(step.map.letter): $(plural(step.map.inputs, "input")), $(plural(step.map.outputs, "output")) */ //$ if op == "product"
        $(helper)_multiply_$(step.map.field)(&own, $(rows(step.from)), $(rows(step.to)), count$(v.product.unpacks and ", b.strip" or "")); //$ if op == "product"
        for ($(helper)_no_span(&span); $(helper)_next_span(call, at, count, $(most)&span);) { //$ if spans
            $(helper)_append(&own, &b, &span, &cache); //$ if op == "append" or step.appends
            $(helper)_attend(call, &own, &b, &span, &cache); //$ if op == "attend"
            $(helper)_sum(call, &b, at, &span); //$ if op == "sum"
        } //$ if spans
        $(helper)_look_up(&own, b.$(step.from).at, b.$(step.to).at, count, $(by_count and "together, " or "")scratch); //$ if op == "lookup"
        $(helper)_activate(&b, count); //$ if op == "activate" and not joined
        $(helper)_project_and_activate(&own, &b, count); //$ if op == "activate" and joined
        $(names_of.add())($(rows(step.a, skipped)), $(rows(step.b, looked)), $(rows(step.to)), count); //$ if op == "add"
        $(names_of.copy(shape.d))($(rows(step.from)), $(y), count); //$ if op == "output" and step.from
        $(names_of.add())($(rows(step.a, skipped)), $(rows(step.b, looked)), $(y), count); //$ if op == "output" and step.a
