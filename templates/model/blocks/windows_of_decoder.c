//$ takes helper, copy
//$ -- The values in the window of each token of a decoder. copy: the function that copies rows of a head.
//$ local group, width, pitch, window = shape.group, shape.width, names.constant("VALUE_PITCH"), shape.lsh.window

/* y = y + the values in each token's window. Keys and values of the first tokens go behind those of the window before
   them, so that each window lies in one piece. The arguments are those of attention. */
static void $(helper)_add_windows(const $(names.type("cache")) *kept, const $(names.span) *span, const $(names.type("attention")) *a)
{
    const float *q = a->q.at, *k = a->k.at, *v = a->v.at;
    const size_t q_step = a->q.step, k_step = a->k.step, v_step = a->v.step, y_step = a->y.step;
    float *keys = kept->keys, *values = kept->values, *y = a->y.at;
    const size_t first = span->first, tokens = span->count, oldest = first % $(window);

    for (size_t token = 0; token < tokens; ++token) {
        const size_t seen = first + token + 1, count = seen < $(window) ? seen : $(window);
        const size_t row = oldest + token + $(window);
        const float *key, *value;
        size_t key_step, value_step;

        if (token + 1 < $(window)) { /* the window reaches before these tokens */
            $(copy)(k + token * k_step, 0, keys + row * $(width), 0, 1);
            $(copy)(v + token * v_step, 0, values + row * $(pitch), 0, 1);
            key = keys + (row + 1 - count) * $(width);
            value = values + (row + 1 - count) * $(pitch);
            key_step = $(width);
            value_step = $(pitch);
        } else {
            key = k + (token + 1 - count) * k_step;
            value = v + (token + 1 - count) * v_step;
            key_step = k_step;
            value_step = v_step;
        }
        for (size_t head = 0; head < $(group); ++head)
            $(helper)_near(q + token * q_step + head * $(width), key, key_step, value, value_step, count,
                y + token * y_step + head * $(width));
    }
}
