//$ takes prologue, isa, v, lanes, symbol, helper, type, panel, plan, embedding, output, segments, load_weights, load_some_weights,
//$ takes rounded, rounded_rows, rounded_step, element, float, place, has, depends, run_of, tile, float_sums, threads, sums_tokens
//$ local macro = names.macro
//$ local projected = embedding.projected
//$ local activation = output.dense and output.dense.activation
//$ local makes_tanh = activation == "tanh" or output.soft_cap
//$ local makes_activation = activation and activation ~= "tanh"
//$ local last = segments[#segments]
//$ lines("", prologue)
//$ local activated = makes_activation and once("templates/math/activation.c", { activation = activation }) .. "_" .. activation
//$ local tanh = makes_tanh and once("templates/math/tanh.c") .. "_tanh"
//$ local factors = projected and projected.norm
//$ local copies_rows = embedding.map or projected and projected.copied_at and not embedding.norm
//$ local sums_floats = float_sums and (output.pool == "mean" or output.pool == "sqrt_n" or output.unit)
//$ local add = sums_floats and once("templates/math/sum.c") .. "_add"
//$ -- Functions that norm rows of `width` floats, by what they do.
//$ local norms, taken = {}, {}
//$ local function add_norm(norm, width, factors)
//$     local name = factors and "factors" or norm.kind .. "_" .. width
//$     local key = name .. " " .. float(norm.eps)
//$     if norms[key] then return end
//$     if taken[name] then name = name .. "_too" end
//$     local given = { name = name, layernorm = norm.kind == "layernorm", factors = factors, width = width, eps = float(norm.eps) }
//$     norms[key], taken[name] = once("templates/math/norm.c", given) .. "_" .. name, true
//$ end
//$ if embedding.norm then add_norm(embedding.norm, embedding.width, false) end
//$ if output.norm then add_norm(output.norm, output.width, false) end
//$ if output.dense and output.dense.norm then add_norm(output.dense.norm, output.dense.outputs, false) end
//$ if factors then add_norm(factors, embedding.width, true) end
//$ -- A call of the norm `norm` of rows of `width`, whose gains are weights->name.
//$ local function norm(i, norm, name, x, x_step, y, y_step, rows, width)
//$     local call = norms[norm.kind .. "_" .. width .. " " .. float(norm.eps)]
//$     local offset = norm.kind == "layernorm" and "weights->" .. name .. "_offset"
$(i)$(call)($(listed(x, x_step, "weights->" .. name, offset, y, y_step, rows)));
//$ end
//$ local rounds = {}
//$ for _, inputs in ipairs(rounded_rows) do rounds[inputs] = once("templates/model/blocks/round_rows.c", { inputs = inputs }) end
//$ -- Lines that round the inputs of a map to `to`, if products take them so.
//$ local function round(i, map, x, x_step, to, rows)
//$     if not rounded then return x, x_step end
//$     local step = rounded_step(map)
$(i)$(rounds[map.inputs])_rounded_$(map.inputs)($(x), $(x_step), $(to), $(step), $(rows));
//$     return to, step
//$ end
//$ -- A call of the product kernel for panels from number `first` on of a map, of inputs as `round` leaves them.
//$ local function product(i, map, first, panels, x, x_step, y, y_step, rows, unpacked)
//$ local function from(name, step) return sum("weights->" .. name, first > 0 and first * step or 0) end
//$ local scales = type.scaled and from(map.name .. "_scales", panel)
//$ local weights = listed(from(map.name, map.panel_step), scales, from(map.bias, panel))
//$ local given = listed(x, x_step, weights, y, y_step, map.inputs, panels, rows, v.product.unpacks and unpacked)
$(i)$(v.names.product)($(given));
//$ end
//$ if has("embedded") or not projected then

/* The rows of the embedding for `tokens`
   ids$(embedding.positions and " from position `position` on, with their positions" or ""),
   x[tokens][$(embedding.width)]. */
