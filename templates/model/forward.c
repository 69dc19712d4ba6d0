//$ takes prologue, symbol, helper, plan, embedding, output, runs, norms, products, rounded_rows, sums_floats
//$ takes has, buffers, depends, tile, threads, memory_arguments
//$ local macro, projected = names.macro, embedding.projected
//$ lines(prologue)
//$ -- The functions that the parts of this file call; norms: { name, weights } of each, by what it stands behind.
//$ local calls, activation = { norms = {}, rounds = {} }, output.dense and output.dense.activation
//$ if activation and activation ~= "tanh" then
//$     calls.activation = once("templates/math/activation.c", { activation = activation }) .. "_" .. activation
//$ end
//$ if activation == "tanh" or output.soft_cap then calls.tanh = once("templates/math/tanh.c") .. "_tanh" end
//$ if activation == "tanh" then calls.activation = calls.tanh end
//$ calls.add = sums_floats and once("templates/math/sum.c") .. "_add"
//$ for _, one in ipairs(norms) do
//$     local prefix = once("templates/math/norm.c", one.given)
//$     calls.norms[one.of] = { name = prefix .. "_" .. one.given.name, weights = one.weights }
//$ end
//$ for _, inputs in ipairs(rounded_rows) do
//$     local prefix = once("templates/model/blocks/round_rows.c", { inputs = inputs, measured = false })
//$     calls.rounds[inputs] = prefix .. "_rounded_" .. inputs
//$ end
$(include("templates/model/multiply.c", product)) //$ for _, product in ipairs(products)
$(include("templates/model/embed.c")) //$ if has("embedded") or not projected
$(include("templates/model/project.c")) //$ if projected
$(include("templates/model/pool.c", { calls = calls })) //$ if output.pool
$(include("templates/model/output.c", { calls = calls }))
$(include("templates/model/results.c", { calls = calls }))
//$ local copies_rows = embedding.map or projected and projected.copied_at and not embedding.norm
//$ local all_results, first_row = helper .. (threads and "_all_results" or "_results"), threads and "" or "0, "
//$ local x = runs[#runs].to
//$ if plan.causal then

/* $(plural(plan.layers, "block")) and what stands before and behind them for `tokens` ids of one sequence, from
   position `first` on, $(plan.tokens) at a time;
   y: the results of all, or of the last one, or null. */
void $(symbol)(const $(names.weights) *weights, unsigned char *state, const int32_t *ids, size_t first, size_t tokens,
    float *y, int all, void *scratch)
{
    unsigned char *memory = (unsigned char *) scratch;
    const int alone = tokens == 1; //$ if depends
    $(buffer.type)$(buffer.name) = ($(buffer.type)) (void *) ($(buffer.place)); //$ for _, buffer in ipairs(buffers.first)
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */ //$ if copies_rows

    for (size_t at = 0; at < tokens; at += $(macro("CHUNK"))) {
        const size_t count = tokens - at < $(macro("CHUNK")) ? tokens - at : $(macro("CHUNK"));

$(include("templates/model/first_input.c", { ids = "ids + at", position = "first + at", count = "count", calls = calls, to = "x_1" }))
//$ for _, run in ipairs(runs) do
        $(run.name)(&weights->$(run.word), state + $(macro(run.word:upper() .. "_STATE_AT")), $(run.from),
            $(run.to), first + at, count, $(run.scratch));
//$ end
        if (y && all)
            $(all_results)(weights, $(x), $(first_row)count, y + at * $(macro("D_OUT"))$(memory_arguments("memory")));
        else if (y && at + count == tokens)
            $(helper)_results(weights, $(x) + $(times("(count - 1)", output.width)), 0, 1, y$(memory_arguments("memory")));
    }
}
//$ else

/* $(plural(plan.layers, "block")) and what stands before and behind them for some sequences; see
   $(names.encode_batch) in $(names.header). */
void $(symbol)(const $(names.weights) *weights, const int32_t *ids, const size_t *offsets, size_t sequences, float *y, void *scratch)
{
    unsigned char *memory = (unsigned char *) scratch;
    $(buffer.type)$(buffer.name) = ($(buffer.type)) (void *) ($(buffer.place)); //$ for _, buffer in ipairs(buffers.first)
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
$(include("templates/model/first_input.c", { ids = "ids + offsets[own]", position = 0, count = "count", calls = calls, to = "x" }))
        }
//$ for _, run in ipairs(runs) do
        $(run.name)(&weights->$(run.word), $(run.cache), $(run.from), $(run.to), offsets + s, end - s, $(run.scratch));
//$ end
//$ if output.pool and output.norm then
//$ local norm, width = calls.norms.output, output.width
        $(norm.name)($(x), $(width), $(norm.weights), $(x), $(width), offsets[end] - offsets[s]);
//$ end
//$ if output.pool then
        $(all_results)(weights, $(x), offsets + s, $(first_row)end - s, y + s * $(macro("D_OUT"))$(memory_arguments("memory")));
//$ else
        $(all_results)(weights, $(x), $(first_row)offsets[end] - offsets[s],
            y + offsets[s] * $(macro("D_OUT"))$(memory_arguments("memory")));
//$ end
    }
}
//$ end
