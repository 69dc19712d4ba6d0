//$ takes helper, copy
//$ -- What a decoder's window has in the cache. copy: the function that copies rows of a head.
//$ local hash, width, pitch = shape.lsh, shape.width, names.constant("VALUE_PITCH")
//$ local window = hash.window

/* Keeps the last $(plural(window, "token")) for the next call: keys and values from the first row on once $(window > 1 and "these reach" or "it reaches") the end of the
   rows, and codes. The arguments are those of attention. */
static void $(helper)_keep_last(const $(names.type("cache")) *kept, const $(names.span) *span, const $(names.type("attention")) *a)
{
    float *keys = kept->keys, *values = kept->values;
    const size_t first = span->first, tokens = span->count, oldest = first % $(window);

    if (oldest + tokens >= $(window))
        for (size_t n = 0; n < $(window); ++n) {
            const size_t from = oldest + tokens + n, to = (first + tokens) % $(window) + n;
            const float *k = tokens < $(window) ? keys + from * $(width) : a->k.at + (tokens + n - $(window)) * a->k.step;
            const float *v = tokens < $(window) ? values + from * $(pitch) : a->v.at + (tokens + n - $(window)) * a->v.step;
            $(copy)(k, 0, keys + to * $(width), 0, 1);
            $(copy)(v, 0, values + to * $(pitch), 0, 1);
        }
    for (size_t token = tokens < $(window) ? 0 : tokens - $(window); token < tokens; ++token)
        for (size_t table = 0; table < $(hash.tables); ++table)
            kept->codes[table * $(window) + (first + token) % $(window)] = a->k_codes[table * tokens + token];
}
