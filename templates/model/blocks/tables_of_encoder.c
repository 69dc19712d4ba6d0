//$ takes helper, training
//$ -- Tables of an encoder: some at a time hold the values of all tokens of a sequence.
//$ local hash, short = shape.lsh, shape.cache.limit
//$ local pitch, code_pitch = names.constant("VALUE_PITCH"), names.constant("CODE_PITCH")
//$ local own_step, step = hash.together > 1 and ", " .. code_pitch or "", hash.together > 1 and ", tokens" or ""

/* y = y + what queries find in tables. The arguments are those of attention. */
static void $(helper)_add_tables(const $(names.type("cache")) *kept, const $(names.span) *span, const $(names.type("attention")) *a)
{
    const uint16_t *q_code = a->q_codes, *codes = kept->codes;
    const float *values = kept->values;
    $(shape.cache.row.storage) *rows = $(short and "(int16_t *) (void *) a->table" or "a->table");
    float *y = a->y.at;
    const size_t y_step = a->y.step, tokens = span->count, end = span->tokens;
    const $(shape.cache.row.storage) zero = $(short and "(int16_t) $hidden_integer(0)" or "$hidden(0.0f)"); /* else loops are calls of memset */
    const float peak = $(helper)_peak(values, $(pitch), end); //$ if short

    for (size_t table = 0; table < $(hash.tables); table += $(hash.together)) {
//$ if training and training.sparse then
$(include("templates/model/blocks/table_clear.c", { count = "end", codes = "codes + table * " .. code_pitch .. " + token" .. own_step }))
$(include("templates/model/blocks/table_clear.c", { count = "tokens", codes = "q_code + table * tokens + token" .. step }))
//$ else
        float unit = 0.0f; //$ if short
        for (size_t i = 0; i < $(hash.together * hash.rows) * $(pitch); ++i)
            rows[i] = zero;
        unit = $(helper)_unit(peak, unit, rows); //$ if short
//$ end
        for (size_t position = 0; position < end; ++position) {
            const float *value = values + position * $(pitch);
$(include("templates/model/blocks/table_insert.c", { codes = "codes + table * " .. code_pitch .. " + position" .. own_step }))
        }
        for (size_t token = 0; token < tokens; ++token) {
$(include("templates/model/blocks/table_look_up.c"))
        }
    }
}
