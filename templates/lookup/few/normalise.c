//$ takes isa, prologue, symbol, lanes, eps, one_over_d
//$ lines("", prologue)

/* LayerNorm of one token without gain and offset, which are folded into the projection: (x - mean) / sqrt(variance + $(eps)).
   x           [$(shape.d)], any alignment
   normalised  [$(shape.d)], must not overlap x. Cannot fail. */
void $(symbol)(const float *restrict x, float *restrict normalised)
{
//$ local whole = shape.d - shape.d % lanes
//$ local rest = shape.d % lanes
    float lane[$(lanes)];

//$ if whole > 0 then
    $(isa.vector) sums = $(isa.zero());
    for (size_t i = 0; i < $(whole); i += $(lanes))
        sums = $(isa.add("sums", isa.load_unaligned("x", "i")));
//$ if rest > 0 then
    sums = $(isa.add("sums", isa.load_partial("x", whole, rest)));
//$ end
//$ else
    const $(isa.vector) sums = $(isa.load_partial("x", 0, rest));
//$ end
    $(isa.store_unaligned("lane", 0, "sums"));
    float sum = 0.0f;
    for (size_t i = 0; i < $(lanes); ++i)
        sum += lane[i];
    const $(isa.vector) mean = $(isa.broadcast("sum * " .. one_over_d));

    $(isa.vector) squares = $(isa.zero());
    $(isa.vector) rests = $(isa.zero()); /* what rounding left out of the mean */
//$ if whole > 0 then
    for (size_t i = 0; i < $(whole); i += $(lanes)) {
        const $(isa.vector) centred = $(isa.sub(isa.load_unaligned("x", "i"), "mean"));
        squares = $(isa.fma("centred", "centred", "squares"));
        rests = $(isa.add("rests", "centred"));
    }
//$ end
//$ if rest > 0 then
    $(isa.store_unaligned("lane", 0, "mean"));
    const $(isa.vector) last = $(isa.sub(isa.load_partial("x", whole, rest), isa.load_partial("lane", 0, rest)));
    squares = $(isa.fma("last", "last", "squares"));
    rests = $(isa.add("rests", "last"));
//$ end
    $(isa.store_unaligned("lane", 0, "squares"));
    float variance = $(eps);
    for (size_t i = 0; i < $(lanes); ++i)
        variance += lane[i] * $(one_over_d);
    $(isa.store_unaligned("lane", 0, "rests"));
    float rest = 0.0f;
    for (size_t i = 0; i < $(lanes); ++i)
        rest += lane[i];
    const $(isa.vector) shift = $(isa.broadcast("rest * " .. one_over_d));
    const $(isa.vector) padded = $(isa.broadcast("variance"));
    const $(isa.vector) gain = $(isa.reciprocal_root("padded"));

//$ if whole > 0 then
    for (size_t i = 0; i < $(whole); i += $(lanes)) {
        const $(isa.vector) centred = $(isa.sub(isa.load_unaligned("x", "i"), "mean"));
        const $(isa.vector) exact = $(isa.sub("centred", "shift"));
        $(isa.store_unaligned("normalised", "i", isa.mul("exact", "gain")));
    }
//$ end
//$ if rest > 0 then
    const $(isa.vector) exact = $(isa.sub("last", "shift"));
    $(isa.store_partial("normalised", whole, rest, isa.mul("exact", "gain")));
//$ end
}
