//$ takes isa, lanes, helper, keys, cache_type, dots
//$ local exp = dots and isa.entry and once("templates/math/exp_short.c") .. "_exp_short" or once("templates/math/exp.c") .. "_exp"
//$ local largest_lane = across("max")
//$ local integers = dots and dots.integers

/* One row of an online softmax: the scores of a tile become weights relative to the largest score so far, and are added to
   the totals, one for each lane. A tile with a larger score is rare: only then the sums of earlier tiles have to shrink,
   by `factor`.$(cache_type.scaled and " Weights are for values in units of `scale`." or "")$(dots and "" or " */")
//$ if integers then
   They become integers up to $(dots.levels), $(dots.rows) to a word, in units of the one that it returns. */
//$ elseif dots then
   They become words of $(dots.rows) in bf16. */
//$ end
//$ local parameters = listed(
//$     "float *restrict score",
//$     cache_type.scaled and "const float *restrict scale",
//$     dots and dots.storage .. " *restrict weights",
//$     "float *restrict total, float *restrict largest, float *restrict factor"
//$ )
static inline $(integers and "float" or "void") $(helper)_softmax($(parameters))
{
    $(isa.vector) max = $(isa.load_unaligned("score", 0));
    $(isa.vector) highest = $(isa.broadcast("*largest"));
    $(isa.vector) totals = $(isa.load_unaligned("total", 0));

//$ if 2 * lanes == keys then
    max = $(isa.max("max", isa.load_unaligned("score", lanes)));
//$ else
//$ loop("    ", "k", lanes, keys, lanes, function(i, k)
$(i)const $(isa.vector) other = $(isa.load_unaligned("score", k));
$(i)max = $(isa.max("max", "other"));
//$ end)
//$ end
    *factor = 1.0f;
    const $(isa.mask) above = $(isa.less("highest", "max"));
    if ($(isa.any("above"))) {
        const float now = $(largest_lane("max"));
//$ local shrink = first_lane("        ", "shrink", exp .. "(" .. isa.broadcast("*largest - now") .. ")")
        highest = $(isa.broadcast("now"));
        totals = $(isa.mul("totals", isa.broadcast(shrink)));
        *factor = $(shrink);
        *largest = now;
    }
//$ if integers then
    $(isa.vector) most = $(isa.zero());
//$ end
//$ loop("    ", "k", 0, keys, lanes, function(i, k)
$(i)const $(isa.vector) below = $(isa.sub(isa.load_unaligned("score", k), "highest"));
//$ if integers then
$(i)const $(isa.vector) weight = $(exp)(below);
$(i)/* What a query does not see may have no scale. One that is not a number spoils the total. */
//$ local counts, product = isa.less(isa.broadcast("1e-30f"), "weight"), isa.mul("weight", isa.load_unaligned("scale", k))
$(i)const $(isa.vector) scaled = $(isa.select(counts, product, isa.zero()));
$(i)$(isa.store_unaligned("score", k, "scaled"));
$(i)most = $(isa.max("most", "scaled"));
$(i)totals = $(isa.add("totals", isa.fma(isa.zero(), "scaled", "weight")));
//$ else
$(i)/* 0 for what is not seen: exp(-87) times a value or its unit would be a denormal, which CPUs multiply a hundred times slower. */
$(i)const $(isa.vector) weight = $(isa.select(isa.less("below", isa.broadcast("-87.0f")), isa.zero(), exp .. "(below)"));
$(i)$(isa.store_unaligned("score", k, cache_type.scaled and isa.mul("weight", isa.load_unaligned("scale", k)) or "weight"));
$(i)totals = $(isa.add("totals", "weight"));
//$ end
//$ end)
    $(isa.store_unaligned("total", 0, "totals"));
//$ if integers then
    const float unit = $(largest_lane("most"));
    const $(isa.vector) inverse = $(isa.broadcast("unit > 1e-34f ? " .. dots.levels .. ".0f / unit : 0.0f"));
    int8_t *bytes = (int8_t *) (void *) weights;
//$ loop("    ", "k", 0, keys, lanes, function(i, k)
$(i)const $(isa.vector) units = $(isa.mul(isa.load_unaligned("score", k), "inverse"));
$(i)$(isa.store_i8("bytes", k, "units"));
//$ end)
    return unit * (1.0f / $(dots.levels).0f);
//$ elseif dots then
//$ loop("    ", "k", 0, keys, 2 * lanes, function(i, k)
$(i)$(isa.store_bf16("weights", k == "k" and "k / 2" or 0, isa.load_unaligned("score", k), isa.load_unaligned("score", sum(k, lanes))));
//$ end)
//$ end
}
