//$ takes prologue, isa, v, lanes, symbol, helper, keys, attention, cache_type, attention_parameters, load_cached
//$ lines("", prologue)
//$ local score_prefetch, sum_blocks = attention.score_prefetch, attention.sum_blocks
//$ -- Addresses that are prefetched are integers, in bytes: they may lie behind the cache. Their parameters; their
//$ -- arguments, each as of(base) says.
//$ local bytes = cache_type.bytes
//$ local function prefetch_parameters(prefetch)
//$     local text = ""
//$     for _, base in ipairs(prefetch.bases) do text = text .. "uintptr_t " .. base.name .. ", " end
//$     return text
//$ end
//$ local function prefetch_arguments(prefetch, of)
//$     local text = ""
//$     for _, base in ipairs(prefetch.bases) do text = text .. of(base) .. ", " end
//$     return text
//$ end
//$ local function prefetch_at(i, prefetch, before, counter)
//$     local within = prefetch.every > 1 and i .. "    " or i
//$     if prefetch.every > 1 then
$(i)if ($(counter) % $(prefetch.every) == 0)$(#prefetch.streams > 1 and " {" or "")
//$     end
//$     for _, stream in ipairs(prefetch.streams) do
$(within)$(isa[attention.prefetch_word](stream.base, sum(before .. times(counter, prefetch.stride * bytes), stream.at * bytes)));
//$     end
//$     if prefetch.every > 1 and #prefetch.streams > 1 then
$(i)}
//$     end
//$ end
//$ local function rows_text(rows) return rows == 1 and "a row" or rows .. " rows" end
//$ -- A loop over rows, `count` at a time.
//$ local function over_rows(count) return count == 1 and "for (; row < rows; ++row)" or "for (; row + " .. count .. " <= rows; row += " .. count .. ")" end
$(include("templates/math/exp.c"))
//$ for _, rows in ipairs(attention.rows) do

/* Scores of $(rows_text(rows)) of queries and the $(keys) keys of a tile$(#score_prefetch.bases > 0 and "; prefetches what is read next" or ""). */
static inline void $(helper)_scores_$(rows)(const float *restrict query, const $(cache_type.storage) *restrict key, $(cache_type.scaled and "const float *restrict scale, " or "")$(prefetch_parameters(score_prefetch))float *restrict score)
{
//$ local once = attention.score_elements == keys
//$ local i = once and "    " or "        "
//$ local function from(place) return once and place or sum("at", place) end
//$ if not once then
    for (size_t at = 0; at < $(keys); at += $(attention.score_elements)) {
//$ end
//$ for r = 0, rows - 1 do
//$ for n = 0, attention.score_vectors - 1 do
$(i)$(isa.vector) s$(r)_$(n) = $(isa.zero());
//$ end
//$ end
$(i)for (size_t i = 0; i < $(shape.width); ++i) {
//$ prefetch_at(i .. "    ", score_prefetch, once and "" or times("at", attention.score_prefetch_step * bytes) .. " + ", "i")
//$ for n = 0, attention.score_vectors - 1 do
$(i)    const $(isa.vector) k$(n) = $(load_cached("key", sum("i * " .. keys .. (once and "" or " + at"), n * lanes)));
//$ end
//$ for r = 0, rows - 1 do
$(i)    const $(isa.vector) q$(r) = $(isa.broadcast("query[" .. sum("i", r * shape.width) .. "]"));
//$ for n = 0, attention.score_vectors - 1 do
$(i)    s$(r)_$(n) = $(isa.fma("q" .. r, "k" .. n, "s" .. r .. "_" .. n));
//$ end
//$ end
$(i)}
//$ if cache_type.scaled then
//$ for n = 0, attention.score_vectors - 1 do
$(i)const $(isa.vector) unit$(n) = $(isa.load_unaligned("scale", from(n * lanes)));
//$ end
//$ end
//$ for r = 0, rows - 1 do
//$ for n = 0, attention.score_vectors - 1 do
//$ local s = "s" .. r .. "_" .. n
$(i)$(isa.store_unaligned("score", from(r * keys + n * lanes), cache_type.scaled and isa.mul(s, "unit" .. n) or s));
//$ end
//$ end
//$ if not once then
    }
//$ end
}
//$ for _, block in ipairs(sum_blocks) do

