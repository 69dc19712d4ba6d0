//$ takes isa, lanes, helper, head, float
//$ local h = head
//$ local head_rows = names.macro("TRAIN_HEAD_ROWS")
//$ local largest_lane, sum_of_lanes = h.at and across("max"), h.at and across("add")

#define $(head_rows) $(h.rows) /* tokens whose logits are held together */
//$ if h.at then

/* The natural logarithm of v >= 1, within 2^-50: that of v / 2^n near 1 from the series of its area hyperbolic tangent. */
static double $(helper)_log(double v)
{
    union { double value; uint64_t bits; } part;
    int exponent;
    double s, square, sum = 0.0;

    part.value = v;
    exponent = (int) (part.bits >> 52) - 1023;
    part.bits = (part.bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    if (part.value > 1.4142135623730951) {
        part.value *= 0.5;
        ++exponent;
    }
    s = (part.value - 1.0) / (part.value + 1.0);
    square = s * s;
    for (int i = 21; i > 0; i -= 2)
        sum = sum * square + 1.0 / (double) i;
    return 2.0 * s * sum + 0.69314718055994531 * (double) exponent;
}
//$ local exp = once("templates/math/exp.c") .. "_exp"
//$ local tanh = h.soft_cap and once("templates/math/tanh.c") .. "_tanh"

//$ local filled = h.padded > h.vocab and " The " .. h.padded - h.vocab .. " floats behind the logits are overwritten." or ""
/* The cross-entropy of a row of logits, and in their place its gradient times `scale` if `back`.$(filled) */
static float $(helper)_entropy(float *restrict logits, size_t target, float scale, int back)
{
    const float least = $hidden($minus_infinity()); /* else its loop is a call of memcpy */ //$ if h.padded > h.vocab

//$ if h.soft_cap then
    /* $(h.soft_cap) tanh(logit / $(h.soft_cap)) */
//$ loop("i", 0, h.padded, lanes, function(at)
        const $(isa.vector) share = $(isa.mul(isa.load_unaligned("logits", at), isa.broadcast(float(1 / h.soft_cap))));
        const $(isa.vector) bounded = $(tanh)(share);
        $(isa.store_unaligned("logits", at, isa.mul("bounded", isa.broadcast(float(h.soft_cap)))));
//$ end, { block = true })
//$ end
//$ if h.padded > h.vocab then
//$ loop("i", h.vocab, h.padded, 1, function(at)
        logits[$(at)] = least;
//$ end)
//$ end
    $(isa.vector) high = $(isa.load_unaligned("logits", 0));
//$ loop("i", lanes, h.padded, lanes, function(at)
        const $(isa.vector) other = $(isa.load_unaligned("logits", at));
        high = $(isa.max("high", "other"));
//$ end)
    const float largest = $(largest_lane("high"));
    const $(isa.vector) highest = $(isa.broadcast("largest"));
    const float own = logits[target];
    $(isa.vector) sums = $(isa.zero());
//$ loop("i", 0, h.padded, lanes, function(at)
        const $(isa.vector) below = $(isa.sub(isa.load_unaligned("logits", at), "highest"));
        const $(isa.vector) weight = $(exp)(below);
        sums = $(isa.add("sums", "weight"));
//$ end, { block = true })
    const float total = $(sum_of_lanes("sums"));
    if (back) {
        const float share = scale / total;
        const $(isa.vector) shares = $(isa.broadcast("share"));
//$ loop("i", 0, h.padded, lanes, function(at)
            const $(isa.vector) logit = $(isa.load_unaligned("logits", at));
            const $(isa.vector) below = $(isa.sub("logit", "highest"));
            const $(isa.vector) weight = $(exp)(below);
//$ if h.soft_cap then
            const $(isa.vector) part = $(isa.mul("logit", isa.broadcast(float(1 / h.soft_cap))));
            const $(isa.vector) slope = $(isa.sub(isa.broadcast("1.0f"), isa.mul("part", "part")));
            $(isa.store_unaligned("logits", at, isa.mul(isa.mul("weight", "shares"), "slope")));
//$ else
            $(isa.store_unaligned("logits", at, isa.mul("weight", "shares")));
//$ end
//$ end, { block = true })
        logits[target] -= scale * (1.0f - own * own * $(float(1 / h.soft_cap / h.soft_cap))); //$ if h.soft_cap
        logits[target] -= scale; //$ if not h.soft_cap
    }
    return (float) ($(helper)_log((double) total) + (double) largest - (double) own);
}

//$ end
/* What the counted tokens cost, a float each from r->losses_at on, $(head_rows) of them at a
   time; back: the gradients$(h.at and " of the head, and" or "") of the rows of
   features in `d`, [r->all][$(h.features_pitch)]. */
static void $(helper)_head(const $(helper)_run *r, const float *features, int back, float *d)
{
    const $(helper) *t = r->t;
//$ local rows_of_features = times(head_rows, h.features_pitch)
    float *x = r->memory + r->head_at$(h.at and ", *dx = x + " .. rows_of_features .. ", *logits = dx + " .. rows_of_features or "");
    const uint32_t *counted = (const uint32_t *) (const void *) (r->memory + r->counted_at);
    float *losses = r->memory + r->losses_at;
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    if (back)
        $(helper)_clear(d + r->first * $(h.features_pitch), $(h.features_pitch), r->count);
    $(helper)_wait(t);
    if (t->observe) {
        if (t->part == 0)
            t->observe(t->criterion_context, features);
        $(helper)_wait(t);
    }
    for (size_t from = 0; from < r->targets_counted; from += $(head_rows)) {
        const size_t rows = r->targets_counted - from < $(head_rows) ? r->targets_counted - from : $(head_rows);
        const size_t row = rows * t->part / t->parts, end = rows * (t->part + 1) / t->parts;

        for (size_t i = row; i < end; ++i)
            $(helper)_copy(features + counted[from + i] * $(h.features_pitch), x + i * $(h.features_pitch), $(h.features_pitch), 1);
//$ local gradients = h.at and "dx" or "x"
//$ if h.at then
        const $(names.rows) all_x = { x, $(h.features_pitch) }, all_logits = { logits, $(h.pitch) };
        const $(names.rows) own_x = { x + row * $(h.features_pitch), $(h.features_pitch) };
        const $(names.rows) own_logits = { logits + row * $(h.pitch), $(h.pitch) };
        const $(names.rows) own_dx = { dx + row * $(h.features_pitch), $(h.features_pitch) };

        $(helper)_multiply(r, &$(h.map), t->parameters, &own_x, &own_logits, end - row);
        for (size_t i = row; i < end; ++i)
            if (t->criterion)
                losses[from + i] = t->criterion(t->criterion_context, counted[from + i], logits + i * $(h.pitch), t->gradient_scale, back);
            else
                losses[from + i] = $(helper)_entropy(logits + i * $(h.pitch), (size_t) r->targets[counted[from + i]],
                    t->gradient_scale, back);
//$ else
        for (size_t i = row; i < end; ++i)
            losses[from + i] = t->criterion(t->criterion_context, counted[from + i], x + i * $(h.features_pitch), t->gradient_scale, back);
//$ end
        if (!back)
            continue;
//$ if h.at then
        $(helper)_multiply_back(r, &$(h.map), t->parameters, &own_logits, &own_dx, $(names.macro("TRAIN_SET")), end - row);
//$ end
        for (size_t i = row; i < end; ++i)
            for (size_t k = 0; k < $(h.features); ++k)
                d[counted[from + i] * $(h.features_pitch) + k] = one * $(gradients)[i * $(h.features_pitch) + k];
//$ if h.at then
        $(helper)_wait(t);
        $(helper)_multiply_sums(r, &$(h.map), t->gradients, &all_x, &all_logits, rows);
        $(helper)_wait(t);
//$ end
    }
    $(helper)_wait(t);
}
