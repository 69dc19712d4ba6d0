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
/* Counted tokens whose $(h.at and "logits" or "features") are held together, a row for each. */
typedef struct $(helper)_head_tile {
    const uint32_t *tokens; /* their numbers */
    float *losses;          /* what each costs */
    size_t count;           /* how many there are */
    size_t first, end;      /* those of the part are first … end - 1 */
    $(names.rows) x; /* features$(h.at and "" or ", then their gradients") */
    $(names.rows) dx; /* their gradients */ //$ if h.at
    $(names.rows) logits; /* then their gradients */ //$ if h.at
} $(helper)_head_tile;

/* The tokens from number `from` of the counted ones on. */
static void $(helper)_head_tile_at(const $(helper)_run *r, size_t from, $(helper)_head_tile *tile)
{
    const size_t left = r->targets_counted - from, part = r->t->part, parts = r->t->parts;

    tile->tokens = $(helper)_counted(r) + from;
    tile->losses = r->memory + r->losses_at + from;
    tile->count = left < $(head_rows) ? left : $(head_rows);
    tile->first = tile->count * part / parts;
    tile->end = tile->count * (part + 1) / parts;
    tile->x.at = r->memory + r->head_at;
    tile->x.step = $(h.features_pitch);
//$ if h.at then
    tile->dx.at = tile->x.at + $(times(head_rows, h.features_pitch));
    tile->dx.step = $(h.features_pitch);
    tile->logits.at = tile->dx.at + $(times(head_rows, h.features_pitch));
    tile->logits.step = $(h.pitch);
//$ end
}

//$ local judged, step = h.at and "logits" or "x", h.at and h.pitch or h.features_pitch
/* What the part's tokens cost; back: their $(h.at and "logits" or "features") become gradients. */
static void $(helper)_head_losses(const $(helper)_run *r, const $(helper)_head_tile *tile, int back)
{
    const $(helper) *t = r->t;
    float *row = tile->$(judged).at + tile->first * $(step);
//$ if h.at then
    const $(names.rows) x = { tile->x.at + tile->first * $(h.features_pitch), $(h.features_pitch) };
    const $(names.rows) logits = { row, $(h.pitch) };
//$ end

    for (size_t i = tile->first; i < tile->end; ++i)
        $(helper)_copy(r->features + tile->tokens[i] * $(h.features_pitch), tile->x.at + i * $(h.features_pitch), $(h.features_pitch), 1);
    $(helper)_multiply(r, &$(h.map), t->parameters, &x, &logits, tile->end - tile->first); //$ if h.at
    for (size_t i = tile->first; i < tile->end; ++i, row += $(step)) {
        const size_t token = tile->tokens[i];

//$ if h.at then
        if (t->criterion)
            tile->losses[i] = t->criterion(t->criterion_context, token, row, t->gradient_scale, back);
        else
            tile->losses[i] = $(helper)_entropy(row, (size_t) r->targets[token], t->gradient_scale, back);
//$ else
        tile->losses[i] = t->criterion(t->criterion_context, token, row, t->gradient_scale, back);
//$ end
    }
}

//$ local gradients = h.at and "dx" or "x"
/* The way back: the gradients of the features of the part's tokens, among those of all in r->d_out. */
static void $(helper)_head_back(const $(helper)_run *r, const $(helper)_head_tile *tile)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ if h.at then
    const $(names.rows) logits = { tile->logits.at + tile->first * $(h.pitch), $(h.pitch) };
    const $(names.rows) dx = { tile->dx.at + tile->first * $(h.features_pitch), $(h.features_pitch) };

    $(helper)_multiply_back(r, &$(h.map), r->t->parameters, &logits, &dx, $(names.macro("TRAIN_SET")), tile->end - tile->first);
//$ end
    for (size_t i = tile->first; i < tile->end; ++i)
        $(helper)_scale(tile->$(gradients).at + i * $(h.features_pitch), one, r->d_out + tile->tokens[i] * $(h.features_pitch), $(h.features));
}
//$ if h.at then

/* Adds to the gradients of the head, which need the rows of all parts. */
static void $(helper)_head_sums(const $(helper)_run *r, const $(helper)_head_tile *tile)
{
    $(helper)_wait(r->t);
    $(helper)_multiply_sums(r, &$(h.map), r->t->gradients, &tile->x, &tile->logits, tile->count);
    $(helper)_wait(r->t);
}
//$ end

/* Ends the pass forward: all parts have made their features, which one of them shows to the observer. back: their gradients
   in r->d_out begin as zeros. */
static void $(helper)_show_features(const $(helper)_run *r, int back)
{
    const $(helper) *t = r->t;

    if (back)
        $(helper)_clear(r->d_out + r->first * $(h.features_pitch), $(h.features_pitch), r->count);
    $(helper)_wait(t);
    if (t->observe) {
        if (t->part == 0)
            t->observe(t->criterion_context, r->features);
        $(helper)_wait(t);
    }
}

/* What the counted tokens cost, a float each from r->losses_at on, $(head_rows) of them at a
   time; back: the gradients$(h.at and " of the head, and" or "") of features in r->d_out. */
static void $(helper)_head(const $(helper)_run *r, int back)
{
    for (size_t from = 0; from < r->targets_counted; from += $(head_rows)) {
        $(helper)_head_tile tile;

        $(helper)_head_tile_at(r, from, &tile);
        $(helper)_head_losses(r, &tile, back);
        if (back) {
            $(helper)_head_back(r, &tile);
            $(helper)_head_sums(r, &tile); //$ if h.at
        }
    }
    $(helper)_wait(r->t);
}
