//$ takes prologue, symbol, helper, score, hash, lanes, tile, rows_text, vertices_parameter, vertices_argument
//$ lines("", prologue)
$(include(hash.template))

/* $(score.share and "Sign hash and score" or "Sign hash") of one tile of $(tile) tokens (LookupFFN, section "Put it together").
   z      [$(plural(shape.h, "table"))][$(plural(shape.tau, "bit"))][$(tile)]
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
//$ local slots = shape.neighbours * tile
//$ loop("    ", "table", 0, shape.h, 1, function(i)
//$ loop(i, "token", 0, tile, lanes, function(i, token)
$(i)$(helper)_$(hash.name)($(sum("z", token)), $(sum("code", token))$(score.share and ", " .. sum("score", token) or "")$(vertices_argument));
//$ end)
//$ end, { braces = false, also = ", z += " .. shape.tau * tile .. ", code += " .. slots .. (score.share and ", score += " .. slots or "") })
}
