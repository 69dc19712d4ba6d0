//$ takes helper, score, tile, slots_text, table_of
/* $(score.share and "Multiplies each score by" or "Makes each score") the scale of its row: the tables hold rows in units of their scale.
   scale  [$(shape.h)][$(shape.rows)]
   code   [$(tile == 1 and "tokens" or "tiles")]$(slots_text)$(tile == 1 and "" or "[" .. tile .. "]"); score likewise. None may overlap. */
static inline void $(helper)_scale_scores(const float *restrict scale, const uint16_t *restrict code, float *restrict score, size_t $(tile == 1 and "tokens" or "tiles"))
{
//$ local slot = shape.neighbours == 1 and "table" or "slot"
//$ if tile == 1 then
    for (size_t token = 0; token < tokens; ++token, code += $(shape.slots), score += $(shape.slots))
        for (size_t $(slot) = 0; $(slot) < $(shape.slots); ++$(slot))
            score[$(slot)] $(score.share and "*=" or "=") scale[$(table_of(slot)) * $(shape.rows) + code[$(slot)]];
//$ else
    for (size_t tile = 0; tile < tiles; ++tile)
        for (size_t $(slot) = 0; $(slot) < $(shape.slots); ++$(slot), code += $(tile), score += $(tile))
            for (size_t token = 0; token < $(tile); ++token)
                score[token] $(score.share and "*=" or "=") scale[$(table_of(slot)) * $(shape.rows) + code[token]];
//$ end
}
