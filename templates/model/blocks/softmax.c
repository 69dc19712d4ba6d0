//$ takes isa, lanes, helper, keys, cache_type, dots, weight_step
//$ local exp = dots and isa.entry and once("templates/math/exp_short.c") .. "_exp_short" or once("templates/math/exp.c") .. "_exp"
//$ local largest_lane = across("max")
//$ local integers = dots and dots.integers
//$ local eight = integers and isa.largest_of -- rows, whose units are found together

/* One row of an online softmax: the scores of a tile become weights relative to the largest score so far, and are added to
   the totals, one for each lane. A tile with a larger score is rare: only then the sums of earlier tiles have to shrink,
   by `factor`.$(cache_type.scaled and " Weights are for values in units of `scale`." or "")$(dots and "" or " */")
//$ if eight then
   Returns a vector whose largest lane is the largest weight in these units. */
//$ elseif integers then
   They become integers up to $(dots.levels), $(dots.rows) to a word, in units of the one that it returns. */
//$ elseif dots then
   They become words of $(dots.rows) in bf16. */
//$ end
//$ local scores = listed("float *restrict score", cache_type.scaled and "const float *restrict scale")
//$ local totals = "float *restrict total, float *restrict largest, float *restrict factor"
//$ local to_weights = dots and dots.storage .. " *restrict weights"
//$ if eight then
static inline $(isa.vector) $(helper)_softmax_row($(listed(scores, totals)))
//$ else
static inline $(integers and "float" or "void") $(helper)_softmax($(listed(scores, to_weights, totals)))
//$ end
{
    $(isa.vector) max = $(isa.load_unaligned("score", 0));
    $(isa.vector) highest = $(isa.broadcast("*largest"));
    $(isa.vector) totals = $(isa.load_unaligned("total", 0));

//$ if 2 * lanes == keys then
    max = $(isa.max("max", isa.load_unaligned("score", lanes)));
//$ else
//$ loop("k", lanes, keys, lanes, function(k)
        const $(isa.vector) other = $(isa.load_unaligned("score", k));
        max = $(isa.max("max", "other"));
//$ end)
//$ end
    *factor = 1.0f;
    const $(isa.mask) above = $(isa.less("highest", "max"));
    if ($(isa.any("above"))) {
        const float now = $(largest_lane("max"));
//$ local shrink = first_lane("shrink", exp .. "(" .. isa.broadcast("*largest - now") .. ")")
        highest = $(isa.broadcast("now"));
        totals = $(isa.mul("totals", isa.broadcast(shrink)));
        *factor = $(shrink);
        *largest = now;
    }
    $(isa.vector) most = $(isa.zero()); //$ if integers
//$ loop("k", 0, keys, lanes, function(k)
        const $(isa.vector) below = $(isa.sub(isa.load_unaligned("score", k), "highest"));
//$ if integers then
        const $(isa.vector) weight = $(exp)(below);
        /* What a query does not see may have no scale. One that is not a number spoils the total. */
//$ local counts, product = isa.less(isa.broadcast("1e-30f"), "weight"), isa.mul("weight", isa.load_unaligned("scale", k))
        const $(isa.vector) scaled = $(isa.select(counts, product, isa.zero()));
        $(isa.store_unaligned("score", k, "scaled"));
        most = $(isa.max("most", "scaled"));
        totals = $(isa.add("totals", isa.fma(isa.zero(), "scaled", "weight")));
//$ else
        /* 0 for what is not seen: exp(-87) times a value or its unit would be a denormal, which CPUs multiply a hundred times slower. */
        const $(isa.vector) weight = $(isa.select(isa.less("below", isa.broadcast("-87.0f")), isa.zero(), exp .. "(below)"));
        $(isa.store_unaligned("score", k, cache_type.scaled and isa.mul("weight", isa.load_unaligned("scale", k)) or "weight"));
        totals = $(isa.add("totals", "weight"));
//$ end
//$ end)
    $(isa.store_unaligned("total", 0, "totals"));
//$ if eight then
    return most;
}

/* The same, and the weights become integers up to $(dots.levels), $(dots.rows) to a word, in units of the one that it returns. */
static inline float $(helper)_softmax($(listed(scores, to_weights, totals)))
{
//$ local row = listed("score", cache_type.scaled and "scale", "total, largest, factor")
    const $(isa.vector) most = $(helper)_softmax_row($(row));
//$ end
//$ if integers then
    const float unit = $(largest_lane("most"));
    const $(isa.vector) inverse = $(isa.broadcast("unit > 1e-34f ? " .. dots.levels .. ".0f / unit : 0.0f"));
    int8_t *bytes = (int8_t *) (void *) weights;
//$ loop("k", 0, keys, lanes, function(k)
        const $(isa.vector) units = $(isa.mul(isa.load_unaligned("score", k), "inverse"));
        $(isa.store_i8("bytes", k, "units"));
//$ end)
    return unit * (1.0f / $(dots.levels).0f);
//$ elseif dots then
//$ loop("k", 0, keys, 2 * lanes, function(k)
        $(isa.store_bf16("weights", k == "k" and "k / 2" or 0, isa.load_unaligned("score", k), isa.load_unaligned("score", sum(k, lanes))));
//$ end)
//$ end
}
//$ if eight then

/* The same of eight rows, whose units are found side by side, in one division. */
static inline void $(helper)_softmax_8($(listed(scores, to_weights, totals, "float *restrict unit")))
{
    $(isa.index) most[8];
//$ local own = listed("score + r * " .. keys, cache_type.scaled and "scale", "total + r * " .. lanes, "largest + r, factor + r")
    for (size_t r = 0; r < 8; ++r)
        most[r] = $(isa.max_magnitude(isa.index_zero(), helper .. "_softmax_row(" .. own .. ")"));
//$ local all = {}
//$ for r = 0, 7 do all[r + 1] = "most[" .. r .. "]" end
//$ local steps, units = isa.largest_of(all)
    const $(isa.index) $(step.name) = $(step.value); //$ for _, step in ipairs(steps)
    const $(isa.vector) units = $(units);
//$ local inverses = isa.div(isa.broadcast(dots.levels .. ".0f"), "units")
    float inverse[$(lanes)];
    $(isa.store_unaligned("inverse", 0, isa.select(isa.less(isa.broadcast("1e-34f"), "units"), inverses, isa.zero())));
    $(isa.store_partial("unit", 0, 8, isa.mul("units", isa.broadcast("1.0f / " .. dots.levels .. ".0f"))));
    int8_t *bytes = (int8_t *) (void *) weights;
    for (size_t r = 0; r < 8; ++r) {
        const $(isa.vector) own = $(isa.broadcast("inverse[r]"));
//$ for k = 0, keys - 1, lanes do
//$ local weight = isa.mul("own", isa.load_unaligned("score", sum(times("r", keys), k)))
        $(isa.store_i8("bytes", sum(times("r", weight_step * dots.rows), k), weight));
//$ end
    }
}
//$ end
