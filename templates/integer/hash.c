//$ takes prologue, symbol, score, initialiser
//$ lines("", prologue)

//$ if shape.score.share then
/* 2^15 log2(1 + exp(-2 z)) for z = 0, 1/32, 2/32 … 8. */
static const uint16_t $(model)_score_log2[$(#score.log2)] = {
//$ lines("    ", initialiser(score.log2))
};

/* 2^15 2^-f for f = 0, 1/32, 2/32 … 1. */
static const uint16_t $(model)_score_power[$(#score.power)] = {
//$ lines("    ", initialiser(score.power))
};

/* Between two entries of a table, `part` of 2^places on from the first. Tables fall. */
static inline uint32_t $(model)_score_between(const uint16_t *entry, uint32_t part, unsigned places)
{
    return entry[0] - ((uint32_t) (entry[0] - entry[1]) * part >> places);
}

//$ end
/* $(shape.score.share and "Sign hash and score" or "Sign hash and the unit of the row") of one token (LookupFFN, section "Put it together"), table by table.
   weights  bound weights
   z        [$(plural(shape.h, "table"))][$(plural(shape.tau, "bit"))]
   row      [$(shape.h)]  row of all tables: $(shape.rows) k + code; bit j is z > 0, the first bit the most significant
//$ if shape.score.share then
   score    [$(shape.h)]  in units of y's sums, the unit of the table's row in it
   score = $(shape.score.best), the product by its logarithm.
//$ else
   score    [$(shape.h)]  the unit of the table's row, in units of y's sums
//$ end
   None may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const int32_t *restrict z, uint32_t *restrict row, int32_t *restrict score)
{
//$ if shape.score.share then
    const unsigned z_shift = weights->shifts[$(names.macro("SHIFT_Z"))], score_shift = weights->shifts[$(names.macro("SHIFT_SCORE"))];

//$ loop("    ", "table", 0, shape.h, 1, function(i, table)
$(i)uint32_t code = $(table), $(shape.score.along and "sum = 0, " or "")log2 = 0;
//$ loop(i, "bit", 0, shape.tau, 1, function(i, bit)
$(i)const int32_t value = z[$(bit)];
$(i)uint32_t magnitude = (uint32_t) (value < 0 ? -value : value) >> z_shift; /* $(score.fraction) binary places */
$(i)code = 2 * code + (value > 0 ? 1u : 0u);
//$ if shape.score.along then
$(i)if (magnitude > 65535u)
$(i)    magnitude = 65535u;
$(i)sum += magnitude;
//$ end
$(i)if (magnitude < $(score.log2_limit)u)
$(i)    log2 += $(model)_score_between($(model)_score_log2 + (magnitude >> $(score.log2_step)), magnitude & $((1 << score.log2_step) - 1)u, $(score.log2_step));
//$ end)
$(i)const uint32_t part = log2 & 0x7fffu;
$(i)const uint32_t share = $(model)_score_between($(model)_score_power + (part >> $(score.power_step)), part & $((1 << score.power_step) - 1)u, $(score.power_step));
$(i)const uint32_t scale = weights->table_scales[code];
//$ if shape.score.along then
$(i)const uint32_t product = share * $(score.sum_shift > 0 and "(sum >> " .. score.sum_shift .. ")" or "sum");
$(i)const uint32_t scaled = (product >> 16) * scale + ((product & 0xffffu) * scale >> 16);
//$ else
$(i)const uint32_t scaled = share * scale;
//$ end
$(i)row[$(table)] = code;
$(i)score[$(table)] = (int32_t) (scaled >> ((log2 >> 15) + score_shift));
//$ end, { type = "uint32_t", also = ", z += " .. shape.tau })
//$ else
    const unsigned score_shift = weights->shifts[$(names.macro("SHIFT_SCORE"))];

//$ loop("    ", "table", 0, shape.h, 1, function(i, table)
$(i)uint32_t code = $(table);
//$ loop(i, "bit", 0, shape.tau, 1, function(i, bit)
$(i)code = 2 * code + (z[$(bit)] > 0 ? 1u : 0u);
//$ end)
$(i)row[$(table)] = code;
$(i)score[$(table)] = (int32_t) (32768u * weights->table_scales[code] >> score_shift);
//$ end, { type = "uint32_t", also = ", z += " .. shape.tau })
//$ end
}
