//$ takes isa, lanes, helper, attention, float, product
//$ local exp = once("templates/math/exp.c") .. "_exp"
//$ local largest_lane, sum_of_lanes = across("max"), across("add")
//$ local a = attention
//$ local plain, turned = names.macro("TRAIN_PLAIN"), names.macro("TRAIN_ACROSS")
//$ local set, add = names.macro("TRAIN_SET"), names.macro("TRAIN_ADD")
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
//$ local norm = a.unit and once("templates/math/norm.c", {
//$     name = "unit_" .. w,
//$     layernorm = false,
//$     factors = false,
//$     gains = false,
//$     float_sums = false,
//$     width = w,
//$     eps = float(a.head_eps),
//$ }) .. "_unit_" .. w
//$ local of_t, position, t = a.rope and "const " .. helper .. " *t", a.rope and "size_t position", a.rope and "t"
//$ local function from(text) return a.rope and text end

//$ local normed = a.unit and "divided by the roots of their mean squares, " or ""
/* Heads of rows of `step` floats$(a.rope and ", from position `position` on" or ""), $(normed)times
   `factor`$(a.rope and " and rotated" or ""), go side by side. */
//$ local given = listed(of_t, "const float *restrict from, size_t step", position, "size_t rows, float factor")
static void $(a.helper)_gather_heads($(given), float *restrict to)
{
//$ if a.unit then
    for (size_t row = 0; row < rows; ++row, from += step, to += $(w)) {
        float normed[$(w)]; //$ if a.rope

        $(norm)(from, $(w), $(a.rope and "normed" or "to"), $(w), 1);
        $(a.helper)_rotate(t, normed, position + row, factor, 0, to); //$ if a.rope
        $(helper)_scale(to, factor, to, $(w)); //$ if not a.rope
    }
//$ else
    for (size_t row = 0; row < rows; ++row, from += step, to += $(w))
        $(a.helper)_rotate(t, from, position + row, factor, 0, to); //$ if a.rope
        $(helper)_scale(from, factor, to, $(w)); //$ if not a.rope
//$ end
}

/* The way back: gradients of heads$(a.rope and ", from position `position` on" or ""), times
   `factor`$(a.rope and " and rotated" or ""), go to rows of `step` floats. */
//$ local given = listed(of_t, "const float *restrict from", position, "size_t rows, float factor")
static void $(a.helper)_scatter_heads($(given), float *restrict to, size_t step)
{
    for (size_t row = 0; row < rows; ++row, from += $(w), to += step)
        $(a.helper)_rotate(t, from, position + row, factor, 1, to); //$ if a.rope
        $(helper)_scale(from, factor, to, $(w)); //$ if not a.rope
}
//$ if a.unit then

/* From gradients of heads of unit length, before they are multiplied by `factor`, those of the heads x, in place; *along += the sum of
   their products, the gradient of `factor`. */
static void $(a.helper)_unit_back(const float *restrict x, size_t x_step, size_t rows, float factor, float *restrict d, size_t d_step,
    float *restrict along)
{
    for (size_t row = 0; row < rows; ++row, x += x_step, d += d_step) {
        $(isa.vector) squares = $(isa.zero()), products = $(isa.zero());
//$ over_row(w, function(at, load, store)
            const $(isa.vector) v = $(load("x", at));
            squares = $(isa.fma("v", "v", "squares"));
            products = $(isa.fma("v", load("d", at), "products"));
//$ end, { block = true })
        const float mean_square = $(sum_of_lanes("squares")) * $(float(1 / w)) + $(float(a.head_eps));
        const float product = $(sum_of_lanes("products"));
//$ local root = first_lane("root", isa.reciprocal_root(isa.broadcast("mean_square")))
        const float slope = product * $(root) * $(root) * $(float(1 / w)), share = factor * $(root);
        const $(isa.vector) slopes = $(isa.broadcast("slope")), shares = $(isa.broadcast("share"));
        *along += product * $(root);
//$ over_row(w, function(at, load, store)
            const $(isa.vector) rest = $(isa.sub(load("d", at), isa.mul("slopes", load("x", at))));
            $(store("d", at, isa.mul("shares", "rest")));
//$ end, { block = true })
    }
}
//$ end
//$ if a.window then

