//$ takes type, prologue, v, symbol, helper, plan, embedding, output, segments, norms, products, word_of
//$ takes rounded, rounded_rows, rounded_step, float, place, has, depends, run_of, tile, float_sums, threads
//$ local macro = names.macro
//$ local projected = embedding.projected
//$ local activation = output.dense and output.dense.activation
//$ local makes_tanh = activation == "tanh" or output.soft_cap
//$ local makes_activation = activation and activation ~= "tanh"
//$ local last = segments[#segments]
//$ lines(prologue)
//$ local activated = makes_activation and once("templates/math/activation.c", { activation = activation }) .. "_" .. activation
//$ local tanh = makes_tanh and once("templates/math/tanh.c") .. "_tanh"
//$ local factors = projected and projected.norm
//$ local copies_rows = embedding.map or projected and projected.copied_at and not embedding.norm
//$ local sums_floats = float_sums and (output.pool == "mean" or output.pool == "sqrt_n" or output.unit)
//$ local add = sums_floats and once("templates/math/sum.c") .. "_add"
//$ local norm_calls = {} -- functions that norm rows, by what they do
//$ for _, one in ipairs(norms) do norm_calls[one.key] = once("templates/math/norm.c", one.given) .. "_" .. one.given.name end
//$ local rounds = {}
//$ for _, inputs in ipairs(rounded_rows) do
//$     rounds[inputs] = once("templates/model/blocks/round_rows.c", { inputs = inputs, measured = false })
//$ end
//$ -- What the parts of this file are told of the functions that they call.
//$ local calls = { tanh = tanh, activation = activation == "tanh" and tanh or activated, add = add }
//$ -- The call of the norm `norm` of rows of `width`, whose gains are weights->name.
//$ function calls.norm(norm, name, x, x_step, y, y_step, rows, width)
//$     local offset = norm.kind == "layernorm" and "weights->" .. name .. "_offset"
//$     local given = listed(x, x_step, "weights->" .. name, offset, y, y_step, rows)
//$     return norm_calls[norm.kind .. "_" .. width .. " " .. float(norm.eps)] .. "(" .. given .. ");"
//$ end
//$ -- A list of the call that rounds the inputs of a map to `to`, if products take them so; and the inputs of the product
//$ -- and their pitch.
//$ function calls.round(map, x, x_step, to, rows)
//$     if not rounded then return {} end
//$     local given = listed(x, x_step, to, rounded_step(map), rows)
//$     return { rounds[map.inputs] .. "_rounded_" .. map.inputs .. "(" .. given .. ");" }
//$ end
//$ function calls.inputs(map, x, x_step, to)
//$     if rounded then return to, rounded_step(map) end
//$     return x, x_step
//$ end
//$ -- What a map is called in names; the call of the product that is called so.
//$ calls.word = word_of
//$ function calls.product(name, x, x_step, y, y_step, rows, strip)
//$     local given = listed("weights", x, x_step, y, y_step, rows, v.product.unpacks and strip)
//$     return helper .. "_multiply_" .. name .. "(" .. given .. ");"
//$ end
//$ -- The declarations of those of the buffers in `list` that there are.
//$ function calls.buffer_name(name) return name == "weights" and "unpacked" or name end
//$ function calls.buffers(list)
//$     local declarations = {}
//$     for _, name in ipairs(list) do
//$         local type = name:find("rounded$") and "uint32_t *" or "float *"
//$         local text = has(name) and type .. calls.buffer_name(name) .. " = (" .. type .. ") (void *) (" .. place(name) .. ");"
//$         declarations[#declarations + 1] = text or nil
//$     end
//$     return declarations
//$ end
//$ -- The buffers that outputs work in; whether results use memory, and ask whether a token is alone; what they are given.
//$ calls.output_buffers, calls.uses_memory, calls.asks_alone = {}, has("pooled"), false
//$ for _, name in ipairs { "features", "rest", "weights", "rounded" } do
//$     if has(name) then
//$         calls.output_buffers[#calls.output_buffers + 1], calls.uses_memory = name, true
//$         calls.asks_alone = calls.asks_alone or place(name):find("alone", 1, true) ~= nil
//$     end
//$ end
//$ function calls.memory(of) return (calls.uses_memory and ", " .. of or "") .. (calls.asks_alone and ", alone" or "") end
//$ for _, one in ipairs(products) do
//$ local map, first = one.map, one.first
//$ local function from(field, place) return sum("weights->" .. field, first > 0 and macro(place) or 0) end
//$ local fields = { { name = "weights", value = from(map.name, "HEAD_REST_WEIGHTS") } }
//$ if type.scaled then fields[2] = { name = "scales", value = from(map.name .. "_scales", "HEAD_REST") } end
//$ fields[#fields + 1] = { name = "bias", value = from(map.bias, "HEAD_REST") }
//$ fields[#fields + 1] = { name = "inputs", value = map.inputs }
//$ fields[#fields + 1] = { name = "panels", value = one.panels }
//$ local what = first > 0 and "panels of " .. map.name .. " from number " .. first .. " on" or map.name
//$ local given = { name = one.name, what = what, of = "const " .. names.weights .. " *weights", fields = fields }
$(include("templates/model/multiply.c", given))
//$ end
$(include("templates/model/embed.c")) //$ if has("embedded") or not projected
$(include("templates/model/project.c")) //$ if projected
$(include("templates/model/pool.c", { calls = calls })) //$ if output.pool
$(include("templates/model/output.c", { calls = calls }))
$(include("templates/model/results.c", { calls = calls }))
//$ local all_results = helper .. (threads and "_all_results" or "_results")
//$ local first_row = threads and "" or "0, "
//$ -- Lines that make `to` the input of the first block, of `count` tokens.
//$ local function embed(ids, position, count, to)
//$ local at = embedding.positions and position .. ", " or ""
//$ if embedding.map then
        for (size_t row = 0; row < $(count); row += $(macro("ROWS"))) {
            const size_t some = $(count) - row < $(macro("ROWS")) ? $(count) - row : $(macro("ROWS"));
            $(helper)_embed(weights, $(ids) + row,
                $(embedding.positions and (position == "0" and "row" or position .. " + row") .. ", " or "")some, embedded);
//$ local map, width = embedding.map, embedding.width
//$ if embedding.norm then
            $(calls.norm(embedding.norm, "embedding_norm", "embedded", width, "embedded", width, "some", width))
//$ end
//$ lines(calls.round(map, "embedded", width, "map_rounded", "some"))
//$ local inputs, inputs_step = calls.inputs(map, "embedded", width, "map_rounded")
//$ local unpacked = has("map_weights") and "some > 1 ? map_weights : NULL" or "NULL"
            $(calls.product(word_of(map), inputs, inputs_step, "mapped", map.pitch, "some", unpacked))
            for (size_t token = 0; token < some; ++token)
                for (size_t i = 0; i < $(embedding.input); ++i)
                    $(to)[(row + token) * $(embedding.input) + i] = one * mapped[token * $(embedding.map.pitch) + i];
        }
