//$ lines("", prologue)
//$ if activates then
$(include("templates/activation.c"))

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
/* Puts the keys and values of some tokens into the cache of a layer, from position `first` on. */
static void $(helper)_append($(shape.rope and "const " .. names.weights .. " *weights, " or "")const float *restrict k, size_t k_step, const float *restrict v, size_t v_step,
    float *restrict keys, float *restrict values, size_t first, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token, k += k_step, v += v_step) {
        const size_t position = first + token;
        for (size_t head = 0; head < $(shape.kv_heads); ++head) {
            float *key = keys + head * $(shape.key_head) + position / $(tile) * $(tile * shape.width) + position % $(tile);
            float *value = values + head * $(shape.value_head) + position * $(shape.value_pitch);
//$ if shape.rope then
            float turned[$(shape.width)];
            $(helper)_turn(k + head * $(shape.width), weights->cosines + position * $(shape.rope.half), weights->sines + position * $(shape.rope.half), 1.0f, turned);
            for (size_t i = 0; i < $(shape.width); ++i)
                key[i * $(tile)] = turned[i];
//$ else
            for (size_t i = 0; i < $(shape.width); ++i)
                key[i * $(tile)] = k[head * $(shape.width) + i];
//$ end
            for (size_t i = 0; i < $(shape.width); ++i)
                value[i] = v[head * $(shape.width) + i];
//$ if shape.value_pitch > shape.width then
            for (size_t i = $(shape.width); i < $(shape.value_pitch); ++i)
                value[i] = 0.0f;
//$ end
        }
    }
}

//$ local needs_first = shape.causal or shape.rope
/* Attention of some tokens$(needs_first and " from position `first` on" or ""), $(v.queries) at a time: q and y are rows of $(shape.heads) heads of $(shape.width). */
static void $(helper)_attend($(shape.rope and "const " .. names.weights .. " *weights, " or "")const float *restrict q, size_t q_step, const float *keys, const float *values, $(needs_first and "size_t first, " or "")size_t tokens,
    $(shape.causal and "" or "size_t end, ")float *restrict y, size_t y_step, unsigned char *scratch)
{
    float *queries = (float *) (void *) ($(sum("scratch", buffer("queries").at)));
    float *sums = (float *) (void *) ($(sum("scratch", buffer("sums").at)));
    float *scores = (float *) (void *) ($(sum("scratch", buffer("scores").at)));
    float *totals = (float *) (void *) ($(sum("scratch", buffer("totals").at)));

    for (size_t token = 0; token < tokens; token += $(v.queries)) {
        const size_t count = tokens - token < $(v.queries) ? tokens - token : $(v.queries);
        for (size_t head = 0; head < $(shape.kv_heads); ++head) {
            for (size_t row = 0; row < count * $(shape.group); ++row) {
                const size_t own = token + row / $(shape.group);
                const float *from = q + own * q_step + (head * $(shape.group) + row % $(shape.group)) * $(shape.width);
                float *to = queries + row * $(shape.width);
//$ if shape.rope then
                $(helper)_turn(from, weights->cosines + (first + own) * $(shape.rope.half), weights->sines + (first + own) * $(shape.rope.half), $(scale), to);
//$ else
                for (size_t i = 0; i < $(shape.width); ++i)
                    to[i] = $(scale) * from[i];
//$ end
            }
            $(v.names.attention)(queries, keys + head * $(shape.key_head), values + head * $(shape.value_head), $(shape.causal and "first + token, count" or "count, end"),
                sums, scores, totals);
            for (size_t row = 0; row < count * $(shape.group); ++row) {
                float *to = y + (token + row / $(shape.group)) * y_step + (head * $(shape.group) + row % $(shape.group)) * $(shape.width);
                for (size_t i = 0; i < $(shape.width); ++i)
                    to[i] = sums[row * $(shape.value_pitch) + i];
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
//$ local function step_of(name) return name == "in" and shape.d or buffer(name).pitch end
//$ local function one(step)
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
                $(step.to), $(step_of(step.to)), $(map.inputs), $(map.panels), count);
//$     elseif step.op == "append" then
            $(helper)_append($(shape.rope and "weights, " or "")$(step.k), $(step_of(step.k)), $(step.v), $(step_of(step.v)), keys, values, first + at, count);
//$     elseif step.op == "attend" then
            $(helper)_attend($(shape.rope and "weights, " or "")$(step.from), $(step_of(step.from)), keys, values, $((shape.causal or shape.rope) and "first + at, " or "")count, $(shape.causal and "" or "tokens, ")$(step.to), $(step_of(step.to)), (unsigned char *) scratch);
//$     elseif step.op == "activate" then
            $(helper)_activate($(step.gate and step.gate .. ", " or "")$(step.to), count);
//$     elseif step.op == "add" then
            for (size_t token = 0; token < count; ++token)
                for (size_t i = 0; i < $(shape.d); ++i)
                    $(step.to)[token * $(step_of(step.to)) + i] = $(step.a)[token * $(step_of(step.a)) + i] + $(step.b)[token * $(step_of(step.b)) + i];
//$     elseif step.op == "output" then
            for (size_t token = 0; token < count; ++token)
                for (size_t i = 0; i < $(shape.d); ++i)
                    y[(at + token) * $(shape.d) + i] = $(step.from)[token * $(step_of(step.from)) + i];
//$     end
//$ end

/* All $(shape.layers) blocks for `tokens` tokens from position `first` on, $(v.chunk) at a time; see $(names.header). */
void $(symbol)(const $(names.weights) *weights, float *cache, const float *x, float *y, size_t first, size_t tokens, void *scratch)
{
//$ for _, item in ipairs(v.buffers) do
//$ if item.pitch then
    float *$(item.name) = (float *) (void *) ($(sum("(unsigned char *) scratch", item.at)));
//$ end
//$ end

    for (size_t layer = 0; layer < $(shape.layers); ++layer, x = y) {
        float *keys = cache + layer * $(shape.layer_cache), *values = $(sum("keys", shape.layer_values));
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
}
