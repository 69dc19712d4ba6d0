//$ lines("", prologue)
//$ if activates then
$(include("templates/math/activation.c"))

//$ if shape.gated then
/* hidden = activation(gate) hidden, [tokens] rows of $(hidden_pitch). */
//$ else
/* hidden = activation(hidden), [tokens] rows of $(hidden_pitch). */
//$ end
static void $(helper)_activate($(shape.gated and "const float *restrict gate, " or "")float *restrict hidden, size_t tokens)
{
    for (size_t i = 0; i < tokens * $(hidden_pitch); i += $(lanes)) {
        const $(isa.vector) x = $(isa.load_unaligned(shape.gated and "gate" or "hidden", "i"));
//$ if shape.gated then
        const $(isa.vector) open = $(helper)_activation(x);
        const $(isa.vector) value = $(isa.load_unaligned("hidden", "i"));
        $(isa.store_unaligned("hidden", "i", isa.mul("open", "value")));
//$ else
        $(isa.store_unaligned("hidden", "i", helper .. "_activation(x)"));
//$ end
    }
}

//$ end
//$ if shape.rope then
//$ local rotated = 2 * shape.rope.half
/* One head of a query or key, its $(rotated == shape.width and "" or "first " .. rotated .. " ")elements $(shape.rope.interleaved and "2i and 2i + 1" or "i and i + " .. shape.rope.half) turned by the angles of its position, times `factor`. */
static void $(helper)_turn(const float *restrict from, const float *restrict cosine, const float *restrict sine, float factor, float *restrict to)
{
    for (size_t i = 0; i < $(shape.rope.half); ++i) {
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
$(i)float cosine[$(shape.rope.half)], sine[$(shape.rope.half)];
$(i)$(helper)_angles(weights, $(position), cosine, sine);
//$     else
$(i)const float *cosine = weights->cosines + $(position) * $(shape.rope.half), *sine = weights->sines + $(position) * $(shape.rope.half);
//$     end
//$ end
//$ if shape.rope and shape.rope.digits then
/* Cosines and sines of a position's rotary angles, which are those of its bytes added up. */
static void $(helper)_angles(const $(names.weights) *weights, size_t position, float *restrict cosine, float *restrict sine)
{
    const float *cosines = weights->cosines + position % 256 * $(shape.rope.half), *sines = weights->sines + position % 256 * $(shape.rope.half);

    for (size_t i = 0; i < $(shape.rope.half); ++i) {
        cosine[i] = cosines[i];
        sine[i] = sines[i];
    }
    for (size_t at = 256, rest = position / 256; rest > 0; at += 256, rest /= 256) {
        cosines = weights->cosines + (at + rest % 256) * $(shape.rope.half);
        sines = weights->sines + (at + rest % 256) * $(shape.rope.half);
        for (size_t i = 0; i < $(shape.rope.half); ++i) {
            const float a = cosine[i], b = sine[i];
            cosine[i] = a * cosines[i] - b * sines[i];
            sine[i] = b * cosines[i] + a * sines[i];
        }
    }
}

//$ end
//$ if cache_type.name == "f16" then
/* Rounds one head of a key or value to IEEE half precision, $(shape.cache.pitch) elements. */
static void $(helper)_keep(const float *restrict from, uint16_t *restrict to)
{
    const $(isa.vector) lowest = $(isa.broadcast("-65504.0f"));
    for (size_t i = 0; i < $(shape.cache.pitch); i += $(lanes)) {
        const $(isa.vector) x = $(isa.load_unaligned("from", "i"));
        const $(isa.vector) above = $(isa.max("lowest", "x"));
        const $(isa.vector) negative = $(isa.sub(isa.zero(), "above"));
        const $(isa.vector) within = $(isa.max("lowest", "negative"));
        const $(isa.vector) kept = $(isa.sub(isa.zero(), "within"));
        $(isa.store_f16("to", "i", "kept"));
    }
}

//$ elseif cache_type.scaled then
/* Rounds one head of a key or value to integers, $(shape.cache.pitch) elements; returns their unit, its largest value / 127. NaN and infinity make it NaN. */
static float $(helper)_keep(const float *restrict from, int8_t *restrict to)
{
    $(isa.vector) most = $(isa.zero()), all = $(isa.zero());
    for (size_t i = 0; i < $(shape.cache.pitch); i += $(lanes)) {
        const $(isa.vector) x = $(isa.load_unaligned("from", "i"));
        const $(isa.vector) size = $(isa.abs("x"));
        most = $(isa.max("most", "size"));
        all = $(isa.add("all", "size"));
    }
    float largest, total;
    {
//$ local steps, result = isa.reduce("most", "max")
//$ for _, step in ipairs(steps) do
        const $(step.type) $(step.name) = $(step.value);
//$ end
        largest = $(result);
    }
    {
//$ local steps, result = isa.reduce("all", "add")
//$ for _, step in ipairs(steps) do
        const $(step.type) $(step.name) = $(step.value);
//$ end
        total = $(result);
    }
    const $(isa.vector) inverse = $(isa.broadcast("(largest > 1e-30f ? 127.0f / largest : 0.0f)"));
    for (size_t i = 0; i < $(shape.cache.pitch); i += $(lanes)) {
        const $(isa.vector) x = $(isa.load_unaligned("from", "i"));
        const $(isa.vector) units = $(isa.mul("x", "inverse"));
        $(isa.store_i8("to", "i", "units"));
    }
    return largest * (1.0f / 127.0f) + 0.0f * total;
}

//$ end
//$ local plain = cache_type.name == "f32"
/* Puts the keys and values of some tokens into the cache of a layer, from position `first` on. */
static void $(helper)_append($(shape.rope and "const " .. names.weights .. " *weights, " or "")const float *restrict k, size_t k_step, const float *restrict v, size_t v_step,
    $(cached("%s *restrict %s")), size_t first, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token, k += k_step, v += v_step) {
        const size_t position = first + token$(shape.ring and ", place = position % " .. shape.cache.positions or "");
//$ local place = shape.ring and "place" or "position"
//$ if shape.rope then
//$ angles("        ", "position")
//$ end
        for (size_t head = 0; head < $(shape.kv_heads); ++head) {
            $(cache_type.storage) *key = keys + head * $(shape.cache.keys.head) + $(place) / $(tile) * $(tile * shape.width) + $(place) % $(tile);
            $(cache_type.storage) *value = values + head * $(shape.cache.values.head) + $(place) * $(shape.cache.pitch);
//$ if not plain then
            float all[$(shape.cache.pitch)];
            $(cache_type.storage) rounded[$(shape.cache.pitch)];
//$ if shape.cache.pitch > shape.width then
            for (size_t i = $(shape.width); i < $(shape.cache.pitch); ++i)
                all[i] = 0.0f;
//$ end
//$ elseif shape.rope then
            float all[$(shape.width)];
//$ end
//$ if shape.rope then
            $(helper)_turn(k + head * $(shape.width), cosine, sine, 1.0f, all);
//$ elseif not plain then
            for (size_t i = 0; i < $(shape.width); ++i)
                all[i] = k[head * $(shape.width) + i];
//$ end
//$ if cache_type.scaled then
            key_scales[head * $(shape.cache.key_scales.head) + $(place)] = $(helper)_keep(all, rounded);
//$ elseif not plain then
            $(helper)_keep(all, rounded);
//$ end
            for (size_t i = 0; i < $(shape.width); ++i)
                key[i * $(tile)] = $(not plain and "rounded[i]" or shape.rope and "all[i]" or "k[head * " .. shape.width .. " + i]");
            for (size_t i = 0; i < $(shape.width); ++i)
                $(plain and "value" or "all")[i] = v[head * $(shape.width) + i];
//$ if cache_type.scaled then
            value_scales[head * $(shape.cache.value_scales.head) + $(place)] = $(helper)_keep(all, value);
//$ elseif not plain then
            $(helper)_keep(all, value);
//$ elseif shape.cache.pitch > shape.width then
            for (size_t i = $(shape.width); i < $(shape.cache.pitch); ++i)
                value[i] = 0.0f;
//$ end
        }
    }
}

//$ local needs_first = positioned or shape.rope
//$ local function of_head(name) return name .. " + head * " .. shape.cache[name].head end
//$ local key_text = of_head("keys") .. (cache_type.scaled and ", " .. of_head("key_scales") or "")
//$ local value_text = of_head("values") .. (cache_type.scaled and ", " .. of_head("value_scales") or "")
/* Attention of some tokens$(needs_first and " from position `first` on" or ""), $(v.queries) at a time: q and y are rows of $(shape.heads) heads of $(shape.width). */
static void $(helper)_attend($(shape.rope and "const " .. names.weights .. " *weights, " or "")const float *restrict q, size_t q_step, $(cached("const %s *%s")), $(needs_first and "size_t first, " or "")size_t tokens,
    $(shape.causal and "" or "size_t end, ")float *restrict y, size_t y_step, float *scratch)
{
    const size_t most = tokens < $(v.queries) ? tokens : $(v.queries);
//$ for i, item in ipairs(v.buffers.queries) do
    float *$(item.name) = $(item.at == 0 and "scratch" or "scratch + most * " .. item.at);
//$ end

    for (size_t token = 0; token < tokens; token += $(v.queries)) {
        const size_t count = tokens - token < $(v.queries) ? tokens - token : $(v.queries);
        for (size_t head = 0; head < $(shape.kv_heads); ++head) {
            for (size_t own = 0; own < count; ++own) {
//$ if shape.rope then
//$ angles("                ", "(first + token + own)")
//$ end
                for (size_t row = 0; row < $(shape.group); ++row) {
                    const float *from = q + (token + own) * q_step + (head * $(shape.group) + row) * $(shape.width);
                    float *to = queries + (own * $(shape.group) + row) * $(shape.width);
//$ if shape.rope then
                    $(helper)_turn(from, cosine, sine, $(scale), to);
//$ else
                    for (size_t i = 0; i < $(shape.width); ++i)
                        to[i] = $(scale) * from[i];
//$ end
                }
            }
            $(v.names.attention)(queries, $(key_text), $(value_text), $(positioned and "first + token, " or "")count, $(shape.causal and "" or "end, ")sums, scores, totals);
            for (size_t row = 0; row < count * $(shape.group); ++row) {
                float *to = y + (token + row / $(shape.group)) * y_step + (head * $(shape.group) + row % $(shape.group)) * $(shape.width);
                for (size_t i = 0; i < $(shape.width); ++i)
                    to[i] = sums[row * $(shape.cache.pitch) + i];
            }
        }
    }
}
//$ if shape.norm then
//$ local layernorm = shape.norm.kind == "layernorm"

/* $(layernorm and "(x - mean) / sqrt(variance + eps) gain + offset" or "x / sqrt(mean square + eps) gain"), row by row; y may be x. */
static void $(helper)_norm(const float *x, size_t x_step, const float *restrict gain, $(layernorm and "const float *restrict offset, " or "")float *y, size_t y_step, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token, x += x_step, y += y_step) {
        float factor[$(lanes)];
        double square = 0.0;
//$ if layernorm then
        double mean = 0.0;
        for (size_t i = 0; i < $(shape.d); ++i)
            mean += (double) x[i];
        mean *= $(one_over_d);
        for (size_t i = 0; i < $(shape.d); ++i)
            square += ((double) x[i] - mean) * ((double) x[i] - mean);
//$ else
        for (size_t i = 0; i < $(shape.d); ++i)
            square += (double) x[i] * (double) x[i];
//$ end
        const float variance = (float) (square * $(one_over_d)) + $(eps);
        $(isa.store_unaligned("factor", 0, isa.reciprocal_root(isa.broadcast("variance"))));
        for (size_t i = 0; i < $(shape.d); ++i)
//$ if layernorm then
            y[i] = (float) ((double) x[i] - mean) * factor[0] * gain[i] + offset[i];
//$ else
            y[i] = x[i] * factor[0] * gain[i];
//$ end
    }
}
//$ end
//$ local function step_of(name) return v.buffers.pitches[name] end
//$ local parts = cached("%.0s%s")
//$ local function one(step, i)
//$     if step.op == "norm" then
            $(helper)_norm($(step.from), $(step_of(step.from)), weights->$(step.which)_norm + layer * $(shape.d), $(shape.norm.kind == "layernorm" and "weights->" .. step.which .. "_norm_offset + layer * " .. shape.d .. ", " or "")$(step.to), $(step_of(step.to)), count);
