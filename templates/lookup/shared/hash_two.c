//$ takes isa, helper, score, step, group_text, vertex_text
//$ local exp = score.share and once("templates/math/exp.c") .. "_exp"

/* $(score.scored and "Codes and scores" or "Codes") of the 2 best vertices, the best first, of $(group_text),
   $(vertex_text). The second one differs in the bit with the least |z|, in the first one of several.$(score.scored and "" or " */")
   score = $(score.top_m), where cost is 0 and that |z|. */ //$ if score.scored
static inline void $(helper)_hash_two(const float *z, uint16_t *code$(score.scored and ", float *score" or ""))
{
$(include("templates/lookup/shared/hash_bits.c"))

//$ local function magnitude(bit) return score.scored and "magnitude" .. bit or isa.abs("z" .. bit) end
    $(isa.vector) least = $(magnitude(0));
    $(isa.index) flip = $(isa.index_broadcast((1 << shape.tau - 1) .. "u"));
//$ for bit = 1, shape.tau - 1 do
//$     local size = score.scored and "magnitude" .. bit or "size" .. bit
    const $(isa.vector) $(size) = $(magnitude(bit)); //$ if not score.scored
    const $(isa.mask) less$(bit) = $(isa.less(size, "least"));
    least = $(isa.select("less" .. bit, size, "least"));
    flip = $(isa.index_select("less" .. bit, isa.index_broadcast((1 << shape.tau - 1 - bit) .. "u"), "flip"));
//$ end

    $(isa.index_store("code", 0, "row"));
    const $(isa.index) second = $(isa.index_xor("row", "flip"));
    $(isa.index_store("code", tostring(step), "second"));
//$ if score.scored then
//$     local function product(share, along)
//$         return score.share and score.along and isa.mul(share, along) or score.along and along or share end

//$     if score.share then
    const $(isa.vector) one = $(isa.broadcast("1.0f"));
    const $(isa.vector) share = $(isa.div("one", "product"));
//$     end
    const $(isa.vector) loss = $(isa.mul("minus_two", "least"));
    const $(isa.vector) second_share = $(isa.mul(exp .. "(loss)", "share")); //$ if score.share
    const $(isa.vector) along = $(isa.add("sum", "loss")); //$ if score.along
    $(isa.store_unaligned("score", 0, product("share", "sum")));
    $(isa.store_unaligned("score", tostring(step), product("second_share", "along")));
//$ end
}
