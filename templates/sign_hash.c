//$ lines("", prologue)

/* exp(v) for v <= 0, relative error below 2^-22; below -87 the result is exp(-87). NaN stays NaN.
   v = n ln 2 + f with |f| <= ln 2 / 2, then a polynomial for exp(f), scaled by 2^n. */
static inline $(isa.vector) $(model)_exp($(isa.vector) v)
{
    const $(isa.vector) lowest = $(isa.broadcast("-87.0f"));
    const $(isa.vector) rounder = $(isa.broadcast("12582912.0f")); /* 1.5 * 2^23: adding it rounds to an integer */
    const $(isa.vector) bounded = $(isa.max("lowest", "v"));
    const $(isa.vector) shifted = $(isa.fma("bounded", isa.broadcast("1.44269504f"), "rounder"));
    const $(isa.vector) n = $(isa.sub("shifted", "rounder"));
    const $(isa.vector) f_high = $(isa.fma("n", isa.broadcast("-0.693359375f"), "bounded"));
    const $(isa.vector) f = $(isa.fma("n", isa.broadcast("2.12194440e-4f"), "f_high"));
    $(isa.vector) p = $(isa.broadcast("1.381454e-3f"));
    p = $(isa.fma("p", "f", isa.broadcast("8.368745e-3f")));
    p = $(isa.fma("p", "f", isa.broadcast("4.166839e-2f")));
    p = $(isa.fma("p", "f", isa.broadcast("0.16666521f")));
    p = $(isa.fma("p", "f", isa.broadcast("0.49999994f")));
    p = $(isa.fma("p", "f", isa.broadcast("1.0f")));
    p = $(isa.fma("p", "f", isa.broadcast("1.0f")));
    return $(isa.mul("p", isa.power_of_two("shifted")));
}

/* Sign hash and score of one tile of $(tile) tokens (LookupFFN, section "Put it together").
   z      [$(shape.h) tables][$(shape.tau) bits][$(tile)]
   code   [$(shape.h)][$(tile)]  row of each table: bit j is z > 0, the first bit the most significant
//$ if score == "gelu" then
   score  [$(shape.h)][$(tile)]  sum of |z| times the product of 1 / (1 + exp(-2 |z|))
//$ else
   score  [$(shape.h)][$(tile)]  product of 1 / (1 + exp(-2 |z|))
//$ end
   All 64-byte aligned, none may overlap. Cannot fail. 0 and NaN count as bit 0. */
void $(symbol)(const float *restrict z, uint16_t *restrict code, float *restrict score)
{
    const $(isa.vector) minus_two = $(isa.broadcast("-2.0f"));

    for (size_t table = 0; table < $(shape.h); ++table, z += $(shape.tau * tile), code += $(tile), score += $(tile)) {
        for (size_t i = 0; i < $(tile); i += $(isa.lanes)) {
            $(isa.index) row = $(isa.index_zero());
//$ if score == "gelu" then
            $(isa.vector) sum = $(isa.zero());
//$ end
            $(isa.vector) product = $(isa.broadcast("1.0f"));
//$ for bit = 0, shape.tau - 1 do

            const $(isa.vector) z$(bit) = $(isa.load("z", sum("i", bit * tile)));
            const $(isa.vector) size$(bit) = $(isa.abs("z" .. bit));
            row = $(isa.index_or_if_positive("row", "z" .. bit, tostring(1 << (shape.tau - 1 - bit))));
//$ if score == "gelu" then
            sum = $(isa.add("sum", "size" .. bit));
//$ end
            product = $(isa.fma("product", model .. "_exp(" .. isa.mul("minus_two", "size" .. bit) .. ")", "product"));
//$ end

            $(isa.index_store("code", "i", "row"));
//$ if score == "gelu" then
            $(isa.store("score", "i", isa.div("sum", "product")));
//$ else
            $(isa.store("score", "i", isa.div(isa.broadcast("1.0f"), "product")));
//$ end
        }
    }
}
