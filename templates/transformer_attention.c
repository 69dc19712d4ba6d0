//$ lines("", prologue)
$(include("templates/exp.c"))
//$ for _, rows in ipairs(together) do

/* Scores of $(rows) rows of queries and the $(keys) keys of a tile. */
static inline void $(helper)_scores_$(rows)(const float *restrict query, const float *restrict key, float *restrict score)
{
    for (size_t at = 0; at < $(keys); at += $(score_vectors * lanes)) {
//$ for r = 0, rows - 1 do
//$ for n = 0, score_vectors - 1 do
        $(isa.vector) s$(r)_$(n) = $(isa.zero());
//$ end
//$ end
        for (size_t i = 0; i < $(shape.width); ++i) {
//$ for n = 0, score_vectors - 1 do
            const $(isa.vector) k$(n) = $(isa.load_unaligned("key", sum("i * " .. keys .. " + at", n * lanes)));
//$ end
//$ for r = 0, rows - 1 do
            const $(isa.vector) q$(r) = $(isa.broadcast("query[" .. sum("i", r * shape.width) .. "]"));
//$ for n = 0, score_vectors - 1 do
            s$(r)_$(n) = $(isa.fma("q" .. r, "k" .. n, "s" .. r .. "_" .. n));
//$ end
//$ end
        }
//$ for r = 0, rows - 1 do
//$ for n = 0, score_vectors - 1 do
        $(isa.store_unaligned("score", sum("at", r * keys + n * lanes), "s" .. r .. "_" .. n));
//$ end
//$ end
    }
}
//$ for _, block in ipairs(sum_blocks) do

/* Adds the first `count` values of a tile, weighted, to the sums of $(rows) rows, $(block.vectors * lanes) elements of each; the sums shrink by `factor` before. */
static inline void $(helper)_sums_$(rows)_by_$(block.vectors)(const float *restrict weight, const float *restrict factor, const float *restrict value, size_t count, float *restrict sums)
{
//$ for r = 0, rows - 1 do
    const $(isa.vector) f$(r) = $(isa.broadcast("factor[" .. 2 * r .. "]"));
//$ for n = 0, block.vectors - 1 do
    $(isa.vector) y$(r)_$(n) = $(isa.mul("f" .. r, isa.load_unaligned("sums", r * shape.value_pitch + n * lanes)));
//$ end
//$ end
    for (size_t k = 0; k < count; ++k, value += $(shape.value_pitch)) {
//$ for n = 0, block.vectors - 1 do
        const $(isa.vector) v$(n) = $(isa.load_unaligned("value", n * lanes));
//$ end
//$ for r = 0, rows - 1 do
        const $(isa.vector) w$(r) = $(isa.broadcast("weight[" .. sum("k", r * keys) .. "]"));
//$ for n = 0, block.vectors - 1 do
        y$(r)_$(n) = $(isa.fma("w" .. r, "v" .. n, "y" .. r .. "_" .. n));
//$ end
//$ end
    }
//$ for r = 0, rows - 1 do
//$ for n = 0, block.vectors - 1 do
    $(isa.store_unaligned("sums", r * shape.value_pitch + n * lanes, "y" .. r .. "_" .. n));
//$ end
//$ end
}
//$ end

/* All elements of $(rows) rows. */
static inline void $(helper)_sums_$(rows)(const float *restrict weight, const float *restrict factor, const float *restrict value, size_t count, float *restrict sums)
{
//$ for _, block in ipairs(sum_blocks) do
//$ if block.count > 1 then
    for (size_t at = $(block.at); at < $(block.at + block.count * block.vectors * lanes); at += $(block.vectors * lanes))
        $(helper)_sums_$(rows)_by_$(block.vectors)(weight, factor, value + at, count, sums + at);
//$ else
    $(helper)_sums_$(rows)_by_$(block.vectors)(weight, factor, $(sum("value", block.at)), count, $(sum("sums", block.at)));
//$ end
//$ end
}
//$ end

/* One row of an online softmax: scores of a tile become weights under the largest score so far. state: by which sums of earlier tiles
   shrink, and the sum of all weights; *largest: the largest score. */