/* What the token at position `own` of `length` attends to: positions *begin … *end - 1. */
static inline void $(a.helper)_seen(size_t own, size_t length, size_t *begin, size_t *end)
{
    *begin = own + 1 > $(a.window) ? own + 1 - $(a.window) : 0;
    *end = own + 1 < length ? own + 1 : length; //$ if a.causal
    *end = own + $(a.window) < length ? own + $(a.window) : length; //$ if not a.causal
    if (*begin >= *end) /* padding */
        *begin = *end - 1;
}
//$ elseif a.causal then

/* How many positions the token at position `own` of `length` attends to. */
static inline size_t $(a.helper)_seen(size_t own, size_t length)
{
    return own + 1 < length ? own + 1 : length;
}
//$ end
//$ local looks = a.window or a.causal
//$ -- Makes `end`, and with a window `begin`, what the token at position `own` attends to.
//$ local function declare_seen(own, length)
//$     if a.window then
        size_t begin, end;

        $(a.helper)_seen($(own), $(length), &begin, &end);
//$     elseif a.causal then
        const size_t end = $(a.helper)_seen($(own), $(length));

//$     end
//$ end
//$ local function end_of(length) return looks and "end" or length end
//$ if a.lsh then
$(include("templates/model/training/table_attention.c", { a = a }))
//$ else

/* exp(score - largest) for what each row sees, 0 for the rest of `columns`: what exp makes of that, times the row's share, would be a
   denormal, which CPUs multiply a hundred times slower.$(looks and " Row 0 is position `first`." or "") A row of
   `softmax` has the largest score of a row, and 1 / its sum;
   `make`: they are found first. */
//$ local given = listed("float *score, size_t step", looks and "size_t first", "size_t rows, size_t columns, size_t length")
static void $(a.helper)_softmax($(given), int make, float *softmax, size_t softmax_step)
{
    const float none = $hidden(0.0f); /* else its loop is a call of memset */
    const float unseen = $minus_infinity();

    for (size_t row = 0; row < rows; ++row, score += step, softmax += softmax_step) {
//$ declare_seen("first + row", "length")
//$ if a.window then
        for (size_t k = 0; k < begin; ++k)
            score[k] = unseen;
//$ end
        for (size_t k = $(end_of("length")); k < columns; ++k)
            score[k] = unseen;
        if (make) {
            $(isa.vector) high = $(isa.load_unaligned("score", 0));
            for (size_t k = $(lanes); k < columns; $(advance("k", lanes))) {
                const $(isa.vector) other = $(isa.load_unaligned("score", "k"));
                high = $(isa.max("high", "other"));
            }
            softmax[0] = $(largest_lane("high"));
        }
        const $(isa.vector) highest = $(isa.broadcast("softmax[0]"));
        $(isa.vector) totals = $(isa.zero());
        for (size_t k = 0; k < columns; $(advance("k", lanes))) {
            const $(isa.vector) below = $(isa.sub(isa.load_unaligned("score", "k"), "highest"));
            const $(isa.vector) weight = $(exp)(below);
            $(isa.store_unaligned("score", "k", "weight"));
            totals = $(isa.add("totals", "weight"));
        }
        if (make)
            softmax[1] = 1.0f / $(sum_of_lanes("totals"));
//$ if a.window then
        for (size_t k = 0; k < begin; ++k)
            score[k] = none;
//$ end
        for (size_t k = $(end_of("length")); k < columns; ++k)
            score[k] = none;
    }
}
//$ end

//$ if a.shaped then
/* Shaped attention: from y, the values that a softmax mixes, to alpha v + beta y - gamma mean, row by row and as inference does it. total:
   the sum of the rows of v before *summed, which goes on. */
static void $(a.helper)_mix(const float *restrict v, size_t first, size_t rows, size_t length,
    const float *restrict shape, float *restrict total, size_t *summed, float *restrict y)
{
    const $(isa.vector) alpha = $(isa.broadcast("shape[0]")), beta = $(isa.broadcast("shape[1]"));

    for (size_t row = first; row < first + rows; ++row, y += $(a.y_step)) {
        const float *own = v + row * $(a.v_step);
//$ declare_seen("row", "length")
        for (; *summed < $(end_of("length")); ++*summed)
            $(helper)_accumulate(v + *summed * $(a.v_step), total, 0, $(w));
        const float share = shape[2] / (float) $(end_of("length"));
        const $(isa.vector) shares = $(isa.broadcast("share"));
//$ local function mixed(load)
//$     return isa.sub(isa.add(isa.mul("alpha", load("own")), isa.mul("beta", load("y"))), isa.mul("shares", load("total")))
//$ end
//$ over_row(w, function(at, load, store)
            $(store("y", at, mixed(function(base) return load(base, at) end)));
//$ end)
    }
}

