//$ local dot = isa.gather_i8

/* Scores as 16-bit integers: score = unit (256 high + low), the bytes of $(dot.rows) tables in one word. The rounding error of a score is at most
   half a unit, 1/131070 of the largest one. A NaN makes the unit NaN.
//$ if tile == 1 then
   score  [tables], of one token
   words  [high, low][$(dot_low)], zero behind the last table */
static inline float $(helper)_split_scores(const float *score, size_t tables, uint32_t *words)
{
    float padded[$(dot_low * dot.rows)];
    $(isa.vector) most = $(isa.zero()), all = $(isa.zero());
    for (size_t k = 0; k < $(dot_low * dot.rows); ++k)
        padded[k] = k < tables ? score[k] : 0.0f;
    for (size_t k = 0; k < $(dot_low * dot.rows); k += $(isa.lanes)) {
        const $(isa.vector) s = $(isa.load_unaligned("padded", "k"));
        most = $(isa.max("most", "s"));
        all = $(isa.add("all", "s"));
    }
    const float largest = $(dot.largest("most"));
    const $(isa.vector) inverse = $(isa.broadcast("65535.0f / largest"));
    for (size_t k = 0; k < $(dot_low * dot.rows); k += $(isa.lanes)) {
        const $(isa.index) q = $(dot.round(isa.mul("inverse", isa.load_unaligned("padded", "k"))));
        $(dot.store_upper_bytes("words", "k / " .. dot.rows, "q"));
        $(dot.store_lower_bytes("words", dot_low .. " + k / " .. dot.rows, "q"));
    }
    return largest * (1.0f / 65535.0f) + 0.0f * $(dot.total("all"));
}
//$ else
   score  [tables][$(tile)], of a tile of tokens
   words  [($(sum("tables", dot.rows - 1))) / $(dot.rows)][high, low][$(tile)]; unit [$(tile)] */
static inline void $(helper)_split_scores(const float *score, size_t tables, uint32_t *words, float *unit)
{
    for (size_t token = 0; token < $(tile); token += $(isa.lanes)) {
        $(isa.vector) most = $(isa.zero()), all = $(isa.zero());
        for (size_t k = 0; k < tables; ++k) {
            const $(isa.vector) s = $(isa.load_unaligned("score + k * " .. tile, "token"));
            most = $(isa.max("most", "s"));
            all = $(isa.add("all", "s"));
        }
        const $(isa.vector) inverse = $(isa.div(isa.broadcast("65535.0f"), "most"));
        for (size_t k = 0; k < tables; k += $(dot.rows)) {
//$     local q = {}
//$     for r = 0, dot.rows - 1 do
//$         q[r + 1] = "q" .. r
//$         local value = dot.round(isa.mul("inverse", isa.load_unaligned("score + " .. (r == 0 and "k" or "(" .. sum("k", r) .. ")") .. " * " .. tile, "token")))
            const $(isa.index) q$(r) = $(r > 0 and quads_partial and sum("k", r) .. " < tables ? " .. value .. " : " .. isa.index_zero() or value);
//$     end
//$     for _, half in ipairs { { name = "high", bytes = dot.upper_bytes(q), at = "" }, { name = "low", bytes = dot.lower_bytes(q), at = " + " .. tile } } do
//$         local byte = {}
//$         for r, value in ipairs(half.bytes) do
//$             byte[r] = half.name .. r - 1
            const $(isa.index) $(byte[r]) = $(value);
//$         end
            $(isa.store_words("words + k * " .. 2 * tile // dot.rows .. half.at, "token", dot.unite(byte)));
//$     end
        }
        $(isa.store_unaligned("unit", "token", isa.fma("all", isa.zero(), isa.mul("most", isa.broadcast("1.0f / 65535.0f")))));
    }
}
//$ end
