//$ takes isa, lanes, helper, attention, float, product
//$ local exp = once("templates/math/exp.c") .. "_exp"
//$ local largest_lane, sum_of_lanes = across("max"), across("add")
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
//$ local norm = a.unit and once("templates/math/norm.c", {
//$     name = "unit_" .. w,
//$     layernorm = false,
//$     factors = false,
//$     gains = false,
//$     float_sums = false,
//$     width = w,
//$     eps = float(a.head_eps),
//$ }) .. "_unit_" .. w

//$ local normed = a.unit and "divided by the roots of their mean squares, " or ""
/* Heads of rows `first` … `end` - 1, $(normed)times `factor`$(a.rope and " and rotated" or ""), go side by side. */
static void $(a.helper)_gather_heads(const $(helper) *t, const $(names.rows) *heads, size_t first, size_t end, float factor, float *to)
{
    const size_t step = heads->step;
    const float *from = heads->at + first * step;

    (void) t; //$ if not a.rope
//$ if a.unit then
    for (size_t row = first; row < end; ++row, from += step, to += $(w)) {
        float normed[$(w)]; //$ if a.rope

        $(norm)(from, $(w), $(a.rope and "normed" or "to"), $(w), 1);
        $(a.helper)_rotate(t, normed, row, factor, 0, to); //$ if a.rope
        $(helper)_scale(to, factor, to, $(w)); //$ if not a.rope
    }
//$ else
    for (size_t row = first; row < end; ++row, from += step, to += $(w))
        $(a.helper)_rotate(t, from, row, factor, 0, to); //$ if a.rope
        $(helper)_scale(from, factor, to, $(w)); //$ if not a.rope
//$ end
}

