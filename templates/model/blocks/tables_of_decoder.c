//$ takes isa, helper, training, rows_of, code_of, table_step, copy
//$ -- Tables hold the values of earlier tokens; those in the window are met one by one, and enter when they leave it.
//$ local hash, group, width, short = shape.lsh, shape.group, shape.width, shape.cache.limit
//$ local pitch, window = names.constant("VALUE_PITCH"), hash.window
//$ local over_together = hash.together > 1 and "table / " .. hash.together or "table"
//$ local cleared, sparse = training and "tables" or "tables + table * " .. table_step, training and training.sparse
    const uint16_t *q_code = a->q_codes;
//$ if window > 0 then
    const float *q = a->q.at;
    const size_t q_step = a->q.step;
    const float *k = a->k.at;
    const size_t k_step = a->k.step;
//$ end
    const float *v = a->v.at;
    const size_t v_step = a->v.step;
    const uint16_t *k_code = a->k_codes;
//$ for _, part in ipairs(shape.cache.parts) do
    $(part.storage) *$(part.name) = kept->$(part.name); //$ if part.read
//$ end
    float *y = a->y.at;
    const size_t y_step = a->y.step, tokens = span->count;
    const size_t first = span->first; //$ if window > 0 or not sparse
    const float zero = $hidden(0.0f); /* else its loops are calls of memset */
//$ if window > 0 then
    const size_t oldest = first % $(window);
//$ end

    for (size_t token = 0; token < tokens; ++token) {
//$ if window > 0 then
//$ local from_row = "(oldest + token + " .. window + 1 .. " - count)"
        const size_t seen = first + token + 1, count = seen < $(window) ? seen : $(window);
        const size_t is_first = token + 1 < $(window), key_step = is_first ? $(width) : k_step, value_step = is_first ? $(pitch) : v_step;
        const float *key = is_first ? keys + $(from_row) * $(width) : k + (token + 1 - count) * k_step;
        const float *value = is_first ? values + $(from_row) * $(pitch) : v + (token + 1 - count) * v_step;

        if (is_first) {
            $(copy)(k + token * k_step, 0, keys + (oldest + token + $(window)) * $(width), 0, 1);
            $(copy)(v + token * v_step, 0, values + (oldest + token + $(window)) * $(pitch), 0, 1);
        }
//$ end
        for (size_t row = 0; row < $(group); ++row) { //$ if group > 1
            float *out = y + token * y_step$(group > 1 and " + row * " .. width or "");
            const float *own = q + token * q_step$(group > 1 and " + row * " .. width or ""); //$ if window > 0

//$ over_row(width, function(at, load, store)
            $(store("out", at, isa.broadcast("zero")));
//$ end)
            $(helper)_near(own, key, key_step, value, value_step, count, out); //$ if window > 0
        } //$ if group > 1
    }
    const int16_t none = (int16_t) zero; //$ if short
    for (size_t table = 0; table < $(hash.tables); table += $(hash.together)) {
        $(shape.cache.row.storage) *rows = $(cleared);
        float unit = first > 0 ? units[$(over_together)] : 0.0f; //$ if short

//$ if sparse then
$(include("templates/model/blocks/table_clear.c", { count = "tokens", code = code_of("k_code", "tokens", "token") }))
$(include("templates/model/blocks/table_clear.c", { count = "tokens", code = code_of("q_code", "tokens", "token") }))
//$ else
        for (size_t i = 0; first == 0 && i < $(hash.together) * $(table_step); ++i)
            rows[i] = $(short and "none" or "zero");
//$ end
        for (size_t token = 0; token < tokens; ++token) {
//$ if window > 0 then
            if (first + token >= $(window)) { /* one leaves the window */
                const size_t step = token < $(window) ? $(window) : tokens; //$ if hash.tables > 1
                const uint16_t *own = token < $(window) ? codes + (first + token) % $(window) : k_code + token - $(window);
                const uint16_t *code = own + table * step;
                const float *value = token < $(window) ? values + (oldest + token) * $(pitch) : v + (token - $(window)) * v_step;
//$ lines(rows_of("", "into", function(n) return n > 0 and "code[" .. times(n, "step") .. "]" or "code[0]" end))

$(include("templates/model/blocks/table_insert.c"))
            }
//$ else
            const float *value = v + token * v_step;
//$ lines(rows_of("", "into", code_of("k_code", "tokens", "token")))

$(include("templates/model/blocks/table_insert.c"))
//$ end
$(include("templates/model/blocks/table_look_up.c"))
        }
        units[$(over_together)] = unit; //$ if short
    }
    $(helper)_keep_last(kept, span, a); //$ if window > 0
