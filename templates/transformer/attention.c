//$ lines("", prologue)
//$ -- Of the addresses that are asked for: the parameters; the arguments, each as of(base) says.
//$ local function asks_parameters(asks)
//$     local text = ""
//$     for _, base in ipairs(asks.bases) do text = text .. "const " .. kept.storage .. " *" .. base.name .. ", " end
//$     return text
//$ end
//$ local function asks_arguments(asks, of)
//$     local text = ""
//$     for _, base in ipairs(asks.bases) do text = text .. of(base) .. ", " end
//$     return text
//$ end
//$ local function times(name, factor) return factor == 1 and name or name .. " * " .. factor end
//$ local function ask_next(i, asks, before, counter)
//$     local within = asks.every > 1 and i .. "    " or i
//$     if asks.every > 1 then
$(i)if ($(counter) % $(asks.every) == 0) {
//$     end
//$     for _, stream in ipairs(asks.streams) do
$(within)$(isa.prefetch_l1(stream.base, sum(before .. times(counter, asks.stride), stream.at)));
//$     end
//$     if asks.every > 1 then
$(i)}
//$     end
//$ end
$(include("templates/math/exp.c"))
//$ for _, rows in ipairs(together) do

/* Scores of $(rows) rows of queries and the $(keys) keys of a tile$(#score_asks.bases > 0 and "; asks for as much of what is read next" or ""). */
static inline void $(helper)_scores_$(rows)(const float *restrict query, const $(kept.storage) *restrict key, $(kept.scaled and "const float *restrict scale, " or "")$(asks_parameters(score_asks))float *restrict score)
{
    for (size_t at = 0; at < $(keys); at += $(score_vectors * lanes)) {
//$ for r = 0, rows - 1 do
//$ for n = 0, score_vectors - 1 do
        $(isa.vector) s$(r)_$(n) = $(isa.zero());
//$ end
//$ end
        for (size_t i = 0; i < $(shape.width); ++i) {
//$ ask_next("            ", score_asks, score_vectors * lanes < keys and times("at", asks_of_strip) .. " + " or "", "i")
//$ for n = 0, score_vectors - 1 do
            const $(isa.vector) k$(n) = $(load_kept("key", sum("i * " .. keys .. " + at", n * lanes)));
//$ end
//$ for r = 0, rows - 1 do
            const $(isa.vector) q$(r) = $(isa.broadcast("query[" .. sum("i", r * shape.width) .. "]"));
//$ for n = 0, score_vectors - 1 do
            s$(r)_$(n) = $(isa.fma("q" .. r, "k" .. n, "s" .. r .. "_" .. n));
//$ end
//$ end
        }
//$ if kept.scaled then
//$ for n = 0, score_vectors - 1 do
        const $(isa.vector) unit$(n) = $(isa.load_unaligned("scale", sum("at", n * lanes)));
//$ end
//$ end
//$ for r = 0, rows - 1 do
//$ for n = 0, score_vectors - 1 do
//$ local s = "s" .. r .. "_" .. n
        $(isa.store_unaligned("score", sum("at", r * keys + n * lanes), kept.scaled and isa.mul(s, "unit" .. n) or s));
//$ end
//$ end
    }
}
//$ for _, block in ipairs(sum_blocks) do