/* The way back: gradients of heads, times `factor`$(a.rope and " and rotated" or ""), go to rows `first` … `end` - 1. */
static void $(a.helper)_scatter_heads(const $(helper) *t, const float *from, float factor, const $(names.rows) *heads, size_t first, size_t end)
{
    const size_t step = heads->step;
    float *to = heads->at + first * step;

    (void) t; //$ if not a.rope
    for (size_t row = first; row < end; ++row, from += $(w), to += step)
        $(a.helper)_rotate(t, from, row, factor, 1, to); //$ if a.rope
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
   denormal, which CPUs multiply a hundred times slower.
   make: the largest score of each row and 1 / its sum are found first. */
static void $(a.helper)_softmax(const $(helper)_scores *block, int make)
{
    const size_t columns = block->columns, step = block->step, softmax_step = block->softmax.step;
    float *score = block->weights, *softmax = block->softmax.at;
    const float none = $hidden(0.0f); /* else its loop is a call of memset */
    const float unseen = $minus_infinity();

    for (size_t row = 0; row < block->rows; ++row, score += step, softmax += softmax_step) {
//$ declare_seen("block->first + row", "block->own")
//$ if a.window then
        for (size_t k = 0; k < begin; ++k)
            score[k] = unseen;
//$ end
        for (size_t k = $(end_of("block->own")); k < columns; ++k)
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
        for (size_t k = $(end_of("block->own")); k < columns; ++k)
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
static void $(a.helper)_shape(const $(helper)_scores *block, const float *restrict shape)
{
    const size_t length = block->own;
    float *weight = block->weights;

    for (size_t row = block->first; row < block->first + block->rows; ++row, weight += block->step) {
//$ declare_seen("row", "length")
        const float level = shape[2] / (float) $(a.window and "(end - begin)" or end_of("length"));
        for (size_t k = 0; k < $(end_of("length")); ++k)
            weight[k] = shape[1] * weight[k] - $(a.window and "(k < begin ? 0.0f : level)" or "level");
        if (row < length)
            weight[row] += shape[0];
    }
}

/* The way back: from gradients of weights those of alpha and gamma, added to. */
static void $(a.helper)_shape_back(const $(helper)_scores *block, float *alpha, float *gamma)
{
    const size_t length = block->own;
    const float *slope = block->slopes;

    for (size_t row = block->first; row < block->first + block->rows; ++row, slope += block->step) {
        float sum = 0.0f;

//$ declare_seen("row", "length")
        for (size_t k = $(a.window and "begin" or 0); k < $(end_of("length")); ++k)
            sum += slope[k];
        *gamma -= sum / (float) $(a.window and "(end - begin)" or end_of("length"));
        if (row < length)
            *alpha += slope[row];
    }
}
//$ end

/* Chooses the queries from `first` on. */
static void $(a.helper)_choose($(helper)_scores *block, size_t first)
{
    block->first = first;
    block->rows = block->length - first < $(a.rows) ? block->length - first : $(a.rows);
    block->seen = $(a.causal and "first + block->rows" or "block->length");
    block->columns = (block->seen + $(strip - 1)) / $(strip) * $(strip);
}

//$ -- The rows of head `number` of `word` in the sequence.
//$ local function heads(word, number, width)
//$     return sum("of->" .. word .. "->at", times("at", "of->" .. word .. "->step"), times(number, width)) .. ", of->" .. word .. "->step"
//$ end
//$ -- The keys of head `head` go to `keys`. Where they are shifted each is that of the token before, the first one its own.
//$ local shifted = a.shifted < a.kv_heads and "head < " .. a.shifted .. " ? 1 : 0" or "1"
//$ local function gather_keys()
//$     if a.shifted == 0 then
        $(a.helper)_gather_heads(r->t, &k, 0, length, one, keys);
//$     else
        const size_t shift = $(shifted);

        $(a.helper)_gather_heads(r->t, &k, 0, 1, one, keys);
        $(a.helper)_gather_heads(r->t, &k, 0, length - shift, one, keys + shift * $(w));
//$     end
//$ end
//$ -- The factor of the queries of head `number`.
//$ local function factor(number)
//$     if a.lsh then return "one" end
//$     return a.scaled and times(float(a.scale), "of->scales[" .. number .. "]") or float(a.scale)
//$ end
//$ local function of_group(head) return { from = times(head, a.group), to = times(sum(head, 1), a.group) } end
/* Attention of sequence number `sequence` of the part: rows of heads of q, k and v become those of y. */
static void $(a.helper)_attend(const $(helper)_run *r, const $(helper)_attention *of, size_t sequence)
{
    const size_t length = r->length, at = sequence * length, padded = (length + 31) / 32 * 32;
//$ if a.shaped then
    const float one = $hidden(1.0f), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */
//$ else
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ end
    float *keys = r->scratch, *key_strips = keys + padded * $(w), *value_strips = key_strips + padded * $(a.strip_floats);
    const $(names.rows) queries = { value_strips + padded * $(a.padded_width), $(w) };
    $(helper)_scores block;

    block.width = $(w);
    block.length = length;
    block.own = $(helper)_length_of(r, sequence);
    block.step = padded;
    block.weights = queries.at + $(a.rows * w);
    block.packed = block.weights + $(a.rows) * padded;
//$ if a.lsh then
    block.signs = block.packed + $(product.packed_a);
    float *all_queries = block.signs + $(a.lsh.signs), *tables = all_queries + length * $(w);
    if (r->t->signs)
        $(a.helper)_make_signs(r->t, $(a.layer), block.signs);
//$ end

//$ loop("head", 0, a.kv_heads, 1, function(head)
        const $(names.rows) k = { $(heads("k", head, a.k_head)) }, v = { $(heads("v", head, a.v_head)) };

//$ gather_keys()
        $(helper)_pack_across(keys, $(w), $(w), length, key_strips);
        $(helper)_pack(v.at, v.step, length, $(w), value_strips);
//$ loop("number", 0, a.group, 1, function(number)
            const $(names.rows) q = { $(heads("q", number, a.q_head)) }, y = { $(heads("y", number, w)) };
            const $(names.rows) sums = { $(heads("sums", number, w)) }; //$ if a.lsh
//$ if a.shaped then
            float total[$(w)];
            size_t summed = 0;

            for (size_t i = 0; i < $(w); ++i)
                total[i] = none;
//$ end

//$ local to = "y"
//$ if a.lsh then
//$ to = "sums"
            if (r->t->signs) {
                $(a.helper)_gather_heads(r->t, &q, 0, length, $(factor(number)), all_queries);
                $(a.helper)_read_tables(&block, all_queries, keys, v.at, v.step, sums.at, sums.step, tables);
            } else {
//$ end
            for (size_t first = 0; first < length; first += $(a.rows)) {
                const $(names.rows) to = { $(to).at + first * $(to).step, $(to).step };

                $(a.helper)_choose(&block, first);
                $(a.helper)_gather_heads(r->t, &q, first, first + block.rows, $(factor(number)), queries.at);
                $(helper)_meet_keys(&block, &queries, key_strips, block.weights);
//$ if a.lsh then
                $(a.helper)_expect(&block);
//$ else
                block.softmax.at = of->softmax->at + $(sum("(at + first) * of->softmax->step", times(number, 2)));
                block.softmax.step = of->softmax->step;
                $(a.helper)_softmax(&block, 1);
//$ end
                $(helper)_sum_keys(&block, block.weights, value_strips, &to);
//$ if not a.lsh then
                for (size_t row = 0; row < block.rows; ++row)
                    $(helper)_scale(to.at + row * to.step, block.softmax.at[row * block.softmax.step + 1], to.at + row * to.step, $(w));
//$ end
//$ if a.shaped then
                $(a.helper)_mix(v.at, first, block.rows, block.own, $(sum("of->shape", times(number, 3))), total, &summed, to.at);
//$ end
            }
//$ if a.lsh then
            }
            $(a.helper)_shorten(&sums, length, &y);
//$ end
//$ end, of_group(head))
//$ end)
}
//$ if not a.lsh then

/* From the weights of a block and the gradients of weights, d, those of scores, in place of the latter: p (d - sum of p d). */
static void $(a.helper)_softmax_back($(helper)_scores *block, float *restrict weight, float *restrict d)
{
    const size_t rows = block->rows, columns = block->columns, step = block->step, softmax_step = block->softmax.step;
    const float *softmax = block->softmax.at;

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
        const $(isa.vector) factor = $(isa.broadcast("block->shape[1]"));
        block->along += sum;
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

/* The gradients of q, k and v from that of y; the rest as above. */
static void $(a.helper)_attend_back(const $(helper)_run *r, const $(helper)_attention *of, size_t sequence)
{
    const size_t length = r->length, at = sequence * length, padded = (length + 31) / 32 * 32;
//$ if a.shifted > 0 then
    const float one = $hidden(1.0f), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */
//$ else
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ end
    float *keys = r->scratch, *key_strips = keys + padded * $(w), *value_strips = key_strips + padded * $(a.strip_floats);
    float *key_rows = value_strips + padded * $(a.strip_floats);
    float *dkeys = key_rows + padded * $(a.padded_width), *dvalues = dkeys + padded * $(a.padded_width);
    const $(names.rows) queries = { dvalues + padded * $(a.padded_width), $(w) }, dqueries = { queries.at + $(a.rows * w), $(w) };
    float *query_strips = dqueries.at + $(a.rows * a.padded_width), *dy_strips = query_strips + $(a.rows * a.padded_width);
    $(helper)_scores block;

    block.width = $(w);
    block.length = length;
    block.own = $(helper)_length_of(r, sequence);
    block.step = padded;
    block.weights = dy_strips + $(a.rows * a.padded_width);
    block.slopes = block.weights + $(a.rows) * padded + 16; /* a power of two apart, they would drive each other out of the cache */
    block.packed = block.slopes + $(a.rows) * padded;
//$ if a.lsh then
    block.signs = block.packed + $(product.packed_a);
    float *all_queries = block.signs + $(a.lsh.signs), *dsums = all_queries + length * $(w);
    float *tables = dsums + length * $(w);
    if (r->t->signs)
        $(a.helper)_make_signs(r->t, $(a.layer), block.signs);
//$ end
    float *dscales = r->memory + r->scales_at + (r->first / length + sequence) * $(a.heads); //$ if a.scaled
    float *dshape = r->memory + r->shapes_at + (r->first / length + sequence) * $(3 * a.heads); //$ if a.shaped

//$ loop("head", 0, a.kv_heads, 1, function(head)
        const $(names.rows) k = { $(heads("k", head, a.k_head)) }, v = { $(heads("v", head, a.v_head)) };
        const $(names.rows) dk = { $(heads("dk", head, a.k_head)) }, dv = { $(heads("dv", head, a.v_head)) };

//$ gather_keys()
        $(helper)_pack_across(keys, $(w), $(w), length, key_strips);
        $(helper)_pack_across(v.at, v.step, $(w), length, value_strips);
        $(helper)_pack(keys, $(w), length, $(w), key_rows);
        $(helper)_clear(dkeys, $(w), padded);
        $(helper)_clear(dvalues, $(w), padded);
//$ loop("number", 0, a.group, 1, function(number)
            const $(names.rows) q = { $(heads("q", number, a.q_head)) }, dq = { $(heads("dq", number, a.q_head)) };
            const $(names.rows) dy = { $(heads("dy", number, w)) };
            const $(names.rows) sums = { $(heads("sums", number, w)) }; //$ if a.lsh
            float scaled = 0.0f;$(a.scaled and "" or " /* no factor is learned */") //$ if a.unit
//$ if a.shaped then
            float alone = 0.0f, level = 0.0f;

            block.shape = $(sum("of->shape", times(number, 3)));
            block.along = 0.0f;
//$ end

            for (size_t first = 0; first < length; first += $(a.rows)) {
//$ if a.lsh then
                const $(names.rows) from = { all_queries + first * $(w), $(w) }, d = { dsums + first * $(w), $(w) };
//$ else
                const $(names.rows) from = { queries.at, $(w) }, d = { dy.at + first * dy.step, dy.step };
//$ end

                $(a.helper)_choose(&block, first);
                $(a.helper)_gather_heads(r->t, &q, first, first + block.rows, $(factor(number)), from.at);
                $(helper)_meet_keys(&block, &from, key_strips, block.weights);
//$ if a.lsh then
                $(a.helper)_expect(&block);
                $(a.helper)_shorten_back(sums.at + first * sums.step, sums.step, dy.at + first * dy.step, dy.step, block.rows, d.at);
//$ else
                block.softmax.at = of->softmax->at + $(sum("(at + first) * of->softmax->step", times(number, 2)));
                block.softmax.step = of->softmax->step;
                $(a.helper)_softmax(&block, 0);
//$ end
                $(helper)_meet_keys(&block, &d, value_strips, block.slopes);
                $(a.helper)_shape_back(&block, &alone, &level); //$ if a.shaped
                $(a.helper)_$(a.lsh and "expect" or "softmax")_back(&block, block.weights, block.slopes);
                $(helper)_sum_keys(&block, block.slopes, key_rows, &dqueries);
                $(a.helper)_scatter_heads(r->t, dqueries.at, $(float(a.scale)), &dq, first, first + block.rows);
//$ if a.unit then
//$ local scale = a.scaled and "of->scales[" .. number .. "]" or "one"
                $(a.helper)_unit_back(q.at + first * q.step, q.step, block.rows, $(scale), dq.at + first * dq.step, dq.step, &scaled);
//$ end
                $(helper)_pack(from.at, $(w), block.rows, $(w), query_strips);
                $(helper)_pack(d.at, d.step, block.rows, $(w), dy_strips);
                $(helper)_add_to_keys(&block, block.slopes, query_strips, dkeys);
                $(a.helper)_shape(&block, block.shape); //$ if a.shaped
                if (!r->t->signs) //$ if a.lsh
                $(a.lsh and "    " or "")$(helper)_add_to_keys(&block, block.weights, dy_strips, dvalues);
            }
//$ if a.lsh then
            if (r->t->signs)
                $(a.helper)_read_tables_back(&block, all_queries, keys, dsums, dvalues, tables);
//$ end
            dscales[$(number)] = scaled; //$ if a.scaled
//$ if a.shaped then
            dshape[$(times(number, 3))] = alone;
            dshape[$(sum(times(number, 3), 1))] = block.along;
            dshape[$(sum(times(number, 3), 2))] = level;
//$ end
//$ end, of_group(head))
//$ local key_factor = a.lsh and float(a.scale) or "one"
//$ if a.shifted == 0 then
        $(a.helper)_scatter_heads(r->t, dkeys, $(key_factor), &dk, 0, length);
//$ else
        const size_t used = length > shift ? length - shift : 1; /* keys that some token sees */
        for (size_t i = 0; i < shift * $(w); ++i)
            dkeys[i + $(w)] += dkeys[i];
        $(a.helper)_scatter_heads(r->t, dkeys + shift * $(w), $(key_factor), &dk, 0, used);
        for (size_t row = used; row < length; ++row)
            for (size_t i = 0; i < $(w); ++i)
                dk.at[row * dk.step + i] = none;
//$ end
//$ if a.unit then
        float unscaled = 0.0f; /* keys have no factor */
        $(a.helper)_unit_back(k.at, k.step, length, one, dk.at, dk.step, &unscaled);
//$ end
        for (size_t row = 0; row < length; ++row)
            $(helper)_scale(dvalues + row * $(w), one, dv.at + row * dv.step, $(w));
//$ end)
}