static void $(helper)_embed(const $(names.weights) *weights, const int32_t *ids,
    $(embedding.positions and "size_t position, " or "")size_t tokens, float *x)
{
//$ if not type.scaled then
    const float factor = $hidden($(float(embedding.scale)));

//$ end
    for (size_t token = 0; token < tokens; ++token, x += $(embedding.width)) {
        const size_t id = (size_t) ids[token];
//$ if type.scaled then
        const float factor = $(embedding.scale ~= 1 and float(embedding.scale) .. " * " or "")weights->embedding_scales[id];
//$ end
//$ if embedding.positions then
        const float *place = weights->positions + $(times("(position + token)", embedding.width));
//$ end
//$ local added = {}
//$ if embedding.positions then added[#added + 1] = "place" end
//$ if embedding.token_type then added[#added + 1] = "weights->token_type" end
//$ if embedding.strided then
        /* a column of a panel: the head reads $(plural(panel, "row")) side by side */
//$ local at = "i * " .. panel
//$ if rounded then
//$     at = "i / " .. rounded.rows .. " * " .. panel * rounded.rows .. " + i % " .. rounded.rows
//$ local storage = rounded.integers and "uint8_t" or type.storage
        const $(storage) *row = (const $(storage) *) (weights->embedding + id / $(panel) * $(embedding.table.panel_step) + id % $(panel));
//$ else
        const $(type.storage) *row = weights->embedding + id / $(panel) * $(embedding.width * panel) + id % $(panel);
//$ end

        for (size_t i = 0; i < $(embedding.width); ++i)
//$ local text = "factor * " .. element("row", at)
//$ for _, base in ipairs(added) do text = text .. " + " .. base .. "[i]" end
            x[i] = $(text);
//$ else
        const $(type.storage) *row = weights->embedding + $(times("id", embedding.width));
//$ local whole_vectors, rest = embedding.width // lanes * lanes, embedding.width % lanes
//$ local function sum_of(value, load)
//$     for _, base in ipairs(added) do value = isa.add(value, load(base)) end
//$     return value
//$ end
//$ loop("        ", "i", 0, whole_vectors, lanes, function(i, at)
$(i)const $(isa.vector) values = $(isa.mul(load_weights("row", at), isa.broadcast("factor")));
$(i)$(isa.store_unaligned("x", at, sum_of("values", function(base) return isa.load_unaligned(base, at) end)));
//$ end, { block = rest > 0 })
//$ if rest > 0 then
        const $(isa.vector) values = $(isa.mul(load_some_weights("row", whole_vectors, rest), isa.broadcast("factor")));
        $(isa.store_partial("x", whole_vectors, rest, sum_of("values", function(base) return isa.load_partial(base, whole_vectors, rest) end)));
//$ end
//$ end
    }
}
//$ end
//$ if projected then
$(include("templates/model/project.c"))
//$ end
//$ if output.pool then
//$ -- Of sums a mean goes through the last map before it is more than a mean.
//$ local divides = output.pool == "mean" or output.sums
//$ local pooled_width, pooled_rows = output.sums and output.sums.pitch or output.width, output.sums and "rows" or "tokens"

//$ if output.pool == "mean" or output.pool == "sqrt_n" then
//$ if output.sums then
/* The mean over `tokens` tokens, of which x[rows][$(pooled_width)] are sums. */
//$ else
/* $(output.pool == "mean" and "The mean" or "The sum / sqrt(tokens)") of x[tokens][$(pooled_width)]. */
//$ end
//$ local root
static void $(helper)_pool(const float *restrict x, $(output.sums and "size_t rows, " or "")size_t tokens, float *restrict y)
{
//$ if float_sums then
    float sums[$(panel)], lost[$(panel)];
//$ if divides then
    const float all = (float) tokens;
//$ else
//$ root = first_lane("    ", "root", isa.reciprocal_root(isa.broadcast("(float) tokens")))
//$ end
    const float zero = $hidden(0.0f);

    for (size_t from = 0; from < $(pooled_width); from += $(panel)) {
        const size_t count = $(pooled_width) - from < $(panel) ? $(pooled_width) - from : $(panel);
        for (size_t i = 0; i < count; ++i) {
            sums[i] = zero;
            lost[i] = zero;
        }
        for (size_t row = 0; row < $(pooled_rows); ++row)
            for (size_t i = 0; i < count; ++i)
                sums[i] = $(add)(sums[i], x[row * $(pooled_width) + from + i], &lost[i]);
        for (size_t i = 0; i < count; ++i)
            y[from + i] = sums[i] $(divides and "/ all" or "* " .. root);
    }
}
//$ else
    double sums[$(panel)];
//$ if divides then
    const double factor = 1.0 / (double) tokens;
//$ else
//$ root = first_lane("    ", "root", isa.reciprocal_root(isa.broadcast("(float) tokens")))
    const double factor = (double) $(root);
