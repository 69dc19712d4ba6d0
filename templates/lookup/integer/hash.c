//$ takes prologue, symbol, score, initialiser, slots_text
//$ lines(prologue)

//$ if shape.score.share then
/* 2^15 log2(1 + exp(-2 z)) for z = 0, 1/32, 2/32 … 8. */
static const uint16_t $(model)_score_log2[$(#score.log2)] = {
//$ lines(initialiser(score.log2))
};

/* 2^15 2^-f for f = 0, 1/32, 2/32 … 1. */
static const uint16_t $(model)_score_power[$(#score.power)] = {
//$ lines(initialiser(score.power))
};

/* Between two entries of a table, `part` of 2^places on from the first. Tables fall. */
static inline uint32_t $(model)_score_between(const uint16_t *entry, uint32_t part, unsigned places)
{
    return entry[0] - ((uint32_t) (entry[0] - entry[1]) * part >> places);
}

//$ end
//$ local two, share, scored = shape.neighbours == 2, shape.score.share, shape.score.scored
//$ local shifted = share and (two and "places < 32u ? scaled >> places : 0u" or "scaled >> ((log2 >> 15) + score_shift)")
//$     or scored and "scaled >> score_shift"
//$     or "32768u * weights->table_scales[code] >> score_shift"
/* $(scored and "Sign hash and score" or "Sign hash and the unit of the row") of one token (LookupFFN, section "Put it
   together"), table by table.
   weights  bound weights
   z        [$(plural(shape.h, "table"))][$(plural(shape.tau, "bit"))]
   row      $(slots_text)  row of all tables: $(shape.rows) k + code; bit j is z > 0, the first bit the most significant
            The second code differs from the first in the bit of the least |z|, in the first one of several. //$ if two
//$ if scored then
   score    $(slots_text)  in units of y's sums, the unit of the table's row in it
//$ if two then
   score = $(shape.score.top_m)$(share and ", the product by its logarithm" or ""), where cost is 0 and that |z|.
//$ else
   score = $(shape.score.best)$(share and ", the product by its logarithm" or "").
//$ end
//$ else
   score    $(slots_text)  the unit of the table's row, in units of y's sums
//$ end
   None may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const int32_t *restrict z, uint32_t *restrict row, int32_t *restrict score)
{
    const unsigned z_shift = weights->shifts[$(names.macro("SHIFT_Z"))]; //$ if scored
    const unsigned score_shift = weights->shifts[$(names.macro("SHIFT_SCORE"))];

//$ loop("table", 0, shape.h, 1, function(table)
//$ local sums = (shape.score.along and ", sum = 0" or "") .. (share and ", log2 = 0" or "")
        uint32_t code = $(table)$(sums)$(two and ", least = UINT32_MAX, flip = 0" or "");
//$ loop("bit", 0, shape.tau, 1, function(bit)
            const int32_t value = z[$(bit)]; //$ if scored or two
            const uint32_t size = (uint32_t) (value < 0 ? -value : value); //$ if two
//$ if scored then
    uint32_t magnitude = $(two and "size" or "(uint32_t) (value < 0 ? -value : value)") >> z_shift; /* $(score.fraction) binary places */
//$ end
            code = 2 * code + ($((scored or two) and "value" or "z[" .. bit .. "]") > 0 ? 1u : 0u);
//$ if two then
            flip = size < least ? 1u : 2 * flip;
            least = size < least ? size : least;
//$ end
//$ if shape.score.along then
            if (magnitude > 65535u)
                magnitude = 65535u;
            sum += magnitude;
//$ end
//$ if share then
            if (magnitude < $(score.log2_limit)u)
                log2 += $(model)_score_between($(model)_score_log2 + (magnitude >> $(score.log2_step)),
                    magnitude & $((1 << score.log2_step) - 1)u, $(score.log2_step));
//$ end
//$ end)
//$ if two and scored then
        least >>= z_shift;
        if (least > 65535u)
            least = 65535u;
//$ end
//$ loop("n", 0, shape.neighbours, 1, function(slot)
//$ if share then
            /* score = sum 2^-log2: the fraction of log2 by the table, its whole part by the shift */
            const uint32_t part = log2 & 0x7fffu;
            const uint32_t share = $(model)_score_between($(model)_score_power + (part >> $(score.power_step)),
                part & $((1 << score.power_step) - 1)u, $(score.power_step));
//$ end
//$ if scored then
            const uint32_t scale = weights->table_scales[code];
//$ if shape.score.along then
    const uint32_t product = $(share and "share" or "32768u") * $(score.sum_shift > 0 and "(sum >> " .. score.sum_shift .. ")" or "sum");
            const uint32_t scaled = (product >> 16) * scale + ((product & 0xffffu) * scale >> 16);
//$ else
            const uint32_t scaled = share * scale;
//$ end
            const uint32_t places = (log2 >> 15) + score_shift; //$ if two and share
//$ end
            row[$(slot)] = code;
            score[$(slot)] = (int32_t) ($(shifted));
//$ if two then
            code ^= flip; /* on to the second row */
            sum -= 2 * least; //$ if shape.score.along
            log2 += least * $(score.loss)u >> $(score.loss_shift); /* by log2(exp(2 |z|)) */ //$ if share
//$ end
//$ end, { from = not two and table or nil })
//$ end, { type = "uint32_t", also = ", z += " .. shape.tau .. (two and ", row += 2, score += 2" or "") })
}
