//$ takes helper, score, tile, slots_text, table_of

/* $(score.scored and "Multiplies each score by" or "Makes each score") the scale of its row: the tables hold rows in units of their scale.
   scale  [$(shape.h)][$(shape.rows)]
   code   [$(tile == 1 and "tokens" or "tiles")]$(slots_text)$(tile == 1 and "" or "[" .. tile .. "]"); score likewise. None may overlap. */
static inline void $(helper)_scale_scores(const float *restrict scale, const uint16_t *restrict code,
    float *restrict score, size_t $(tile == 1 and "tokens" or "tiles"))
{
//$ local slot = shape.neighbours == 1 and "table" or "slot"
//$ -- Where the scale of the row `code` of a slot's table lies.
//$ local function scale_at(slot, code) return sum(times(slot == 0 and 0 or table_of(slot), shape.rows), code) end
//$ if tile == 1 then
    for (size_t token = 0; token < tokens; ++token, code += $(shape.slots), score += $(shape.slots))
//$ loop(slot, 0, shape.slots, 1, function(slot)
            score[$(slot)] $(score.scored and "*=" or "=") scale[$(scale_at(slot, "code[" .. slot .. "]"))];
//$ end)
//$ else
//$ local advances = ", code += " .. tile .. ", score += " .. tile
    for (size_t tile = 0; tile < tiles; ++tile$(shape.slots == 1 and advances or ""))
//$ loop(slot, 0, shape.slots, 1, function(slot)
            for (size_t token = 0; token < $(tile); ++token)
                score[token] $(score.scored and "*=" or "=") scale[$(scale_at(slot, "code[token]"))];
//$ end, { also = advances, braces = false })
//$ end
}
