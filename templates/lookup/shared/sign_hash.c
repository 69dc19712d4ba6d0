//$ takes prologue, symbol, kernels, score, hash, lanes, lane_axis, slots_text, rows_text, prefetch_first, transposed, of_text
//$ takes tables_template, vertices
//$ lines(prologue)
//$ for _, part in ipairs(transposed) do
//$     local prefix = once("templates/lookup/shared/transpose.c", { columns = part.columns })
//$     part.transpose = prefix .. (part.columns == lanes and "_transpose" or "_transpose_last")
//$ end
$(include(hash.template))

/* $(score.scored and "Sign hash and score" or "Sign hash") of one $(of_text).
   z      [$(plural(shape.h, "table"))][$(plural(shape.tau, "bit"))]$(lane_axis)
   code   $(slots_text)$(lane_axis)  $(rows_text)
   score  $(slots_text)$(lane_axis) //$ if score.scored
   vertices  $(hash.bytes) bytes, 64-byte aligned, overwritten //$ if hash.bytes > 0
   prefetched  weights whose rows to prefetch as soon as their codes are known, or NULL //$ if prefetch_first
   $(kernels.layout == "lanes" and "z is aligned to a vector. " or "")None may overlap. Cannot fail. 0 and NaN count as bit 0. */
//$ local work = vertices and "void *restrict vertices"
//$ local prefetch = prefetch_first and "const " .. names.weights .. " *prefetched"
void $(symbol)(const float *restrict z,
    $(listed("uint16_t *restrict code", score.scored and "float *restrict score", work, prefetch)))
{
$(include(tables_template))
}