/* Adds the first `count` values of a tile, weighted, to the sums of $(rows) rows, $(block.vectors * lanes) elements of each; the sums shrink by `factor` before. */
static inline void $(helper)_sums_$(rows)_by_$(block.vectors)(const float *restrict weight, const float *restrict factor, const $(kept.storage) *restrict value, size_t count, $(asks_parameters(block.asks))float *restrict sums)
{
//$ for r = 0, rows - 1 do
    const $(isa.vector) f$(r) = $(isa.broadcast("factor[" .. r .. "]"));
//$ for n = 0, block.vectors - 1 do
    $(isa.vector) y$(r)_$(n) = $(isa.mul("f" .. r, isa.load_unaligned("sums", r * shape.cache.pitch + n * lanes)));
//$ end
//$ end
    for (size_t k = 0; k < count; ++k, value += $(shape.cache.pitch)) {
//$ ask_next("        ", block.asks, "", "k")
//$ for n = 0, block.vectors - 1 do
        const $(isa.vector) v$(n) = $(load_kept("value", n * lanes));
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
    $(isa.store_unaligned("sums", r * shape.cache.pitch + n * lanes, "y" .. r .. "_" .. n));
//$ end
//$ end
}
//$ end

/* All elements of $(rows) rows. */
static inline void $(helper)_sums_$(rows)(const float *restrict weight, const float *restrict factor, const $(kept.storage) *restrict value, size_t count, $(asks_parameters(sum_blocks[1].asks))float *restrict sums)
{
//$ for _, block in ipairs(sum_blocks) do
//$ if block.count > 1 then
//$ local function from(base) return base.name .. " + " .. sum(times("at", block.asks_further), block.asks_from - block.at * block.asks_further) end
    for (size_t at = $(block.at); at < $(block.at + block.count * block.vectors * lanes); at += $(block.vectors * lanes))
        $(helper)_sums_$(rows)_by_$(block.vectors)(weight, factor, value + at, count, $(asks_arguments(block.asks, from))sums + at);
//$ else
//$ local function from(base) return sum(base.name, block.asks_from) end
    $(helper)_sums_$(rows)_by_$(block.vectors)(weight, factor, $(sum("value", block.at)), count, $(asks_arguments(block.asks, from))$(sum("sums", block.at)));
//$ end
//$ end
}
//$ end

/* One row of an online softmax: scores of a tile become weights under the largest score so far, and are added to the totals in lanes. A tile
   with a larger one is rare: only then the sums of earlier tiles have to shrink, by `factor`.$(kept.scaled and " Weights are for values in units of `scale`." or "") */
static inline void $(helper)_softmax(float *restrict score, $(kept.scaled and "const float *restrict scale, " or "")float *restrict total, float *restrict largest, float *restrict factor)
{
    $(isa.vector) most = $(isa.load_unaligned("score", 0));
    $(isa.vector) highest = $(isa.broadcast("*largest"));
    $(isa.vector) totals = $(isa.load_unaligned("total", 0));

    for (size_t k = $(lanes); k < $(keys); k += $(lanes)) {
        const $(isa.vector) next = $(isa.load_unaligned("score", "k"));
        most = $(isa.max("most", "next"));
    }
    *factor = 1.0f;
    const $(isa.mask) above = $(isa.less("highest", "most"));
    if ($(isa.any("above"))) {
        float shrink[$(lanes)];
//$ local steps, result = isa.reduce("most", "max")
//$ for _, step in ipairs(steps) do
        const $(step.type) $(step.name) = $(step.value);
//$ end
        const float now = $(result);
        $(isa.store_unaligned("shrink", 0, helper .. "_exp(" .. isa.broadcast("*largest - now") .. ")"));
        highest = $(isa.broadcast("now"));
        totals = $(isa.mul("totals", isa.broadcast("shrink[0]")));
        *factor = shrink[0];
        *largest = now;
    }
    for (size_t k = 0; k < $(keys); k += $(lanes)) {
        const $(isa.vector) below = $(isa.sub(isa.load_unaligned("score", "k"), "highest"));
        const $(isa.vector) weight = $(helper)_exp(below);
        $(isa.store_unaligned("score", "k", kept.scaled and isa.mul("weight", isa.load_unaligned("scale", "k")) or "weight"));
        totals = $(isa.add("totals", "weight"));
    }
    $(isa.store_unaligned("total", 0, "totals"));
}

/* Attention of one group of heads: rows of queries against the keys and values of one head, tile by tile: no more than a tile of scores exists.
   query    [queries][$(shape.group)][$(shape.width)], scaled, turned
   key      [tiles][$(shape.width)][$(keys)]; value [positions][$(shape.cache.pitch)]
//$ if kept.scaled then
   key_scale, value_scale  [positions]: their units
//$ end
//$ if shape.ring then
   first    position of the first query; each attends to the last $(shape.window) positions up to its own, which lie in a ring of $(shape.cache.positions)
//$ elseif shape.causal then
   first    position of the first query; each attends to positions up to its own
//$ elseif shape.window then
   first    position of the first query; each attends to $(shape.window - 1) positions before and behind it
   end      how many positions there are
//$ else
   end      how many positions there are; all queries attend to all of them
//$ end
   sums     [queries][$(shape.group)][$(shape.cache.pitch)]: the results
   score    [queries][$(shape.group)][$(keys)], total [queries][$(shape.group)][$(lanes)], both overwritten
   Nothing may overlap. Cannot fail. */
void $(symbol)($(attention_parameters),
    float *restrict sums, float *restrict score, float *restrict total)
{
    const size_t rows = queries * $(shape.group);
    float largest[$(rows_most)], factor[$(rows_most)];
//$ if shape.causal then
    const size_t end = first + queries;
//$ elseif shape.window then
    const size_t last = first + queries + $(shape.window - 1), stop = last < end ? last : end;
//$ end
//$ if shape.window then
    const size_t begin = first + 1 > $(shape.window) ? first + 1 - $(shape.window) : 0;
//$ end
//$ local stop = shape.window and not shape.causal and "stop" or "end"

    for (size_t r = 0; r < rows; ++r)
        largest[r] = -3e38f;
    for (size_t i = 0; i < rows * $(lanes); ++i)
        total[i] = 0.0f;
    for (size_t i = 0; i < rows * $(shape.cache.pitch); ++i)
        sums[i] = 0.0f;
//$ local oldest = shape.window and "begin / " .. keys .. " * " .. keys or 0
    for (size_t tile = $(oldest); tile < $(stop); tile += $(keys)) {
//$ local place = shape.ring and "place" or "tile"
//$ local function in_ring(name) return shape.ring and name .. " % " .. shape.cache.positions or name end
//$ if shape.ring then
        const size_t place = $(in_ring("tile"));
//$ end
//$ if #score_asks.bases > 0 then
        /* behind the last tile of a head comes the first one of the next head */
        const size_t next = tile + $(keys) < $(stop) ? $(in_ring(shape.ring and "(tile + " .. keys .. ")" or "tile + " .. keys)) : $(oldest == 0 and shape.cache.positions or shape.cache.positions .. " + " .. in_ring(oldest));
        const $(kept.storage) *next_key = key + next * $(shape.width)$(#score_asks.bases > 1 and ", *next_value = value + next * " .. shape.cache.pitch or "");
//$ end
        const $(kept.storage) *tile_key = key + $(place) * $(shape.width), *tile_value = value + $(place) * $(shape.cache.pitch);
        const size_t count = $(stop) - tile < $(keys) ? $(stop) - tile : $(keys);
        size_t row = 0;

//$ local function from(base) return "row ? " .. base.other .. " : " .. base.first end
//$ for _, rows in ipairs(together) do
        for (; row + $(rows) <= rows; row += $(rows))
            $(helper)_scores_$(rows)(query + row * $(shape.width), tile_key, $(kept.scaled and "key_scale + " .. place .. ", " or "")$(asks_arguments(score_asks, from))score + row * $(keys));
//$ end

        /* what a query does not see */
        for (size_t r = 0; r < rows; ++r) {
//$ if shape.causal or shape.window then
            const size_t own = first + r / $(shape.group);
//$ end
//$ if shape.causal then
            const size_t seen = own + 1 - tile < $(keys) ? own + 1 - tile : own < tile ? 0 : $(keys);
//$ elseif shape.window then
            const size_t newest = own + $(shape.window), seen = newest <= tile ? 0 : newest - tile < count ? newest - tile : count;
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
            $(helper)_softmax(score + r * $(keys), $(kept.scaled and "value_scale + " .. place .. ", " or "")total + r * $(lanes), largest + r, factor + r);
        row = 0;
//$ for _, rows in ipairs(together) do
        for (; row + $(rows) <= rows; row += $(rows))
            $(helper)_sums_$(rows)(score + row * $(keys), factor + row, tile_value, count, $(asks_arguments(sum_blocks[1].asks, from))sums + row * $(shape.cache.pitch));
//$ end
    }
    for (size_t r = 0; r < rows; ++r) {
        const $(isa.vector) totals = $(isa.load_unaligned("total", "r * " .. lanes));
//$ local steps, result = isa.reduce("totals", "add")
//$ for _, step in ipairs(steps) do
        const $(step.type) $(step.name) = $(step.value);
//$ end
        const float share = 1.0f / $(result);
        for (size_t i = 0; i < $(shape.cache.pitch); ++i)
            sums[r * $(shape.cache.pitch) + i] *= share;
    }
}