/* Adds the first `count` values of a tile, weighted, to the sums of $(rows_text(rows)), $(block.elements) elements of each, after these are multiplied by `factor`. */
static inline void $(helper)_sums_$(rows)_by_$(block.vectors)(const float *restrict weight, const float *restrict factor, const $(cache_type.storage) *restrict value, size_t count, $(prefetch_parameters(block.prefetch))float *restrict sums)
{
//$ for r = 0, rows - 1 do
    const $(isa.vector) f$(r) = $(isa.broadcast("factor[" .. r .. "]"));
//$ for n = 0, block.vectors - 1 do
    $(isa.vector) y$(r)_$(n) = $(isa.mul("f" .. r, isa.load_unaligned("sums", r * shape.cache.pitch + n * lanes)));
//$ end
//$ end
    for (size_t k = 0; k < count; ++k) {
        const $(cache_type.storage) *own = value + k * $(names.constant("VALUE_PITCH"));
//$ prefetch_at("        ", block.prefetch, "", "k")
//$ for n = 0, block.vectors - 1 do
        const $(isa.vector) v$(n) = $(load_cached("own", n * lanes));
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

/* All elements of $(rows_text(rows)). */
static inline void $(helper)_sums_$(rows)(const float *restrict weight, const float *restrict factor, const $(cache_type.storage) *restrict value, size_t count, $(prefetch_parameters(sum_blocks[1].prefetch))float *restrict sums)
{
//$ for _, block in ipairs(sum_blocks) do
//$ if block.count > 1 then
//$ local function from(base) return base.name .. " + " .. sum(times("at", block.prefetch_step * bytes), (block.prefetch_from - block.at * block.prefetch_step) * bytes) end
    for (size_t at = $(block.at); at < $(block.at + block.count * block.elements); at += $(block.elements))
        $(helper)_sums_$(rows)_by_$(block.vectors)(weight, factor, value + at, count, $(prefetch_arguments(block.prefetch, from))sums + at);
//$ else
//$ local function from(base) return sum(base.name, block.prefetch_from * bytes) end
    $(helper)_sums_$(rows)_by_$(block.vectors)(weight, factor, $(sum("value", block.at)), count, $(prefetch_arguments(block.prefetch, from))$(sum("sums", block.at)));
//$ end
//$ end
}
//$ end

/* One row of an online softmax: the scores of a tile become weights relative to the largest score so far, and are added to
   the totals, one for each lane. A tile with a larger score is rare: only then the sums of earlier tiles have to shrink, by `factor`.$(cache_type.scaled and " Weights are for values in units of `scale`." or "") */
static inline void $(helper)_softmax(float *restrict score, $(cache_type.scaled and "const float *restrict scale, " or "")float *restrict total, float *restrict largest, float *restrict factor)
{
    $(isa.vector) max = $(isa.load_unaligned("score", 0));
    $(isa.vector) highest = $(isa.broadcast("*largest"));
    $(isa.vector) totals = $(isa.load_unaligned("total", 0));

//$ if 2 * lanes == keys then
    max = $(isa.max("max", isa.load_unaligned("score", lanes)));
//$ else
    for (size_t k = $(lanes); k < $(keys); k += $(lanes)) {
        const $(isa.vector) other = $(isa.load_unaligned("score", "k"));
        max = $(isa.max("max", "other"));
    }
//$ end
    *factor = 1.0f;
    const $(isa.mask) above = $(isa.less("highest", "max"));
    if ($(isa.any("above"))) {
        float shrink[$(lanes)];
//$ local steps, result = isa.reduce("max", "max")
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
        $(isa.store_unaligned("score", "k", cache_type.scaled and isa.mul("weight", isa.load_unaligned("scale", "k")) or "weight"));
        totals = $(isa.add("totals", "weight"));
    }
    $(isa.store_unaligned("total", 0, "totals"));
}

/* Attention of one group of heads: rows of queries against the keys and values of one head, tile by tile: no more than a
   tile of scores is held.
   query    [queries]$(shape.group > 1 and "[" .. shape.group .. "]" or "")[$(shape.width)], scaled$(shape.rope and ", rotated" or "")
   key      [tiles][$(shape.width)][$(keys)]; value [positions][$(shape.cache.pitch)]
//$ if cache_type.scaled then
   key_scale, value_scale  [positions]: their units
//$ end
//$ if shape.ring then
   first    position of the first query; each attends to the last $(shape.window) positions up to its own, in a ring of $(shape.cache.positions)
//$ elseif shape.causal then
   first    position of the first query; each attends to positions up to its own
//$ elseif shape.window then
   first    position of the first query; each attends to $(shape.window - 1) positions before and behind it
   end      how many positions there are
//$ else
   end      how many positions there are; all queries attend to all of them
//$ end
   sums     [queries]$(shape.group > 1 and "[" .. shape.group .. "]" or "")[$(shape.cache.pitch)]: the results
   score    [queries]$(shape.group > 1 and "[" .. shape.group .. "]" or "")[$(keys)], total [queries]$(shape.group > 1 and "[" .. shape.group .. "]" or "")[$(lanes)], both overwritten
   Nothing may overlap. Cannot fail. */
void $(symbol)($(attention_parameters), float *restrict sums, float *restrict score, float *restrict total)
{
    const size_t rows = queries$(shape.group > 1 and " * " .. shape.group or "");
    const float zero = $hidden(0.0f);
    float largest[$(v.rows)], factor[$(v.rows)];
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
    for (size_t i = 0; i < $(lanes > 1 and "rows * " .. lanes or "rows"); ++i)
        total[i] = zero;
    for (size_t i = 0; i < rows * $(names.constant("VALUE_PITCH")); ++i)
        sums[i] = zero;
//$ local oldest = shape.window and "begin / " .. keys .. " * " .. keys or 0
    for (size_t tile = $(oldest); tile < $(stop); tile += $(keys)) {
//$ local place = shape.ring and "place" or "tile"
//$ local function in_ring(name) return shape.ring and name .. " % " .. names.constant("CACHE_POSITIONS") or name end
//$ if shape.ring then
        const size_t place = $(in_ring("tile"));
//$ end
//$ if #score_prefetch.bases > 0 then
        /* Behind the last tile of a head comes the first one of the next head. These are integers: behind the last head there may be nothing. */
        const size_t next = tile + $(keys) < $(stop) ? $(in_ring(shape.ring and "(tile + " .. keys .. ")" or "tile + " .. keys)) : $(oldest == 0 and names.constant("CACHE_POSITIONS") or names.constant("CACHE_POSITIONS") .. " + " .. in_ring(oldest));
        const uintptr_t next_key = (uintptr_t) key + next * $(bytes == 1 and shape.width or "(" .. shape.width .. " * sizeof *key)")$(#score_prefetch.bases > 1 and ", next_value = (uintptr_t) value + next * (" .. names.constant("VALUE_PITCH") .. " * sizeof *value)" or "");
//$ end
        const $(cache_type.storage) *tile_key = key + $(place) * $(shape.width), *tile_value = value + $(place) * $(names.constant("VALUE_PITCH"));
        const size_t count = $(stop) - tile < $(keys) ? $(stop) - tile : $(keys);
        size_t row = 0;

//$ local function own(name) return name:find("^next") and name or "(uintptr_t) " .. name end
//$ local function from(base) return "row ? " .. own(base.other) .. " : " .. own(base.first) end
//$ for _, rows in ipairs(attention.rows) do
        $(over_rows(rows))
            $(helper)_scores_$(rows)(query + row * $(shape.width), tile_key, $(cache_type.scaled and "key_scale + " .. place .. ", " or "")$(prefetch_arguments(score_prefetch, from))score + row * $(keys));
//$ end

        /* what a query does not see */
        for (size_t r = 0; r < rows; ++r) {
//$ if shape.causal or shape.window then
            const size_t own = first + r$(shape.group > 1 and " / " .. shape.group or "");
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
            $(helper)_softmax(score + r * $(keys), $(cache_type.scaled and "value_scale + " .. place .. ", " or "")total + r$(lanes > 1 and " * " .. lanes or ""), largest + r, factor + r);
        row = 0;
//$ for _, rows in ipairs(attention.rows) do
        $(over_rows(rows))
            $(helper)_sums_$(rows)(score + row * $(keys), factor + row, tile_value, count, $(prefetch_arguments(sum_blocks[1].prefetch, from))sums + row * $(names.constant("VALUE_PITCH")));
//$ end
    }
    for (size_t r = 0; r < rows; ++r) {
        const $(isa.vector) totals = $(isa.load_unaligned("total", lanes > 1 and "r * " .. lanes or "r"));
//$ local steps, result = isa.reduce("totals", "add")
//$ for _, step in ipairs(steps) do
        const $(step.type) $(step.name) = $(step.value);
//$ end
        const float share = 1.0f / $(result);
        for (size_t i = 0; i < $(names.constant("VALUE_PITCH")); ++i)
            sums[r * $(names.constant("VALUE_PITCH")) + i] *= share;
    }
}
