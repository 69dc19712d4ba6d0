//$ takes prologue, isa, v, lanes, symbol, helper, keys, attention, cache_type, load_cached, dots, cap,
//$ takes cached_type
//$ lines(prologue)
//$ local score_prefetch, sum_blocks = attention.score_prefetch, attention.sum_blocks
//$ -- Addresses that are prefetched are integers, in bytes: they may lie behind the cache. Their parameters; their
//$ -- arguments, each as of(base) says.
//$ local bytes = shape.cache.bytes
//$ -- Of what lies in words: the units of rounded rows, and the storage of rows of queries and weights.
//$ local integers = dots and dots.integers
//$ local from_keys = shape.from_keys
//$ local storage, row_storage = from_keys and "float" or shape.cache.storage, dots and dots.storage or "float"
//$ local cached_storage = from_keys and cached_type.storage or storage
//$ -- A loop's load of keys or values, the broadcast of a query or weight, and the sum with their product.
//$ local function load_own(base, at) return dots and isa.load_words(base, at) or load_cached(base, at) end
//$ local function spread(element) return dots and isa.index_broadcast(element) or isa.broadcast(element) end
//$ local own_type, sum_type = dots and isa.index or isa.vector, dots and dots.sums.type or isa.vector
//$ local query_step, weight_step, key_step = attention.query_step, attention.weight_step, shape.cache.key_step
//$ -- Where the keys and values of a position lie from which a tile starts.
//$ local function key_at(position) return times(position, key_step) end
//$ local function value_at(position) return times(dots and position .. " / " .. dots.rows or position, names.constant("VALUE_PITCH")) end
//$ local function prefetch_parameters(prefetch)
//$     local text = ""
//$     for _, base in ipairs(prefetch.bases) do text = text .. "uintptr_t " .. base.name .. ", " end
//$     return text
//$ end
//$ local function prefetch_text(prefetch)
//$     local places = {}
//$     for n, base in ipairs(prefetch.bases) do places[n] = base.name end
//$     return #places > 0 and " What is read next, at " .. places[1] .. (places[2] and " and " .. places[2] or "") .. ", is prefetched." or ""
//$ end
//$ local function prefetch_arguments(prefetch, of)
//$     local text = ""
//$     for _, base in ipairs(prefetch.bases) do text = text .. of(base) .. ", " end
//$     return text
//$ end
//$ local function prefetch_at(prefetch, before, counter)
        if ($(counter) % $(prefetch.every) == 0) { //$ if prefetch.every > 1
//$     for _, stream in ipairs(prefetch.streams) do
            $(isa[attention.prefetch_word](stream.base, sum(before .. times(counter, prefetch.stride * bytes), stream.at * bytes)));
//$     end
        } //$ if prefetch.every > 1
//$ end
//$ local unit_argument = integers and "unit, " or ""
//$ local weights_and_values = listed(
//$     "const " .. row_storage .. " *restrict weight, const float *restrict factor",
//$     integers and "const float *restrict unit",
//$     "const " .. storage .. " *restrict value, size_t count"
//$ )
//$ local function rows_text(rows) return rows == 1 and "a row" or rows .. " rows" end
//$ -- A loop over rows, `count` at a time.
//$ local all_rows = shape.group == 1 and "queries" or "rows"
//$ local function over_rows(count)
//$     if count == 1 then return "for (; row < " .. all_rows .. "; ++row)" end
//$     return "for (; row + " .. count .. " <= " .. all_rows .. "; row += " .. count .. ")"
//$ end
$(include("templates/model/blocks/keys_of_tile.c")) //$ if from_keys
//$ for _, rows in ipairs(attention.rows) do
//$ if not from_keys then

/* Scores of $(rows_text(rows)) of queries and the $(keys) keys of a tile.$(prefetch_text(score_prefetch))
   query  [$(rows)][$(query_step)]
   key    [$(key_step)][$(keys)]
   scale  units of the keys, [$(keys)] //$ if cache_type.scaled
   score  [$(rows)][$(keys)] */