/* The same for weights, whose rows have the sum 1. */
static void $(a.helper)_shape(float *weight, size_t step, size_t first, size_t rows, size_t length, const float *restrict shape)
{
    for (size_t row = 0; row < rows; ++row, weight += step) {
//$ declare_seen("first + row", "length")
        const float level = shape[2] / (float) $(a.window and "(end - begin)" or end_of("length"));
        for (size_t k = 0; k < $(end_of("length")); ++k)
            weight[k] = shape[1] * weight[k] - $(a.window and "(k < begin ? 0.0f : level)" or "level");
        if (first + row < length)
            weight[first + row] += shape[0];
    }
}

//$ end
//$ local shape_doc = a.shaped and " shape: alpha, beta and gamma of each head." or ""
//$ local kept_doc = a.lsh and "; sums: before their norm; layer: the number of theirs" or "; softmax: the largest score and 1 / total of each head"
//$ local dshape_doc = a.shaped and " dshape: those of alpha, beta and gamma of each head, overwritten." or ""
/* Attention of a sequence of `length` tokens, of which the first `own` count: rows of heads of q, k and v become those of
   y$(kept_doc).$(a.scaled and " scales: factors of scores of each head." or "")$(shape_doc) */
//$ local given = "const float *q, const float *k, const float *v"
//$ local t_given, layer_given = (a.rope or a.lsh) and "const " .. helper .. " *t", a.lsh and "size_t layer"
//$ local y_given, softmax_given = "float *y", a.lsh and "float *sums" or "float *softmax"
//$ local scales_given, shape_given = a.scaled and "const float *scales", a.shaped and "const float *shape"
//$ -- The keys of head `head` go to `keys`. Where they are shifted each is that of the token before, the first one its own.
//$ local shifted = a.shifted < a.kv_heads and "head < " .. a.shifted .. " ? 1 : 0" or "1"
//$ local function gather_keys(head)
//$     local k = listed(t, sum("k", times(head, a.k_head)), a.k_step, from(0))
//$     if a.shifted == 0 then
        $(a.helper)_gather_heads($(k), length, one, keys);
//$     else
        const size_t shift = $(shifted);

        $(a.helper)_gather_heads($(k), 1, one, keys);
        $(a.helper)_gather_heads($(k), length - shift, one, keys + shift * $(w));
