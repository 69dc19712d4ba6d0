//$ takes helper
//$ -- The values in the window of each token of an encoder.
//$ local hash, group, width, pitch = shape.lsh, shape.group, shape.width, names.constant("VALUE_PITCH")
//$ local window = hash.window

/* y = y + the values in each token's window, less what tables will add of them. The arguments are those of attention. */
static void $(helper)_add_windows(const $(names.type("cache")) *kept, const $(names.span) *span, const $(names.type("attention")) *a)
{
    const float *q = a->q.at, *keys = kept->keys, *values = kept->values;
    const uint16_t *q_code = a->q_codes, *codes = kept->codes;
    const size_t q_step = a->q.step, y_step = a->y.step, first = span->first, tokens = span->count, end = span->tokens;
    float *y = a->y.at;

    for (size_t token = 0; token < tokens; ++token) {
        const size_t position = first + token, low = position < $(window) ? 0 : position - $(window - 1);
        const size_t high = position + $(window) < end ? position + $(window) : end;

        for (size_t head = 0; head < $(group); ++head)
            $(helper)_near(q + token * q_step + head * $(width), keys + low * $(width), values + low * $(pitch), high - low,
                q_code + head * $(hash.tables) * tokens + token, $(hash.tables > 1 and "tokens, " or "")codes + low, y + token * y_step + head * $(width));
    }
}
