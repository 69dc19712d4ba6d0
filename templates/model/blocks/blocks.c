//$ takes prologue, v, symbol, helper, after, activation, activation_table, structs,
//$ takes rounded, rounded_rows, tiles, tokens_parameters, threads, sums, norms
//$ local macro = names.constant
//$ local layers = shape.layers > 1
//$ lines(prologue)

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
//$ local rounds, activates, joined = {}, false, false -- joined: the activation that a product by tiles ends with
//$ for _, step in ipairs(after) do
//$     joined, activates = tiles and step.of and step or joined, step.op == "activate" and step or activates
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
//$ -- The names of the functions that steps call.
//$ local names_of, norm_calls = {}, {}
//$ for _, one in ipairs(norms) do norm_calls[one.key] = once("templates/math/norm.c", one.given) .. "_" .. one.given.name end
//$ function names_of.round(inputs) return rounds[inputs] .. "_rounded_" .. inputs end
//$ function names_of.norm(step) return norm_calls[step.letter and "heads " .. step.number or step.width or shape.d] end
//$ local copies, add = {}, structs.adds and once("templates/model/blocks/add_rows.c", { width = shape.d }) .. "_add_" .. shape.d
//$ for _, width in ipairs(structs.copied) do
//$     copies[width] = once("templates/model/blocks/copy_rows.c", { width = width }) .. "_copy_" .. width
//$ end
//$ function names_of.copy(width) return copies[width or shape.d] end
//$ function names_of.add() return add end
//$ if activates then
//$ local round = activates.rounded and names_of.round(activates.inputs)
$(include("templates/model/blocks/activate.c", { activated = activated, step = activates, round = round or false }))
//$ end
//$ local rotated = { rope = shape.rope or false, width = shape.width, in_place = shape.lsh ~= nil }
//$ local turn = shape.rope and once("templates/model/blocks/rotate.c", rotated)
$(include("templates/model/blocks/places.c", { layers = layers }))
//$ if joined then
$(include("templates/model/blocks/activate_by_tiles.c", { activated = activated, joined = joined, round = names_of.round }))
//$ end
//$ if shape.lsh then
$(include("templates/model/blocks/hash.c", { hash = shape.lsh }))
$(include("templates/model/blocks/append_tables.c", { turn = turn or false })) //$ if not shape.causal and structs.rows.k
$(include("templates/model/blocks/attend_tables.c", { turn = turn or false })) //$ if structs.rows.q
//$ else
$(include("templates/model/blocks/append_keys.c")) //$ if structs.rows.k and shape.from_keys
$(include("templates/model/blocks/append.c", { rounds = rounds, turn = turn or false })) //$ if structs.rows.k and not shape.from_keys
$(include("templates/model/blocks/attend.c", { rounds = rounds, turn = turn or false })) //$ if structs.rows.q
//$ end
$(include("templates/model/blocks/look_up.c")) //$ if structs.lookup
//$ local limited = not shape.lsh and v.queries < v.chunk -- fewer tokens attend together than a chunk has
$(include("templates/model/blocks/spans.c", { limited = limited }))
$(include("templates/model/blocks/sums.c", { activated = activated or false })) //$ if sums
//$ local last = after[#after]
//$ for _, phase in ipairs(v.phases) do

/* $(phase.doc): tokens number `from` to `end` - 1 of a call. */
static void $(helper)_$(phase.word)(const $(names.type("call")) *call, size_t layer, size_t from, size_t end, void *scratch)
{
    $(names.type("layer")) own;
    $(names.type("buffers")) b;
    $(names.type("cache")) cache; //$ if phase.spans
    $(names.span) span; //$ if phase.spans

    for (size_t at = from, next; at < end; at = next) {
        const size_t chunk_end = at - at % $(macro("CHUNK")) + $(macro("CHUNK"));
        next = chunk_end < end ? chunk_end : end;
        const size_t count = next - at;
//$ if phase.by_count then
        const size_t together = chunk_end < call->tokens ? $(macro("CHUNK")) : call->tokens - (chunk_end - $(macro("CHUNK")));
//$ end

        $(helper)_layer_at(call->weights, layer, &own);
        $(helper)_cache_at(call->cache, layer, &cache); //$ if phase.spans
        $(helper)_buffers_at(call, at, scratch, &b);
//$ for _, step in ipairs(phase.steps) do
//$     if not (tiles and step.activated or shape.delivered and step == last) then -- with its activation; behind all layers
//$         lines({ include("templates/model/blocks/step.c", { step = step, names_of = names_of, by_count = phase.by_count, limited = limited }) })
//$     end
//$ end
    }
}
//$ end
//$ local which = layers and "All " .. shape.layers .. " blocks" or "The block"
//$ if shape.sequences then