//$ end
    const double zero = (double) $hidden(0.0f);

    for (size_t from = 0; from < $(pooled_width); from += $(panel)) {
        const size_t count = $(pooled_width) - from < $(panel) ? $(pooled_width) - from : $(panel);
        for (size_t i = 0; i < count; ++i)
            sums[i] = zero;
        for (size_t row = 0; row < $(pooled_rows); ++row)
            for (size_t i = 0; i < count; ++i)
                sums[i] += (double) x[row * $(pooled_width) + from + i];
        for (size_t i = 0; i < count; ++i)
            y[from + i] = (float) (sums[i] * factor);
    }
}
//$ end
//$ else
/* The $(output.pool) of x[tokens][$(output.width)]. */
static void $(helper)_pool(const float *restrict x, size_t tokens, float *restrict y)
{
    const float one = $hidden(1.0f);
    const float *token = x$(output.pool == "last" and " + " .. times("(tokens - 1)", output.width) or "");

//$ if output.pool == "first" then
    (void) tokens;
//$ end
    for (size_t i = 0; i < $(output.width); ++i)
        y[i] = one * token[i];
}
//$ end
//$ end
//$ local takes = ""
//$ local gives = {}
//$ for _, name in ipairs { "features", "rest", "weights", "rounded" } do
//$     if has(name) then takes = takes .. (name == "rounded" and ", uint32_t *" or ", float *") .. (name == "weights" and "unpacked" or name) end
//$ end
//$ local source, step, width = "x", output.width, output.width

/* From rows of the last block$(output.pool and ", pooled," or "") to results: x[rows][$(output.width)] is
   $(output.norm and not output.pool and "normalised in place" or "read"), y[rows][$(output.out)] written. */
static void $(helper)_output(const $(names.weights) *weights,
    $(output.norm and not output.pool and "" or "const ")float *x, size_t rows, float *y$(takes))
{
//$ local uses_weights = output.norm and not output.pool or output.dense or output.head
//$ if not uses_weights then
    (void) weights;
//$ end
//$ if output.norm and not output.pool then
//$ norm("    ", output.norm, "output_norm", "x", output.width, "x", output.width, "rows", output.width)
//$ end
//$ local unpacked = has("weights") and "rows > 1 ? unpacked : NULL" or "NULL"
//$ if output.dense then
//$ local dense = output.dense
//$ local inputs, inputs_step = round("    ", dense, "x", output.width, "rounded", "rows")
//$ product("    ", dense, 0, dense.panels, inputs, inputs_step, "features", dense.pitch, "rows", unpacked)
//$ if dense.activation then
    for (size_t i = 0; i < rows * $(dense.pitch); $(advance("i", lanes))) {
        const $(isa.vector) value = $(isa.load_unaligned("features", "i"));
        $(isa.store_unaligned("features", "i", (dense.activation == "tanh" and tanh or activated) .. "(value)"));
    }
//$ end
//$ if dense.norm then norm("    ", dense.norm, "dense_norm", "features", dense.pitch, "features", dense.pitch, "rows", dense.outputs) end
//$ source, step, width = "features", dense.pitch, dense.outputs
//$ end
//$ if output.head then
//$ local head = output.head
//$ local panels, rest = head.outputs // panel, head.outputs % panel
//$ source, step = round("    ", head, source, step, "rounded", "rows")
//$ if panels > 0 then product("    ", head, 0, panels, source, step, "y", head.outputs, "rows", unpacked) end
//$ if rest > 0 then
//$ product("    ", head, panels, 1, source, step, "rest", panel, "rows", unpacked)
    const float one = $hidden(1.0f);
    for (size_t row = 0; row < rows; ++row)
        for (size_t i = 0; i < $(rest); ++i)
            y[$(sum(times("row", head.outputs), panels * panel, "i"))] = one * rest[row * $(panel) + i];
//$ end
//$ if output.soft_cap then
//$ local whole_vectors, some = head.outputs // lanes * lanes, head.outputs % lanes
//$ local function capped(value) return isa.mul(tanh .. "(" .. isa.mul(value, isa.broadcast(float(1 / output.soft_cap))) .. ")", isa.broadcast(float(output.soft_cap))) end
    for (size_t row = 0; row < rows; ++row) {
        float *logits = y + row * $(head.outputs);
//$ if whole_vectors > 0 then
        for (size_t i = 0; i < $(whole_vectors); $(advance("i", lanes))) {
            const $(isa.vector) logit = $(isa.load_unaligned("logits", "i"));
            $(isa.store_unaligned("logits", "i", capped("logit")));
        }
//$ end
//$ if some > 0 then
        const $(isa.vector) logit = $(isa.load_partial("logits", whole_vectors, some));
        $(isa.store_partial("logits", whole_vectors, some, capped("logit")));
//$ end
    }
//$ end
//$ else
    const float one = $hidden(1.0f);
    for (size_t row = 0; row < rows; ++row) {
        const float *from = $(source) + $(times("row", step));
        float *to = y + $(times("row", width));
//$ if output.unit then
//$ if float_sums then
        float square = 0.0f, lost = 0.0f;
        for (size_t i = 0; i < $(width); ++i)
            square = $(add)(square, from[i] * from[i], &lost);
//$ else
        double square = 0.0;
        for (size_t i = 0; i < $(width); ++i)
            square += (double) from[i] * (double) from[i];
//$ end
        /* what is shorter than that has no direction */
        const float length = square > $(float_sums and "1e-30f ? square" or "1e-30 ? (float) square") : 1.0f;
//$ local factor = first_lane("        ", "factor", isa.mul(isa.broadcast("one"), isa.reciprocal_root(isa.broadcast("length"))))
        for (size_t i = 0; i < $(width); ++i)
            to[i] = $(factor) * from[i];
//$ else
        for (size_t i = 0; i < $(width); ++i)
            to[i] = one * from[i];
//$ end
    }
//$ end
}
//$ local function buffers(i, list)
//$     for _, name in ipairs(list) do
//$         if has(name) and name:find "rounded$" then
$(i)uint32_t *$(name) = (uint32_t *) (void *) ($(place(name)));
//$         elseif has(name) then
$(i)float *$(name == "weights" and "unpacked" or name) = (float *) (void *) ($(place(name)));
//$         end
//$     end
//$ end
//$ local output_arguments = ""
//$ for _, name in ipairs { "features", "rest", "weights", "rounded" } do
//$     if has(name) then output_arguments = output_arguments .. ", " .. (name == "weights" and "unpacked" or name) end
//$ end
//$ local const = output.norm and not output.pool and "" or "const "
//$ local takes_rows = "const " .. names.weights .. " *weights, " .. const .. "float *x, " .. (output.pool and "const size_t *offsets, " or "")
//$ local memory = has("pooled") or output_arguments ~= ""
//$ local asks_alone = false
//$ for _, name in ipairs { "features", "rest", "weights", "rounded" } do asks_alone = asks_alone or has(name) and place(name):find("alone", 1, true) end
//$ local takes_memory = (memory and ", unsigned char *memory" or "") .. (asks_alone and ", int alone" or "")
//$ local function gives_memory(of) return (memory and ", " .. of or "") .. (asks_alone and ", alone" or "") end

