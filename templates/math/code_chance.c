//$ takes isa, helper, tau

/* The chance (1 - arccos(c) / pi)^$(tau) that two codes of $(plural(tau, "sign")) agree, of vectors with the cosine c. arccos(c) / pi is
   sqrt(1 - |c|) times a polynomial in |c|, or 1 less it where c < 0: Abramowitz and Stegun 4.4.46, off by less than 2e-8. */
static inline $(isa.vector) $(helper)_code_chance_$(tau)($(isa.vector) c)
{
    const $(isa.vector) zero = $(isa.zero()), one = $(isa.broadcast("1.0f"));
    const $(isa.vector) size = $(isa.abs("c"));
    const $(isa.vector) rest = $(isa.max(isa.sub("one", "size"), isa.broadcast("1e-30f")));
    $(isa.vector) p = $(isa.broadcast("-4.01863392e-4f"));
//$ for _, factor in ipairs { "2.12315563e-3", "-5.43931918e-3", "9.83319152e-3", "-1.5970977e-2", "2.83228923e-2", "-6.83089197e-2" } do
    p = $(isa.fma("p", "size", isa.broadcast(factor .. "f")));
//$ end
    p = $(isa.fma("p", "size", isa.broadcast("0.5f")));
    const $(isa.vector) angle = $(isa.mul("p", isa.mul("rest", isa.reciprocal_root("rest"))));
    const $(isa.vector) power_1 = $(isa.select(isa.less("c", "zero"), "angle", isa.sub("one", "angle")));
//$ local made, power = tau % 2 == 1 and "power_1" or nil, 1
//$ while 2 * power <= tau do
//$ local half = "power_" .. power
//$ power = 2 * power
    const $(isa.vector) power_$(power) = $(isa.mul(half, half));
//$ if tau // power % 2 == 1 then
//$ if made then
//$ local before = made
//$ made = "power_" .. tau % (2 * power)
    const $(isa.vector) $(made) = $(isa.mul(before, "power_" .. power));
//$ else
//$ made = "power_" .. power
//$ end
//$ end
//$ end
    return $(made);
}
