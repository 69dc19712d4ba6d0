//$ takes isa, lanes, helper, keys, attention, dots, integers, storage, query_step, key_step, weight_step, scale
//$ -- Attention on a matrix engine: 16 rows of queries and a whole tile of the cache, $(keys) positions.

/* Scores of 16 rows of queries and the $(keys) keys of a tile. */
static inline void $(helper)_scores_by_tiles(const $(storage) *restrict query, const $(storage) *restrict key,
    $(scale)float *restrict score)
{
    $(isa.tile_zero(0));
    $(isa.tile_zero(1));
    for (size_t i = 0; i < $(key_step); i += 16) {
        $(isa.tile_load(4, "query", "i", 4 * query_step));
        $(isa.tile_load(6, "key", "i * " .. keys, 4 * keys));
        $(isa[attention.tiles.scores](0, 4, 6));
        $(isa.tile_load(6, "key", "i * " .. keys .. " + 16", 4 * keys));
        $(isa[attention.tiles.scores](1, 4, 6));
    }
    $(isa.tile_store(0, "score", 0, 4 * keys));
    $(isa.tile_store(1, "score", 16, 4 * keys));
//$ if integers then
    for (size_t row = 0; row < 16; ++row, query += $(query_step), score += $(keys)) {
        const $(isa.index) start = $(isa.index_broadcast("query[" .. key_step .. "]"));
        const $(isa.vector) unit = $(isa.broadcast("((const float *) (const void *) query)[" .. key_step + 1 .. "]"));
//$ for at = 0, keys - 1, lanes do
//$ local whole = isa.float_of(isa.index_add(isa.load_words("score", at), "start"))
        $(isa.store_unaligned("score", at, isa.mul(isa.mul(whole, "unit"), isa.load_unaligned("scale", at))));
//$ end
    }
//$ end
}

//$ local pitch = names.constant("VALUE_PITCH")
/* Adds the $(keys) values of a tile, weighted, to the sums of 16 rows, after these are multiplied by
   `factor`.$(integers and " Weights are in units of `unit`." or "") */
static inline void $(helper)_sums_by_tiles(const $(storage) *restrict weight, const float *restrict factor,
    $(integers and "const float *restrict unit, " or "")const $(storage) *restrict value, float *restrict sums)
{
    $(dots.sums.type) added[16 * $(pitch) / $(lanes)];

    $(isa.tile_load(5, "weight", 0, 4 * weight_step));
    for (size_t at = 0; at < $(pitch); at += 16) {
        $(isa.tile_zero(0));
        $(isa.tile_load(7, "value", "at", "4 * " .. pitch));
        $(isa[attention.tiles.sums](0, 5, 7));
        $(isa.tile_store(0, "added", "at / " .. lanes, "4 * " .. pitch));
    }
    for (size_t row = 0; row < 16; ++row, sums += $(pitch)) {
        const $(isa.vector) kept = $(isa.broadcast("factor[row]"));
//$ if integers then
        const $(isa.vector) own_unit = $(isa.broadcast("unit[row]"));
//$ end
        for (size_t at = 0; at < $(pitch); at += $(lanes)) {
            const $(dots.sums.type) sum = added[(row * $(pitch) + at) / $(lanes)];
//$ local before = isa.load_unaligned("sums", "at")
//$ local after = isa.fma("kept", before, "sum")
//$ if integers then after = isa.fma("own_unit", isa.float_of("sum"), isa.mul("kept", before)) end
            $(isa.store_unaligned("sums", "at", after));
        }
    }
}
