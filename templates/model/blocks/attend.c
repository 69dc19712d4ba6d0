//$ takes isa, lanes, helper, v, scale, rounds, made, structs, matrix, turn
//$ -- Attention of some tokens, whose keys and values are in the cache.
//$ local value_pitch, words = names.constant("VALUE_PITCH"), shape.cache.words
//$ local heads = shape.cached_heads > 1
//$ if shape.shaped then

/* Shaped attention of a group of heads: from y, the values that a softmax mixes, to alpha v + beta y - gamma mean, row by row of y;
   mean is that of all values that a token attends to. value: of the head, from position 0 on; shape: alpha, beta and gamma of each head. */
static void $(helper)_shape(const float *restrict value, const float *restrict shape, const $(names.span) *span, float *restrict y)
{
    float total[$(value_pitch)];
    const float zero = $hidden(0.0f); /* else its loop is a call of memset */
    const size_t first = span->first, tokens = span->count, end = $(shape.causal and "first + tokens" or "span->tokens");
    size_t seen = 0;

    for (size_t i = 0; i < $(value_pitch); ++i)
        total[i] = zero;
    for (size_t token = 0; token < tokens; ++token) {
        const size_t last = first + token + 1 < end ? first + token + 1 : end; //$ if shape.causal
        const size_t last = end; //$ if not shape.causal
        for (; seen < last; ++seen)
//$ loop("i", 0, shape.cache.pitch, lanes, function(k)
//$ local value = isa.load_unaligned("value", sum("seen * " .. value_pitch, k))
                $(isa.store_unaligned("total", k, isa.add(isa.load_unaligned("total", k), value)));
//$ end, { to = value_pitch })
        for (size_t row = 0; row < $(shape.group); ++row, y += $(value_pitch)) {
            const float *own = value + (first + token) * $(value_pitch), *parts = shape + row * 3;
            const float share = parts[2] / (float) last;
            for (size_t i = 0; i < $(value_pitch); ++i)
                y[i] = parts[0] * own[i] + parts[1] * y[i] - share * total[i];
        }
    }
}
//$ end
//$ local group = shape.group
//$ local head_at = shape.mixed and "head * positions" or "head"
//$ local some = v.queries > 1

/* Attention of the $(some and "tokens" or "token") of `span`$(some and ", at most " .. v.queries or ""): q and y are rows of $(plural(shape.heads, "head")) of $(shape.width). */
static void $(helper)_attend(const $(names.type("call")) *call, const $(names.type("layer")) *layer, const $(names.type("buffers")) *b,
    const $(names.span) *span, const $(names.type("cache")) *cache)
{
$(include("templates/model/blocks/rows_of_span.c", { rows = { "q", "y" }, reads = 1 }))
    const size_t count = span->count; //$ if some
$(include("templates/model/blocks/cache_of_span.c"))
    $(names.type("attention")) a;
    $(names.type("cache")) head_cache;
    $(matrix) all, map; /* V, and panels of it */ //$ if made
//$ if scale == "1.0f" or not made or made.head_pitch then
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ end

    $(helper)_attention_at(call, layer, b, &a);
//$ if made then
    $(helper)_v_at(layer, &all);
    map.inputs = all.inputs;
    map.strip = b->strip; //$ if structs.converts
//$ end
    head_cache.positions = positions; //$ if shape.mixed
//$ local factor = shape.unit and "factor" or scale == "1.0f" and "one" or scale
//$ -- Rows of queries: of token `own` of a batch, number `row` of a group; and what lies before the head's elements.
//$ local count = some and "count" or "1"
//$ local position = some and "(span->first + own)" or "span->first"
//$ local function query(row) return some and row and "(own * " .. group .. " + row)" or some and "own" or row and "row" or "" end
//$ local function number_of(row)
//$     return heads and row and "head * " .. group .. " + row" or heads and "head" or row and "row" or "0"
//$ end
//$ local function element(row)
//$     local head = heads and row and "(head * " .. group .. " + row)" or heads and "head" or row and "row"
//$     return head and " + " .. times(head, shape.width) or ""
//$ end
        for (size_t head = 0; head < $(shape.cached_heads); ++head) { //$ if heads
            for (size_t own = 0; own < count; ++own) { //$ if some
$(include("templates/model/blocks/angles.c", { of = "layer", position = position })) //$ if shape.rope
//$ local row = group > 1
            for (size_t row = 0; row < $(group); ++row) { //$ if row
            const float *from = $(sum("q", some and "own * q_step" or 0))$(element(row));
//$ local to = query(row)
            float *to = a.queries$(to ~= "" and " + " .. times(to, shape.width) or "");
            const float factor = $(scale) * layer->attention_scale[$(number_of(row))]; //$ if shape.unit
//$ if shape.rope then
            $(turn)_rotate_$(shape.width)(from, cosine, sine, $(factor), to);
//$ else
//$ over_row(shape.width, function(at, load, store)
                $(store("to", at, isa.mul(isa.broadcast(factor), load("from", at))));
//$ end)
//$ end
            } //$ if row
            } //$ if some
//$ if words then
//$ local rows = some and (group > 1 and "count * " .. group or "count") or group
        $(rounds[shape.width])_rounded_$(shape.width)(a.queries, $(shape.width), a.rounded_queries, $(v.attention.query_step), $(rows));
//$ end

//$ for _, part in ipairs(structs.cache) do
//$ if part.at then
//$ local first = heads and times(head_at, names.constant(part.name:upper() .. "_HEAD")) or 0
            head_cache.$(part.name) = $(sum(part.name, first));
//$ end
//$ end
            $(v.names.attention)(&head_cache, span, &a);
//$ if shape.shaped then
//$ local parts = sum("layer->attention_shape", heads and times("head", 3 * group) or 0)
            $(helper)_shape(head_cache.values, $(parts), span, a.sums);
//$ end
//$ if made then
$(include("templates/model/blocks/values_of_keys.c", { count = count, rounds = rounds }))
//$ else
//$ local number = some and (row and "count * " .. group or "count") or tostring(group)
            for (size_t row = 0; row < $(number); ++row) { //$ if number ~= "1"
//$ local of_token = not some and 0 or times(row and "row / " .. group or "row", "y_step")
//$ local of_group = row and (some and "row % " .. group or "row")
//$ local head_of = heads and of_group and "(head * " .. group .. " + " .. of_group .. ")" or heads and "head" or of_group
            float *out = $(sum("y", of_token))$(head_of and " + " .. times(head_of, shape.width) or "");
//$ local sums_at = number ~= "1" and "row * " .. value_pitch or 0
//$ over_row(shape.width, function(at, load, store)
                $(store("out", at, isa.mul(isa.broadcast("one"), load("a.sums", sum(sums_at, at)))));
//$ end)
            } //$ if number ~= "1"
//$ end
        } //$ if heads
}
