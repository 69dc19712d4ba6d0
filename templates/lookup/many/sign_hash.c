//$ takes prologue, symbol, helper, score, hash, lanes, tile, rows_text, vertices_parameter, vertices_argument
//$ lines("", prologue)
$(include(hash.template))

/* $(score.share and "Sign hash and score" or "Sign hash") of one tile of $(tile) tokens (LookupFFN, section "Put it together").
   z      [$(shape.h) tables][$(shape.tau) bits][$(tile)]
//$ if shape.neighbours == 1 then
   code   [$(shape.h)][$(tile)]  row of each table: bit j is z > 0, the first bit the most significant
//$ if score.share then
   score  [$(shape.h)][$(tile)]
//$ end
//$ else
   code   [$(shape.h)][$(shape.neighbours)][$(tile)]  $(rows_text)
//$ if score.share then
   score  [$(shape.h)][$(shape.neighbours)][$(tile)]
//$ end
//$ if hash.bytes > 0 then
   vertices  $(hash.bytes) bytes, 64-byte aligned, overwritten
//$ end
//$ end
   z is aligned to a vector. None may overlap. Cannot fail. 0 and NaN count as bit 0. */
void $(symbol)(const float *restrict z, uint16_t *restrict code$(score.share and ", float *restrict score" or "")$(vertices_parameter))
{
    for (size_t table = 0; table < $(shape.h); ++table, z += $(shape.tau * tile), code += $(shape.neighbours * tile)$(score.share and ", score += " .. shape.neighbours * tile or ""))
//$ if tile == lanes then
        $(helper)_$(hash.name)(z, code$(score.share and ", score" or "")$(vertices_argument));
//$ else
        for (size_t token = 0; token < $(tile); token += $(lanes))
            $(helper)_$(hash.name)(z + token, code + token$(score.share and ", score + token" or "")$(vertices_argument));
//$ end
}
