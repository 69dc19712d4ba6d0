//$ takes isa, lanes, helper, attention, float
//$ local exp = once("templates/math/exp.c") .. "_exp"
//$ local a = attention
//$ local w, strip = a.width, a.strip
//$ if a.rope then
//$ local first, second = "i", "i + " .. a.rope.half
//$ if a.rope.interleaved then first, second = "2 * i", "2 * i + 1" end

/* A head's elements $(first) and $(second) rotated by the angles of position `position`, times `factor`; `back`: by the opposite angles. */
static void $(a.helper)_rotate(const $(helper) *t, const float *restrict from, size_t position, float factor, int back, float *restrict to)
{
    const float *cosine = $(sum("t->constants", a.rope.cosines, times("position", a.rope.half)));
    const float *sine = $(sum("t->constants", a.rope.sines, times("position", a.rope.half)));

    for (size_t i = 0; i < $(a.rope.half); ++i) {
        const float a = factor * from[$(first)], b = factor * from[$(second)];
        const float up = back ? -sine[i] : sine[i];
        to[$(first)] = a * cosine[i] - b * up;
        to[$(second)] = b * cosine[i] + a * up;
    }
//$ if 2 * a.rope.half < w then
    for (size_t i = $(2 * a.rope.half); i < $(w); ++i)
        to[i] = factor * from[i];
//$ end
}
//$ end

/* Heads of rows of `step` floats, from position `position` on, times `factor`$(a.rope and " and rotated" or ""), side by side. */
static void $(a.helper)_heads($(a.rope and "const " .. helper .. " *t, " or "")const float *restrict from, size_t step, $(a.rope and "size_t position, " or "")size_t rows, float factor, float *restrict to)
{
    for (size_t row = 0; row < rows; ++row, from += step, to += $(w))
//$ if a.rope then
        $(a.helper)_rotate(t, from, position + row, factor, 0, to);
//$ else
        $(helper)_scale(from, factor, to, $(w));
//$ end
}

/* The way back: gradients of heads in rows of `step` floats; add: to what they have already. */
static void $(a.helper)_from_heads($(a.rope and "const " .. helper .. " *t, " or "")const float *restrict from, $(a.rope and "size_t position, " or "")size_t rows, float factor, float *restrict to, size_t step)
{
    for (size_t row = 0; row < rows; ++row, from += $(w), to += step)
//$ if a.rope then
        $(a.helper)_rotate(t, from, position + row, factor, 1, to);
//$ else
        $(helper)_scale(from, factor, to, $(w));
//$ end
}

/* What the token at position `own` of `length` attends to: positions *begin … *end - 1. */
static inline void $(a.helper)_seen(size_t own, size_t length, size_t *begin, size_t *end)
{
    *begin = $(a.window and "own + 1 > " .. a.window .. " ? own + 1 - " .. a.window .. " : 0" or "0");
//$ if a.causal then
    *end = own + 1 < length ? own + 1 : length;
//$ elseif a.window then
    *end = own + $(a.window) < length ? own + $(a.window) : length;
//$ else
    (void) own;
    *end = length;
//$ end
//$ if a.window then
    if (*begin >= *end) /* padding */
        *begin = *end - 1;
//$ end
}

/* exp(score - largest) for what each row sees, 0 for the rest of `columns`: what exp makes of that, times the row's share, would be a
   denormal, which CPUs multiply a hundred times slower. Row 0 is position `first`. largest: that of a row, and 1 / the sum of the row, are
   in `softmax`; make: they are found first. */
static void $(a.helper)_weights(float *score, size_t step, size_t first, size_t rows, size_t columns, size_t length, int make, float *softmax, size_t softmax_step)
{
    const float none = $hidden(0.0f);

    for (size_t row = 0; row < rows; ++row, score += step, softmax += softmax_step) {
        size_t begin, end;

        $(a.helper)_seen(first + row, length, &begin, &end);
        for (size_t k = 0; k < begin; ++k)
            score[k] = -3e38f;
        for (size_t k = end; k < columns; ++k)
            score[k] = -3e38f;
        if (make) {
            $(isa.vector) high = $(isa.load_unaligned("score", 0));
            for (size_t k = $(lanes); k < columns; $(advance("k", lanes))) {
                const $(isa.vector) other = $(isa.load_unaligned("score", "k"));
                high = $(isa.max("high", "other"));
            }
//$ local steps, result = isa.reduce("high", "max")
//$ for _, one in ipairs(steps) do
            const $(one.type) $(one.name) = $(one.value);
//$ end
            softmax[0] = $(result);
        }
        const $(isa.vector) highest = $(isa.broadcast("softmax[0]"));
        $(isa.vector) totals = $(isa.zero());
        for (size_t k = 0; k < columns; $(advance("k", lanes))) {
            const $(isa.vector) below = $(isa.sub(isa.load_unaligned("score", "k"), "highest"));
            const $(isa.vector) weight = $(exp)(below);
            $(isa.store_unaligned("score", "k", "weight"));
            totals = $(isa.add("totals", "weight"));
        }
        if (make) {
//$ local steps, result = isa.reduce("totals", "add")
//$ for _, one in ipairs(steps) do
            const $(one.type) $(one.name) = $(one.value);
//$ end
            softmax[1] = 1.0f / $(result);
        }
        for (size_t k = 0; k < begin; ++k)
            score[k] = none;
        for (size_t k = end; k < columns; ++k)
            score[k] = none;
    }
}