//$ local scale = cache_type.scaled and "const float *restrict scale, " or ""
static inline void $(helper)_scores_$(rows)(const $(row_storage) *restrict query, const $(storage) *restrict key,
    $(scale)$(prefetch_parameters(score_prefetch))float *restrict score)
{
//$ if integers then
//$ for r = 0, rows - 1 do
    const float unit_of$(r) = ((const float *) (const void *) query)[$(r * query_step + key_step + 1)];
//$ end
//$ end
//$ local once = attention.score_elements == keys
//$ local function from(place) return once and place or sum("at", place) end
    for (size_t at = 0; at < $(keys); at += $(attention.score_elements)) { //$ if not once
//$ for r = 0, rows - 1 do
//$ for n = 0, attention.score_vectors - 1 do
    $(sum_type) s$(r)_$(n) = $(dots and dots.sums.start("query[" .. r * query_step + key_step .. "]") or isa.zero());
//$ end
//$ end
    for (size_t i = 0; i < $(key_step); ++i) {
//$ prefetch_at(score_prefetch, once and "" or times("at", attention.score_prefetch_step * bytes) .. " + ", "i")
//$ for n = 0, attention.score_vectors - 1 do
        const $(own_type) k$(n) = $(load_own("key", sum("i * " .. keys .. (once and "" or " + at"), n * lanes)));
//$ end
//$ for r = 0, rows - 1 do
        const $(own_type) q$(r) = $(spread("query[" .. sum("i", r * query_step) .. "]"));
//$ for n = 0, attention.score_vectors - 1 do
//$ local score, key, query = "s" .. r .. "_" .. n, "k" .. n, "q" .. r
        $(score) = $(dots and dots.sums.dot(score, key, query) or isa.fma(query, key, score));
//$ end
//$ end
    }
//$ if cache_type.scaled then
//$ for n = 0, attention.score_vectors - 1 do
    const $(isa.vector) unit$(n) = $(isa.load_unaligned("scale", from(n * lanes)));
//$ end
//$ end
//$ for r = 0, rows - 1 do
//$ for n = 0, attention.score_vectors - 1 do
//$ local s = "s" .. r .. "_" .. n
//$ if integers then s = isa.mul(isa.float_of(s), isa.broadcast("unit_of" .. r)) end
    $(isa.store_unaligned("score", from(r * keys + n * lanes), cache_type.scaled and isa.mul(s, "unit" .. n) or s));
//$ end
//$ end
    } //$ if not once
}
//$ end
//$ for _, block in ipairs(sum_blocks) do

/* Adds the first `count` values of a tile, weighted, to the sums of $(rows_text(rows)), $(plural(block.elements, "element")) of each,
   after these are multiplied by `factor`.$(integers and " Weights are in units of `unit`." or "")$(prefetch_text(block.prefetch)) */
