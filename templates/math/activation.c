//$ takes isa, helper, activation
//$ local exp = activation ~= "relu" and once("templates/math/exp.c") .. "_exp"

//$ if activation == "gelu" then
/* x Phi(x), Phi(-|x|) = erfc(|x| / sqrt 2) / 2 by Abramowitz and Stegun 7.1.26, absolute error below 1e-7. */
//$ elseif activation == "gelu_tanh" then
/* x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3): the tanh form of GELU. */
//$ elseif activation == "silu" then
/* x / (1 + exp(-x)). */
//$ else
/* The larger of x and 0. */
//$ end
static inline $(isa.vector) $(helper)_$(activation)($(isa.vector) x)
{
    const $(isa.vector) zero = $(isa.zero());
//$ if activation == "relu" then
    return $(isa.max("zero", "x"));
//$ elseif activation == "gelu" then
$(include("templates/math/normal_tail.c"))
    const $(isa.vector) power = $(isa.mul("square", isa.broadcast("-0.5f")));
    const $(isa.vector) tail = $(isa.mul("p", exp .. "(power)"));
    const $(isa.vector) lost = $(isa.mul("magnitude", "tail"));
    const $(isa.vector) positive = $(isa.max("zero", "x"));
    return $(isa.sub("positive", "lost"));
//$ else
//$ if activation == "gelu_tanh" then
    const $(isa.vector) square = $(isa.mul("x", "x"));
    const $(isa.vector) inner = $(isa.fma("square", isa.broadcast("0.0713548163f"), isa.broadcast("1.59576912f")));
    const $(isa.vector) u = $(isa.mul("x", "inner"));
//$ end
//$ local u = activation == "gelu_tanh" and "u" or "x"
    const $(isa.vector) one = $(isa.broadcast("1.0f"));
    const $(isa.vector) magnitude = $(isa.abs(u));
    const $(isa.vector) negative = $(isa.sub("zero", "magnitude"));
    const $(isa.vector) small = $(exp)(negative);
    const $(isa.mask) left = $(isa.less(u, "zero"));
    const $(isa.vector) above = $(isa.select("left", "small", "one"));
    const $(isa.vector) below = $(isa.add("one", "small"));
    const $(isa.vector) share = $(isa.div("above", "below"));
    return $(isa.mul("x", "share"));
//$ end
}