//$ elseif projected then
//$ local rows = embedding.positions and (position == "0" and "row" or position .. " + row") .. ", " or ""
        for (size_t row = 0; row < $(count); row += $(macro("ROWS"))) {
            const size_t some = $(count) - row < $(macro("ROWS")) ? $(count) - row : $(macro("ROWS"));
            float *given = $(to) + $(times("row", embedding.input));

            $(helper)_embed(weights, $(ids) + row, $(rows)some, embedded); //$ if has("embedded")
            $(norm_calls["factors " .. float(factors.eps)])(embedded, $(embedding.width), factors, some); //$ if factors
        $(helper)_project(weights, $(ids) + row, $(projected.parts[1].positions and rows or "")some, $(factors and "factors, " or "")given);
//$ if projected.copied_at and embedding.norm then
//$ local width, to = embedding.width, "given + " .. projected.copied_at
            $(calls.norm(embedding.norm, "embedding_norm", "embedded", width, to, embedding.input, "some", width))
//$ elseif projected.copied_at then
            for (size_t token = 0; token < some; ++token)
                for (size_t i = 0; i < $(embedding.width); ++i)
                    given[token * $(embedding.input) + $(projected.copied_at) + i] = one * embedded[token * $(embedding.width) + i];
//$ end
        }
//$ else
        $(helper)_embed(weights, $(ids), $(at)$(count), $(to));
