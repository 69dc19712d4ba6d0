//$ takes prologue, isa, v, lanes, symbol, helper, before, after, reads_input, activates, activation, scale, eps,
//$ takes rounded_rows, cached, cache_type, positioned, copies, layer_weights, lookup_of, tokens_parameters, cached_from, threads, kernels_of,
//$ takes list_of, sums
//$ local macro = names.constant
//$ local layers, heads, group = shape.layers > 1, shape.kv_heads > 1, shape.group
//$ -- Where layer `layer` has its part of `base`.
//$ local function of_layer(base, of) return sum(base, layers and times("layer", macro(of)) or 0) end
//$ local d_in = macro(shape.input == shape.d and "D" or "D_IN")
//$ -- A loop over the `count` elements of a row, which C calls `name`: `value(load)` is what becomes of them, where
//$ -- load(base, at) are elements from base[at] on, and goes to base[at] for the given ones.
//$ local function over_row(i, count, name, base, at, value)
//$     local whole, rest = count // lanes * lanes, count % lanes
//$     local function place(from) return at == "" and from or sum(at, from) end
//$     loop(i, "i", 0, whole, lanes, function(i, k)
//$         local function load(from, offset) return isa.load_unaligned(from, offset == "" and k or sum(offset, k)) end
$(i)$(isa.store_unaligned(base, place(k), value(load)));
//$     end, { to = rest == 0 and name or nil })
//$     if rest > 0 then
//$         local function load_rest(from, offset) return isa.load_partial(from, offset == "" and whole or sum(offset, whole), rest) end
$(i)$(isa.store_partial(base, place(whole), rest, value(load_rest)));
//$     end
//$ end
//$ -- The same for each token of a chunk.
//$ local function over_rows(i, count, ...)
//$     local braces = lanes > 1 and count > lanes and count % lanes > 0
$(i)for (size_t token = 0; token < count; ++token)$(braces and " {" or "")
//$     over_row(i .. "    ", count, ...)
//$     if braces then
$(i)}
//$     end
//$ end
//$ -- What copies a row: without the factor of 1 compilers would call memcpy.
//$ local function copied(value) return isa.mul(isa.broadcast("one"), value) end
//$ lines("", prologue)

#define $(macro("CHUNK")) $(v.chunk) /* tokens that go through a block together */
//$ if v.lookup_floats.many > 0 then
#define $(macro("LOOKUP_FLOATS")) $(v.lookup_floats.many) /* floats of scratch that a lookup FFN works in */
//$ if v.lookup_floats.many > v.lookup_floats.alone then
#define $(macro("LOOKUP_FLOATS_ALONE")) $(v.lookup_floats.alone) /* and for a token alone */
//$ end
//$ end
//$ if sums then
#define $(macro("SUMS_TOKENS")) $(v.sums_tokens) /* tokens of a call that a row of sums is of, if one sequence has them all */
//$ end
//$ if v.of_call_at then
#define $(macro("OF_CALL_AT")) $(v.of_call_at) /* where that lies in scratch which is kept of all tokens of a call, in floats */
//$ end
//$ if v.unpacked_at then
#define $(macro("UNPACKED_AT")) $(v.unpacked_at) /* where weights converted to floats lie in scratch, in floats */
//$ end
//$ local rounds = {}
//$ for _, inputs in ipairs(rounded_rows) do rounds[inputs] = once("templates/model/blocks/round_rows.c", { inputs = inputs }) end
//$ local activated = (activates or sums and sums.activates) and once("templates/math/activation.c", { activation = activation }) .. "_" .. activation
//$ if activates then

//$ if shape.gated then
/* hidden = activation(gate) hidden, [tokens] rows of $(macro("HIDDEN_PITCH")). */
//$ else
/* hidden = activation(hidden), [tokens] rows of $(macro("HIDDEN_PITCH")). */
//$ end
static void $(helper)_activate($(shape.gated and "const float *restrict gate, " or "")float *restrict hidden, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token) {
//$ loop("        ", "i", 0, shape.f, lanes, function(i, at)
//$ if shape.gated then
$(i)const $(isa.vector) x = $(isa.load_unaligned("gate", at));
$(i)const $(isa.vector) open = $(activated)(x);
$(i)const $(isa.vector) value = $(isa.load_unaligned("hidden", at));
$(i)$(isa.store_unaligned("hidden", at, isa.mul("open", "value")));
//$ else
$(i)const $(isa.vector) x = $(isa.load_unaligned("hidden", at));
$(i)$(isa.store_unaligned("hidden", at, activated .. "(x)"));
//$ end
//$ end)
//$ if shape.gated then
        gate += $(macro("HIDDEN_PITCH"));
//$ end
        hidden += $(macro("HIDDEN_PITCH"));
    }
}
//$ end

//$ if shape.rope then
//$ local rotated = 2 * shape.rope.half
/* One head of a query or key, its $(rotated == shape.width and "" or "first " .. rotated .. " ")elements $(shape.rope.interleaved and "2i and 2i + 1" or "i and i + " .. shape.rope.half) rotated by the angles of its position, times `factor`. */
static void $(helper)_rotate(const float *restrict from, const float *restrict cosine, const float *restrict sine, float factor, float *restrict to)
{
    for (size_t i = 0; i < $(macro("ROPE_PAIRS")); ++i) {
//$ local a, b = "i", "i + " .. shape.rope.half
//$ if shape.rope.interleaved then a, b = "2 * i", "2 * i + 1" end
        const float a = factor * from[$(a)], b = factor * from[$(b)];
        to[$(a)] = a * cosine[i] - b * sine[i];
        to[$(b)] = b * cosine[i] + a * sine[i];
    }
//$ if rotated < shape.width then
    for (size_t i = $(rotated); i < $(shape.width); ++i)
        to[i] = factor * from[i];
//$ end
}