//$ local of_x = output.sums and "sums" or output.pool and "tokens"
//$ of_x = of_x and "x has the " .. of_x .. " of sequences 0 …" or "x[rows][" .. output.width .. "]"
/* Results of rows number `from` to `end`, $(macro("RESULTS")) at a time: $(of_x),
   y[rows][$(output.out)].$(const == "" and " Rows of x are normalised in place." or "") */
static void $(helper)_results($(takes_rows)size_t from, size_t end, float *y$(takes_memory))
{
//$ buffers("    ", { "pooled", "mapped_means", "means_weights", "means_rounded", "features", "rest", "weights", "rounded" })
//$ local sums = output.sums
//$ if sums and not sums.map then
    const float one = $hidden(1.0f);
//$ end
//$ if memory then

//$ end
    for (size_t row = from, next; row < end; row = next) {
        const size_t last = row - row % $(macro("RESULTS")) + $(macro("RESULTS"));
        next = last < end ? last : end;
//$ if sums then
        for (size_t own = row; own < next; ++own) {
            const size_t at = offsets[own] - offsets[0], count = offsets[own + 1] - offsets[own];
            const size_t first = own + at / $(sums_tokens), behind = own + (at + count - 1) / $(sums_tokens) + 1; /* rows of its sums */

            $(helper)_pool(x + first * $(sums.pitch), behind - first, count, pooled + (own - row) * $(sums.pitch));
        }
//$ if sums.map then
        /* what the last block's last map makes of means is the mean of what it would make of all tokens */
//$ local inputs, inputs_step = round("        ", sums.map, "pooled + " .. sums.hidden, sums.pitch, "means_rounded", "next - row")
//$ product("        ", sums.map, 0, sums.map.panels, inputs, inputs_step, "mapped_means", sums.map.pitch, "next - row", has("means_weights") and "next - row > 1 ? means_weights : NULL" or "NULL")
//$ end
        for (size_t own = row; own < next; ++own) {
            const float *mean = pooled + (own - row) * $(sums.pitch)$(sums.map and ", *mapped = mapped_means + (own - row) * " .. sums.map.pitch or "");
            float *to = pooled + $(times("(own - row)", output.width));
//$ local value = sums.map and "mean[i] + mapped[i]" or "one * mean[i]"
//$ if output.pool == "sqrt_n" then
//$ value = "root * (" .. value .. ")"
            const float count = (float) (offsets[own + 1] - offsets[own]);
            float factors[$(lanes)];
            $(isa.store_unaligned("factors", 0, isa.reciprocal_root(isa.broadcast("count"))));
            const float root = count * factors[0];
//$ end

            for (size_t i = 0; i < $(output.width); ++i)
                to[i] = $(value);
        }
        $(helper)_output(weights, pooled, next - row, y + row * $(macro("D_OUT"))$(output_arguments));
//$ elseif output.pool then
        for (size_t own = row; own < next; ++own)
            $(helper)_pool(x + $(times("(offsets[own] - offsets[0])", output.width)), offsets[own + 1] - offsets[own],
                pooled + $(times("(own - row)", output.width)));
        $(helper)_output(weights, pooled, next - row, y + row * $(macro("D_OUT"))$(output_arguments));
//$ else
        $(helper)_output(weights, x + $(times("row", output.width)), next - row, y + row * $(macro("D_OUT"))$(output_arguments));
//$ end
    }
}
//$ local gives_rows = "weights, x, " .. (output.pool and "offsets, " or "")
//$ if threads then

