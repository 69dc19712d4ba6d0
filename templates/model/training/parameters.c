//$ takes helper, tape, c
//$ -- Each part sums a share of the rows or columns of each gradient, over all tokens.
//$ local all = "r->sequences * r->length"
//$ local turned, plain, add = names.macro("TRAIN_ACROSS"), names.macro("TRAIN_PLAIN"), names.macro("TRAIN_ADD")
//$ -- How many rows or columns parts share in `o`; nil: one part makes all.
//$ local function shared(o)
//$     if o.op == "product" then return o.map.across and o.map.inputs or o.map.outputs end
//$     return o.op == "norm" and o.step.width or o.op == "embed" and o.step.to.width or nil
//$ end
//$ local declared = {}
//$ local function declare_share(count)
//$     if not count or declared[count] then return end
//$     declared[count] = true
    const size_t first_$(count) = $(helper)_part_begins(r->t, $(count), r->t->part);
    const size_t end_$(count) = $(helper)_part_begins(r->t, $(count), r->t->part + 1);
//$ end
//$ for _, o in ipairs(tape.back.parameters) do
//$ declare_share(shared(o))
//$ if o.op == "product" and o.map.bias then declare_share(o.map.outputs) end
//$ end

//$ for _, o in ipairs(tape.back.parameters) do
//$ local step = o.step
//$ local count = shared(o)
//$ local first, last = "first_" .. (count or ""), "end_" .. (count or "")
//$ if o.op == "product" then
//$ local map, d, x = o.map, c.gradient(o.from), c.value(o.x)
//$ local d_step, x_step = c.gradient_pitch(o.from), c.pitch(o.x)
//$ local to = c.sums(map.at, times(first, map.step))
//$ local of, by, columns = listed(d .. " + " .. first, d_step), listed(x, x_step), map.inputs
//$ if map.across then of, by, columns = listed(x .. " + " .. first, x_step), listed(d, d_step), map.outputs end
    $(helper)_multiply(r, $(turned), $(plain), $(last) - $(first), $(columns), $(all), $(of), $(by), $(to), $(map.step), $(add));
//$ if map.bias then
    $(helper)_column_sums($(d), $(d_step), $(c.sums(map.bias)), first_$(map.outputs), end_$(map.outputs), $(all));
//$ end
//$ elseif o.op == "norm" then
//$ local gain, offset = c.sums(step.gain), step.offset and c.sums(step.offset) or "NULL"
//$ local given = listed(c.gradient_rows(o.from), c.rows(step.from), c.value(step.statistics), gain, offset, first, last, all)
    $(helper)_norm_sums($(given));
//$ elseif o.op == "embed" then
    $(helper)_embed_back(r, $(c.gradient(o.from)), $(first), $(last));
//$ elseif o.op == "shape" or o.op == "scales" then
//$ local scalars = (o.op == "shape" and 3 or 1) * tape.attention.heads
//$ local at = "r->memory + r->" .. (o.op == "shape" and "shapes_at" or "scales_at")
    if (r->t->part == 0)
        $(helper)_column_sums($(at), $(scalars), $(c.sums(step[o.op])), 0, $(scalars), r->sequences);
//$ elseif o.op == "lookup" then
//$ local at = step.tensors
//$ local sums = listed(c.sums(at.projection.at), c.sums(at.projection_bias.at), c.sums(at.bias.at))
    if (r->t->part == 0)
        $(helper)_$(tape.word)_look_sums(r, $(sums));
//$ end
//$ end