//$     elseif step.op == "copy" then
            for (size_t token = 0; token < count; ++token)
                for (size_t i = 0; i < $(shape.d); ++i)
                    $(step.to)[token * $(step_of(step.to)) + i] = $(step.from)[token * $(step_of(step.from)) + i];
//$     elseif step.op == "product" then
//$         local map = step.map
            /* $(map.letter): $(map.inputs) inputs, $(map.outputs) outputs */
            $(v.names.product)($(step.from), $(step_of(step.from)), weights->$(map.field) + layer * $(map.words), $(shape.type.scaled and "weights->" .. map.field .. "_scales + layer * " .. map.pitch .. ", " or "")weights->$(map.field)_bias + layer * $(map.pitch),
                $(step.to), $(step_of(step.to)), $(map.inputs), $(map.panels), count$(v.unpacked_at and ", count > 1 ? (float *) scratch + " .. v.unpacked_at .. " : NULL" or ""));
//$     elseif step.op == "append" then
            $(helper)_append($(shape.rope and "weights, " or "")$(sum(step.k, step.k_at)), $(step_of(step.k)), $(sum(step.v, step.v_at)), $(step_of(step.v)), $(parts), first + at, count);
//$     elseif step.op == "attend" and step.k then
            for (size_t token = 0; token < count; token += $(v.queries)) {
                const size_t some = count - token < $(v.queries) ? count - token : $(v.queries);
                $(helper)_append($(shape.rope and "weights, " or "")$(sum(step.k, step.k_at)) + token * $(step_of(step.k)), $(step_of(step.k)), $(sum(step.v, step.v_at)) + token * $(step_of(step.v)), $(step_of(step.v)), $(parts), first + at + token, some);
                $(helper)_attend($(shape.rope and "weights, " or "")$(step.from) + token * $(step_of(step.from)), $(step_of(step.from)), $(parts), first + at + token, some, $(step.to) + token * $(step_of(step.to)), $(step_of(step.to)), memory + held * $(v.buffers.token_floats));
            }
