//$ takes isa, helper, lanes, score, step
$(include("templates/math/exp.c"))

/* Code and score of $(lanes) groups of $(shape.tau) bits, one group a lane; bit j of the groups is z[j * $(step)] and on.
//$ if score == "gelu" then
   score = sum of |z| / product of (1 + exp(-2 |z|)). */
//$ else
   score = 1 / product of (1 + exp(-2 |z|)). */
//$ end
static inline void $(helper)_hash_best(const float *z, uint16_t *code, float *score)
{
$(include("templates/lookup/shared/hash_bits.c"))

    $(isa.index_store("code", 0, "row"));
//$ if score == "gelu" then
    $(isa.store_unaligned("score", 0, isa.div("sum", "product")));
//$ else
    $(isa.store_unaligned("score", 0, isa.div(isa.broadcast("1.0f"), "product")));
//$ end
}