//$ end
//$ -- Lines that make `cosine` and `sine` the angles of a position.
//$ local function angles(i, position)
//$     if shape.rope.digits then
$(i)float cosine[$(macro("ROPE_PAIRS"))], sine[$(macro("ROPE_PAIRS"))];
$(i)$(helper)_angles(weights, $(position), cosine, sine);
//$     else
$(i)const float *cosine = weights->cosines + $(position) * $(macro("ROPE_PAIRS"));
$(i)const float *sine = weights->sines + $(position) * $(macro("ROPE_PAIRS"));
//$     end
//$ end
//$ if shape.rope and shape.rope.digits then
/* Cosines and sines of a position's rotary angle: the sum of the angles of its bytes. */
static void $(helper)_angles(const $(names.weights) *weights, size_t position, float *restrict cosine, float *restrict sine)
{
    const float *cosines = weights->cosines + position % 256 * $(macro("ROPE_PAIRS"));
    const float *sines = weights->sines + position % 256 * $(macro("ROPE_PAIRS"));
    const float one = $hidden(1.0f);

    for (size_t i = 0; i < $(macro("ROPE_PAIRS")); ++i) {
        cosine[i] = one * cosines[i];
        sine[i] = one * sines[i];
    }
    for (size_t at = 256, rest = position / 256; rest > 0; at += 256, rest /= 256) {
        cosines = weights->cosines + (at + rest % 256) * $(macro("ROPE_PAIRS"));
        sines = weights->sines + (at + rest % 256) * $(macro("ROPE_PAIRS"));
        for (size_t i = 0; i < $(macro("ROPE_PAIRS")); ++i) {
            const float a = cosine[i], b = sine[i];
            cosine[i] = a * cosines[i] - b * sines[i];
            sine[i] = b * cosines[i] + a * sines[i];
        }
    }
}

//$ end
//$ local words = shape.cache.words
//$ -- A loop over the vectors of a value's elements, or what it does once; `one` prints that for element `k`.
//$ local function over_elements(one)
//$     loop("    ", "i", 0, shape.cache.pitch, lanes, one, { to = macro("VALUE_PITCH") })
//$ end
//$ if cache_type.name == "f16" then
/* Rounds one head of a key or value to IEEE half precision, $(macro("VALUE_PITCH")) elements. */
static void $(helper)_round_head(const float *restrict from, uint16_t *restrict to)
{
    const $(isa.vector) lowest = $(isa.broadcast("-65504.0f"));
//$ over_elements(function(i, k)
$(i)const $(isa.vector) x = $(isa.load_unaligned("from", k));
$(i)const $(isa.vector) above = $(isa.max("lowest", "x"));
$(i)const $(isa.vector) negative = $(isa.sub(isa.zero(), "above"));
$(i)const $(isa.vector) within = $(isa.max("lowest", "negative"));
$(i)const $(isa.vector) rounded = $(isa.sub(isa.zero(), "within"));
$(i)$(isa.store_f16("to", k, "rounded"));
//$ end)
}

//$ elseif cache_type.scaled and not words then
/* Rounds one head of a key or value to integers, $(macro("VALUE_PITCH")) elements; returns their unit, their
   largest magnitude / 127. NaN and infinity make it NaN. */
static float $(helper)_round_head(const float *restrict from, int8_t *restrict to)
{
    $(isa.vector) max = $(isa.zero()), all = $(isa.zero());
//$ over_elements(function(i, k)
$(i)const $(isa.vector) magnitude = $(isa.abs(isa.load_unaligned("from", k)));
$(i)max = $(isa.max("max", "magnitude"));
$(i)all = $(isa.add("all", "magnitude"));
//$ end)
    float largest, total;
    {
//$ local steps, result = isa.reduce("max", "max")
//$ declare_constants("        ", steps)
        largest = $(result);
    }
    {
//$ local steps, result = isa.reduce("all", "add")
//$ declare_constants("        ", steps)
        total = $(result);
    }
    const float factor = largest > 1e-30f ? 127.0f / largest : 0.0f;
    const $(isa.vector) inverse = $(isa.broadcast("factor"));
//$ over_elements(function(i, k)
$(i)const $(isa.vector) units = $(isa.mul(isa.load_unaligned("from", k), "inverse"));
$(i)$(isa.store_i8("to", k, "units"));
//$ end)
    return largest * (1.0f / 127.0f) + 0.0f * total;
}

//$ end
//$ local plain = cache_type.plain
//$ -- Keys go to their tile by whole vectors of positions where they are neither rotated nor rounded.
//$ local turns = lanes > 1 and plain and not shape.rope and shape.width >= lanes
//$ if turns then
//$ local whole = shape.width // lanes * lanes
/* One head of the keys of $(lanes) tokens, `k_step` apart, to positions of a tile that follow each other: rows become columns. */
static void $(helper)_turn_keys(const float *restrict k, size_t k_step, float *restrict key)
{
//$ loop("    ", "i", 0, whole, lanes, function(i, k)
//$ local rows = {}
//$ for r = 0, lanes - 1 do
//$ rows[r + 1] = "row" .. r
$(i)const $(isa.vector) row$(r) = $(isa.load_unaligned("k", r == 0 and k or sum(times("k_step", r), k)));
//$ end
//$ local code, out = isa.transpose(rows)
//$ for _, step in ipairs(code) do
$(i)const $(isa.vector) $(step.name) = $(step.value);
//$ end
//$ -- Where column `c` goes.
//$ local function place(c)
//$     return times(sum(k == "i" and k or 0, c), macro("TILE_POSITIONS"))
//$ end
//$ for c = 0, lanes - 1 do
$(i)$(isa.store_unaligned("key", place(c), out[c + 1]));
//$ end
//$ end)
//$ if whole < shape.width then
    for (size_t i = $(whole); i < $(shape.width); ++i)
        for (size_t token = 0; token < $(lanes); ++token)
            key[i * $(macro("TILE_POSITIONS")) + token] = k[token * k_step + i];
//$ end
}

