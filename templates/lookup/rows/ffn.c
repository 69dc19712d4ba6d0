//$ takes score, weighted, in_scratch, prologue, lanes, helper, kernels, hash, makes_codes, tables, norm, buffers, x_rows, slots_text, projection_arguments, vertices_argument
//$ takes prefetch_first, prefetch_parameter, prefetch_argument
//$ lines("", prologue)
//$ if makes_codes then
//$ if tables.scaled then

$(include("templates/lookup/shared/scale_scores.c"))
//$ end

/* $(weighted and "Codes and scores" or "Codes")$(tables.scaled and ", the scales of the tables' rows in them," or "") of $(kernels.chunk == 1 and "a token" or "up to " .. kernels.chunk .. " tokens")$(lanes > 1 and ", features and tables in the lanes" or "").
   weights  bound weights
   x        [tokens]$(x_rows), any alignment
   code     [tokens]$(slots_text)$(weighted and "; score likewise" or "")
//$ if not weighted then
   score    not written: rows count alike
//$ end
   scratch  one thread's, 64-byte aligned; none may overlap. Cannot fail.$(prefetch_first and "\n   prefetch  weights whose rows to prefetch, those of the first token, or NULL" or "") */
$(prefetch_first and "static void " .. helper .. "_codes" or "void " .. kernels.names.project)(const $(names.weights) *weights, const float *x, size_t tokens,
    uint16_t *code, float *score, void *scratch$(prefetch_parameter))
{
//$ for _, buffer in ipairs(buffers) do
    $(buffer.storage) *$(buffer.name == "x" and "normalised" or buffer.name) = $(in_scratch(buffer.name, buffer.storage));
//$ end
//$ if not weighted then
    (void) score;
//$ end
//$ if hash.bytes > 0 then
    void *vertices = $(in_scratch("vertices", "void"));
//$ end

//$ if norm then
    for (size_t token = 0; token < tokens; ++token)
        $(kernels.names.load)(x + token * $(shape.x_step), normalised + token * $(shape.d));
//$ end
    $(kernels.names.projection)($(projection_arguments), tokens);
    for (size_t token = 0; token < tokens; ++token)
        $(kernels.names.hash)(z + token * $(kernels.projection.rows.z), code + token * $(shape.slots)$(score.share and ", score + token * " .. shape.slots or "")$(vertices_argument)$(prefetch_argument));
//$ if tables.scaled then
    $(helper)_scale_scores(weights->table_scales, code, score, tokens);
//$ end
}
//$ if prefetch_first then

/* The same without a prefetch. */
void $(kernels.names.project)(const $(names.weights) *weights, const float *x, size_t tokens,
    uint16_t *code, float *score, void *scratch)
{
    $(helper)_codes(weights, x, tokens, code, score, scratch, NULL);
}
//$ end
//$ end

/* The whole layer for a few tokens, $(kernels.chunk == 1 and "one" or kernels.chunk) at a time: y = LookupFFN(x); see $(names.header). */
void $(kernels.names.ffn)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch)
$(include("templates/lookup/shared/chunks.c"))