/* The same for all rows, which threads share. */
static void $(helper)_all_results($(takes_rows)size_t rows, float *y$(takes_memory))
{
#ifdef $(macro("OPENMP"))
//$ local function range_at(n) return threads.range .. "(rows, " .. macro("RESULTS") .. ", " .. macro("RESULTS_PART") .. ", " .. n .. ", ranges)" end
    const size_t ranges = $(threads.ranges)(rows, $(macro("RESULTS")), $(macro("RESULTS_PART")));
#pragma omp parallel for num_threads((int) ranges) schedule(static, 1)
    for (size_t range = 0; range < ranges; ++range)
        $(helper)_results($(gives_rows)$(range_at("range")), $(range_at("range + 1")),
            y$(gives_memory("memory + range * " .. macro("THREAD_SCRATCH_BYTES"))));
#else
    $(helper)_results($(gives_rows)0, rows, y$(gives_memory("memory")));
#endif
}
//$ end
//$ local all_results = helper .. (threads and "_all_results" or "_results")
//$ local first_row = threads and "" or "0, "
//$ -- Lines that make `to` the input of the first block, of `count` tokens.
//$ local function embed(i, ids, position, count, to)
//$ local at = embedding.positions and position .. ", " or ""
//$ if embedding.map then
$(i)for (size_t row = 0; row < $(count); row += $(macro("ROWS"))) {
$(i)    const size_t some = $(count) - row < $(macro("ROWS")) ? $(count) - row : $(macro("ROWS"));
$(i)    $(helper)_embed(weights, $(ids) + row,
$(i)        $(embedding.positions and (position == "0" and "row" or position .. " + row") .. ", " or "")some, embedded);
//$ if embedding.norm then norm(i .. "    ", embedding.norm, "embedding_norm", "embedded", embedding.width, "embedded", embedding.width, "some", embedding.width) end
//$ local inputs, inputs_step = round(i .. "    ", embedding.map, "embedded", embedding.width, "map_rounded", "some")
//$ product(i .. "    ", embedding.map, 0, embedding.map.panels, inputs, inputs_step, "mapped", embedding.map.pitch, "some", has("map_weights") and "some > 1 ? map_weights : NULL" or "NULL")
$(i)    for (size_t token = 0; token < some; ++token)
$(i)        for (size_t i = 0; i < $(embedding.input); ++i)
$(i)            $(to)[(row + token) * $(embedding.input) + i] = one * mapped[token * $(embedding.map.pitch) + i];
$(i)}
//$ elseif projected then
//$ local rows = embedding.positions and (position == "0" and "row" or position .. " + row") .. ", " or ""
$(i)for (size_t row = 0; row < $(count); row += $(macro("ROWS"))) {
$(i)    const size_t some = $(count) - row < $(macro("ROWS")) ? $(count) - row : $(macro("ROWS"));
$(i)    float *given = $(to) + $(times("row", embedding.input));

//$ if has("embedded") then
$(i)    $(helper)_embed(weights, $(ids) + row, $(rows)some, embedded);
//$ end
//$ if factors then
$(i)    $(norms["factors " .. float(factors.eps)])(embedded, $(embedding.width), factors, some);
//$ end
$(i)    $(helper)_project(weights, $(ids) + row, $(projected.parts[1].positions and rows or "")some, $(factors and "factors, " or "")given);
//$ if projected.copied_at and embedding.norm then
//$ norm(i .. "    ", embedding.norm, "embedding_norm", "embedded", embedding.width, "given + " .. projected.copied_at, embedding.input, "some", embedding.width)
//$ elseif projected.copied_at then
$(i)    for (size_t token = 0; token < some; ++token)
$(i)        for (size_t i = 0; i < $(embedding.width); ++i)
$(i)            given[token * $(embedding.input) + $(projected.copied_at) + i] = one * embedded[token * $(embedding.width) + i];
//$ end
$(i)}
//$ else
$(i)$(helper)_embed(weights, $(ids), $(at)$(count), $(to));
//$ if embedding.norm then norm(i, embedding.norm, "embedding_norm", to, embedding.width, to, embedding.width, count, embedding.width) end
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
//$ if depends then
    const int alone = tokens == 1;