//$     elseif step.op == "attend" then
            $(helper)_attend($(shape.rope and "weights, " or "")$(step.from), $(step_of(step.from)), $(parts), $((positioned or shape.rope) and "first + at, " or "")count, $(shape.causal and "" or "tokens, ")$(step.to), $(step_of(step.to)), memory + held * $(v.buffers.token_floats));
//$     elseif step.op == "lookup" then
//$         for n, part in ipairs(step.parts) do
//$             local indent = "                "
//$             if #step.parts == 1 then
//$                 indent = "            "
//$             else
            $(n == 1 and "if (layer < " .. part.count .. ") {" or "} else {")
//$             end
$(indent)/* LookupFFN: $(part.plan.shape.h) tables, rows of $(part.plan.shape.d_out)$(part.plan.shape.d_out > shape.d and ", the next block's q, k and v" or "") */
$(indent)const $(part.plan.names.weights) ffn = {
//$             for _, found in ipairs(layer_weights(part)) do
$(indent)    $(found),
//$             end
$(indent)};
$(indent)$(lookup_of(part))(&ffn, $(step.from), $(step.to), count, scratch);
//$             if n > 1 then
            }
//$             end
//$         end
//$     elseif step.op == "activate" then
            $(helper)_activate($(step.gate and step.gate .. ", " or "")$(step.to), count);