//$ if a.shaped then
/* Shaped attention: from y, the values that a softmax mixes, to alpha v + beta y - gamma mean, row by row and as inference does it. total:
   the sum of the rows of v before *summed, which goes on. */
static void $(a.helper)_mix(const float *restrict v, size_t first, size_t rows, size_t length, const float *restrict shape, float *restrict total, size_t *summed, float *restrict y)
{
    const $(isa.vector) alpha = $(isa.broadcast("shape[0]")), beta = $(isa.broadcast("shape[1]"));

    for (size_t row = first; row < first + rows; ++row, y += $(a.y_step)) {
        const float *own = v + row * $(a.v_step);
        size_t begin, end;

        $(a.helper)_seen(row, length, &begin, &end);
        for (; *summed < end; ++*summed)
            $(helper)_accumulate(v + *summed * $(a.v_step), total, 0, $(w));
        const float share = shape[2] / (float) end;
        const $(isa.vector) shares = $(isa.broadcast("share"));
//$ local function mixed(load)
//$     return isa.sub(isa.add(isa.mul("alpha", load("own")), isa.mul("beta", load("y"))), isa.mul("shares", load("total")))
//$ end
//$ local whole, rest = w // lanes * lanes, w % lanes
//$ loop("        ", "i", 0, whole, lanes, function(i, at)
$(i)$(isa.store_unaligned("y", at, mixed(function(base) return isa.load_unaligned(base, at) end)));
//$ end)
//$ if rest > 0 then
        $(isa.store_partial("y", whole, rest, mixed(function(base) return isa.load_partial(base, whole, rest) end)));
//$ end
    }
}

/* The same for weights, whose rows have the sum 1. */
static void $(a.helper)_shape(float *weight, size_t step, size_t first, size_t rows, size_t length, const float *restrict shape)
{
    for (size_t row = 0; row < rows; ++row, weight += step) {
        size_t begin, end;

        $(a.helper)_seen(first + row, length, &begin, &end);
        const float level = shape[2] / (float) (end - begin);
        for (size_t k = 0; k < end; ++k)
            weight[k] = shape[1] * weight[k] - (k < begin ? 0.0f : level);
        if (first + row < length)
            weight[first + row] += shape[0];
    }
}

//$ end
/* Attention of a sequence of `length` tokens, of which the first `own` count: rows of heads of q, k and v become those of y; softmax: the
   largest score and 1 / total of each head.$(a.shaped and " shape: alpha, beta and gamma of each head." or "") */
