//$ takes isa, prologue, symbol, lanes, eps, one_over_d
//$ lines(prologue)
//$ local sum_of_lanes = across("add")

/* LayerNorm of one token without gain and offset, which are folded into the projection:

     (x - mean) / sqrt(variance + $(eps))

   x           [$(shape.d)], any alignment
   normalised  [$(shape.d)], must not overlap x. Cannot fail. */
void $(symbol)(const float *restrict x, float *restrict normalised)
{
//$ local whole = shape.d - shape.d % lanes
//$ local rest = shape.d % lanes
//$ if whole > 0 then
    $(isa.vector) sums = $(isa.zero());
//$ loop("i", 0, whole, lanes, function(at)
        sums = $(isa.add("sums", isa.load_unaligned("x", at)));
//$ end)
    sums = $(isa.add("sums", isa.load_partial("x", whole, rest))); //$ if rest > 0
//$ else
    const $(isa.vector) sums = $(isa.load_partial("x", 0, rest));
//$ end
    const $(isa.vector) mean = $(isa.broadcast(sum_of_lanes("sums") .. " * (" .. one_over_d .. ")"));

    $(isa.vector) squares = $(isa.zero());
    $(isa.vector) rests = $(isa.zero()); /* what rounding left out of the mean */
//$ local centred = isa.lanes == whole and "first" or "centred"
//$ loop("i", 0, whole, lanes, function(at)
        const $(isa.vector) $(centred) = $(isa.sub(isa.load_unaligned("x", at), "mean"));
        squares = $(isa.fma(centred, centred, "squares"));
        rests = $(isa.add("rests", centred));
//$ end)
//$ if rest > 0 then
    float means[$(lanes)];
    $(isa.store_unaligned("means", 0, "mean"));
    const $(isa.vector) last = $(isa.sub(isa.load_partial("x", whole, rest), isa.load_partial("means", 0, rest)));
    squares = $(isa.fma("last", "last", "squares"));
    rests = $(isa.add("rests", "last"));
//$ end

    const $(isa.vector) padded = $(isa.broadcast(eps .. " + " .. sum_of_lanes("squares") .. " * (" .. one_over_d .. ")"));
    const $(isa.vector) shift = $(isa.broadcast(sum_of_lanes("rests") .. " * (" .. one_over_d .. ")"));
    const $(isa.vector) gain = $(isa.reciprocal_root("padded"));

//$ loop("i", 0, whole, lanes, function(at)
        const $(isa.vector) centred = $(isa.sub(isa.load_unaligned("x", at), "mean")); //$ if centred == "centred"
        const $(isa.vector) exact = $(isa.sub(centred, "shift"));
        $(isa.store_unaligned("normalised", at, isa.mul("exact", "gain")));
//$ end)
//$ if rest > 0 then
    const $(isa.vector) last_exact = $(isa.sub("last", "shift"));
    $(isa.store_partial("normalised", whole, rest, isa.mul("last_exact", "gain")));
//$ end
}