//$     elseif step.op == "add" then
            for (size_t token = 0; token < count; ++token)
                for (size_t i = 0; i < $(shape.d); ++i)
                    $(step.to)[token * $(step_of(step.to)) + i] = $(step.a)[token * $(step_of(step.a)) + i] + $(step.b)[token * $(step_of(step.b)) + i];
//$     elseif step.op == "output" then
$(i or "            ")for (size_t token = 0; token < count; ++token)
$(i or "            ")    for (size_t i = 0; i < $(shape.d); ++i)
$(i or "            ")        y[(at + token) * $(shape.d) + i] = $(step.from)[token * $(step_of(step.from)) + i];
//$     end
//$ end

/* All $(shape.layers) blocks for `tokens` tokens from position `first` on, $(v.chunk) at a time; see $(names.header). */
void $(symbol)(const $(names.weights) *weights, unsigned char *cache, const float *x, float *y, size_t first, size_t tokens, void *scratch)
{
    const size_t held = tokens < $(v.chunk) ? tokens : $(v.chunk);
//$ local floats = v.lookup_floats
//$ if floats.many > floats.alone then
    float *memory = (float *) scratch + (held == 1 ? $(floats.alone) : $(floats.many));
//$ else
    float *memory = $(sum("(float *) scratch", floats.many));
//$ end
//$ for _, item in ipairs(v.buffers.tokens) do
    float *$(item.name) = $(item.at == 0 and "memory" or "memory + held * " .. item.at);
//$ end

//$ local function cache_of_layer(i)
$(i)unsigned char *kept = cache + layer * $(shape.cache.layer_bytes);
//$     for _, part in ipairs(shape.cache.parts) do
$(i)$(part.storage) *$(part.name) = ($(part.storage) *) (void *) $(part.at == 0 and "kept" or "(kept + " .. part.at .. ")");
//$     end
//$ end
//$ if shape.delivered then
    for (size_t at = 0; at < tokens; at += $(v.chunk)) {
        const size_t count = tokens - at < $(v.chunk) ? tokens - at : $(v.chunk);
        const float *in = x + at * $(shape.input);
        size_t in_step = $(shape.input);

        for (size_t layer = 0; layer < $(shape.layers); ++layer, in = out, in_step = $(step_of("out"))) {
//$ cache_of_layer("            ")

//$ for _, step in ipairs(before) do one(step) end
//$ for _, step in ipairs(after) do
//$     if step.op ~= "output" then one(step) end
//$ end
        }
//$ one(after[#after], "        ")
    }
//$ else
    for (size_t layer = 0; layer < $(shape.layers); ++layer, x = y) {
//$ cache_of_layer("        ")
        for (size_t at = 0; at < tokens; at += $(v.chunk)) {
            const size_t count = tokens - at < $(v.chunk) ? tokens - at : $(v.chunk);
            const float *in = x + at * $(shape.d);

//$ for _, step in ipairs(before) do one(step) end
//$ if not shape.causal then
        }
        for (size_t at = 0; at < tokens; at += $(v.chunk)) {
            const size_t count = tokens - at < $(v.chunk) ? tokens - at : $(v.chunk);
//$ if reads_input then
            const float *in = x + at * $(shape.d);
//$ end

//$ end
//$ for _, step in ipairs(after) do one(step) end
        }
    }
//$ end
}