//$ end
/* Puts the keys and values of some tokens into the cache of a layer, from position `first` on. */
static void $(helper)_append($(shape.rope and "const " .. names.weights .. " *weights, " or "")const float *restrict k, size_t k_step, const float *restrict v, size_t v_step, $(cached("%s *restrict %s")), size_t first, size_t tokens)
{
//$ if not words then
    const float one = $hidden(1.0f)$(shape.cache.pitch > shape.width + 1 and ", zero = $hidden(0.0f)" or "");
//$ elseif shape.rope then
    const float one = $hidden(1.0f);
//$ end
//$ if turns then
    size_t turned = 0; /* tokens whose keys are there already */
//$ end

    for (size_t token = 0; token < tokens; ++token) {
        const size_t position = first + token$(shape.ring and ", place = position % " .. macro("CACHE_POSITIONS") or "");
        const float *token_k = k + token * k_step, *token_v = v + token * v_step;
//$ local place = shape.ring and "place" or "position"
//$ if shape.rope then
//$ angles("        ", "position")
//$ end
//$ local i = heads and "            " or "        "
//$ -- Element 0 of a head of k and v, and of a head in a part of the cache.
//$ local from = heads and times("head", shape.width) or 0
//$ local function head_of(name) return heads and times("head", macro(name:upper() .. "_HEAD")) or 0 end
//$ local function element(name, i) return name .. "[" .. sum(from, i) .. "]" end
//$ local function in_cache(name, rest) return sum(name, head_of(name), rest) end
//$ local function in_scales(name) return name .. "[" .. sum(head_of(name), place) .. "]" end
//$ local function fill(name)
//$     if shape.cache.pitch == shape.width then return end
//$     if shape.cache.pitch == shape.width + 1 then
$(i)$(name)[$(shape.width)] = 0.0f;
//$     else
$(i)for (size_t i = $(shape.width); i < $(macro("VALUE_PITCH")); ++i)
$(i)    $(name)[i] = zero;
//$     end
//$ end
//$ local tile_place = place .. " / " .. macro("TILE_POSITIONS") .. " * " .. macro("KEY_TILE") .. " + " .. place .. " % " .. macro("TILE_POSITIONS")
//$ if turns then
        if (token >= turned && $(place) % $(lanes) == 0 && tokens - token >= $(lanes)) {
//$ if heads then
            for (size_t head = 0; head < $(shape.kv_heads); ++head)
                $(helper)_turn_keys($(sum("token_k", from)), k_step, $(in_cache("keys", tile_place)));
//$ else
            $(helper)_turn_keys(token_k, k_step, $(in_cache("keys", tile_place)));
//$ end
            turned = token + $(lanes);
        }
//$ end
//$ if heads then
        for (size_t head = 0; head < $(shape.kv_heads); ++head) {
//$ end
//$ if words then
//$ local pitch, count = v.attention.query_step, shape.cache.key_step
//$ -- The line that rounds a head to words.
//$ local function round(name, scales)
//$     if words.integers then
$(i)$(in_scales(scales)) = $(rounds[shape.width])_round_block_$(shape.width)($(name), words, &start);
//$     else
$(i)$(rounds[shape.width])_rounded_$(shape.width)($(name), $(shape.width), words, $(pitch), 1);
//$     end
//$ end
$(i)uint32_t *key = $(in_cache("keys", tile_place));
$(i)unsigned char *value = (unsigned char *) ($(in_cache("values", place .. " / " .. words.rows .. " * " .. macro("VALUE_PITCH")))) + $(place) % $(words.rows)$(words.rows < 4 and " * " .. 4 // words.rows or "");
$(i)uint32_t words[$(pitch)]$(words.integers and ", start; /* which is for queries only */" or ";")
//$ if shape.rope then
$(i)float all[$(shape.width)];
$(i)$(helper)_rotate($(sum("token_k", from)), cosine, sine, one, all);
//$ end
//$ round(shape.rope and "all" or sum("token_k", from), "key_scales")
//$ -- Bytes of a key are words.offset larger: added to each without a carry.
//$ local raised = words.offset == 128 and "words[i] ^ 0x80808080u" or "((words[i] & 0x7f7f7f7fu) + 0x40404040u) & 0x7f7f7f7fu"
$(i)for (size_t i = 0; i < $(count); ++i)
$(i)    key[i * $(macro("TILE_POSITIONS"))] = $(words.integers and raised or "words[i]");
//$ round(sum("token_v", from), "value_scales")
//$ -- A word has as many elements of a value as a word of the cache has positions.
//$ local whole, bytes = shape.width // words.rows, 4 // words.rows
//$ loop(i, "i", 0, whole, 1, function(i, word)
//$ for k = 0, 3 do
$(i)value[$(sum(times(4 * words.rows, word), k // bytes * 4 + k % bytes))] = (unsigned char) $(k == 0 and "words[" .. word .. "]" or "(words[" .. word .. "] >> " .. 8 * k .. ")");
//$ end
//$ end)
//$ for k = 0, shape.width % words.rows * bytes - 1 do
$(i)value[$(4 * words.rows * whole + k // bytes * 4 + k % bytes)] = (unsigned char) $(k == 0 and "words[" .. whole .. "]" or "(words[" .. whole .. "] >> " .. 8 * k .. ")");
//$ end
//$ if shape.cache.pitch > shape.width then
$(i)for (size_t i = $(shape.width); i < $(macro("VALUE_PITCH")); ++i)
//$ if words.rows == 4 then
$(i)    value[4 * i] = 0;
//$ else
$(i)    value[4 * i] = value[4 * i + 1] = 0;
//$ end
//$ end
//$ else
$(i)$(cache_type.storage) *key = $(in_cache("keys", tile_place));
$(i)$(cache_type.storage) *value = $(in_cache("values", place .. " * " .. macro("VALUE_PITCH")));
//$ if not plain then
$(i)float all[$(macro("VALUE_PITCH"))];
$(i)$(cache_type.storage) rounded[$(macro("VALUE_PITCH"))];
//$ fill("all")
//$ elseif shape.rope then
$(i)float all[$(shape.width)];
//$ end
//$ if shape.rope then
$(i)$(helper)_rotate($(sum("token_k", from)), cosine, sine, one, all);
//$ elseif not plain then
$(i)for (size_t i = 0; i < $(shape.width); ++i)
$(i)    all[i] = one * $(element("token_k", "i"));
//$ end
//$ if cache_type.scaled then
$(i)$(in_scales("key_scales")) = $(helper)_round_head(all, rounded);
//$ elseif not plain then
$(i)$(helper)_round_head(all, rounded);
//$ end
$(i)for (size_t i = 0; $(turns and "token >= turned && " or "")i < $(shape.width); ++i)
$(i)    key[i * $(macro("TILE_POSITIONS"))] = $(not plain and "rounded[i]" or shape.rope and "all[i]" or element("token_k", "i"));
//$ over_row(i, shape.width, tostring(shape.width), plain and "value" or "all", "", function(load) return copied(load("token_v", from)) end)
//$ if cache_type.scaled then
$(i)$(in_scales("value_scales")) = $(helper)_round_head(all, value);
//$ elseif not plain then
$(i)$(helper)_round_head(all, value);
//$ else
//$ fill("value")
//$ end
//$ end
//$ if heads then
        }
//$ end
    }
}

//$ if shape.shaped then
/* Shaped attention of a group of heads: from y, the values that a softmax mixes, to alpha v + beta y - gamma mean, row by row of y;
   mean is that of all values that a token attends to. value: of the head, from position 0 on; shape: alpha, beta and gamma of each head. */
static void $(helper)_shape(const float *restrict value, const float *restrict shape, size_t first, size_t tokens, size_t end, float *restrict y)
{
    float total[$(macro("VALUE_PITCH"))];
    const float zero = $hidden(0.0f);
    size_t seen = 0;

    for (size_t i = 0; i < $(macro("VALUE_PITCH")); ++i)
        total[i] = zero;
    for (size_t token = 0; token < tokens; ++token) {
//$ if shape.causal then
        const size_t last = first + token + 1 < end ? first + token + 1 : end;
//$ else
        const size_t last = end;
//$ end
        for (; seen < last; ++seen)
//$ loop("            ", "i", 0, shape.cache.pitch, lanes, function(i, k)
//$ local value = isa.load_unaligned("value", sum("seen * " .. macro("VALUE_PITCH"), k))
$(i)$(isa.store_unaligned("total", k, isa.add(isa.load_unaligned("total", k), value)));
//$ end, { to = macro("VALUE_PITCH") })
        for (size_t row = 0; row < $(group); ++row, y += $(macro("VALUE_PITCH"))) {
            const float *own = value + (first + token) * $(macro("VALUE_PITCH")), *parts = shape + row * 3;
            const float share = parts[2] / (float) last;
            for (size_t i = 0; i < $(macro("VALUE_PITCH")); ++i)
                y[i] = parts[0] * own[i] + parts[1] * y[i] - share * total[i];
        }
    }
}

//$ end
//$ local needs_first = positioned or shape.rope or shape.shaped
//$ local function of_head(name) return sum(name, heads and times("head", macro(name:upper() .. "_HEAD")) or 0) end
//$ local key_text = of_head("keys") .. (cache_type.scaled and ", " .. of_head("key_scales") or "")
//$ local value_text = of_head("values") .. (cache_type.scaled and ", " .. of_head("value_scales") or "")
//$ local some = v.queries > 1
/* Attention of some tokens$(needs_first and " from position `first` on" or "")$(some and ", " .. v.queries .. " at a time" or ", one at a time"): q and y are rows of $(plural(shape.heads, "head")) of $(shape.width). */
static void $(helper)_attend($(shape.rope and "const " .. names.weights .. " *weights, " or "")$(shape.shaped and "const float *parts, " or "")const float *restrict q, size_t q_step, $(cached("const %s *%s")), $(needs_first and "size_t first, " or "")size_t tokens, $(shape.causal and "" or "size_t end, ")float *restrict y, size_t y_step, float *scratch)
{
//$ if some then
    const size_t batch = tokens < $(v.queries) ? tokens : $(v.queries);
//$ end
    const float one = $hidden(1.0f);
//$ for _, item in ipairs(v.buffers.queries) do
//$ local buffer = "scratch + " .. (some and "batch * " or "") .. macro(item.name:upper() .. "_AT")
    $(item.storage) *$(item.name) = $(item.storage == "float" and buffer or "(" .. item.storage .. " *) (void *) (" .. buffer .. ")");
//$ end

//$ local factor = scale == "1.0f" and "one" or scale
//$ -- Rows of queries: of token `own` of a batch, number `row` of a group; and what lies before the head's elements.
//$ local i = heads and "            " or "        "
//$ local token = some and "(token + own)" or "token"
//$ local position = some and "(first + token + own)" or "(first + token)"
//$ local function query(row) return some and row and "(own * " .. group .. " + row)" or some and "own" or row and "row" or "" end
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
//$ angles(inner, position)
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
//$ if shape.rope then
$(each)$(helper)_rotate(from, cosine, sine, $(factor), to);
//$ else
//$ over_row(each, shape.width, tostring(shape.width), "to", "", function(load) return factor == "one" and copied(load("from", "")) or isa.mul(isa.broadcast(factor), load("from", "")) end)
//$ end
//$ if row then
$(inner)}
//$ end
//$ if some then
$(i)}
//$ end
//$ if words then
$(i)$(rounds[shape.width])_rounded_$(shape.width)(queries, $(shape.width), rounded_queries, $(v.attention.query_step), $(some and (group > 1 and "count * " .. group or "count") or group));
//$ end
$(i)$(v.names.attention)($(words and "rounded_queries" or "queries"), $(key_text), $(value_text), $(positioned and "first + token, " or "")$(some and "count" or "1"), $(shape.causal and "" or "end, ")sums, scores, $(words and "rounded_weights, " or "")totals);
//$ if shape.shaped then
$(i)$(helper)_shape($(value_text), $(heads and (group > 1 and "parts + head * " .. 3 * group or "parts + head * 3") or "parts"), first + token, $(some and "count" or "1"), $(shape.causal and "first + token + " .. (some and "count" or "1") or "end"), sums);
//$ end
//$ local number = some and (row and "count * " .. group or "count") or tostring(group)
//$ local out = i
//$ if number ~= "1" then
$(i)for (size_t row = 0; row < $(number); ++row) {
//$     out = i .. "    "
//$ end
//$ local of_token = not some and "token" or row and "(token + row / " .. group .. ")" or "(token + row)"
//$ local of_group = row and (some and "row % " .. group or "row")
//$ local head_of = heads and of_group and "(head * " .. group .. " + " .. of_group .. ")" or heads and "head" or of_group and (some and of_group or "row")
$(out)float *out = y + $(of_token) * y_step$(head_of and " + " .. times(head_of, shape.width) or "");
//$ over_row(out, shape.width, tostring(shape.width), "out", "", function(load) return copied(load("sums", number ~= "1" and "row * " .. macro("VALUE_PITCH") or "")) end)
//$ if number ~= "1" then
$(i)}
//$ end
//$ if heads then
        }
//$ end
    }
}
//$ local widths = shape.norm and shape.norm_widths[1] ~= shape.norm_widths[2]
//$ local norm = shape.norm and once("templates/math/norm.c", { name = "norm", layernorm = shape.norm.kind == "layernorm", factors = false, more = (widths and "size_t width, " or "") .. "size_t tokens", rows = "tokens", width = widths and "width" or shape.d, eps = eps }) .. "_norm"
//$ local function step_of(name) 
//$     if name == "in" then return shape.delivered and "in_step" or d_in end
//$     return macro(name:upper() .. "_PITCH")
//$ end
//$ if shape.sequences then

/* Tokens of a chunk that follow each other in one sequence. */
typedef struct $(helper)_span {
    size_t sequence; /* whose tokens they are */
    size_t tokens;   /* of all of it */
    size_t base;     /* the position of the cache at which it starts */
    size_t first;    /* the position of the run in it */
    size_t token;    /* of the chunk, at which the run starts */
    size_t count;    /* its tokens */
} $(helper)_span;

/* What stands before the first run of a chunk. Not an initialiser: small targets would call memset for it. */
static $(helper)_span $(helper)_before(void)
{
    $(helper)_span run;

    run.sequence = 0;
    run.tokens = 0;
    run.base = 0;
    run.first = 0;
    run.token = 0;
    run.count = 0;
    return run;
}

/* Goes on to the next run of the chunk of `count` tokens from token `at` on; 0: there is none. */
static int $(helper)_next(const size_t *offsets, size_t at, size_t count, $(helper)_span *run)
{
    const size_t token = run->token + run->count, number = offsets[0] + at + token;

    if (token == count)
        return 0;
    for (;; ++run->sequence) {
        run->tokens = offsets[run->sequence + 1] - offsets[run->sequence];
        if (offsets[run->sequence + 1] > number)
            break;
        run->base += (run->tokens + $(macro("TILE_POSITIONS")) - 1) / $(macro("TILE_POSITIONS")) * $(macro("TILE_POSITIONS"));
    }
    run->first = number - offsets[run->sequence];
    run->token = token;
    run->count = run->tokens - run->first < count - token ? run->tokens - run->first : count - token;
    return 1;
}
//$ end
//$ for _, of in ipairs(sums and { { name = "rows", width = shape.d }, sums.hidden and { name = "hidden", width = shape.f, activates = sums.activates } or nil } or {}) do
//$ local whole, rest = of.width // lanes * lanes, of.width % lanes

/* sums[$(of.width)] of $(of.activates and "the activations of " or "")the rows x[rows], x_step apart. */
static void $(helper)_sum_$(of.name)(const float *restrict x, size_t x_step, size_t rows, float *restrict sums)
{
//$ local function sum_of(i, at, load, store)
$(i)$(isa.vector) total = $(isa.zero());
$(i)for (size_t row = 0; row < rows; ++row) {
$(i)    const $(isa.vector) value = $(load("x", sum("row * x_step", at)));
$(i)    total = $(isa.add("total", of.activates and activated .. "(value)" or "value"));
$(i)}
$(i)$(store("sums", at, "total"));
//$ end
//$ loop("    ", "i", 0, whole, lanes, function(i, at)
//$ sum_of(i, at, isa.load_unaligned, isa.store_unaligned)
//$ end, { block = rest > 0 })
//$ if rest > 0 then
//$ sum_of("    ", whole, function(base, at) return isa.load_partial(base, at, rest) end, function(base, at, value) return isa.store_partial(base, at, rest, value) end)
//$ end
}
//$ end
//$ local attention_scratch = "buffers + chunk * " .. macro("TOKEN_FLOATS")
//$ local function input(name, at) return sum(name, at > 0 and macro(at == shape.q and "IN_K" or "IN_V") or 0) end
//$ local parts = cached("%.0s%s")
//$ local shape_text = shape.shaped and of_layer("weights->attention_shape", "ATTENTION_SHAPE_LAYER") .. ", " or ""
//$ local function of_run(name) return name .. " + run.token * " .. step_of(name) .. ", " .. step_of(name) end
//$ -- The elements of a token that a step writes.
//$ local function width_of(step)
//$     if not step.width or step.width == shape.d then return macro("D") end
//$     return step.width == shape.input and d_in or step.width
//$ end
//$ local function one(step, i)
//$     if step.op == "norm" then
$(i)$(norm)($(step.from), $(step_of(step.from)), $(of_layer("weights->" .. step.which .. "_norm", "D")), $(shape.norm.kind == "layernorm" and of_layer("weights->" .. step.which .. "_norm_offset", "D") .. ", " or "")$(step.to), $(step_of(step.to)), $(widths and width_of(step) .. ", " or "")count);
//$     elseif step.op == "copy" then
//$ over_rows(i, step.width or shape.d, width_of(step), step.to, "token * " .. step_of(step.to), function(load) return copied(load(step.from, "token * " .. step_of(step.from))) end)
//$     elseif step.op == "product" then
//$         local map = step.map
$(i)/* $(map.letter): $(plural(map.inputs, "input")), $(plural(map.outputs, "output")) */
$(i)$(v.names.product)($(step.from), $(step_of(step.from)), $(of_layer("weights->" .. map.field, map.letter .. "_LAYER")), $(shape.type.scaled and of_layer("weights->" .. map.field .. "_scales", map.letter .. "_BIAS_LAYER") .. ", " or "")$(of_layer("weights->" .. map.field .. "_bias", map.letter .. "_BIAS_LAYER")), $(step.to), $(step_of(step.to)), $(macro(map.letter .. "_INPUTS")), $(macro(map.letter .. "_PANELS")), count$(v.unpacked_at and ", count > 1 ? (float *) scratch + " .. macro("UNPACKED_AT") .. " : NULL" or ""));
//$     elseif step.op == "round" then
$(i)$(rounds[step.inputs])_rounded_$(step.inputs)($(step.from), $(step_of(step.from)), $(step.rounded), $(step_of(step.rounded)), count);
//$     elseif step.op == "append" and shape.sequences then
$(i)for ($(helper)_span run = $(helper)_before(); $(helper)_next(offsets, at, count, &run);)
$(i)    $(helper)_append($(shape.rope and "weights, " or "")$(input(step.k, step.k_at)) + run.token * $(step_of(step.k)), $(step_of(step.k)), $(input(step.v, step.v_at)) + run.token * $(step_of(step.v)), $(step_of(step.v)), $(cached_from("run.base")), run.first, run.count);
//$     elseif step.op == "append" then
$(i)$(helper)_append($(shape.rope and "weights, " or "")$(input(step.k, step.k_at)), $(step_of(step.k)), $(input(step.v, step.v_at)), $(step_of(step.v)), $(parts), first + at, count);
//$     elseif step.op == "attend" and step.k then
$(i)for (size_t token = 0; token < count; token += $(v.queries)) {
$(i)    const size_t some = count - token < $(v.queries) ? count - token : $(v.queries);
$(i)    $(helper)_append($(shape.rope and "weights, " or "")$(input(step.k, step.k_at)) + token * $(step_of(step.k)), $(step_of(step.k)), $(input(step.v, step.v_at)) + token * $(step_of(step.v)), $(step_of(step.v)), $(parts), first + at + token, some);
$(i)    $(helper)_attend($(shape.rope and "weights, " or "")$(shape_text)$(step.from) + token * $(step_of(step.from)), $(step_of(step.from)), $(parts), first + at + token, some, $(step.to) + token * $(step_of(step.to)), $(step_of(step.to)), $(attention_scratch));
$(i)}
//$     elseif step.op == "attend" and shape.sequences then
$(i)for ($(helper)_span run = $(helper)_before(); $(helper)_next(offsets, at, count, &run);)
$(i)    $(helper)_attend($(shape.rope and "weights, " or "")$(shape_text)$(of_run(step.from)), $(cached_from("run.base")), $((positioned or shape.rope or shape.shaped) and "run.first, " or "")run.count, run.tokens, $(of_run(step.to)), $(attention_scratch));
//$     elseif step.op == "attend" then
$(i)$(helper)_attend($(shape.rope and "weights, " or "")$(shape_text)$(step.from), $(step_of(step.from)), $(parts), $((positioned or shape.rope or shape.shaped) and "first + at, " or "")count, $(shape.causal and "" or "tokens, ")$(step.to), $(step_of(step.to)), $(attention_scratch));
//$     elseif step.op == "lookup" then
//$         for n, part in ipairs(step.parts) do
//$             local indent = i .. "    "
//$             if #step.parts == 1 then
//$                 indent = i
//$             else
$(i)$(n == 1 and "if (layer < " .. part.count .. ") {" or "} else {")
//$             end
$(indent)/* LookupFFN: $(plural(part.plan.shape.h, "table")), rows of $(part.plan.shape.d_out)$(part.plan.shape.d_out > shape.d and ", the next block's q, k and v" or "") */
$(indent)const $(part.plan.names.weights) layer_weights = {
//$             for _, found in ipairs(layer_weights(part)) do
$(indent)    $(found),
//$             end
$(indent)};
//$             local kernels = kernels_of(part)
//$             if kernels then
$(indent)if (together <= $(kernels.threshold))
$(indent)    $(kernels.few)(&layer_weights, $(step.from), $(step.to), count, scratch);
$(indent)else
$(indent)    $(kernels.many)(&layer_weights, $(step.from), $(step.to), count, scratch);
//$             else
$(indent)$(lookup_of(part))(&layer_weights, $(step.from), $(step.to), count, scratch);
//$             end
//$             if n > 1 then
$(i)}
//$             end
//$         end
//$     elseif step.op == "activate" and step.rounded then
//$ local function token_of(name) return sum(name, times("token", step_of(name))) end
$(i)for (size_t token = 0; token < count; ++token) {
$(i)    $(helper)_activate($(step.gate and token_of(step.gate) .. ", " or "")$(token_of(step.to)), 1);
$(i)    $(rounds[step.inputs])_rounded_$(step.inputs)($(token_of(step.to)), $(step_of(step.to)), $(token_of(step.rounded)), $(step_of(step.rounded)), 1);
$(i)}
//$     elseif step.op == "activate" then
$(i)$(helper)_activate($(step.gate and step.gate .. ", " or "")$(step.to), count);
//$     elseif step.op == "add" then
//$ local a_at = sum(times("token", step_of(step.a)), step.a == "in" and shape.projected and macro "IN_SKIPPED" or 0)
//$ over_rows(i, shape.d, macro("D"), step.to, "token * " .. step_of(step.to), function(load) return isa.add(load(step.a, a_at), load(step.b, "token * " .. step_of(step.b))) end)
//$     elseif step.op == "sum" then
$(i)for ($(helper)_span run = $(helper)_before(); $(helper)_next(offsets, at, count, &run);)
$(i)    for (size_t done = 0, some; done < run.count; done += some) {
$(i)        const size_t token = run.token + done, before = (at + token) % $(macro("SUMS_TOKENS"));
$(i)        float *row = y + (run.sequence + (at + token) / $(macro("SUMS_TOKENS"))) * $(macro("SUMS_PITCH"));

$(i)        some = run.count - done < $(macro("SUMS_TOKENS")) - before ? run.count - done : $(macro("SUMS_TOKENS")) - before;
$(i)        $(helper)_sum_rows($(step.a) + token * $(step_of(step.a)), $(step_of(step.a)), some, row);
//$ if step.from then
$(i)        $(helper)_sum_hidden($(step.from) + token * $(step_of(step.from)), $(step_of(step.from)), some, row + $(macro("SUMS_HIDDEN_AT")));
//$ end
$(i)    }
//$     elseif step.op == "output" then
//$ local function output(load)
//$     if step.from then return copied(load(step.from, "token * " .. step_of(step.from))) end
//$     return isa.add(load(step.a, "token * " .. step_of(step.a)), load(step.b, "token * " .. step_of(step.b)))
//$ end
//$ over_rows(i, shape.d, macro("D"), "y", "(at + token) * " .. macro("D"), output)
//$     end
//$ end

//$ local floats = v.lookup_floats
//$ -- Where buffers lie in scratch: those whose names `used` has, nil for all.
//$ local function declare_buffers(used)
//$ if floats.many > floats.alone then
    float *buffers = (float *) scratch + (chunk == 1 ? $(macro("LOOKUP_FLOATS_ALONE")) : $(macro("LOOKUP_FLOATS")));
//$ elseif floats.many > 0 then
    float *buffers = (float *) scratch + $(macro("LOOKUP_FLOATS"));
//$ else
    float *buffers = (float *) scratch;
//$ end
//$ for _, item in ipairs(v.buffers.tokens) do
//$ local at = "buffers + chunk * " .. macro(item.name:upper() .. "_AT")
//$ if not used or used[item.name] then
    $(item.storage) *$(item.name) = $(item.storage == "float" and at or "(" .. item.storage .. " *) (void *) (" .. at .. ")");
//$ end
//$ end
//$ end
//$ -- What is kept of all tokens of a call, from the chunk's first one on, if `used` has it.
//$ local of_call = v.buffers.of_call
//$ local function declare_of_call(i, used)
//$     if of_call and (not used or used[of_call.name]) then
$(i)float *$(of_call.name) = (float *) scratch + $(macro("OF_CALL_AT")) + at * $(macro(of_call.name:upper() .. "_PITCH"));
//$     end
//$ end
//$ -- The parts of the cache of a layer, from `base` on.
//$ local function parts_of_cache(i, base)
//$     for _, part in ipairs(shape.cache.parts) do
$(i)$(part.storage) *$(part.name) = ($(part.storage) *) (void *) $(part.at == 0 and base or "(" .. base .. " + " .. macro(part.name:upper() .. "_AT") .. ")");
//$     end
//$ end
//$ local which = layers and "All " .. shape.layers .. " blocks" or "The block"
//$ if threads then
//$ for _, phase in ipairs(v.phases) do
//$ local needs = phase.needs
//$ local takes = {}
//$ local function take(wanted, text) if wanted then takes[#takes + 1] = text end end
//$ take(needs.weights, "const " .. names.weights .. " *weights")
//$ take(needs.layer, "size_t layer")
//$ take(needs.cache, "unsigned char *cache")
//$ take(needs.x, "const float *x")
//$ take(needs.y, "float *y")
//$ take(needs.positions, shape.sequences and "const size_t *offsets" or "size_t first")
//$ take(needs.together, shape.sequences and "size_t tokens" or "size_t together")
//$ take(true, shape.sequences and "size_t from" or "size_t at")
//$ take(true, "size_t end")
//$ take(needs.memory, "size_t chunk")
//$ take(needs.memory, "void *scratch")
/* $(phase.doc), of tokens number $(shape.sequences and "`from`" or "`at`") to `end` - 1 of a call. */
static void $(helper)_$(phase.word)($(list_of(takes)))
{
//$ if needs.memory then declare_buffers(needs.buffers) end
//$ if needs.cache then parts_of_cache("    ", "cache") end
//$ if needs.one then
    const float one = $hidden(1.0f);
//$ end
//$ local i = shape.sequences and "        " or "    "
//$ if shape.sequences then

    for (size_t at = from, next; at < end; at = next) {
        const size_t chunk_end = at - at % $(macro("CHUNK")) + $(macro("CHUNK"));
        next = chunk_end < end ? chunk_end : end;
        const size_t count = next - at;
//$ if needs.together then
        const size_t together = chunk_end < tokens ? $(macro("CHUNK")) : tokens - (chunk_end - $(macro("CHUNK")));
//$ end
//$ else
    const size_t count = end - at;
//$ end
//$ declare_of_call(i, needs.buffers)
//$ if needs.x then
$(i)const float *in = x + at * $(d_in);
//$ end

//$ for _, step in ipairs(phase.steps) do one(step, i) end
//$ if shape.sequences then
    }
//$ end
}

//$ end
//$ end
//$ if shape.sequences then
/* $(which) for sequences of tokens, sequence s from token offsets[s] - offsets[0] of x$(sums and "" or " and y") on, $(v.chunk) tokens at a time$(sums and "; y: the sums over them" or ""); see $(names.header). */
//$ else
/* $(which) for `tokens` tokens from position `first` on, $(v.chunk) at a time; see $(names.header). */
//$ end
void $(symbol)(const $(names.weights) *weights, unsigned char *cache, const float *x, float *y, $(tokens_parameters), void *scratch)
{
//$ if shape.sequences then
    const size_t tokens = offsets[sequences] - offsets[0];
//$ end
    const size_t chunk = tokens < $(macro("CHUNK")) ? tokens : $(macro("CHUNK"));
//$ if copies and not threads then
    const float one = $hidden(1.0f);
//$ end
//$ local own_cache = layers and not shape.sequences
//$ local function cache_of_layer(i)
//$     if own_cache then
$(i)unsigned char *layer_cache = cache + layer * $(macro("CACHE_LAYER_BYTES"));
//$     end
//$ end
//$ if threads then
//$ local calls = {}
//$ for n, phase in ipairs(v.phases) do
//$     local needs, list = phase.needs, {}
//$     local function give(wanted, text) if wanted then list[#list + 1] = text end end
//$     give(needs.weights, "weights")
//$     give(needs.layer, "layer")
//$     give(needs.cache, own_cache and "layer_cache" or "cache")
//$     give(needs.x, "x")
//$     give(needs.y, "y")
//$     give(needs.positions, shape.sequences and "offsets" or "first")
//$     give(needs.together, shape.sequences and "tokens" or "count")
//$     calls[n] = function(from, to, memory)
//$         return helper .. "_" .. phase.word .. "(" .. list_of(list) .. (#list > 0 and ", " or "") .. from .. ", " .. to .. (needs.memory and ", chunk, " .. memory or "") .. ");"
//$     end
//$ end
//$ local count = shape.sequences and "tokens" or "count"
//$ local function ranges(i)
#ifdef $(names.macro("OPENMP"))
//$ local part = v.part.few and "const size_t part = " .. count .. " <= " .. v.part.threshold .. " ? " .. v.part.few .. " : " .. v.part.many or "const size_t part = " .. v.part.many
$(i)$(part); /* tokens that are worth a thread */
$(i)const size_t ranges = $(threads.ranges)($(count), $(macro("CHUNK")), part);
#endif
//$ end
//$ local function range_at(n)
//$     return (shape.sequences and "" or "at + ") .. threads.range .. "(" .. count .. ", " .. macro("CHUNK") .. ", part, " .. n .. ", ranges)"
//$ end
//$ local function run_phases(i)
#ifdef $(names.macro("OPENMP"))
//$     for n, phase in ipairs(v.phases) do
//$         if not phase.alone then
#pragma omp parallel for num_threads((int) ranges) schedule(static, 1)
//$         end
$(i)for (size_t range = 0; range < ranges; ++range)
$(i)    $(calls[n](range_at "range", range_at "range + 1", "(unsigned char *) scratch + range * " .. names.macro("THREAD_SCRATCH_BYTES")))
//$     end
#else
//$     for n in ipairs(v.phases) do
$(i)$(calls[n](shape.sequences and "0" or "at", shape.sequences and "tokens" or "at + count", "scratch"))
//$     end
#endif
//$ end
//$ if shape.sequences then ranges("    ") end

//$ local i = "    "
//$ if layers then
    for (size_t layer = 0; layer < $(shape.layers); ++layer, x = y) {
//$ i = "        "
//$ end
//$ cache_of_layer(i)
//$ if shape.sequences then
//$ run_phases(i)
//$ else
$(i)for (size_t at = 0; at < tokens; at += $(macro("CHUNK"))) {
$(i)    const size_t count = tokens - at < $(macro("CHUNK")) ? tokens - at : $(macro("CHUNK"));
//$ ranges(i .. "    ")
//$ run_phases(i .. "    ")
$(i)}
//$ end
//$ if layers then
    }
//$ end
}
//$ else
//$ declare_buffers()

//$ local function open_chunk(i)
$(i)for (size_t at = 0; at < tokens; at += $(macro("CHUNK"))) {
$(i)    const size_t count = tokens - at < $(macro("CHUNK")) ? tokens - at : $(macro("CHUNK"));
//$ end
//$ local function steps(list, i)
//$     for _, step in ipairs(list) do
//$         if step.op ~= "output" or not shape.delivered then one(step, i) end
//$     end
//$ end
//$ local i = layers and "        " or "    "
//$ if shape.delivered then
//$ open_chunk("    ")
        const float *in = x + at * $(macro("D_IN"));
//$ if layers then
        size_t in_step = $(macro("D_IN"));

        for (size_t layer = 0; layer < $(shape.layers); ++layer, in = out, in_step = $(step_of("out"))) {
//$ else
        const size_t in_step = $(macro("D_IN"));

//$ end
//$ cache_of_layer(i .. "    ")
//$ parts_of_cache(i .. "    ", own_cache and "layer_cache" or "cache")

//$ steps(before, i .. "    ")
//$ steps(after, i .. "    ")
//$ if layers then
        }
//$ end
//$ one(after[#after], "        ")
    }
//$ else
//$ if layers then
    for (size_t layer = 0; layer < $(shape.layers); ++layer, x = y) {
//$ end
//$ cache_of_layer(i)
//$ parts_of_cache(i, own_cache and "layer_cache" or "cache")
//$ open_chunk(i)
$(i)    const float *in = x + at * $(d_in);
//$ declare_of_call(i .. "    ")

//$ steps(before, i .. "    ")
//$ if not shape.causal then
$(i)}
//$ open_chunk(i)
//$ declare_of_call(i .. "    ")
//$ if reads_input then
$(i)    const float *in = x + at * $(d_in);
//$ end

//$ end
//$ steps(after, i .. "    ")
$(i)}
//$ if layers then
    }
//$ end
//$ end
}
//$ end
