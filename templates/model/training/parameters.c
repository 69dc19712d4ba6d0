//$ takes helper, tape, c
//$ -- Each part sums a share of the rows or columns of each gradient, over all tokens.
//$ local all = "r->sequences * r->length"
//$ local function open_share(count)
    {
        const size_t first = $(helper)_from(r->t, $(count), r->t->part);
        const size_t end = $(helper)_from(r->t, $(count), r->t->part + 1);
//$ end
//$ for _, o in ipairs(tape.back.parameters) do
//$ local step = o.step
//$ if o.op == "product" then
//$ local map, d, x = o.map, c.gradient(o.from), c.value(o.x)
//$ local d_step, x_step = c.gradient_pitch(o.from), c.pitch(o.x)
//$ local to = c.sums(map.at, times("first", map.step))
//$ open_share(map.across and map.inputs or map.outputs)
//$ if map.across then
        $(helper)_multiply(r, 1, 0, end - first, $(map.outputs), $(all), $(x) + first, $(x_step), $(d), $(d_step), $(to), $(map.step), 1);
//$ else
        $(helper)_multiply(r, 1, 0, end - first, $(map.inputs), $(all), $(d) + first, $(d_step), $(x), $(x_step), $(to), $(map.step), 1);
//$ end
    }
//$ if map.bias then
//$ open_share(map.outputs)
        $(helper)_column_sums($(d), $(d_step), $(c.sums(map.bias)), first, end, $(all));
    }
//$ end
//$ elseif o.op == "norm" then
//$ open_share(step.width)
        $(helper)_norm_sums($(c.gradient_rows(o.from)), $(c.rows(step.from)), $(c.value(step.statistics)), $(c.sums(step.gain)), $(step.offset and c.sums(step.offset) or "NULL"), first, end, $(all));
    }
//$ elseif o.op == "embed" then
//$ open_share(step.to.width)
        $(helper)_embed_back(r, $(c.gradient(o.from)), first, end);
    }
//$ elseif o.op == "shape" then
//$ local scalars = 3 * tape.attention.heads
    if (r->t->part == 0)
        $(helper)_column_sums(r->memory + r->shapes_at, $(scalars), $(c.sums(step.shape)), 0, $(scalars), r->sequences);
//$ elseif o.op == "lookup" then
//$ local at = step.tensors
    if (r->t->part == 0)
        $(helper)_$(tape.word)_look_sums(r, $(c.sums(at.projection.at)), $(c.sums(at.projection_bias.at)), $(c.sums(at.bias.at)));
//$ end
//$ end