//$ end
//$ buffers("    ", { "embedded", "factors", "mapped", "map_weights", "map_rounded" })
//$ for _, buffer in ipairs(plan.memory.buffers) do
//$ if buffer.name:find "^x_" then buffers("    ", { buffer.name }) end
//$ end
//$ if copies_rows then
    const float one = $hidden(1.0f);
//$ end

    for (size_t at = 0; at < tokens; at += $(macro("CHUNK"))) {
        const size_t count = tokens - at < $(macro("CHUNK")) ? tokens - at : $(macro("CHUNK"));

//$ embed("        ", "ids + at", "first + at", "count", "x_1")
//$ local from = "x_1"
//$ for _, segment in ipairs(segments) do
        $(run_of(segment))(&weights->$(segment.word), state + $(macro(segment.word:upper() .. "_STATE_AT")), $(from),
            $(segment.to), first + at, count, $(place(segment.word .. "_scratch")));
//$ from = segment.to
//$ end
        if (y && all)
            $(all_results)(weights, $(from), $(first_row)count, y + at * $(macro("D_OUT"))$(gives_memory("memory")));
        else if (y && at + count == tokens)
            $(helper)_results(weights, $(from) + $(times("(count - 1)", output.width)), 0, 1, y$(gives_memory("memory")));
    }
}
//$ else

/* $(plural(plan.layers, "block")) and what stands before and behind them for some sequences; see
   $(names.encode_batch) in $(names.header). */
void $(symbol)(const $(names.weights) *weights, const int32_t *ids, const size_t *offsets, size_t sequences, float *y, void *scratch)
{
    unsigned char *memory = (unsigned char *) scratch;
//$ buffers("    ", { "embedded", "factors", "mapped", "map_weights", "map_rounded" })
//$ for _, buffer in ipairs(plan.memory.buffers) do
//$ if buffer.name:find "^x_" or buffer.name == "sums" then buffers("    ", { buffer.name }) end
//$ end
//$ if copies_rows then
    const float one = $hidden(1.0f);
//$ end

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
//$ embed("            ", "ids + offsets[own]", "0", "count", "x")
        }
//$ local from = "x_1"
//$ for _, segment in ipairs(segments) do
        $(run_of(segment))(&weights->$(segment.word), $(place(segment.word .. "_cache")), $(from), $(segment.to),
            offsets + s, end - s, $(place(segment.word .. "_scratch")));
//$ from = segment.to
//$ end
//$ if output.pool and output.norm then
//$ norm("        ", output.norm, "output_norm", from, output.width, from, output.width, "offsets[end] - offsets[s]", output.width)
//$ end
//$ if output.pool then
        $(all_results)(weights, $(from), offsets + s, $(first_row)end - s, y + s * $(macro("D_OUT"))$(gives_memory("memory")));
//$ else
        $(all_results)(weights, $(from), $(first_row)offsets[end] - offsets[s],
            y + offsets[s] * $(macro("D_OUT"))$(gives_memory("memory")));
//$ end
    }
}
//$ end
