//$ takes isa, lanes, helper, cached_type
//$ -- Scores of a tile of rows of keys, which a cache has before they are rotated; sums read these rows as they are.
//$ local pitch, width, heads = names.constant("VALUE_PITCH"), shape.width, shape.heads
//$ if not cached_type.plain then

/* rows[count][$(pitch)] = those of the cache, as floats. */
//$ local scale = cached_type.scaled and "const float *restrict scale"
static void $(helper)_unpack($(listed("const " .. cached_type.storage .. " *restrict key", scale, "size_t count, float *restrict rows")))
{
//$ if cached_type.scaled then
    for (size_t k = 0; k < count; ++k, key += $(pitch), rows += $(pitch))
        for (size_t head = 0; head < $(heads); ++head, ++scale)
            for (size_t i = head * $(width); i < (head + 1) * $(width); ++i)
                rows[i] = *scale * (float) key[i];
//$ else
    for (size_t k = 0; k < count; ++k, key += $(pitch), rows += $(pitch))
//$ loop("i", 0, shape.cache.pitch, lanes, function(k)
            $(isa.store_unaligned("rows", k, isa["load_" .. cached_type.name](sum("key", k))));
//$ end, { to = pitch })
//$ end
}
//$ end
//$ if shape.rope then
//$ local turn = once("templates/model/blocks/rotate.c", { rope = shape.rope, width = width, in_place = false })

/* turned[count][$(width)] = one head of rows of keys, rotated to their positions, from `position` on. */
static void $(helper)_turn_keys(const $(names.type("attention")) *a, const float *restrict rows, size_t position, size_t count,
    float *restrict turned)
{
    for (size_t k = 0; k < count; ++k) {
$(include("templates/model/blocks/angles.c", { of = "a", position = "(position + k)", turn = turn }))
        $(turn)_rotate_$(shape.width)(rows + k * $(pitch), cosine, sine, 1.0f, turned + k * $(width));
    }
}
//$ end
//$ local step = shape.rope and tostring(width) or pitch

/* score[count] of a query and one head of rows of keys; of what follows them up to $(plural(lanes, "score")) are nothing. */
static inline void $(helper)_scores(const float *restrict query, const float *restrict key, size_t count, float *restrict score)
{
    for (size_t k = 0; k < count; $(advance("k", lanes))) {
        const float *rows = key + k * $(step);
//$ local sums = {}
//$ for r = 0, lanes - 1 do
//$     sums[r + 1] = "sum" .. r
        $(isa.vector) sum$(r) = $(isa.zero());
//$ end
//$ over_row(width, function(at, load)
            const $(isa.vector) q = $(load("query", at));
            sum$(r) = $(isa.fma("q", load("rows", sum(times(r, step), at)), "sum" .. r)); //$ for r = 0, lanes - 1
//$ end, { block = true })
//$ local total = "sum0"
//$ if lanes > 1 then
//$     local code, columns = isa.transpose(sums)
        const $(isa.vector) $(one.name) = $(one.value); //$ for _, one in ipairs(code)
//$     total = columns[1]
//$     for c = 2, #columns do total = isa.add(total, columns[c]) end
//$ end
        $(isa.store_unaligned("score", "k", total));
    }
}
