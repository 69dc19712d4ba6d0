/* Multiplies each score by the scale of its row: the tables hold rows in units of their scale.
   scale  [$(shape.h)][$(shape.rows)]
   code   [tiles][$(shape.h)][$(tile)]; score likewise. None may overlap. */
static inline void $(helper)_scale_scores(const float *restrict scale, const uint16_t *restrict code, float *restrict score, size_t tiles)
{
//$ if tile == 1 then
    for (size_t token = 0; token < tiles; ++token, code += $(shape.h), score += $(shape.h))
        for (size_t table = 0; table < $(shape.h); ++table)
            score[table] *= scale[table * $(shape.rows) + code[table]];
//$ else
    for (size_t tile = 0; tile < tiles; ++tile)
        for (size_t table = 0; table < $(shape.h); ++table, code += $(tile), score += $(tile))
            for (size_t token = 0; token < $(tile); ++token)
                score[token] *= scale[table * $(shape.rows) + code[token]];
//$ end
}