//$ local width = embedding.width
        $(calls.norm(embedding.norm, "embedding_norm", to, width, to, width, count, width)) //$ if embedding.norm
//$ end
//$ end
//$ if plan.causal then

/* $(plural(plan.layers, "block")) and what stands before and behind them for `tokens` ids of one sequence, from
   position `first` on, $(plan.tokens) at a time;
   y: the results of all, or of the last one, or null. */
void $(symbol)(const $(names.weights) *weights, unsigned char *state, const int32_t *ids, size_t first, size_t tokens,
    float *y, int all, void *scratch)
{
    unsigned char *memory = (unsigned char *) scratch;
    const int alone = tokens == 1; //$ if depends
//$ lines(calls.buffers { "embedded", "factors", "mapped", "map_weights", "map_rounded" })
//$ for _, buffer in ipairs(plan.memory.buffers) do
//$ if buffer.name:find "^x_" then lines(calls.buffers { buffer.name }) end
//$ end
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */ //$ if copies_rows

    for (size_t at = 0; at < tokens; at += $(macro("CHUNK"))) {
        const size_t count = tokens - at < $(macro("CHUNK")) ? tokens - at : $(macro("CHUNK"));

//$ embed("ids + at", "first + at", "count", "x_1")
//$ local from = "x_1"
//$ for _, segment in ipairs(segments) do
        $(run_of(segment))(&weights->$(segment.word), state + $(macro(segment.word:upper() .. "_STATE_AT")), $(from),
            $(segment.to), first + at, count, $(place(segment.word .. "_scratch")));
//$ from = segment.to
//$ end
        if (y && all)
            $(all_results)(weights, $(from), $(first_row)count, y + at * $(macro("D_OUT"))$(calls.memory("memory")));
        else if (y && at + count == tokens)
            $(helper)_results(weights, $(from) + $(times("(count - 1)", output.width)), 0, 1, y$(calls.memory("memory")));
    }
}
//$ else

/* $(plural(plan.layers, "block")) and what stands before and behind them for some sequences; see
   $(names.encode_batch) in $(names.header). */
void $(symbol)(const $(names.weights) *weights, const int32_t *ids, const size_t *offsets, size_t sequences, float *y, void *scratch)
{
    unsigned char *memory = (unsigned char *) scratch;
//$ lines(calls.buffers { "embedded", "factors", "mapped", "map_weights", "map_rounded" })
//$ for _, buffer in ipairs(plan.memory.buffers) do
//$ if buffer.name:find "^x_" or buffer.name == "sums" then lines(calls.buffers { buffer.name }) end
//$ end
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */ //$ if copies_rows

    for (size_t s = 0, end; s < sequences; s = end) {
        /* as many sequences as fit: s … end - 1 */
        size_t positions = 0;
        for (end = s; end < sequences; ++end) {
            positions += (offsets[end + 1] - offsets[end] + $(tile - 1)) / $(tile) * $(tile);
            if (positions > $(macro("POSITIONS")))
                break;
        }
        for (size_t own = s; own < end; ++own) {
            const size_t count = offsets[own + 1] - offsets[own];
            float *x = x_1 + $(times("(offsets[own] - offsets[s])", embedding.input));
//$ embed("ids + offsets[own]", "0", "count", "x")
        }
//$ local from = "x_1"
//$ for _, segment in ipairs(segments) do
        $(run_of(segment))(&weights->$(segment.word), $(place(segment.word .. "_cache")), $(from), $(segment.to),
            offsets + s, end - s, $(place(segment.word .. "_scratch")));
//$ from = segment.to
//$ end
//$ if output.pool and output.norm then
//$ local width = output.width
        $(calls.norm(output.norm, "output_norm", from, width, from, width, "offsets[end] - offsets[s]", width))
//$ end
//$ if output.pool then
        $(all_results)(weights, $(from), offsets + s, $(first_row)end - s, y + s * $(macro("D_OUT"))$(calls.memory("memory")));
//$ else
        $(all_results)(weights, $(from), $(first_row)offsets[end] - offsets[s],
            y + offsets[s] * $(macro("D_OUT"))$(calls.memory("memory")));
//$ end
    }
}
//$ end