static void $(a.helper)_attend($(a.rope and "const " .. helper .. " *t, " or "")const float *q, const float *k, const float *v, float *y, float *softmax, $(a.shaped and "const float *shape, " or "")size_t length, size_t own, float *scratch)
{
    const size_t padded = (length + $(strip - 1)) / $(strip) * $(strip);
    const float one = $hidden(1.0f)$(a.shaped and ", none = $hidden(0.0f)" or "");
    float *keys = scratch, *key_strips = keys + padded * $(w), *value_strips = key_strips + padded * $(w);
    float *queries = value_strips + padded * $(a.padded_width), *scores = queries + $(a.rows * w), *packed = scores + $(a.rows) * padded;

//$ loop("    ", "head", 0, a.kv_heads, 1, function(i, head)
$(i)$(a.helper)_heads($(a.rope and "t, " or "")$(sum("k", times(head, a.k_head))), $(a.k_step), $(a.rope and "0, " or "")length, one, keys);
$(i)$(helper)_pack_across(keys, $(w), $(w), length, key_strips);
$(i)$(helper)_pack($(sum("v", times(head, a.v_head))), $(a.v_step), length, $(w), value_strips);
//$ loop(i, "number", 0, a.group, 1, function(i, number)
//$ if a.shaped then
$(i)float total[$(w)];
$(i)size_t summed = 0;

$(i)for (size_t i = 0; i < $(w); ++i)
$(i)    total[i] = none;
//$ end
$(i)for (size_t first = 0; first < length; first += $(a.rows)) {
$(i)    const size_t rows = length - first < $(a.rows) ? length - first : $(a.rows);
$(i)    const size_t seen = $(a.causal and "first + rows" or "length"), columns = (seen + $(strip - 1)) / $(strip) * $(strip);
$(i)    float *to = $(sum("y", times("first", a.y_step), times(number, w))), *totals = $(sum("softmax", times("first", a.softmax_step), times(number, 2)));

$(i)    $(a.helper)_heads($(a.rope and "t, " or "")$(sum("q", times("first", a.q_step), times(number, a.q_head))), $(a.q_step), $(a.rope and "first, " or "")rows, $(float(a.scale)), queries);
$(i)    $(helper)_times_strips(0, rows, columns, $(w), queries, $(w), key_strips, $(w), scores, padded, 0, packed);
$(i)    $(a.helper)_weights(scores, padded, first, rows, columns, own, 1, totals, $(a.softmax_step));
$(i)    $(helper)_times_strips(0, rows, $(w), seen, scores, padded, value_strips, length, to, $(a.y_step), 0, packed);
$(i)    for (size_t row = 0; row < rows; ++row)
$(i)        $(helper)_scale(to + row * $(a.y_step), totals[row * $(a.softmax_step) + 1], to + row * $(a.y_step), $(w));
//$ if a.shaped then
$(i)    $(a.helper)_mix($(sum("v", times(head, a.v_head))), first, rows, own, $(sum("shape", times(number, 3))), total, &summed, to);
//$ end
$(i)}
//$ end, { from = times(head, a.group), to = times(sum(head, 1), a.group) })
//$ end)
}

/* From weights and the gradients of weights those of scores, in place of the latter: p (d - sum of p d). */
static void $(a.helper)_weights_back(float *restrict weight, float *restrict d, size_t step, size_t rows, size_t columns, const float *restrict softmax, size_t softmax_step$(a.shaped and ", float beta, float *restrict along" or ""))
{
    for (size_t row = 0; row < rows; ++row, weight += step, d += step, softmax += softmax_step) {
        const $(isa.vector) shares = $(isa.broadcast("softmax[1]"));
        $(isa.vector) sums = $(isa.zero());
        for (size_t k = 0; k < columns; $(advance("k", lanes))) {
            const $(isa.vector) p = $(isa.mul(isa.load_unaligned("weight", "k"), "shares"));
            $(isa.store_unaligned("weight", "k", "p"));
            sums = $(isa.fma("p", isa.load_unaligned("d", "k"), "sums"));
        }
//$ local steps, result = isa.reduce("sums", "add")
//$ for _, one in ipairs(steps) do
        const $(one.type) $(one.name) = $(one.value);
//$ end
        const float sum = $(result);
        const $(isa.vector) level = $(isa.broadcast("sum"));
//$ if a.shaped then
        const $(isa.vector) factor = $(isa.broadcast("beta"));
        *along += sum;
//$ end
        for (size_t k = 0; k < columns; $(advance("k", lanes))) {
            const $(isa.vector) rest = $(isa.sub(isa.load_unaligned("d", "k"), "level"));
            const $(isa.vector) p = $(a.shaped and isa.mul(isa.load_unaligned("weight", "k"), "factor") or isa.load_unaligned("weight", "k"));
            $(isa.store_unaligned("d", "k", isa.mul("p", "rest")));
        }
    }
}