/* $(which) for sequences of tokens, sequence s from token offsets[s] - offsets[0] of x$(sums and "" or " and y") on,
   $(plural(v.chunk, "token")) at a time$(sums and "; y: the sums over them" or ""); see $(names.header). */
//$ else

/* $(which) for `tokens` tokens from position `first` on, $(v.chunk) at a time; see $(names.header). */
//$ end
void $(symbol)(const $(names.weights) *weights, unsigned char *cache, const float *x, float *y, $(tokens_parameters), void *scratch)
{
    $(names.type("call")) call;
    const size_t tokens = offsets[sequences] - offsets[0]; //$ if shape.sequences
    $(names.type("buffers")) b; //$ if shape.delivered

    call.weights = weights;
    call.cache = cache;
    call.in = (float *) (uintptr_t) x; /* no step writes to it */
    call.in_step = $(macro("D_IN")); //$ if shape.delivered
    call.y = y;
    call.tokens = tokens;
    call.offsets = offsets; //$ if shape.sequences
    call.first = first; //$ if not shape.sequences
//$ -- How many threads share `count` tokens.
//$ local function find_ranges(count)
//$ local few = v.part.few and count .. " <= " .. v.part.threshold .. " ? " .. v.part.few .. " : " or ""
        const size_t part = $(few)$(v.part.many); /* tokens that are worth a thread */
        const size_t ranges = $(threads.ranges)($(count), $(macro("CHUNK")), part);
//$ end
//$ -- The phases of a layer, of the tokens from number `from` of a call up to `to`, `count` of them; `alone`: nothing has found how many
//$ -- threads share them.
//$ local function run_phases(from, to, count, alone)
//$ local at = from == "0" and "" or from .. " + "
//$ local function call_of(phase, first, last, memory)
//$     return helper .. "_" .. phase.word .. "(" .. listed("&call", layers and "layer" or "0", first, last, memory) .. ");"
//$ end
//$ if threads then
#ifdef $(names.macro("OPENMP"))
//$     local memory = "(unsigned char *) scratch + range * " .. names.macro("THREAD_SCRATCH_BYTES")
//$     local function range_at(n) return at .. threads.range .. "(" .. listed(count, macro("CHUNK"), "part", n, "ranges") .. ")" end
//$     if alone then find_ranges(count) end
//$     for n, phase in ipairs(v.phases) do
#pragma omp parallel for num_threads((int) ranges) schedule(static, 1) //$ if not phase.alone
            for (size_t range = 0; range < ranges; ++range)
                $(call_of(phase, range_at "range", range_at "range + 1", memory))
//$     end
#else
//$ end
            $(call_of(phase, from, to, "scratch")) //$ for _, phase in ipairs(v.phases)
#endif //$ if threads
//$ end
//$ local function ranges(count)
//$ if threads then
#ifdef $(names.macro("OPENMP"))
//$ find_ranges(count)
#endif
//$ end
//$ end
//$ local function open_layers()
        for (size_t layer = 0; layer < $(shape.layers); ++layer) { //$ if layers
//$ end
//$ if shape.delivered then
    $(helper)_buffers_at(&call, 0, scratch, &b);
    for (size_t at = 0; at < tokens; at += $(macro("CHUNK"))) {
        const size_t count = tokens - at < $(macro("CHUNK")) ? tokens - at : $(macro("CHUNK"));

//$ ranges("count")
        call.in = (float *) (uintptr_t) (x + at * $(macro("D_IN")));
        call.in_step = $(macro("D_IN"));
        call.first = first + at; //$ if not shape.sequences
//$ open_layers()
//$ run_phases("0", "count", "count")
//$ if layers then
            call.in = b.out.at; /* rows that the next layer's attention reads as they are */
            call.in_step = b.out.step;
        }
//$ end
        $(names_of.copy(shape.d))(b.out.at, b.out.step, y + at * $(macro("D")), $(macro("D")), count);
    }
//$ elseif #v.phases > 1 and shape.causal then
//$ open_layers()
        for (size_t at = 0; at < tokens; at += $(macro("CHUNK"))) {
            const size_t count = tokens - at < $(macro("CHUNK")) ? tokens - at : $(macro("CHUNK"));
//$ run_phases("at", "at + count", "count", true)
        }
//$ if layers then
        call.in = y;
    }
//$ end
//$ else
//$ if layers then ranges("tokens") end
//$ open_layers()
//$ run_phases("0", "tokens", "tokens", not layers)
//$ if layers then
        call.in = y;
    }
//$ end
//$ end
}
