//$ takes isa, helper

/* exp(v) for v <= 0 whose results are rounded next, relative error below 5e-6, and 1 for 0; below -87 the result is
   exp(-87). NaN stays NaN. v = (n + f) ln 2 with |f| <= 1/2, then a polynomial for 2^f, scaled by 2^n. */
static inline $(isa.vector) $(helper)_exp_short($(isa.vector) v)
{
    const $(isa.vector) bounded = $(isa.max(isa.broadcast("-87.0f"), "v"));
    /* floats near 1.5 2^23 have no fraction: 127 + n, the exponent of 2^n, stands in the lowest bits */
    const $(isa.vector) shifted = $(isa.fma("bounded", isa.broadcast("1.44269504f"), isa.broadcast("12583039.0f")));
    const $(isa.vector) opposite = $(isa.sub(isa.broadcast("12583039.0f"), "shifted"));
    const $(isa.vector) f = $(isa.fma("bounded", isa.broadcast("1.44269504f"), "opposite"));
    $(isa.vector) p = $(isa.broadcast("9.5828530e-3f"));
    p = $(isa.fma("p", "f", isa.broadcast("5.5906425e-2f")));
    p = $(isa.fma("p", "f", isa.broadcast("0.24024099f")));
    p = $(isa.fma("p", "f", isa.broadcast("0.69312419f")));
    p = $(isa.fma("p", "f", isa.broadcast("1.0f")));
    return $(isa.mul("p", isa.shifted_power("shifted")));
}
