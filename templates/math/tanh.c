//$ takes isa, helper
//$ local exp = once("templates/math/exp.c") .. "_exp"

/* tanh(x): near 0 an odd polynomial (Cephes), elsewhere 1 - 2 e / (1 + e), e = exp(-2 |x|), with the sign of x. */
static inline $(isa.vector) $(helper)_tanh($(isa.vector) x)
{
    const $(isa.vector) zero = $(isa.zero());
    const $(isa.vector) one = $(isa.broadcast("1.0f"));
    const $(isa.vector) magnitude = $(isa.abs("x"));
    const $(isa.vector) small = $(exp)($(isa.mul("magnitude", isa.broadcast("-2.0f"))));
    const $(isa.vector) below = $(isa.add("one", "small"));
    const $(isa.vector) share = $(isa.div(isa.add("small", "small"), "below"));
    const $(isa.vector) far = $(isa.sub("one", "share"));
    const $(isa.vector) square = $(isa.mul("x", "x"));
    $(isa.vector) p = $(isa.broadcast("-5.70498872745e-3f"));
    p = $(isa.fma("p", "square", isa.broadcast("2.06390887954e-2f")));
    p = $(isa.fma("p", "square", isa.broadcast("-5.37397155531e-2f")));
    p = $(isa.fma("p", "square", isa.broadcast("1.33314422036e-1f")));
    p = $(isa.fma("p", "square", isa.broadcast("-3.33332819422e-1f")));
    p = $(isa.mul("p", "square"));
    const $(isa.vector) near = $(isa.fma("p", "x", "x"));
    const $(isa.mask) left = $(isa.less("x", "zero"));
    const $(isa.vector) opposite = $(isa.sub("zero", "far"));
    const $(isa.vector) with_sign = $(isa.select("left", "opposite", "far"));
    const $(isa.mask) inner = $(isa.less("magnitude", isa.broadcast("0.625f")));
    return $(isa.select("inner", "near", "with_sign"));
}
