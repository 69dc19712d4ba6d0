//$ takes prologue, isa, v, lanes, symbol, helper, before, after, reads_input, activates, activation, activation_table, eps,
//$ takes rounded, rounded_rows, tiles, copies, tokens_parameters, threads, sums, pitches, normed, head_norms, full_flags
//$ takes cache_places
//$ local macro = names.constant
//$ local layers = shape.layers > 1
//$ -- Where layer `layer` has its part of `base`.
//$ local function of_layer(base, of) return sum(base, layers and times("layer", macro(of)) or 0) end
//$ local d_in = macro(shape.input == shape.d and "D" or "D_IN")
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
//$ local joined -- the activation that a product by tiles ends with
//$ for _, step in ipairs(after) do
//$     joined = tiles and step.of and step or joined
//$ end
//$ for _, inputs in ipairs(rounded_rows) do
//$     local measured = joined and joined.inputs == inputs and rounded.integers or false
//$     rounds[inputs] = once("templates/model/blocks/round_rows.c", { inputs = inputs, measured = measured })
//$ end
//$ local activated
//$ if activation_table then
//$     local given = { activation = activation, table = activation_table }
//$     activated = once("templates/math/activation_by_table.c", given) .. "_" .. activation .. "_by_table"
//$ elseif activates or sums and sums.activates then
//$     activated = once("templates/math/activation.c", { activation = activation }) .. "_" .. activation
//$ end
//$ if activates then

//$ if shape.gated then
/* hidden = activation(gate) hidden, [tokens] rows of $(macro(pitches.hidden)). */
//$ else
/* hidden = activation(hidden), [tokens] rows of $(macro(pitches.hidden)). */
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
        gate += $(macro(pitches.hidden));
//$ end
        hidden += $(macro(pitches.hidden));
    }
}
//$ end
//$ if joined then
//$ local epilogue = { activated = activated, gate = joined.gate }
//$ epilogue.gate_step = joined.gate and macro(pitches[joined.gate])
//$ epilogue.rounded_step = macro(pitches[joined.rounded])
//$ local given = { helper = helper .. "_hidden", epilogue = epilogue, sums = tiles.sums, outputs = tiles.outputs, dot = tiles.dot }
$(include("templates/model/blocks/product_tiles.c", given))
//$ end
//$ if shape.rope then
$(include("templates/model/blocks/rotate.c"))
//$ end
//$ if shape.full_layers then

/* Whether a layer attends to all positions, not only to those in the window. */
static const unsigned char $(helper)_is_full[$(shape.layers)] = {
    $(full_flags),
};
//$ end
//$ if shape.mixed then

/* Where the keys and values of a layer begin in the cache: those of layers with the window are rings. */
static const size_t $(helper)_cache_at[$(shape.layers)] = {
    $(cache_places),
};
//$ end
//$ if shape.lsh then
$(include("templates/model/blocks/hash.c", { hash = shape.lsh }))
//$ if not shape.causal then
$(include("templates/model/blocks/append_tables.c"))
//$ end
$(include("templates/model/blocks/attend_tables.c"))
//$ else
//$ if shape.from_keys then
$(include("templates/model/blocks/append_keys.c"))
//$ else
$(include("templates/model/blocks/append.c", { rounds = rounds }))
//$ end
$(include("templates/model/blocks/attend.c", { rounds = rounds }))
//$ end
//$ -- The functions that norm rows, by the width of these.
//$ local norms = {}
//$ for _, width in ipairs(normed) do
//$     local name = shape.norm.kind .. "_" .. width
//$     norms[width] = norms[width] or once("templates/math/norm.c", {
//$         name = name,
//$         layernorm = shape.norm.kind == "layernorm",
//$         factors = false,
//$         gains = true,
//$         width = width,
//$         eps = eps,
//$     }) .. "_" .. name
//$ end
//$ local norms_of_heads = {}
//$ for i, norm in ipairs(head_norms) do
//$     norms_of_heads[i] = once("templates/math/norm.c", {
//$         name = norm.name,
//$         layernorm = false,
//$         factors = false,
//$         gains = norm.gains,
//$         width = shape.width,
//$         eps = norm.eps,
//$     }) .. "_" .. norm.name
//$ end
//$ if shape.sequences then
$(include("templates/model/blocks/stretches.c"))
//$ end
//$ if sums then
$(include("templates/model/blocks/sum_rows.c", { name = "sum_rows", width = shape.d, activated = false }))
//$ if sums.hidden then
//$ local hidden = { name = "sum_hidden", width = shape.f, activated = sums.activates and activated }
$(include("templates/model/blocks/sum_rows.c", hidden))
//$ end
//$ end
//$ local function step_of(name)
//$     if name == "in" then return shape.delivered and "in_step" or d_in end
//$     return macro(pitches[name])
//$ end
//$ local function one(step, i)
//$     if tiles and step.activated then return end -- with its activation
//$     lines("", { include("templates/model/blocks/step.c", {
//$         step = step,
//$         i = i,
//$         step_of = step_of,
//$         of_layer = of_layer,
//$         tiles = tiles,
//$         norm = function(width) return norms[width] end,
//$         norms_of_heads = norms_of_heads,
//$         rounds = rounds,
//$     }) })
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
//$ if item.storage ~= "float" then at = "(" .. item.storage .. " *) (void *) (" .. at .. ")" end
    $(item.storage) *$(item.name) = $(at);
