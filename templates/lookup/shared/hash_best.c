//$ takes isa, helper, score, group_text
//$ local exp = score.share and once("templates/math/exp.c") .. "_exp"

/* $(score.share and "Code and score" or "Code") of $(group_text).$(score.share and "" or " */")
//$ if score.share then
   score = $(score.best). */
//$ end
static inline void $(helper)_hash_best(const float *z, uint16_t *code$(score.share and ", float *score" or ""))
{
$(include("templates/lookup/shared/hash_bits.c"))

    $(isa.index_store("code", 0, "row"));
//$ if score.share then
    $(isa.store_unaligned("score", 0, isa.div(score.along and "sum" or isa.broadcast("1.0f"), "product")));
//$ end
}
