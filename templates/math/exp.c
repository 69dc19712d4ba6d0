//$ takes isa, helper

/* exp(v) for v <= 0, relative error below 2^-23; below -87 the result is exp(-87). NaN stays NaN.
   v = n ln 2 + f with |f| <= ln 2 / 2, then a polynomial for exp(f), scaled by 2^n. */
static inline $(isa.vector) $(helper)_exp($(isa.vector) v)
{
    const $(isa.vector) lowest = $(isa.broadcast("-87.0f"));
    const $(isa.vector) bounded = $(isa.max("lowest", "v"));
//$ local power
//$ if isa.shifted_power then
    /* floats near 1.5 2^23 have no fraction: 127 + n, the exponent of 2^n, stands in the lowest bits */
    const $(isa.vector) shifted = $(isa.fma("bounded", isa.broadcast("1.44269504f"), isa.broadcast("12583039.0f")));
    const $(isa.vector) n = $(isa.sub("shifted", isa.broadcast("12583039.0f")));
//$     power = isa.shifted_power("shifted")
//$ else
    const $(isa.vector) n = $(isa.round_negative(isa.mul("bounded", isa.broadcast("1.44269504f"))));
//$     power = isa.power_of_two("n")
//$ end
    const $(isa.vector) f_high = $(isa.fma("n", isa.broadcast("-0.693359375f"), "bounded"));
    const $(isa.vector) f = $(isa.fma("n", isa.broadcast("2.12194440e-4f"), "f_high"));
    $(isa.vector) p = $(isa.broadcast("1.381454e-3f"));
    p = $(isa.fma("p", "f", isa.broadcast("8.368745e-3f")));
    p = $(isa.fma("p", "f", isa.broadcast("4.166839e-2f")));
    p = $(isa.fma("p", "f", isa.broadcast("0.16666521f")));
    p = $(isa.fma("p", "f", isa.broadcast("0.49999994f")));
    p = $(isa.fma("p", "f", isa.broadcast("1.0f")));
    p = $(isa.fma("p", "f", isa.broadcast("1.0f")));
    return $(isa.mul("p", power));
}
