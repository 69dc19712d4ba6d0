//$ takes helper, sums, activated
//$ -- Sums over tokens, of rows that a block ends with.
$(include("templates/model/blocks/sum_rows.c", { name = "sum_rows", width = shape.d, activated = false }))
//$ if sums.hidden then
$(include("templates/model/blocks/sum_rows.c", { name = "sum_hidden", width = shape.f, activated = sums.activates and activated }))
//$ end
//$ local macro, step = names.constant, sums.step

/* Sums of the tokens of `span`, $(macro("SUMS_TOKENS")) of a call to a row. */
static void $(helper)_sum(const $(names.type("call")) *call, const $(names.type("buffers")) *b, size_t at, const $(names.span) *span)
{
    for (size_t done = 0, some; done < span->count; done += some) {
        const size_t token = span->token + done, before = (at + token) % $(macro("SUMS_TOKENS"));
        float *row = call->y + (span->sequence + (at + token) / $(macro("SUMS_TOKENS"))) * $(macro("SUMS_PITCH"));

        some = span->count - done < $(macro("SUMS_TOKENS")) - before ? span->count - done : $(macro("SUMS_TOKENS")) - before;
        $(helper)_sum_rows(b->$(step.a).at + token * b->$(step.a).step, b->$(step.a).step, some, row);
//$ if step.from then
        $(helper)_sum_hidden(b->$(step.from).at + token * b->$(step.from).step, b->$(step.from).step, some,
            row + $(macro("SUMS_HIDDEN_AT")));
//$ end
    }
}