//$ end
//$ end
//$ end
//$ -- What is kept of all tokens of a call, from the chunk's first one on, if `used` has it.
//$ local of_call = v.buffers.of_call
//$ local function declare_of_call(i, used)
//$     if of_call and (not used or used[of_call.name]) then
$(i)float *$(of_call.name) = (float *) scratch + $(macro("OF_CALL_AT")) + at * $(step_of(of_call.name));
//$     end
//$ end
//$ -- The parts of the cache of a layer, from `base` on.
//$ local function parts_of_cache(i, base)
//$     if shape.mixed then
$(i)const size_t positions = $(helper)_is_full[layer] ? $(macro("CACHE_POSITIONS")) : $(macro("RING_POSITIONS"));
//$     end
//$     for _, part in ipairs(shape.cache.parts) do
//$         local at = part.at == 0 and base
//$             or "(" .. base .. " + " .. (shape.mixed and "positions * " or "") .. macro(part.name:upper() .. "_AT") .. ")"
$(i)$(part.storage) *$(part.name) = ($(part.storage) *) (void *) $(at);
//$     end
//$ end
//$ local which = layers and "All " .. shape.layers .. " blocks" or "The block"
//$ if threads then
//$ for _, phase in ipairs(v.phases) do
//$ local needs = phase.needs
//$ local parameters = listed(
//$     needs.weights and "const " .. names.weights .. " *weights",
//$     needs.layer and "size_t layer",
//$     needs.cache and "unsigned char *cache",
//$     needs.x and "const float *x",
//$     needs.y and "float *y",
//$     needs.positions and (shape.sequences and "const size_t *offsets" or "size_t first"),
//$     needs.together and (shape.sequences and "size_t tokens" or "size_t together"),
//$     shape.sequences and "size_t from" or "size_t at",
//$     "size_t end",
//$     needs.memory and "size_t chunk, void *scratch"
//$ )

/* $(phase.doc), of tokens number $(shape.sequences and "`from`" or "`at`") to `end` - 1 of a call. */
static void $(helper)_$(phase.word)($(parameters))
{
//$ if needs.memory then declare_buffers(needs.buffers) end
//$ if needs.cache then parts_of_cache("    ", "cache") end
//$ if needs.one then
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
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

/* $(which) for sequences of tokens, sequence s from token offsets[s] - offsets[0] of x$(sums and "" or " and y") on,
   $(v.chunk) tokens at a time$(sums and "; y: the sums over them" or ""); see $(names.header). */
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
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ end
//$ local own_cache = layers and not shape.sequences
//$ local function cache_of_layer(i)
//$     if own_cache then
$(i)unsigned char *layer_cache = cache + $(shape.mixed and helper .. "_cache_at[layer]" or "layer * " .. macro("CACHE_LAYER_BYTES"));
//$     end
//$ end
//$ if threads then
//$ local calls = {}
//$ for n, phase in ipairs(v.phases) do
//$     local needs = phase.needs
//$     calls[n] = function(from, to, memory)
//$         return helper .. "_" .. phase.word .. "(" .. listed(
//$             needs.weights and "weights",
//$             needs.layer and "layer",
//$             needs.cache and (own_cache and "layer_cache" or "cache"),
//$             needs.x and "x",
//$             needs.y and "y",
//$             needs.positions and (shape.sequences and "offsets" or "first"),
//$             needs.together and (shape.sequences and "tokens" or "count"),
//$             from,
//$             to,
//$             needs.memory and "chunk, " .. memory
//$         ) .. ");"
//$     end
//$ end
//$ local count = shape.sequences and "tokens" or "count"
//$ local function ranges(i)
#ifdef $(names.macro("OPENMP"))
//$ local few = v.part.few and count .. " <= " .. v.part.threshold .. " ? " .. v.part.few .. " : " or ""
$(i)const size_t part = $(few)$(v.part.many); /* tokens that are worth a thread */
$(i)const size_t ranges = $(threads.ranges)($(count), $(macro("CHUNK")), part);
#endif
//$ end
//$ local function range_at(n)
//$     local range = threads.range .. "(" .. listed(count, macro("CHUNK"), "part", n, "ranges") .. ")"
//$     return (shape.sequences and "" or "at + ") .. range
//$ end
//$ local function run_phases(i)
#ifdef $(names.macro("OPENMP"))
//$     local memory = "(unsigned char *) scratch + range * " .. names.macro("THREAD_SCRATCH_BYTES")
//$     for n, phase in ipairs(v.phases) do
//$         if not phase.alone then
#pragma omp parallel for num_threads((int) ranges) schedule(static, 1)
//$         end
$(i)for (size_t range = 0; range < ranges; ++range)
$(i)    $(calls[n](range_at "range", range_at "range + 1", memory))
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
