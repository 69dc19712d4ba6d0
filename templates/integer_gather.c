//$ lines("", prologue)

/* Gathers one token: y = bias + sum over the tables of score times row, rounded to $(fraction) binary places.
   weights  bound weights
   row      [$(shape.h)]; score likewise
   y        [$(shape.d_out)]
   None may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const uint32_t *restrict row, const int32_t *restrict score, int32_t *restrict y)
{
    const unsigned shift = weights->shifts[3];
//$ for _, strip in ipairs(strips) do

    for (size_t column = $(strip.at); column < $(strip.at + strip.count * strip.together); column += $(strip.together)) {
//$ for s = 0, strip.together - 1 do
        int32_t sum$(s) = weights->bias[$(sum("column", s))];
//$ end
        for (size_t table = 0; table < $(shape.h); ++table) {
            const int8_t *entry = weights->tables + row[table] * $(pitch) + column;
            const int32_t factor = score[table];
//$ for s = 0, strip.together - 1 do
            sum$(s) += factor * entry[$(s)];
//$ end
        }
//$ for s = 0, strip.together - 1 do
        y[$(sum("column", s))] = $(model)_rounded(sum$(s), shift);
//$ end
    }
//$ end
}
