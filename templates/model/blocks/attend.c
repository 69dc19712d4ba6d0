//$ takes isa, lanes, helper, v, scale, cache_type, cached, positioned, rounds
//$ -- Attention of some tokens, whose keys and values are in the cache.
//$ local value_pitch, words = names.constant("VALUE_PITCH"), shape.cache.words
//$ local heads = shape.kv_heads > 1
//$ if shape.shaped then

/* Shaped attention of a group of heads: from y, the values that a softmax mixes, to alpha v + beta y - gamma mean, row by row of y;
   mean is that of all values that a token attends to. value: of the head, from position 0 on; shape: alpha, beta and gamma of each head. */
static void $(helper)_shape(const float *restrict value, const float *restrict shape, size_t first, size_t tokens,
    size_t end, float *restrict y)
{
    float total[$(value_pitch)];
    const float zero = $hidden(0.0f); /* else its loop is a call of memset */
    size_t seen = 0;

    for (size_t i = 0; i < $(value_pitch); ++i)
        total[i] = zero;
    for (size_t token = 0; token < tokens; ++token) {
//$ if shape.causal then
        const size_t last = first + token + 1 < end ? first + token + 1 : end;
//$ else
        const size_t last = end;
//$ end
        for (; seen < last; ++seen)
//$ loop("            ", "i", 0, shape.cache.pitch, lanes, function(i, k)
//$ local value = isa.load_unaligned("value", sum("seen * " .. value_pitch, k))
$(i)$(isa.store_unaligned("total", k, isa.add(isa.load_unaligned("total", k), value)));
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
//$ local needs_first = positioned or shape.rope or shape.shaped
//$ local group = shape.group
//$ local head_at = shape.mixed and "head * positions" or "head"
//$ local function of_head(name) return sum(name, heads and times(head_at, names.constant(name:upper() .. "_HEAD")) or 0) end
//$ local key_text = of_head("keys") .. (cache_type.scaled and ", " .. of_head("key_scales") or "")
//$ local value_text = of_head("values") .. (cache_type.scaled and ", " .. of_head("value_scales") or "")
//$ local some = v.queries > 1
//$ local parameters = listed(
//$     shape.rope and "const " .. names.weights .. " *weights",
//$     shape.unit and "const float *scales",
//$     shape.shaped and "const float *parts",
//$     "const float *restrict q, size_t q_step",
//$     cached("const %s *%s"),
//$     needs_first and "size_t first",
//$     "size_t tokens",
//$     not shape.causal and "size_t end",
//$     shape.full_layers and "size_t window",
//$     shape.mixed and "size_t positions",
//$     "float *restrict y, size_t y_step, float *scratch"
//$ )

//$ local from, at_once = needs_first and " from position `first` on" or "", some and v.queries or "one"
/* Attention of some tokens$(from), $(at_once) at a time: q and y are rows of $(plural(shape.heads, "head")) of $(shape.width). */
static void $(helper)_attend($(parameters))
{
//$ if some then
    const size_t batch = tokens < $(v.queries) ? tokens : $(v.queries);
//$ end
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ for _, item in ipairs(v.buffers.queries) do
//$ local buffer = "scratch + " .. (some and "batch * " or "") .. names.constant(item.name:upper() .. "_AT")
    $(item.storage) *$(item.name) = $(item.storage == "float" and buffer or "(" .. item.storage .. " *) (void *) (" .. buffer .. ")");
//$ end

//$ local factor = shape.unit and "factor" or scale == "1.0f" and "one" or scale
//$ -- Rows of queries: of token `own` of a batch, number `row` of a group; and what lies before the head's elements.
//$ local i = heads and "            " or "        "
//$ local token = some and "(token + own)" or "token"
//$ local position = some and "(first + token + own)" or "(first + token)"
//$ local function query(row) return some and row and "(own * " .. group .. " + row)" or some and "own" or row and "row" or "" end
//$ local function number_of(row)
//$     return heads and row and "head * " .. group .. " + row" or heads and "head" or row and "row" or "0"
//$ end
//$ local function element(row)
//$     local head = heads and row and "(head * " .. group .. " + row)" or heads and "head" or row and "row"
//$     return head and " + " .. times(head, shape.width) or ""
//$ end
    for (size_t token = 0; token < tokens; $(some and "token += " .. v.queries or "++token")) {
//$ if some then
        const size_t count = tokens - token < $(v.queries) ? tokens - token : $(v.queries);
//$ end
//$ if heads then
        for (size_t head = 0; head < $(shape.kv_heads); ++head) {
//$ end
//$ local inner = i
//$ if some then
$(i)for (size_t own = 0; own < count; ++own) {
//$     inner = i .. "    "
//$ end
//$ if shape.rope then
$(include("templates/model/blocks/angles.c", { i = inner, position = position }))
//$ end
//$ local row = group > 1
//$ local each = inner
//$ if row then
$(inner)for (size_t row = 0; row < $(group); ++row) {
//$     each = inner .. "    "
//$ end
$(each)const float *from = q + $(token) * q_step$(element(row));
//$ local to = query(row)
$(each)float *to = queries$(to ~= "" and " + " .. times(to, shape.width) or "");
//$ if shape.unit then
$(each)const float factor = $(scale) * scales[$(number_of(row))];
//$ end
//$ if shape.rope then
$(each)$(helper)_rotate(from, cosine, sine, $(factor), to);
//$ else
//$ over_row(each, shape.width, function(i, at, load, store)
$(i)$(store("to", at, isa.mul(isa.broadcast(factor), load("from", at))));
//$ end)
//$ end
//$ if row then
$(inner)}
//$ end
//$ if some then
$(i)}
//$ end
//$ if words then
//$ local rows = some and (group > 1 and "count * " .. group or "count") or group
$(i)$(rounds[shape.width])_rounded_$(shape.width)(queries, $(shape.width), rounded_queries, $(v.attention.query_step), $(rows));
//$ end
//$ local count = some and "count" or "1"
//$ local given = listed(
//$     words and "rounded_queries" or "queries",
//$     key_text,
//$     value_text,
//$     positioned and "first + token",
//$     count,
//$     not shape.causal and "end",
//$     shape.full_layers and "window",
//$     shape.mixed and "positions",
//$     "sums, scores",
//$     words and "rounded_weights",
//$     "totals"
//$ )
$(i)$(v.names.attention)($(given));
//$ if shape.shaped then
//$ local parts = sum("parts", heads and times("head", 3 * group) or 0)
//$ local end_of = shape.causal and "first + token + " .. count or "end"
$(i)$(helper)_shape($(value_text), $(parts), first + token, $(count), $(end_of), sums);
//$ end
//$ local number = some and (row and "count * " .. group or "count") or tostring(group)
//$ local out = i
//$ if number ~= "1" then
$(i)for (size_t row = 0; row < $(number); ++row) {
//$     out = i .. "    "
//$ end
//$ local of_token = not some and "token" or row and "(token + row / " .. group .. ")" or "(token + row)"
//$ local of_group = row and (some and "row % " .. group or "row")
//$ local head_of = heads and of_group and "(head * " .. group .. " + " .. of_group .. ")" or heads and "head" or of_group
$(out)float *out = y + $(of_token) * y_step$(head_of and " + " .. times(head_of, shape.width) or "");
//$ local sums_at = number ~= "1" and "row * " .. value_pitch or 0
//$ over_row(out, shape.width, function(i, at, load, store)
$(i)$(store("out", at, isa.mul(isa.broadcast("one"), load("sums", sum(sums_at, at)))));
//$ end)
//$ if number ~= "1" then
$(i)}
//$ end
//$ if heads then
        }
//$ end
    }
}
