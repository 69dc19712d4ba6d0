//$ takes isa, helper, training, rows_of, code_of, table_step
//$ -- Some tables at a time hold the values of all tokens of a sequence.
//$ local hash, group, width, short = shape.lsh, shape.group, shape.width, shape.cache.limit
//$ local pitch, code_pitch, window = names.constant("VALUE_PITCH"), names.constant("CODE_PITCH"), hash.window
//$ local q_code = group > 1 and "q_code + row * " .. hash.tables .. " * tokens + token" or "q_code + token"
//$ if window > 0 then
    const float *q = a->q.at;
    const size_t q_step = a->q.step;
//$ end
    const uint16_t *q_code = a->q_codes;
//$ for _, part in ipairs(shape.cache.parts) do
    const $(part.storage) *$(part.name) = kept->$(part.name); //$ if part.read
//$ end
    $(shape.cache.row.storage) *rows = $(short and "(int16_t *) (void *) a->table" or "a->table");
    float *y = a->y.at;
    const size_t y_step = a->y.step, tokens = span->count;
    const size_t first = span->first; //$ if window > 0
    const size_t end = span->tokens;
    const float zero = $hidden(0.0f); /* else its loops are calls of memset */

    for (size_t token = 0; token < tokens; ++token)$(group > 1 and "" or " {")
        for (size_t row = 0; row < $(group); ++row) { //$ if group > 1
            float *out = y + token * y_step$(group > 1 and " + row * " .. width or "");
//$ if window > 0 then
            const float *own = q + token * q_step$(group > 1 and " + row * " .. width or "");
            const size_t position = first + token, low = position < $(window) ? 0 : position - $(window - 1);
            const size_t high = position + $(window) < end ? position + $(window) : end;
//$ end

//$ over_row(width, function(at, load, store)
            $(store("out", at, isa.broadcast("zero")));
//$ end)
//$ if window > 0 then
            $(helper)_near(own, keys + low * $(width), values + low * $(pitch), high - low, $(q_code), tokens,
                codes + low, out);
//$ end
        }
//$ if short then
    const int16_t none = (int16_t) zero;
    const float peak = $(helper)_peak(values, $(pitch), end);

//$ end
    for (size_t table = 0; table < $(hash.tables); table += $(hash.together)) {
//$ if training and training.sparse then
$(include("templates/model/blocks/table_clear.c", { count = "end", code = code_of("codes", code_pitch, "token") }))
$(include("templates/model/blocks/table_clear.c", { count = "tokens", code = code_of("q_code", "tokens", "token") }))
//$ else
        float unit = 0.0f; //$ if short
        for (size_t i = 0; i < $(hash.together) * $(table_step); ++i)
            rows[i] = $(short and "none" or "zero");
        unit = $(helper)_unit(peak, unit, rows); //$ if short
//$ end
        for (size_t position = 0; position < end; ++position) {
            const float *value = values + position * $(pitch);
//$ lines(rows_of("", "into", code_of("codes", code_pitch, "position")))

$(include("templates/model/blocks/table_insert.c"))
        }
        for (size_t token = 0; token < tokens; ++token) {
$(include("templates/model/blocks/table_look_up.c"))
        }
    }