//$     end
//$ end
//$ -- The factor of the queries of head `number`.
//$ local function factor(number)
//$     if a.lsh then return "one" end
//$     return a.scaled and times(float(a.scale), "scales[" .. number .. "]") or float(a.scale)
//$ end
//$ given = listed(t_given, layer_given, given, y_given, softmax_given, scales_given, shape_given)
static void $(a.helper)_attend($(given), size_t length, size_t own, float *scratch)
{
    const size_t padded = (length + 31) / 32 * 32;
//$ if a.shaped then
    const float one = $hidden(1.0f), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */
//$ else
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ end
    float *keys = scratch, *key_strips = keys + padded * $(w), *value_strips = key_strips + padded * $(a.strip_floats);
    float *queries = value_strips + padded * $(a.padded_width), *scores = queries + $(a.rows * w), *packed = scores + $(a.rows) * padded;
//$ if a.lsh then
    float *signs = packed + $(product.packed_a), *all_queries = signs + $(a.lsh.signs), *tables = all_queries + length * $(w);

    if (t->signs)
        $(a.helper)_make_signs(t, layer, signs);
//$ end

//$ loop("head", 0, a.kv_heads, 1, function(head)
//$ gather_keys(head)
        $(helper)_pack_across(keys, $(w), $(w), length, key_strips);
        $(helper)_pack($(sum("v", times(head, a.v_head))), $(a.v_step), length, $(w), value_strips);
//$ loop("number", 0, a.group, 1, function(number)
//$ if a.shaped then
            float total[$(w)];
            size_t summed = 0;

            for (size_t i = 0; i < $(w); ++i)
                total[i] = none;
//$ end
//$ local to, to_step = "y", a.y_step
//$ if a.lsh then
//$ to, to_step = "sums", a.sums_step
            if (t->signs) {
//$ local query = sum("q", times(number, a.q_head))
                $(a.helper)_gather_heads($(listed(t, query, a.q_step, from(0), "length", factor(number), "all_queries")));
                $(a.helper)_read_tables(signs, all_queries, keys, $(sum("v", times(head, a.v_head))), $(a.v_step), length, own,
                    $(sum("sums", times(number, w))), $(a.sums_step), tables);
            } else {
//$ end
            for (size_t first = 0; first < length; first += $(a.rows)) {
                const size_t rows = length - first < $(a.rows) ? length - first : $(a.rows);
                const size_t seen = $(a.causal and "first + rows" or "length"), columns = (seen + $(strip - 1)) / $(strip) * $(strip);
                float *to = $(sum(to, times("first", to_step), times(number, w)));
                float *totals = $(sum("softmax", times("first", a.softmax_step), times(number, 2))); //$ if not a.lsh

//$ local query = sum("q", times("first", a.q_step), times(number, a.q_head))
                $(a.helper)_gather_heads($(listed(t, query, a.q_step, from("first"), "rows", factor(number), "queries")));
                $(helper)_times_strips($(plain), rows, columns, $(w), queries, $(w), key_strips, $(w), scores, padded, $(set), packed);
//$ if a.lsh then
                $(a.helper)_expect(scores, padded, $(looks and "first, " or "")rows, columns, own);
//$ else
                $(a.helper)_softmax(scores, padded, $(looks and "first, " or "")rows, columns, own, 1, totals, $(a.softmax_step));
//$ end
                $(helper)_times_strips($(plain), rows, $(w), seen, scores, padded, value_strips, length, to, $(to_step), $(set), packed);
//$ if not a.lsh then
                for (size_t row = 0; row < rows; ++row)
                    $(helper)_scale(to + row * $(a.y_step), totals[row * $(a.softmax_step) + 1], to + row * $(a.y_step), $(w));
//$ end
//$ if a.shaped then
            $(a.helper)_mix($(sum("v", times(head, a.v_head))), first, rows, own, $(sum("shape", times(number, 3))), total, &summed, to);
//$ end
            }
//$ if a.lsh then
            }
            $(a.helper)_shorten($(sum("sums", times(number, w))), length, $(sum("y", times(number, w))));
//$ end
//$ end, { from = times(head, a.group), to = times(sum(head, 1), a.group) })
//$ end)
}
//$ if not a.lsh then

/* From weights and the gradients of weights those of scores, in place of the latter: p (d - sum of p d). */
//$ local more = a.shaped and ", float beta, float *restrict along" or ""
static void $(a.helper)_softmax_back(float *restrict weight, float *restrict d, size_t step, size_t rows,
    size_t columns, const float *restrict softmax, size_t softmax_step$(more))
{
    for (size_t row = 0; row < rows; ++row, weight += step, d += step, softmax += softmax_step) {
        const $(isa.vector) shares = $(isa.broadcast("softmax[1]"));
        $(isa.vector) sums = $(isa.zero());
        for (size_t k = 0; k < columns; $(advance("k", lanes))) {
            const $(isa.vector) p = $(isa.mul(isa.load_unaligned("weight", "k"), "shares"));
            $(isa.store_unaligned("weight", "k", "p"));
            sums = $(isa.fma("p", isa.load_unaligned("d", "k"), "sums"));
        }
        const float sum = $(sum_of_lanes("sums"));
        const $(isa.vector) level = $(isa.broadcast("sum"));
//$ if a.shaped then
        const $(isa.vector) factor = $(isa.broadcast("beta"));
        *along += sum;
//$ end
        for (size_t k = 0; k < columns; $(advance("k", lanes))) {
            const $(isa.vector) rest = $(isa.sub(isa.load_unaligned("d", "k"), "level"));
//$ local p = isa.load_unaligned("weight", "k")
            const $(isa.vector) p = $(a.shaped and isa.mul(p, "factor") or p);
            $(isa.store_unaligned("d", "k", isa.mul("p", "rest")));
        }
    }
}
//$ end

