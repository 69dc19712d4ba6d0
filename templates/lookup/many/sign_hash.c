//$ takes prologue, symbol, helper, hash, lanes, tile, rows_text, vertices_parameter, vertices_argument
//$ lines("", prologue)
$(include(hash.template))

/* Sign hash and score of one tile of $(tile) tokens (LookupFFN, section "Put it together").
   z      [$(shape.h) tables][$(shape.tau) bits][$(tile)]
//$ if shape.neighbours == 1 then
   code   [$(shape.h)][$(tile)]  row of each table: bit j is z > 0, the first bit the most significant
   score  [$(shape.h)][$(tile)]
//$ else
   code   [$(shape.h)][$(shape.neighbours)][$(tile)]  $(rows_text)
   score  [$(shape.h)][$(shape.neighbours)][$(tile)]
   vertices  $(hash.bytes) bytes, 64-byte aligned, overwritten
//$ end
   z is aligned to a vector. None may overlap. Cannot fail. 0 and NaN count as bit 0. */
void $(symbol)(const float *restrict z, uint16_t *restrict code, float *restrict score$(vertices_parameter))
{
    for (size_t table = 0; table < $(shape.h); ++table, z += $(shape.tau * tile), code += $(shape.neighbours * tile), score += $(shape.neighbours * tile))
//$ if tile == lanes then
        $(helper)_$(hash.name)(z, code, score$(vertices_argument));
//$ else
        for (size_t token = 0; token < $(tile); token += $(lanes))
            $(helper)_$(hash.name)(z + token, code + token, score + token$(vertices_argument));
//$ end
}