static inline void $(helper)_sums_$(rows)_by_$(block.vectors)($(weights_and_values),
    $(prefetch_parameters(block.prefetch))float *restrict sums)
{
//$ for r = 0, rows - 1 do
    const $(isa.vector) f$(r) = $(isa.broadcast("factor[" .. r .. "]")); //$ if not integers
//$ for n = 0, block.vectors - 1 do
//$ local before = isa.load_unaligned("sums", r * shape.cache.pitch + n * lanes)
    $(sum_type) y$(r)_$(n) = $(integers and isa.index_zero() or isa.mul("f" .. r, before));
//$ end
//$ end
//$ -- The products of position or word `k`, of words with their bits in `kept` only.
//$ local function products(kept)
//$ for n = 0, block.vectors - 1 do
//$ local own = load_own("own", n * lanes)
        const $(own_type) v$(n) = $(kept and isa.index_and(own, kept) or own);
//$ end
//$ for r = 0, rows - 1 do
        const $(own_type) w$(r) = $(spread("weight[" .. sum("k", r * weight_step) .. "]"));
//$ for n = 0, block.vectors - 1 do
//$ local y, weight, value = "y" .. r .. "_" .. n, "w" .. r, "v" .. n
        $(y) = $(dots and dots.sums.dot_weights(y, weight, value) or isa.fma(weight, value, y));
//$ end
//$ end
//$ end
    for (size_t k = 0; k < count$(dots and " / " .. dots.rows or ""); ++k) {
        const $(storage) *own = value + k * $(names.constant("VALUE_PITCH"));
//$ prefetch_at(block.prefetch, "", "k")
//$ products()
    }
//$ if dots then
    if (count % $(dots.rows) > 0) { /* the other positions of the last word may never have been written */
        const size_t k = count / $(dots.rows);
        const $(storage) *own = value + k * $(names.constant("VALUE_PITCH"));
        const $(isa.index) kept = $(isa.index_broadcast("((uint32_t) 1 << count % " .. dots.rows .. " * " .. 32 // dots.rows .. ") - 1"));
//$ products("kept")
    }
//$ end
//$ for r = 0, rows - 1 do
//$ if integers then
    const $(isa.vector) f$(r) = $(isa.broadcast("factor[" .. r .. "]")), u$(r) = $(isa.broadcast("unit[" .. r .. "]"));
//$ end
//$ for n = 0, block.vectors - 1 do
//$ local y, at = "y" .. r .. "_" .. n, r * shape.cache.pitch + n * lanes
//$ if integers then y = isa.fma("u" .. r, isa.float_of(y), isa.mul("f" .. r, isa.load_unaligned("sums", at))) end
    $(isa.store_unaligned("sums", at, y));
//$ end
//$ end
}
//$ end
//$ if not from_keys then

/* The same for all elements of $(rows_text(rows)). */
static inline void $(helper)_sums_$(rows)($(weights_and_values), $(prefetch_parameters(sum_blocks[1].prefetch))float *restrict sums)
{
//$ for _, block in ipairs(sum_blocks) do
//$ if block.count > 1 then
//$ local first = (block.prefetch_from - block.at * block.prefetch_step) * bytes
//$ local function from(base) return sum(base.name, times("at", block.prefetch_step * bytes), first) end
    for (size_t at = $(block.at); at < $(block.at + block.count * block.elements); at += $(block.elements))
        $(helper)_sums_$(rows)_by_$(block.vectors)(weight, factor, $(unit_argument)value + at, count,
            $(prefetch_arguments(block.prefetch, from))sums + at);
//$ else
//$ local function from(base) return sum(base.name, block.prefetch_from * bytes) end
    $(helper)_sums_$(rows)_by_$(block.vectors)(weight, factor, $(unit_argument)$(sum("value", block.at)), count,
        $(prefetch_arguments(block.prefetch, from))$(sum("sums", block.at)));
//$ end
//$ end
}
//$ end
//$ end
//$ if attention.tiles then
//$ local given = { integers = integers, storage = storage, query_step = query_step, key_step = key_step }
//$ given.weight_step, given.scale = weight_step, cache_type.scaled and "const float *restrict scale, " or ""
$(include("templates/model/blocks/attention_tiles.c", given))
//$ end
//$ local sum_of_lanes = across("add")
//$ local tanh = cap and once("templates/math/tanh.c") .. "_tanh"
//$ local softmax = once("templates/model/blocks/softmax.c", { weight_step = weight_step })
//$ local queries = "[queries]" .. (shape.group > 1 and "[" .. shape.group .. "]" or "")
//$ local scaled = ", scaled" .. (shape.rope and ", rotated" or "")
//$ local more = integers and (dots.sums.started and ", what sums start from" or ", a word that is not read here") .. ", and the unit" or ""
//$ local weights = dots and "rounded_weights " .. queries .. "[" .. weight_step .. "], " or ""

/* Attention of one group of heads: rows of queries against the keys and values of one head, tile by tile: no more than a
   tile of scores is held.
//$ if dots then
   kept     keys [tiles][$(key_step)][$(keys)], words of $(plural(dots.rows, "element"))$(integers and ", each " .. dots.offset .. " more" or "");
            values [positions / $(dots.rows)][$(shape.cache.pitch)], words of $(dots.rows) positions
//$ elseif from_keys then
   kept     keys [positions][$(shape.cache.pitch)], of all heads, before they are rotated
//$ else
   kept     keys [tiles][$(shape.width)][$(keys)], values [positions][$(shape.cache.pitch)]
//$ end
            and their units, [positions]$(from_keys and "[" .. shape.heads .. "]" or "") //$ if cached_type.scaled
//$ local window = shape.full_layers and "window" or shape.window
//$ local behind = shape.full_layers and "window - 1" or shape.window and shape.window - 1
//$ local length = shape.mixed and "positions" or names.constant("CACHE_POSITIONS")
//$ if shape.ring then
   span     the tokens of the queries; each attends to the last $(window) positions up to its own,
            in a ring of $(shape.mixed and length or shape.cache.positions)
//$ elseif shape.causal then
   span     the tokens of the queries; each attends to positions up to its own
//$ elseif shape.window then
   span     the tokens of the queries; each attends to $(behind) positions before and behind it
//$ else
   span     the tokens of the queries; all attend to all of the sequence
//$ end
   a        $(dots and "rounded_queries" or "queries") $(queries)[$(query_step)]$(scaled)$(dots and " and rounded: " .. plural(key_step, "word") .. " of " .. plural(dots.rows, "element") .. more or "");
            sums $(queries)[$(shape.cache.pitch)]: the results$(from_keys and ", means of keys" or "");
            scores $(queries)[$(keys)], $(weights)totals $(queries)[$(lanes)], $(dots and "all" or "both") overwritten
   A score x becomes $(cap.text) tanh(x / $(cap.text)). //$ if cap
   Nothing may overlap. Cannot fail. */
void $(symbol)(const $(names.type("cache")) *kept, const $(names.span) *span, const $(names.type("attention")) *a)
{
    const $(row_storage) *query = a->$(dots and "rounded_queries" or "queries");
    const $(cached_storage) *key = kept->keys;
    const float *key_scale = kept->key_scales; //$ if cached_type.scaled
//$ if not from_keys then
    const $(storage) *value = kept->values;
    const float *value_scale = kept->value_scales; //$ if cached_type.scaled
//$ end
    float *sums = a->sums, *score = a->scores, *total = a->totals$(v.buffers.tile_floats > 0 and ", *tile_floats = a->tile" or "");
    $(dots.storage) *weight = a->rounded_weights; //$ if dots
    const size_t positions = kept->positions; //$ if shape.mixed
    const size_t window = a->window; //$ if shape.full_layers
    const size_t $(shape.causal and "first = span->first, " or shape.window and "first = span->first, end = span->tokens, " or "end = span->tokens, ")queries = span->count;
    const size_t rows = queries * $(shape.group); //$ if shape.group > 1
    const float zero = $hidden(0.0f); /* else its loop is a call of memset */
    const float unseen = $minus_infinity();
//$ if from_keys then
    float *turned = tile_floats; //$ if shape.rope
    float *tile_value = $(sum("tile_floats", shape.rope and keys * shape.width or 0)); //$ if not cached_type.plain
//$ end
    float largest[$(v.rows)], factor[$(v.rows)]$(integers and ", unit[" .. v.rows .. "]" or "");
//$ if shape.causal then
    const size_t end = first + queries;
//$ elseif shape.window then
    const size_t last = $(sum("first + queries", behind)), stop = last < end ? last : end;
//$ end
    const size_t begin = first + 1 > $(window) ? first + 1 - $(window) : 0; //$ if shape.window
//$ local stop = shape.window and not shape.causal and "stop" or "end"

    for (size_t r = 0; r < $(all_rows); ++r)
        largest[r] = -3.4028235e38f; /* finite: else a tile of which a query sees nothing would make NaN */
    for (size_t i = 0; i < $(times(all_rows, lanes)); ++i)
        total[i] = zero;
    for (size_t i = 0; i < $(all_rows) * $(names.constant("VALUE_PITCH")); ++i)
        sums[i] = zero;
//$ if attention.tiles then
    if ($(all_rows) >= 16)
        $(isa.tile_configure(attention.tiles.words));
//$ end
//$ local oldest = shape.window and "begin / " .. keys .. " * " .. keys or 0
    for (size_t tile = $(oldest); tile < $(stop); tile += $(keys)) {
//$ local place = shape.ring and "place" or "tile"
//$ local function in_ring(name) return shape.ring and name .. " % " .. length or name end
        const size_t place = $(in_ring("tile")); //$ if shape.ring
//$ if #score_prefetch.bases > 0 or #sum_blocks[1].prefetch.bases > 0 then
        /* Behind the last tile of a head comes the first one of the next head. These are integers: behind the last
           head there may be nothing. */
//$ local next = in_ring(shape.ring and "(tile + " .. keys .. ")" or "tile + " .. keys)
//$ local next_head = sum(length, oldest == 0 and 0 or in_ring(oldest))
        const size_t next = tile + $(keys) < $(stop) ? $(next) : $(next_head);
        const uintptr_t next_key = (uintptr_t) key + $(times("next", bytes == 1 and key_step or times(key_step, "sizeof *key")));
//$ if #score_prefetch.bases > 1 then
//$ local next_row = "next" .. (dots and " / " .. dots.rows or "")
        const uintptr_t next_value = (uintptr_t) value + $(next_row) * ($(names.constant("VALUE_PITCH")) * sizeof *value);
//$ end
//$ end
//$ local tile_rows = "key + " .. place .. " * " .. names.constant("VALUE_PITCH")
//$ if from_keys and cached_type.plain then
        const float *tile_value = $(tile_rows);
//$ elseif not from_keys then
        const $(storage) *tile_key = key + $(key_at(place)), *tile_value = value + $(value_at(place));
//$ end
        const size_t count = $(stop) - tile < $(keys) ? $(stop) - tile : $(keys);
        size_t row$(from_keys and "" or " = 0");

//$ if from_keys then
//$     if not cached_type.plain then
//$ local scale = cached_type.scaled and "key_scale + " .. place .. " * " .. shape.heads
        $(helper)_unpack($(listed(tile_rows, scale, "count, tile_value")));
//$     end
        for (size_t head = 0; head < $(shape.heads); ++head) {
//$ local own_keys = "tile_value + head * " .. shape.width
            $(helper)_turn_keys(a, $(own_keys), tile, count, turned); //$ if shape.rope
            for (size_t r = head; r < $(all_rows); r += $(shape.heads))
                $(helper)_scores(query + r * $(query_step), $(shape.rope and "turned" or own_keys), count, score + r * $(keys));
        }
//$ end
//$ local function own(name) return name:find("^next") and name or "(uintptr_t) " .. name end
//$ local function from(base) return "row ? " .. own(base.other) .. " : " .. own(base.first) end
//$ if attention.tiles then
//$ local query, scale = "query + row * " .. query_step, cache_type.scaled and "key_scale + " .. place
        for (; row + 16 <= $(all_rows); row += 16)
            $(helper)_scores_by_tiles($(listed(query, "tile_key", scale, "score + row * " .. keys)));
//$ end
//$ for _, rows in ipairs(from_keys and {} or attention.rows) do
        $(over_rows(rows))
//$ local scale = cache_type.scaled and "key_scale + " .. place .. ", " or ""
            $(helper)_scores_$(rows)($(sum("query", times("row", query_step))), tile_key,
                $(scale)$(prefetch_arguments(score_prefetch, from))score + row * $(keys));
//$ end

//$ if cap then
        for (size_t i = 0; i < $(times(all_rows, keys)); $(advance("i", lanes))) {
            const $(isa.vector) share = $(isa.mul(isa.load_unaligned("score", "i"), isa.broadcast(cap.inverse)));
            const $(isa.vector) bounded = $(tanh)(share);
            $(isa.store_unaligned("score", "i", isa.mul("bounded", isa.broadcast(cap.factor))));
        }

//$ end
//$ local sees_all = not shape.causal and not shape.window
        /* what a query does not see */
        for (size_t r = 0; r < $(all_rows); ++r) {
//$ if shape.causal or shape.window then
            const size_t own = first + r$(shape.group > 1 and " / " .. shape.group or "");
//$ end
//$ if shape.causal then
            const size_t seen = own < tile ? 0 : own - tile < $(keys) ? own - tile + 1 : $(keys);
//$ elseif shape.window then
            const size_t newest = own + $(window), seen = newest <= tile ? 0 : newest - tile < count ? newest - tile : count;
//$ end
            for (size_t k = $(sees_all and "count" or "seen"); k < $(keys); ++k)
                score[r * $(keys) + k] = unseen;
//$ if shape.window then
            const size_t oldest = own + 1 > tile + $(window) ? own + 1 - tile - $(window) : 0;
            for (size_t k = 0; k < oldest && k < $(keys); ++k)
                score[r * $(keys) + k] = unseen;
//$ end
        }
//$ local scale, weight = cache_type.scaled and "value_scale + " .. place, dots and sum("weight", times("r", weight_step))
//$ local given = listed("score + r * " .. keys, scale, weight, sum("total", times("r", lanes)), "largest + r, factor + r")
//$ if integers and isa.largest_of then
        size_t r = 0;
        for (; r + 8 <= $(all_rows); r += 8)
            $(softmax)_softmax_8($(given), unit + r);
        for (; r < $(all_rows); ++r)
//$ else
        for (size_t r = 0; r < $(all_rows); ++r)
//$ end
            $(integers and "unit[r] = " or "")$(softmax)_softmax($(given));
        row = 0; //$ if not from_keys
//$ if attention.tiles then
//$ local weight, to = "weight + row * " .. weight_step, "sums + row * " .. names.constant("VALUE_PITCH")
//$ -- Weights of positions that nobody sees are 0; values may never have been written, and 0 times NaN is NaN.
        for (; row + 16 <= $(all_rows)$(integers and "" or " && count == " .. keys); row += 16)
            $(helper)_sums_by_tiles($(listed(weight, "factor + row", integers and "unit + row", "tile_value", to)));
//$ end
//$ if from_keys then
        /* All rows meet the same columns of keys, which stay in L1. */
//$ for _, block in ipairs(sum_blocks) do
//$ loop("at", block.at, block.at + block.count * block.elements, block.elements, function(at)
//$ local value, next = sum("tile_value", at), sum("next_key", times(at, bytes))
//$ local function from() return "row ? (uintptr_t) (" .. value .. ") : " .. next end
            row = 0;
//$ for _, rows in ipairs(attention.rows) do
            $(over_rows(rows))
                $(helper)_sums_$(rows)_by_$(block.vectors)($(sum("score", times("row", weight_step))), factor + row, $(value), count,
                    $(prefetch_arguments(block.prefetch, from))$(sum("sums + row * " .. names.constant("VALUE_PITCH"), at)));
//$ end
//$ end)
//$ end
//$ end
//$ for _, rows in ipairs(from_keys and {} or attention.rows) do
        $(over_rows(rows))
//$ local weight, unit = sum(dots and "weight" or "score", times("row", weight_step)), integers and "unit + row, " or ""
            $(helper)_sums_$(rows)($(weight), factor + row, $(unit)tile_value, count,
                $(prefetch_arguments(sum_blocks[1].prefetch, from))sums + row * $(names.constant("VALUE_PITCH")));
//$ end
    }
//$ if attention.tiles then
    if ($(all_rows) >= 16)
        $(isa.tile_release());
//$ end
    for (size_t r = 0; r < $(all_rows); ++r) {
        const $(isa.vector) totals = $(isa.load_unaligned("total", times("r", lanes)));
//$ if integers then
        /* The largest score adds 1. Without one, all are -infinity: the row is 0 / 0. */
        const float sum = $(sum_of_lanes("totals")), share = 1.0f / (sum < 0.5f ? zero : sum);
//$ else
        const float share = 1.0f / $(sum_of_lanes("totals"));
//$ end
        for (size_t i = 0; i < $(names.constant("VALUE_PITCH")); ++i)
            sums[r * $(names.constant("VALUE_PITCH")) + i] *= share;
    }
}
