//$ lines("", prologue)
$(include("templates/hash_lanes.c"))

/* Sign hash and score of one tile of $(tile) tokens (LookupFFN, section "Put it together").
   z      [$(shape.h) tables][$(shape.tau) bits][$(tile)]
   code   [$(shape.h)][$(tile)]  row of each table: bit j is z > 0, the first bit the most significant
   score  [$(shape.h)][$(tile)]
   z is aligned to a vector. None may overlap. Cannot fail. 0 and NaN count as bit 0. */
void $(symbol)(const float *restrict z, uint16_t *restrict code, float *restrict score)
{
    for (size_t table = 0; table < $(shape.h); ++table, z += $(shape.tau * tile), code += $(tile), score += $(tile))
        for (size_t token = 0; token < $(tile); token += $(lanes))
            $(helper)_hash_lanes(z + token, code + token, score + token);
}
