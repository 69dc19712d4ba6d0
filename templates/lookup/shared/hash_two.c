//$ takes isa, helper, score, step, group_text, vertex_text
//$ local exp = score.share and once("templates/math/exp.c") .. "_exp"

/* $(score.share and "Codes and scores" or "Codes") of the 2 best vertices, the best first, of $(group_text),
   $(vertex_text). The second one differs in the bit with the least |z|, in the first one of several.$(score.share and "" or " */")
//$ if score.share then
   score = $(score.top_m), where cost is 0 and that |z|. */
//$ end
static inline void $(helper)_hash_two(const float *z, uint16_t *code$(score.share and ", float *score" or ""))
{
$(include("templates/lookup/shared/hash_bits.c"))

//$ local function magnitude(bit) return score.share and "magnitude" .. bit or isa.abs("z" .. bit) end
    $(isa.vector) least = $(magnitude(0));
    $(isa.index) flip = $(isa.index_broadcast((1 << shape.tau - 1) .. "u"));
//$ for bit = 1, shape.tau - 1 do
//$     local size = score.share and "magnitude" .. bit or "size" .. bit
//$     if not score.share then
    const $(isa.vector) $(size) = $(magnitude(bit));
//$     end
    const $(isa.mask) less$(bit) = $(isa.less(size, "least"));
    least = $(isa.select("less" .. bit, size, "least"));
    flip = $(isa.index_select("less" .. bit, isa.index_broadcast((1 << shape.tau - 1 - bit) .. "u"), "flip"));
//$ end

    $(isa.index_store("code", 0, "row"));
    const $(isa.index) second = $(isa.index_xor("row", "flip"));
    $(isa.index_store("code", tostring(step), "second"));
//$ if score.share then

    const $(isa.vector) one = $(isa.broadcast("1.0f"));
    const $(isa.vector) share = $(isa.div("one", "product"));
    const $(isa.vector) loss = $(isa.mul("minus_two", "least"));
    const $(isa.vector) second_share = $(isa.mul(exp .. "(loss)", "share"));
//$     if score.along then
    const $(isa.vector) along = $(isa.add("sum", "loss"));
    $(isa.store_unaligned("score", 0, isa.mul("share", "sum")));
    $(isa.store_unaligned("score", tostring(step), isa.mul("second_share", "along")));
//$     else
    $(isa.store_unaligned("score", 0, "share"));
    $(isa.store_unaligned("score", tostring(step), "second_share"));
//$     end
//$ end
}