/* The gradients of q, k and v from dy; the rest as
   above.$(a.scaled and " dscales: those of scales, overwritten." or "")$(dshape_doc) */
//$ given = "const float *q, const float *k, const float *v, const float *dy"
//$ local shapes, taken = a.shaped and "const float *shape, float *dshape", "float *dq, float *dk, float *dv"
//$ local scales = a.scaled and "const float *scales, float *dscales"
//$ given = listed(t_given, layer_given, given, softmax_given, scales, shapes, taken)
static void $(a.helper)_attend_back($(given), size_t length, size_t own, float *scratch)
{
    const size_t padded = (length + 31) / 32 * 32;
//$ if a.shifted > 0 then
    const float one = $hidden(1.0f), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */
//$ else
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ end
    float *keys = scratch, *key_strips = keys + padded * $(w), *value_strips = key_strips + padded * $(a.strip_floats);
    float *key_rows = value_strips + padded * $(a.strip_floats);
    float *dkeys = key_rows + padded * $(a.padded_width), *dvalues = dkeys + padded * $(a.padded_width);
    float *queries = dvalues + padded * $(a.padded_width), *dqueries = queries + $(a.rows * w);
    float *query_strips = dqueries + $(a.rows * a.padded_width), *dy_strips = query_strips + $(a.rows * a.padded_width);
    float *scores = dy_strips + $(a.rows * a.padded_width), *dscores = scores + $(a.rows) * padded + 16;
    float *packed = dscores + $(a.rows) * padded;
//$ local dy, dy_step, queries = "from", a.y_step, "queries"
//$ if a.lsh then
//$ dy, dy_step, queries = "(dsums + first * " .. w .. ")", w, "(all_queries + first * " .. w .. ")"
    float *signs = packed + $(product.packed_a), *all_queries = signs + $(a.lsh.signs), *dsums = all_queries + length * $(w);
    float *tables = dsums + length * $(w);

    if (t->signs)
        $(a.helper)_make_signs(t, layer, signs);
//$ end

//$ loop("head", 0, a.kv_heads, 1, function(head)
//$ gather_keys(head)
        $(helper)_pack_across(keys, $(w), $(w), length, key_strips);
        $(helper)_pack_across($(sum("v", times(head, a.v_head))), $(a.v_step), $(w), length, value_strips);
        $(helper)_pack(keys, $(w), length, $(w), key_rows);
        $(helper)_clear(dkeys, $(w), padded);
        $(helper)_clear(dvalues, $(w), padded);
//$ loop("number", 0, a.group, 1, function(number)
            float scaled = 0.0f;$(a.scaled and "" or " /* no factor is learned */") //$ if a.unit
//$ if a.shaped then
            float alone = 0.0f, along = 0.0f, level = 0.0f;

//$ end
            for (size_t first = 0; first < length; first += $(a.rows)) {
                const size_t rows = length - first < $(a.rows) ? length - first : $(a.rows);
                const size_t seen = $(a.causal and "first + rows" or "length"), columns = (seen + $(strip - 1)) / $(strip) * $(strip);
                const float *from = $(sum("dy", times("first", a.y_step), times(number, w)));
                float *totals = $(sum("softmax", times("first", a.softmax_step), times(number, 2))); //$ if not a.lsh

//$ local query = sum("q", times("first", a.q_step), times(number, a.q_head))
                $(a.helper)_gather_heads($(listed(t, query, a.q_step, from("first"), "rows", factor(number), queries)));
                $(helper)_times_strips($(plain), rows, columns, $(w), $(queries), $(w), key_strips, $(w), scores, padded, $(set), packed);
//$ if a.lsh then
                $(a.helper)_expect(scores, padded, $(looks and "first, " or "")rows, columns, own);
                $(a.helper)_shorten_back($(sum("sums", times("first", a.sums_step), times(number, w))), from, rows, dsums + first * $(w));
//$ else
                $(a.helper)_softmax(scores, padded, $(looks and "first, " or "")rows, columns, own, 0, totals, $(a.softmax_step));
//$ end
            $(helper)_times_strips($(plain), rows, columns, $(w), $(dy), $(dy_step), value_strips, $(w), dscores, padded, $(set), packed);
//$ if a.shaped then
                for (size_t row = 0; row < rows; ++row) {
                    float sum = 0.0f;

//$ declare_seen("first + row", "own")
                    for (size_t i = $(a.window and "begin" or 0); i < $(end_of("own")); ++i)
                        sum += dscores[row * padded + i];
                    level -= sum / (float) $(a.window and "(end - begin)" or end_of("own"));
                    if (first + row < own)
                        alone += dscores[row * padded + first + row];
                }
                $(a.helper)_softmax_back(scores, dscores, padded, rows, columns, totals, $(a.softmax_step),
                    shape[$(sum(times(number, 3), 1))], &along);
//$ elseif a.lsh then
                $(a.helper)_expect_back(scores, dscores, padded, rows, columns);
//$ else
                $(a.helper)_softmax_back(scores, dscores, padded, rows, columns, totals, $(a.softmax_step));
//$ end
                $(helper)_times_strips($(plain), rows, $(w), seen, dscores, padded, key_rows, length, dqueries, $(w), $(set), packed);
//$ local to = sum("dq", times("first", a.dq_step), times(number, a.q_head))
                $(a.helper)_scatter_heads($(listed(t, "dqueries", from("first"), "rows", float(a.scale), to, a.dq_step)));
//$ if a.unit then
//$ local scale = a.scaled and "scales[" .. number .. "]" or "one"
                $(a.helper)_unit_back($(listed(query, a.q_step, "rows", scale, to, a.dq_step, "&scaled")));
//$ end
                $(helper)_pack($(queries), $(w), rows, $(w), query_strips);
                $(helper)_pack($(dy), $(dy_step), rows, $(w), dy_strips);
                $(helper)_times_strips($(turned), seen, $(w), rows, dscores, padded, query_strips, rows, dkeys, $(w), $(add), packed);
                $(a.helper)_shape(scores, padded, first, rows, own, $(sum("shape", times(number, 3)))); //$ if a.shaped
                if (!t->signs) //$ if a.lsh
                $(a.lsh and "    " or "")$(helper)_times_strips($(turned), seen, $(w), rows, scores, padded, dy_strips, rows, dvalues, $(w), $(add), packed);
            }
//$ if a.lsh then
            if (t->signs)
                $(a.helper)_read_tables_back(signs, all_queries, keys, dsums, length, own, dvalues, tables);
//$ end
            dscales[$(number)] = scaled; //$ if a.scaled
//$ if a.shaped then
            dshape[$(times(number, 3))] = alone;
            dshape[$(sum(times(number, 3), 1))] = along;
            dshape[$(sum(times(number, 3), 2))] = level;
//$ end
//$ end, { from = times(head, a.group), to = times(sum(head, 1), a.group) })
//$ local key_factor = a.lsh and float(a.scale) or "one"
//$ local dk = sum("dk", times(head, a.k_head))
//$ if a.shifted == 0 then
        $(a.helper)_scatter_heads($(listed(t, "dkeys", from(0), "length, " .. key_factor, dk, a.dk_step)));
//$ else
        const size_t used = length > shift ? length - shift : 1; /* keys that some token sees */
        for (size_t i = 0; i < shift * $(w); ++i)
            dkeys[i + $(w)] += dkeys[i];
        $(a.helper)_scatter_heads($(listed(t, "dkeys + shift * " .. w, from(0), "used, " .. key_factor, dk, a.dk_step)));
        for (size_t row = used; row < length; ++row)
            for (size_t i = 0; i < $(w); ++i)
                dk[$(sum(times(head, a.k_head), times("row", a.dk_step), "i"))] = none;
//$ end
//$ if a.unit then
        float unscaled = 0.0f; /* keys have no factor */
        $(a.helper)_unit_back($(listed(sum("k", times(head, a.k_head)), a.k_step, "length, one", dk, a.dk_step, "&unscaled")));
//$ end
        for (size_t row = 0; row < length; ++row)
            $(helper)_scale(dvalues + row * $(w), one, $(sum("dv", times("row", a.dv_step), times(head, a.v_head))), $(w));
//$ end)
}
