//$ takes isa, helper, score, group_text
//$ local exp = score.share and once("templates/math/exp.c") .. "_exp"

/* $(score.scored and "Code and score" or "Code") of $(group_text).$(score.scored and "" or " */")
   score = $(score.best). */ //$ if score.scored
static inline void $(helper)_hash_best(const float *z, uint16_t *code$(score.scored and ", float *score" or ""))
{
$(include("templates/lookup/shared/hash_bits.c"))

    $(isa.index_store("code", 0, "row"));
//$ if score.scored then
//$     local along = score.along and "sum" or isa.broadcast("1.0f")
    $(isa.store_unaligned("score", 0, score.share and isa.div(along, "product") or along));
//$ end
}
