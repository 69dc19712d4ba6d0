//$ takes isa, helper, lanes, score, step
$(include("templates/math/exp.c"))

/* Code and score of $(lanes) groups of $(shape.tau) bits, one group a lane; bit j of the groups is z[j * $(step)] and on.
   score = $(score.best). */
static inline void $(helper)_hash_best(const float *z, uint16_t *code, float *score)
{
$(include("templates/lookup/shared/hash_bits.c"))

    $(isa.index_store("code", 0, "row"));
    $(isa.store_unaligned("score", 0, isa.div(score.along and "sum" or isa.broadcast("1.0f"), "product")));
}
