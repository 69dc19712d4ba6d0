//$ takes isa, helper, tau

/* The chance (1 - arccos(c) / pi)^$(tau) that $(plural(tau, "sign")) of two vectors with the cosine c agree.
   arccos(|c|) / pi = sqrt(1 - |c|) p(|c|), off by at most 2^-23. */
static inline $(isa.vector) $(helper)_code_chance_$(tau)($(isa.vector) c)
{
    const $(isa.vector) size = $(isa.abs("c"));
    const $(isa.vector) rest = $(isa.max(isa.zero(), isa.sub(isa.broadcast("1.0f"), "size")));
    const $(isa.vector) root = $(isa.mul("rest", isa.reciprocal_root(isa.max("rest", isa.broadcast("1e-30f")))));
    $(isa.vector) p = $(isa.broadcast("0.0008313334f"));
//$ for _, factor in ipairs { "-0.003820791", "0.008837202", "-0.015660027", "0.02827734", "-0.06830647", "0.49999997" } do
    p = $(isa.fma("p", "size", isa.broadcast(factor .. "f")));
//$ end
    const $(isa.vector) angle = $(isa.mul("p", "root"));
    const $(isa.vector) power_1 = $(isa.select(isa.less("c", isa.zero()), "angle", isa.sub(isa.broadcast("1.0f"), "angle")));
//$ local bit, power = 1, 1
//$ while 2 * bit <= tau do
//$     bit = 2 * bit
//$ end
//$ while bit > 1 do
//$ bit = bit // 2
//$ local half = "power_" .. power
//$ power = 2 * power
    const $(isa.vector) power_$(power) = $(isa.mul(half, half));
//$ if tau & bit > 0 then
//$ local even = "power_" .. power
//$ power = power + 1
    const $(isa.vector) power_$(power) = $(isa.mul(even, "power_1"));
//$ end
//$ end
    return power_$(power);
}
