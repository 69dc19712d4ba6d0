//$ takes isa, helper, activation
//$ local exp = activation ~= "relu" and once("templates/math/exp.c") .. "_exp"

/* The derivative of the activation. */
static inline $(isa.vector) $(helper)_slope($(isa.vector) x)
{
    const $(isa.vector) zero = $(isa.zero());
    const $(isa.vector) one = $(isa.broadcast("1.0f")); //$ if activation ~= "gelu"
//$ if activation == "relu" then
    const $(isa.mask) right = $(isa.less("zero", "x"));
    return $(isa.select("right", "one", "zero"));
//$ elseif activation == "gelu" then
    /* Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi), Phi as above */
$(include("templates/math/normal_tail.c"))
    const $(isa.vector) power = $(exp)($(isa.mul("square", isa.broadcast("-0.5f"))));
    const $(isa.vector) tail = $(isa.mul("p", "power"));
    const $(isa.mask) left = $(isa.less("x", "zero"));
    const $(isa.vector) share = $(isa.select("left", "tail", isa.sub("one", "tail")));
    const $(isa.vector) density = $(isa.mul("power", isa.broadcast("0.398942280f")));
    return $(isa.fma("x", "density", "share"));
//$ else
//$ if activation == "gelu_tanh" then
    const $(isa.vector) square = $(isa.mul("x", "x"));
    const $(isa.vector) inner = $(isa.fma("square", isa.broadcast("0.0713548163f"), isa.broadcast("1.59576912f")));
    const $(isa.vector) u = $(isa.mul("x", "inner"));
    const $(isa.vector) du = $(isa.fma("square", isa.broadcast("0.214064449f"), isa.broadcast("1.59576912f")));
//$ end
//$ local u = activation == "gelu_tanh" and "u" or "x"
    /* s + x s (1 - s) u', s = 1 / (1 + exp(-u)) */
    const $(isa.vector) magnitude = $(isa.abs(u));
    const $(isa.vector) small = $(exp)($(isa.sub("zero", "magnitude")));
    const $(isa.mask) left = $(isa.less(u, "zero"));
    const $(isa.vector) below = $(isa.add("one", "small"));
    const $(isa.vector) share = $(isa.div(isa.select("left", "small", "one"), "below"));
    const $(isa.vector) rest = $(isa.div(isa.select("left", "one", "small"), "below"));
    const $(isa.vector) both = $(isa.mul("share", "rest"));
    const $(isa.vector) along = $(isa.mul(isa.mul("x", "du"), "both")); //$ if activation == "gelu_tanh"
    const $(isa.vector) along = $(isa.mul("x", "both")); //$ if activation ~= "gelu_tanh"
    return $(isa.add("share", "along"));
//$ end
}
