//$ takes helper, limited
//$ -- The sequences of a chunk. limited: whether some spans have fewer tokens than there are.

/* What the first span of a chunk follows. */
static void $(helper)_no_span($(names.span) *span)
{
    span->token = 0;
    span->count = 0;
//$ if shape.sequences then
    span->sequence = 0;
    span->tokens = 0;
    span->base = 0;
//$ end
}

//$ local some = limited and ", at most `most`" or ""
/* Goes on to the next span of the chunk of `count` tokens from token `at` of a call on; 0: there is none.
   A span has tokens of one sequence$(some). */
static int $(helper)_next_span(const $(names.type("call")) *call, size_t at, size_t count, $(limited and "size_t most, " or "")$(names.span) *span)
{
    const size_t token = span->token + span->count;
    const size_t number = call->offsets[0] + at + token; //$ if shape.sequences
    const size_t rest = count - token < most ? count - token : most; //$ if limited
    const size_t rest = count - token; //$ if not limited

    if (token == count)
        return 0;
    span->token = token;
//$ if shape.sequences then
    for (;; ++span->sequence) {
        span->tokens = call->offsets[span->sequence + 1] - call->offsets[span->sequence];
        if (call->offsets[span->sequence + 1] > number)
            break;
//$ local tile = names.constant("TILE_POSITIONS")
        span->base += (span->tokens + $(tile) - 1) / $(tile) * $(tile);
    }
    span->first = number - call->offsets[span->sequence];
    span->count = span->tokens - span->first < rest ? span->tokens - span->first : rest;
//$ else
    span->first = call->first + at + token;
    span->count = rest;
    span->tokens = $(shape.causal and "span->first + span->count" or "call->tokens");
//$ if not shape.causal then
    span->sequence = 0;
    span->base = 0;
//$ end
//$ end
    return 1;
}
