//$ takes of_tile, score, weighted, in_scratch, prologue, helper, kernels, lanes, hash, tile, makes_codes, tables, norm, buffers
//$ takes x_rows, slots_text, projection_arguments, vertices_argument, prefetch_first, prefetch_parameter, prefetch_argument
//$ lines(prologue)
//$ local by_tile, project = kernels.layout == "lanes", kernels.names.project
//$ local before = prefetch_first and "static void " .. helper .. "_codes" or "void " .. project
//$ if makes_codes then
//$ local scale = tables.scaled and once("templates/lookup/shared/scale_scores.c") .. "_scale_scores"

//$ local up_to = kernels.chunk == 1 and "a token" or "up to " .. kernels.chunk .. " tokens"
/* $(weighted and "Codes and scores" or "Codes")$(tables.scaled and ", the scales of the tables' rows in them," or "")
   of $(up_to)$(by_tile and ", " .. kernels.pass .. " at a time" or lanes > 1 and ", features and tables in the lanes" or "").
   weights  bound weights
   x        [tokens]$(x_rows), any alignment
//$ if by_tile then
   code     [tiles of $(tile) tokens]$(slots_text)[$(tile)]$(weighted and "; score likewise, both" or ",") 64-byte aligned
//$ else
   code     [tokens]$(slots_text)$(weighted and "; score likewise" or "")
//$ end
   score    not written: rows count alike //$ if not weighted
   scratch  one thread's, 64-byte aligned; none may overlap. Cannot fail.$(prefetch_first and "" or " */")
   prefetched  weights whose rows to prefetch, those of the first token, or NULL */ //$ if prefetch_first
$(before)(const $(names.weights) *weights, const float *x, size_t tokens,
    uint16_t *code, float *score, void *scratch$(prefetch_parameter))
{
//$ for _, buffer in ipairs(buffers) do
//$ local name = buffer.name ~= "x" and buffer.name or by_tile and "x_tiles" or "normalised"
    $(buffer.storage) *$(name) = $(in_scratch(buffer.name, buffer.storage));
//$ end
    (void) score; //$ if not weighted
    void *vertices = $(in_scratch("vertices", "void")); //$ if hash.bytes > 0

//$ if by_tile then
    for (size_t first = 0; first < tokens; first += $(kernels.pass)) {
        const size_t left = tokens - first < $(kernels.pass) ? tokens - first : $(kernels.pass);
        const size_t tiles = (left + $(tile - 1)) / $(tile);
        for (size_t tile = 0; tile < tiles; ++tile) {
            const size_t before = tile * $(tile);
            const size_t present = left - before < $(tile) ? left - before : $(tile);
            $(kernels.names.load)(x + (first + before) * $(shape.x_step), present, x_tiles + tile * $(of_tile(shape.d * tile)));
        }
        $(kernels.names.projection)($(projection_arguments), tiles);
//$     if not kernels.projection.tiled then
        for (size_t tile = 0; tile < tiles; ++tile)
//$     local at = "(first + tile * " .. tile .. ") * " .. shape.slots
            $(kernels.names.hash)(z + tile * $(of_tile(kernels.projection.rows.z * tile)),
                code + $(at)$(score.scored and ",\n                score + " .. at or "")$(vertices_argument));
//$     end
//$     if tables.scaled then
        $(scale)(weights->table_scales, code + first * $(shape.slots), score + first * $(shape.slots), tiles);
//$     end
    }
//$ else
//$     if norm then
    for (size_t token = 0; token < tokens; ++token)
        $(kernels.names.load)(x + token * $(shape.x_step), normalised + token * $(shape.d));
//$     end
    $(kernels.names.projection)($(projection_arguments), tokens);
    for (size_t token = 0; token < tokens; ++token)
//$     local score_at = score.scored and ", score + token * " .. shape.slots or ""
        $(kernels.names.hash)(z + token * $(kernels.projection.rows.z),
            code + token * $(shape.slots)$(score_at)$(vertices_argument)$(prefetch_argument));
    $(scale)(weights->table_scales, code, score, tokens); //$ if tables.scaled
//$ end
}
//$ if prefetch_first then

/* The same without a prefetch. */
void $(project)(const $(names.weights) *weights, const float *x, size_t tokens,
    uint16_t *code, float *score, void *scratch)
{
    $(helper)_codes(weights, x, tokens, code, score, scratch, NULL);
}
//$ end
//$ end

//$ if by_tile then
/* The whole layer for many tokens, $(kernels.chunk) at a time: y = LookupFFN(x); see $(names.header).
   Projection and hash of a chunk end before its gather begins: so y may be x. */
//$ else
/* The whole layer for a few tokens, $(kernels.chunk == 1 and "one" or kernels.chunk) at a time: y = LookupFFN(x); see $(names.header). */
//$ end
void $(kernels.names.ffn)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch)
{
    uint16_t *code = $(in_scratch("code", "uint16_t"));
    float *score = $(in_scratch("score", "float")); //$ if weighted

    for (size_t first = 0; first < tokens; first += $(kernels.chunk)) {
        const size_t left = tokens - first < $(kernels.chunk) ? tokens - first : $(kernels.chunk);
        $(prefetch_first and helper .. "_codes" or project)(weights, x + first * $(shape.x_step), left, code,
            $(weighted and "score" or "NULL"), scratch$(prefetch_first and ", weights" or ""));
//$ local function gathered(gather)
            $(gather.names.gather)(weights, code, $(weighted and "score" or "NULL"), y + first * $(shape.y_step), left, scratch);
//$ end
//$ for n = 2, #kernels.gathers do
        if (left <= $(kernels.gathers[n].up_to))
//$     gathered(kernels.gathers[n])
        else
//$ end
//$ gathered(kernels.gathers[1])
    }
}
$(include("templates/lookup/lanes/dispatch.c")) //$ if by_tile
