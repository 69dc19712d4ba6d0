//$ takes isa, lanes, helper, keys, attention, integers, storage, query_step, key_step, weight_step, scale
//$ -- Attention on a matrix engine: 16 rows of queries and a whole tile of the cache, $(keys) positions.

/* Scores of 16 rows of queries and the $(keys) keys of a tile. */
static inline void $(helper)_scores_by_tiles(const $(storage) *restrict query, const $(storage) *restrict key,
    $(scale)float *restrict score)
{
    $(isa.tile_zero(0));
    $(isa.tile_zero(1));
//$ local query, key = 4, 6
//$ if attention.tiles.short then query, key = 5, 7 end
//$ loop("i", 0, key_step, 16, function(k)
        $(isa.tile_load(query, "query", k, 4 * query_step));
//$ for part = 0, 1 do
        $(isa.tile_load(key, "key", sum(times(k, keys), part * 16), 4 * keys));
        $(isa[attention.tiles.scores](part, query, key));
//$ end
//$ end)
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
//$ if integers then
    $(isa.index) added[16 * $(pitch) / $(lanes)];
//$ else
    for (size_t row = 0; row < 16; ++row) {
        const $(isa.vector) kept = $(isa.broadcast("factor[row]"));
//$ local at = "row * " .. pitch .. " + at"
        for (size_t at = 0; !(factor[row] >= 1.0f) && at < $(pitch); at += $(lanes))
            $(isa.store_unaligned("sums", at, isa.mul("kept", isa.load_unaligned("sums", at))));
    }
//$ end
    $(isa.tile_load(5, "weight", 0, 4 * weight_step));
    for (size_t at = 0; at < $(pitch); at += 16) {
        $(isa.tile_zero(0)); //$ if integers
        $(isa.tile_load(0, "sums", "at", "4 * " .. pitch)); //$ if not integers
        $(isa.tile_load(7, "value", "at", "4 * " .. pitch));
        $(isa[attention.tiles.sums](0, 5, 7));
        $(isa.tile_store(0, integers and "added" or "sums", integers and "at / " .. lanes or "at", "4 * " .. pitch));
    }
//$ if integers then
    for (size_t row = 0; row < 16; ++row, sums += $(pitch)) {
        const $(isa.vector) kept = $(isa.broadcast("factor[row]")), own_unit = $(isa.broadcast("unit[row]"));
        for (size_t at = 0; at < $(pitch); at += $(lanes)) {
            const $(isa.index) sum = added[(row * $(pitch) + at) / $(lanes)];
//$ local before = isa.mul("kept", isa.load_unaligned("sums", "at"))
            $(isa.store_unaligned("sums", "at", isa.fma("own_unit", isa.float_of("sum"), before)));
        }
    }
//$ end
}
