//$ takes helper, training
//$ -- Tables of a decoder: they hold the values of earlier tokens, which enter when they leave the window.
//$ local hash, short, window = shape.lsh, shape.cache.limit, shape.lsh.window
//$ local over_together = hash.together > 1 and "table / " .. hash.together or "table"
//$ local table_step, sparse = hash.rows .. " * " .. names.constant("VALUE_PITCH"), training and training.sparse
//$ local step = hash.together > 1 and ", tokens" or ""

/* y = y + what queries find in tables. The arguments are those of attention. */
static void $(helper)_add_tables(const $(names.type("cache")) *kept, const $(names.span) *span, const $(names.type("attention")) *a)
{
    const uint16_t *q_code = a->q_codes, *k_code = a->k_codes;
    const uint16_t *codes = kept->codes; //$ if window > 0
    const float *v = a->v.at;
    const float *values = kept->values; //$ if window > 0
    $(shape.cache.row.storage) *tables = kept->tables;
    float *units = kept->units; //$ if short
    float *y = a->y.at;
    const size_t v_step = a->v.step, y_step = a->y.step, tokens = span->count;
    const size_t first = span->first; //$ if window > 0 or not sparse
    const size_t oldest = first % $(window); //$ if window > 0
    const $(shape.cache.row.storage) zero = $(short and "(int16_t) $hidden_integer(0)" or "$hidden(0.0f)"); /* else loops are calls of memset */

    for (size_t table = 0; table < $(hash.tables); table += $(hash.together)) {
        $(shape.cache.row.storage) *rows = tables$(training and "" or " + table * (" .. table_step .. ")");
        float unit = first > 0 ? units[$(over_together)] : 0.0f; //$ if short

//$ if sparse then
$(include("templates/model/blocks/table_clear.c", { count = "tokens", codes = "k_code + table * tokens + token" .. step }))
$(include("templates/model/blocks/table_clear.c", { count = "tokens", codes = "q_code + table * tokens + token" .. step }))
//$ else
        if (first == 0)
            for (size_t i = 0; i < $(hash.together * hash.rows) * $(names.constant("VALUE_PITCH")); ++i)
                rows[i] = zero;
//$ end
        for (size_t token = 0; token < tokens; ++token) {
//$ if window > 0 then
            if (first + token >= $(window)) { /* one leaves the window */
                const size_t step = token < $(window) ? $(window) : tokens; //$ if hash.tables > 1
                const uint16_t *code = token < $(window) ? codes + (first + token) % $(window) : k_code + token - $(window);
                const float *value = token < $(window) ? values + (oldest + token) * $(names.constant("VALUE_PITCH")) : v + (token - $(window)) * v_step;
$(include("templates/model/blocks/table_insert.c", { codes = "code" .. (hash.tables > 1 and " + table * step" or "") .. (step ~= "" and ", step" or "") }))
            }
//$ else
            const float *value = v + token * v_step;
$(include("templates/model/blocks/table_insert.c", { codes = "k_code + table * tokens + token" .. step }))
//$ end
$(include("templates/model/blocks/table_look_up.c"))
        }
        units[$(over_together)] = unit; //$ if short
    }
}
