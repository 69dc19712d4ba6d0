//$ takes isa, list, helper, score, step, hash, group_text, vertex_text
//$ local exp = score.share and once("templates/math/exp.c") .. "_exp"

/* Codes and scores of all $(shape.rows) vertices, in the order of codes, of $(group_text),
   $(vertex_text).
   score = $(score.all). */
static inline void $(helper)_hash_all(const float *z, uint16_t *code, float *score, void *vertices)
{
    const $(isa.vector) none = $(isa.zero());
//$ if score.share then
    const $(isa.vector) one = $(isa.broadcast("1.0f"));
    const $(isa.vector) minus_two = $(isa.broadcast("-2.0f"));
    $(list.floats) *share = ($(list.floats) *) vertices;
//$ end
//$ if score.along then
    $(list.floats) *along = $(score.share and list.at("share", hash.count) or "(" .. list.floats .. " *) vertices");
//$ end
    $(isa.vector) product = one; //$ if score.share

    /* Each bit, the least significant first, doubles the list: vertices without it, then with it. */
    $(list.put("share", 0, "one")); //$ if score.share
    $(list.put("along", 0, "none")); //$ if score.along
    for (size_t bit = $(shape.tau), count = 1; bit > 0; --bit, count *= 2) {
        const $(isa.vector) z_bit = $(isa.load("z", "(bit - 1) * " .. step));
//$ if score.share then
        const $(isa.vector) magnitude = $(isa.abs("z_bit"));
        const $(isa.vector) loss = $(isa.mul("minus_two", "magnitude"));
        const $(isa.vector) other = $(exp)(loss);
        const $(isa.mask) positive = $(isa.less("none", "z_bit"));
        const $(isa.vector) without = $(isa.select("positive", "other", "one"));
        const $(isa.vector) with = $(isa.select("positive", "one", "other"));
        product = $(isa.fma("product", "other", "product"));
//$ end
        for (size_t i = 0; i < count; ++i) {
//$ if score.share then
            $(list.put("share", "count + i", isa.mul(list.get("share", "i"), "with")));
            $(list.put("share", "i", isa.mul(list.get("share", "i"), "without")));
//$ end
//$ if score.along then
            $(list.put("along", "count + i", isa.add(list.get("along", "i"), "z_bit")));
            $(list.put("along", "i", isa.sub(list.get("along", "i"), "z_bit")));
//$ end
        }
    }

    const $(isa.vector) best = $(isa.div("one", "product")); //$ if score.share
    for (uint32_t n = 0; n < $(shape.rows); ++n) {
        const $(isa.index) vertex = $(isa.index_broadcast("n"));
        const $(isa.vector) weight = $(isa.mul(list.get("share", "n"), "best")); //$ if score.share
        $(isa.index_store("code", "n * " .. step, "vertex"));
//$ if score.along then
//$     local along = list.get("along", "n")
        $(isa.store_unaligned("score", "n * " .. step, score.share and isa.mul("weight", along) or along));
//$ else
        $(isa.store_unaligned("score", "n * " .. step, "weight"));
//$ end
    }
}
