
/* exp(v) for v <= 0, relative error below 2^-23; below -87 the result is exp(-87). NaN stays NaN.
   v = n ln 2 + f with |f| <= ln 2 / 2, then a polynomial for exp(f), scaled by 2^n. */
static inline $(isa.vector) $(helper)_exp($(isa.vector) v)
{
    const $(isa.vector) lowest = $(isa.broadcast("-87.0f"));
    const $(isa.vector) bounded = $(isa.max("lowest", "v"));
    const $(isa.vector) power = $(isa.mul("bounded", isa.broadcast("1.44269504f")));
    const $(isa.vector) n = $(isa.round_negative("power"));
    const $(isa.vector) f_high = $(isa.fma("n", isa.broadcast("-0.693359375f"), "bounded"));
    const $(isa.vector) f = $(isa.fma("n", isa.broadcast("2.12194440e-4f"), "f_high"));
    $(isa.vector) p = $(isa.broadcast("1.381454e-3f"));
    p = $(isa.fma("p", "f", isa.broadcast("8.368745e-3f")));
    p = $(isa.fma("p", "f", isa.broadcast("4.166839e-2f")));
    p = $(isa.fma("p", "f", isa.broadcast("0.16666521f")));
    p = $(isa.fma("p", "f", isa.broadcast("0.49999994f")));
    p = $(isa.fma("p", "f", isa.broadcast("1.0f")));
    p = $(isa.fma("p", "f", isa.broadcast("1.0f")));
    return $(isa.mul("p", isa.power_of_two("n")));
}

/* Code and score of $(lanes) groups of $(shape.tau) bits, one group a lane; bit j of the groups is z[j * $(step)] and on.
//$ if score == "gelu" then
   score = sum of |z| / product of (1 + exp(-2 |z|)). */
//$ else
   score = 1 / product of (1 + exp(-2 |z|)). */
//$ end
static inline void $(helper)_hash_lanes(const float *z, uint16_t *code, float *score)
{
    const $(isa.vector) minus_two = $(isa.broadcast("-2.0f"));
    $(isa.index) row = $(isa.index_zero());
//$ if score == "gelu" then
    $(isa.vector) sum = $(isa.zero());
//$ end
    $(isa.vector) product = $(isa.broadcast("1.0f"));
//$ for bit = 0, shape.tau - 1 do

    const $(isa.vector) z$(bit) = $(isa.load("z", bit * step));
    const $(isa.vector) size$(bit) = $(isa.abs("z" .. bit));
    row = $(isa.index_or_if_positive("row", "z" .. bit, tostring(1 << (shape.tau - 1 - bit))));
//$ if score == "gelu" then
    sum = $(isa.add("sum", "size" .. bit));
//$ end
    product = $(isa.fma("product", helper .. "_exp(" .. isa.mul("minus_two", "size" .. bit) .. ")", "product"));
//$ end

    $(isa.index_store("code", 0, "row"));
//$ if score == "gelu" then
    $(isa.store_unaligned("score", 0, isa.div("sum", "product")));
//$ else
    $(isa.store_unaligned("score", 0, isa.div(isa.broadcast("1.0f"), "product")));
//$ end
}
