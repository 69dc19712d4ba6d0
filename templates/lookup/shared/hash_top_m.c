//$ takes isa, list, helper, score, step, hash, group_text, vertex_text, lists_text
//$ local exp = score.share and once("templates/math/exp.c") .. "_exp"

/* $(lists_text): cost is the sum of |z| of the bits in which a vertex differs from the best one,
   flips has these bits. Puts the cheaper of two vertices first. */
static inline void $(helper)_order_vertices($(list.floats) *cost, $(list.integers) *flips, size_t first, size_t second)
{
    const $(isa.vector) first_cost = $(list.get("cost", "first"));
    const $(isa.vector) second_cost = $(list.get("cost", "second"));
    const $(isa.index) first_flips = $(list.get_index("flips", "first"));
    const $(isa.index) second_flips = $(list.get_index("flips", "second"));
    const $(isa.mask) swap = $(isa.less("second_cost", "first_cost"));
    $(list.put("cost", "first", isa.select("swap", "second_cost", "first_cost")));
    $(list.put("cost", "second", isa.select("swap", "first_cost", "second_cost")));
    $(list.put_index("flips", "first", isa.index_select("swap", "second_flips", "first_flips")));
    $(list.put_index("flips", "second", isa.index_select("swap", "first_flips", "second_flips")));
}

/* Sorts `count` vertices, a power of two, whose costs rise and then fall: the merge of Batcher's bitonic sort. */
static inline void $(helper)_merge_vertices($(list.floats) *cost, $(list.integers) *flips, size_t count)
{
    for (size_t gap = count / 2; gap > 0; gap /= 2)
        for (size_t block = 0; block < count; block += 2 * gap)
            for (size_t i = block; i < block + gap; ++i)
                $(helper)_order_vertices(cost, flips, i, i + gap);
}

//$ if hash.grown < shape.tau then
/* Another vertex in place of one of the list where it is cheaper. */
static inline void $(helper)_replace_vertex($(list.floats) *cost, $(list.integers) *flips, $(isa.vector) other_cost,
    $(isa.index) other_flips)
{
    const $(isa.vector) own_cost = $(isa.sizeless and list.get("cost", 0) or "*cost");
    const $(isa.index) own_flips = $(isa.sizeless and list.get_index("flips", 0) or "*flips");
    const $(isa.mask) cheaper = $(isa.less("other_cost", "own_cost"));
//$ local cost, flips = isa.select("cheaper", "other_cost", "own_cost"), isa.index_select("cheaper", "other_flips", "own_flips")
    $(isa.sizeless and list.put("cost", 0, cost) or "*cost = " .. cost);
    $(isa.sizeless and list.put_index("flips", 0, flips) or "*flips = " .. flips);
}

//$ end
/* $(score.scored and "Codes and scores" or "Codes") of the $(shape.neighbours) best vertices, the best first, of $(group_text),
   $(vertex_text).$(score.scored and "" or " */")
   score = $(score.top_m). */ //$ if score.scored
static inline void $(helper)_hash_top_m(const float *z, uint16_t *code$(score.scored and ", float *score" or ""), void *vertices)
{
    $(list.floats) *cost = ($(list.floats) *) vertices;
    $(list.integers) *flips = ($(list.integers) *) (void *) ($(list.at("cost", hash.count)));
$(include("templates/lookup/shared/hash_bits.c"))

    /* All vertices that differ in $(hash.grown > 1 and "some of the first " .. hash.grown .. " bits" or "the first bit") only. */
    $(list.put("cost", 0, isa.zero()));
    $(list.put_index("flips", 0, isa.index_zero()));
    for (size_t bit = 0, count = 1; bit < $(hash.grown); ++bit, count *= 2) {
        const $(isa.vector) z_bit = $(isa.load("z", "bit * " .. step));
        const $(isa.vector) magnitude = $(isa.abs("z_bit"));
        const $(isa.index) flip = $(isa.index_broadcast((1 << shape.tau - 1) .. "u >> bit"));
        for (size_t i = 0; i < count; ++i) {
            $(list.put("cost", "2 * count - 1 - i", isa.add(list.get("cost", "i"), "magnitude")));
            $(list.put_index("flips", "2 * count - 1 - i", isa.index_xor(list.get_index("flips", "i"), "flip")));
        }
        $(helper)_merge_vertices(cost, flips, 2 * count);
    }
//$ if hash.grown < shape.tau then

    /* The other bits: of these vertices and those that differ in one more bit, the $(hash.count) cheapest. */
//$ loop("bit", hash.grown, shape.tau, 1, function(bit)
        const $(isa.vector) z_bit = $(isa.load("z", times(bit, step)));
        const $(isa.vector) magnitude = $(isa.abs("z_bit"));
        const $(isa.index) flip = $(isa.index_broadcast((1 << shape.tau - 1) .. "u >> " .. bit));
        for (size_t i = 0, j = $(hash.count - 1); i < j; ++i, --j) {
            const $(isa.vector) i_cost = $(isa.add(list.get("cost", "j"), "magnitude"));
            const $(isa.vector) j_cost = $(isa.add(list.get("cost", "i"), "magnitude"));
            const $(isa.index) i_flips = $(isa.index_xor(list.get_index("flips", "j"), "flip"));
            const $(isa.index) j_flips = $(isa.index_xor(list.get_index("flips", "i"), "flip"));
            $(helper)_replace_vertex($(list.at("cost", "i")), $(list.at("flips", "i")), i_cost, i_flips);
            $(helper)_replace_vertex($(list.at("cost", "j")), $(list.at("flips", "j")), j_cost, j_flips);
        }
        $(helper)_merge_vertices(cost, flips, $(hash.count));
//$ end, { block = true })
//$ end

//$ if score.share then
    const $(isa.vector) one = $(isa.broadcast("1.0f"));
    const $(isa.vector) best = $(isa.div("one", "product"));
//$ end
    for (size_t n = 0; n < $(shape.neighbours); ++n) {
        const $(isa.index) vertex = $(isa.index_xor("row", list.get_index("flips", "n")));
        const $(isa.vector) loss = $(isa.mul("minus_two", list.get("cost", "n"))); //$ if score.scored
        const $(isa.vector) share = $(isa.mul(exp .. "(loss)", "best")); //$ if score.share
        $(isa.index_store("code", "n * " .. step, "vertex"));
//$ if score.along then
        const $(isa.vector) along = $(isa.add("sum", "loss"));
        $(isa.store_unaligned("score", "n * " .. step, score.share and isa.mul("share", "along") or "along"));
//$ elseif score.share then
        $(isa.store_unaligned("score", "n * " .. step, "share"));
//$ end
    }
}