static inline void $(helper)_softmax(float *restrict score, float *restrict state, float *restrict largest)
{
    $(isa.vector) most = $(isa.load_unaligned("score", 0));
    $(isa.vector) total = $(isa.zero());
    float shrink[$(lanes)];

    for (size_t k = $(lanes); k < $(keys); k += $(lanes)) {
        const $(isa.vector) next = $(isa.load_unaligned("score", "k"));
        most = $(isa.max("most", "next"));
    }
    {
//$ local steps, result = isa.reduce("most", "max")
//$ for _, step in ipairs(steps) do
        const $(step.type) $(step.name) = $(step.value);
//$ end
        const float tile = $(result);
        const float now = tile > *largest ? tile : *largest;
        $(isa.store_unaligned("shrink", 0, helper .. "_exp(" .. isa.broadcast("*largest - now") .. ")"));
        most = $(isa.broadcast("now"));
        *largest = now;
    }
    for (size_t k = 0; k < $(keys); k += $(lanes)) {
        const $(isa.vector) below = $(isa.sub(isa.load_unaligned("score", "k"), "most"));
        const $(isa.vector) weight = $(helper)_exp(below);
        $(isa.store_unaligned("score", "k", "weight"));
        total = $(isa.add("total", "weight"));
    }
    {
//$ local steps, result = isa.reduce("total", "add")
//$ for _, step in ipairs(steps) do
        const $(step.type) $(step.name) = $(step.value);
//$ end
        state[0] = shrink[0];
        state[1] = state[1] * shrink[0] + $(result);
    }
}

/* Attention of one group of heads: rows of queries against the keys and values of one head, tile by tile: no more than a tile of scores exists.
   query    [queries][$(shape.group)][$(shape.width)], scaled, turned
   key      [tiles][$(shape.width)][$(keys)]; value [positions][$(shape.value_pitch)]
   first    position of the first query; $(shape.causal and "a query attends to positions up to its own" or "every query attends to all positions before `end`")$(shape.window and ", the last " .. shape.window .. " of them" or "")
//$ if not shape.causal then
   end      how many positions there are
//$ end
   sums     [queries][$(shape.group)][$(shape.value_pitch)]: the results
   score    [queries][$(shape.group)][$(keys)], state [rows][2], both overwritten
   Nothing may overlap. Cannot fail. */
void $(symbol)(const float *restrict query, const float *restrict key, const float *restrict value, size_t first, size_t queries,
    $(shape.causal and "" or "size_t end, ")float *restrict sums, float *restrict score, float *restrict state)
{
    const size_t rows = queries * $(shape.group);
    float largest[$(rows_most)];
//$ if shape.causal then
    const size_t end = first + queries;
//$ end
//$ if shape.window then
    const size_t begin = first + 1 > $(shape.window) ? first + 1 - $(shape.window) : 0;
//$ end

    for (size_t r = 0; r < rows; ++r) {
        largest[r] = -3e38f;
        state[2 * r + 1] = 0.0f;
    }
    for (size_t i = 0; i < rows * $(shape.value_pitch); ++i)
        sums[i] = 0.0f;
    for (size_t tile = $(shape.window and "begin / " .. keys .. " * " .. keys or 0); tile < end; tile += $(keys)) {
        const float *tile_key = key + tile * $(shape.width), *tile_value = value + tile * $(shape.value_pitch);
        const size_t count = end - tile < $(keys) ? end - tile : $(keys);
        size_t row = 0;

//$ for _, rows in ipairs(together) do
        for (; row + $(rows) <= rows; row += $(rows))
            $(helper)_scores_$(rows)(query + row * $(shape.width), tile_key, score + row * $(keys));
//$ end

        /* what a query does not see */
        for (size_t r = 0; r < rows; ++r) {
//$ if shape.causal then
            const size_t own = first + r / $(shape.group), seen = own + 1 - tile < $(keys) ? own + 1 - tile : own < tile ? 0 : $(keys);
//$ else
            const size_t seen = count;
//$ end
            for (size_t k = seen; k < $(keys); ++k)
                score[r * $(keys) + k] = -3e38f;
//$ if shape.window then
            const size_t oldest = own + 1 > tile + $(shape.window) ? own + 1 - tile - $(shape.window) : 0;
            for (size_t k = 0; k < oldest && k < $(keys); ++k)
                score[r * $(keys) + k] = -3e38f;
//$ end
        }
        for (size_t r = 0; r < rows; ++r)
            $(helper)_softmax(score + r * $(keys), state + 2 * r, largest + r);
        row = 0;
//$ for _, rows in ipairs(together) do
        for (; row + $(rows) <= rows; row += $(rows))
            $(helper)_sums_$(rows)(score + row * $(keys), state + 2 * row, tile_value, count, sums + row * $(shape.value_pitch));
//$ end
    }
    for (size_t r = 0; r < rows; ++r)
        for (size_t i = 0; i < $(shape.value_pitch); ++i)
            sums[r * $(shape.value_pitch) + i] /= state[2 * r + 1];
}