/* The gradients of q, k and v from dy; the rest as above.$(a.shaped and " dshape: those of alpha, beta and gamma of each head, overwritten." or "") */
static void $(a.helper)_attend_back($(a.rope and "const " .. helper .. " *t, " or "")const float *q, const float *k, const float *v, const float *dy, float *softmax, $(a.shaped and "const float *shape, float *dshape, " or "")float *dq, float *dk, float *dv, size_t length, size_t own, float *scratch)
{
    const size_t padded = (length + $(strip - 1)) / $(strip) * $(strip);
    const float one = $hidden(1.0f);
    float *keys = scratch, *key_strips = keys + padded * $(w), *value_strips = key_strips + padded * $(w);
    float *key_rows = value_strips + padded * $(w), *dkeys = key_rows + padded * $(a.padded_width), *dvalues = dkeys + padded * $(a.padded_width);
    float *queries = dvalues + padded * $(a.padded_width), *dqueries = queries + $(a.rows * w), *query_strips = dqueries + $(a.rows * a.padded_width), *dy_strips = query_strips + $(a.rows * a.padded_width);
    float *scores = dy_strips + $(a.rows * a.padded_width), *dscores = scores + $(a.rows) * padded + 16, *packed = dscores + $(a.rows) * padded;

//$ loop("    ", "head", 0, a.kv_heads, 1, function(i, head)
$(i)$(a.helper)_heads($(a.rope and "t, " or "")$(sum("k", times(head, a.k_head))), $(a.k_step), $(a.rope and "0, " or "")length, one, keys);
$(i)$(helper)_pack_across(keys, $(w), $(w), length, key_strips);
$(i)$(helper)_pack_across($(sum("v", times(head, a.v_head))), $(a.v_step), $(w), length, value_strips);
$(i)$(helper)_pack(keys, $(w), length, $(w), key_rows);
$(i)$(helper)_clear(dkeys, $(w), padded);
$(i)$(helper)_clear(dvalues, $(w), padded);
//$ loop(i, "number", 0, a.group, 1, function(i, number)
//$ if a.shaped then
$(i)float alone = 0.0f, along = 0.0f, level = 0.0f;

//$ end
$(i)for (size_t first = 0; first < length; first += $(a.rows)) {
$(i)    const size_t rows = length - first < $(a.rows) ? length - first : $(a.rows);
$(i)    const size_t seen = $(a.causal and "first + rows" or "length"), columns = (seen + $(strip - 1)) / $(strip) * $(strip);
$(i)    const float *from = $(sum("dy", times("first", a.y_step), times(number, w)));
$(i)    float *totals = $(sum("softmax", times("first", a.softmax_step), times(number, 2)));

$(i)    $(a.helper)_heads($(a.rope and "t, " or "")$(sum("q", times("first", a.q_step), times(number, a.q_head))), $(a.q_step), $(a.rope and "first, " or "")rows, $(float(a.scale)), queries);
$(i)    $(helper)_times_strips(0, rows, columns, $(w), queries, $(w), key_strips, $(w), scores, padded, 0, packed);
$(i)    $(a.helper)_weights(scores, padded, first, rows, columns, own, 0, totals, $(a.softmax_step));
$(i)    $(helper)_times_strips(0, rows, columns, $(w), from, $(a.y_step), value_strips, $(w), dscores, padded, 0, packed);
//$ if a.shaped then
$(i)    for (size_t row = 0; row < rows; ++row) {
$(i)        size_t begin, end;
$(i)        float sum = 0.0f;

$(i)        $(a.helper)_seen(first + row, own, &begin, &end);
$(i)        for (size_t i = begin; i < end; ++i)
$(i)            sum += dscores[row * padded + i];
$(i)        level -= sum / (float) (end - begin);
$(i)        if (first + row < own)
$(i)            alone += dscores[row * padded + first + row];
$(i)    }
$(i)    $(a.helper)_weights_back(scores, dscores, padded, rows, columns, totals, $(a.softmax_step), shape[$(sum(times(number, 3), 1))], &along);
//$ else
$(i)    $(a.helper)_weights_back(scores, dscores, padded, rows, columns, totals, $(a.softmax_step));
//$ end
$(i)    $(helper)_times_strips(0, rows, $(w), seen, dscores, padded, key_rows, length, dqueries, $(w), 0, packed);
$(i)    $(a.helper)_from_heads($(a.rope and "t, " or "")dqueries, $(a.rope and "first, " or "")rows, $(float(a.scale)), $(sum("dq", times("first", a.dq_step), times(number, a.q_head))), $(a.dq_step));
$(i)    $(helper)_pack(queries, $(w), rows, $(w), query_strips);
$(i)    $(helper)_pack(from, $(a.y_step), rows, $(w), dy_strips);
$(i)    $(helper)_times_strips(1, seen, $(w), rows, dscores, padded, query_strips, rows, dkeys, $(w), 1, packed);
//$ if a.shaped then
$(i)    $(a.helper)_shape(scores, padded, first, rows, own, $(sum("shape", times(number, 3))));
//$ end
$(i)    $(helper)_times_strips(1, seen, $(w), rows, scores, padded, dy_strips, rows, dvalues, $(w), 1, packed);
$(i)}
//$ if a.shaped then
$(i)dshape[$(times(number, 3))] = alone;
$(i)dshape[$(sum(times(number, 3), 1))] = along;
$(i)dshape[$(sum(times(number, 3), 2))] = level;
//$ end
//$ end, { from = times(head, a.group), to = times(sum(head, 1), a.group) })
$(i)$(a.helper)_from_heads($(a.rope and "t, " or "")dkeys, $(a.rope and "0, " or "")length, one, $(sum("dk", times(head, a.k_head))), $(a.dk_step));
$(i)for (size_t row = 0; row < length; ++row)
$(i)    $(helper)_scale(dvalues + row * $(w), one, $(sum("dv", times("row", a.dv_step), times(head, a.v_head))), $(w));
//$ end)
}
