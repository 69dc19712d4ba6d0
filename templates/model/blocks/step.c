//$ takes helper, v, step, names_of, tiles, kernels_of, lookup_of
//$ -- One step of a block, of the `count` tokens of a chunk from token number `at` of a call on.
//$ local macro = names.constant
//$ -- The rows of a buffer, from the element with that name on; and of one of its tokens.
//$ local function rows(name, first) return sum("b." .. name .. ".at", first or 0) .. ", b." .. name .. ".step" end
//$ local function row_of(name, first) return sum("b." .. name .. ".at", first or 0, "token * b." .. name .. ".step") end
//$ local y = "call->y.at + at * call->y.step, call->y.step"
//$ local looked = step.b_at and macro("LOOKED_OUTPUT")
//$ local print = {}
//$ function print.norm()
//$ local gains = "own." .. shape.norms[step.number].word .. "_norm"
//$ local offsets = shape.norm.kind == "layernorm" and gains .. "_offset"
        $(names_of.norm(step))($(listed(rows(step.from), gains, offsets, rows(step.to), "count")));
//$ end
//$ function print.norm_heads()
//$ local gains = shape.head_norms[step.number].gains and "own." .. step.letter .. "_norm"
//$ local from, width = row_of(step.from, step.constant and macro(step.constant)), shape.width
        for (size_t token = 0; token < count; ++token)
            $(names_of.norm_of_heads(step))($(listed(from, width, gains, row_of(step.to), width, step.width // width)));
//$ end
//$ function print.copy()
        $(names_of.copy(step.width))($(rows(step.from)), $(rows(step.to)), count);
//$ end
//$ function print.product()
        /* $(step.map.letter): $(plural(step.map.inputs, "input")), $(plural(step.map.outputs, "output")) */
        $(v.names.product)(&own.$(step.map.field), &b.$(step.from), &b.$(step.to), count);
//$ end
//$ function print.round()
        $(names_of.round(step.inputs))($(rows(step.from)), $(rows(step.rounded)), count);
//$ end
//$ function print.append()
        for ($(helper)_no_span(&span); $(helper)_next_span(call, at, count, &span);)
            $(helper)_append(&own, &a, &span, &cache);
//$ end
//$ function print.attend()
//$ if not step.appends then
        for ($(helper)_no_span(&span); $(helper)_next_span(call, at, count, &span);)
            $(helper)_attend(&own, &a, &span, &cache);
//$ else
        for ($(helper)_no_span(&span); $(helper)_next_span(call, at, count, &span);) {
            $(helper)_append(&own, &a, &span, &cache);
            $(helper)_attend(&own, &a, &span, &cache);
        }
//$ end
//$ end
//$ function print.sum()
        for ($(helper)_no_span(&span); $(helper)_next_span(call, at, count, &span);)
            $(helper)_sum(call, &b, at, &span);
//$ end
//$ -- The FFN of layers that are alike.
//$ local function look_up(part)
//$ local ffn, kernels = part.plan.shape, kernels_of(part)
//$ local columns = shape.qkv and ": q, k, v and output" or ffn.d_out > shape.d and ", the next block's q, k and v" or ""
//$ local given = "(&own.lookup, b." .. step.from .. ".at, b." .. step.to .. ".at, count, scratch);"
        /* LookupFFN: $(plural(ffn.h, "table")), rows of $(ffn.d_out)$(columns) */
//$ if kernels then
        if (together <= $(kernels.threshold))
            $(kernels.few)$(given)
        else
            $(kernels.many)$(given)
//$ else
        $(lookup_of(part))$(given)
//$ end
//$ end
//$ function print.lookup()
//$ if #step.parts == 1 then return look_up(step.parts[1]) end
//$ for n, part in ipairs(step.parts) do
        $(n == 1 and "if (own.number < " .. part.count .. ") {" or "} else {")
//$ look_up(part)
//$ end
        }
//$ end
//$ function print.activate()
//$ if not (tiles and step.of) then
        $(helper)_activate(&b, count);
//$ else
        $(helper)_project_and_activate(&own, &b, count);
//$ end
//$ end
//$ function print.add()
//$ local skipped = step.a == "in" and shape.projected and macro("IN_SKIPPED")
        $(names_of.add())($(rows(step.a, skipped)), $(rows(step.b, looked)), $(rows(step.to)), count);
//$ end
//$ function print.output()
        $(names_of.copy(shape.d))($(rows(step.from)), $(y), count); //$ if step.from
        $(names_of.add())($(rows(step.a)), $(rows(step.b, looked)), $(y), count); //$ if not step.from
//$ end
//$ print[step.op]()
