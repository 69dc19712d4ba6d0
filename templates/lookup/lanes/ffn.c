//$ takes score, weighted, in_scratch, constant, prologue, symbol, helper, kernels, gather, few, hash, tile, makes_codes, tables, openmp, buffers, x_rows, slots_text, projection_arguments, vertices_argument
//$ lines("", prologue)
//$ if makes_codes then
//$ if tables.scaled then

$(include("templates/lookup/shared/scale_scores.c"))
//$ end
//$ local step = kernels.tiles * tile

/* $(weighted and "Codes and scores" or "Codes")$(tables.scaled and ", the scales of the tables' rows in them," or "") of up to $(kernels.chunk) tokens, $(step) at a time.
   weights  bound weights
   x        [tokens]$(x_rows), any alignment
   code     [tiles of $(tile) tokens]$(slots_text)[$(tile)]$(weighted and "; score likewise, both" or ",") 64-byte aligned
//$ if not weighted then
   score    not written: rows count alike
//$ end
   scratch  one thread's, 64-byte aligned; none may overlap. Cannot fail. */
void $(kernels.names.project)(const $(names.weights) *weights, const float *x, size_t tokens,
    uint16_t *code, float *score, void *scratch)
{
//$ for _, buffer in ipairs(buffers) do
    $(buffer.storage) *$(buffer.name == "x" and "x_tiles" or buffer.name) = $(in_scratch(buffer.name, buffer.storage));
//$ end
//$ if not weighted then
    (void) score;
//$ end
//$ if hash.bytes > 0 then
    void *vertices = $(in_scratch("vertices", "void"));
//$ end

    for (size_t first = 0; first < tokens; first += $(step)) {
        const size_t left = tokens - first < $(step) ? tokens - first : $(step);
        const size_t tiles = (left + $(tile - 1)) / $(tile);
        for (size_t tile = 0; tile < tiles; ++tile) {
            const size_t before = tile * $(tile);
            const size_t present = left - before < $(tile) ? left - before : $(tile);
            $(kernels.names.load)(x + (first + before) * $(shape.x_step), present, x_tiles + tile * $(shape.d * tile));
        }
        $(kernels.names.projection)($(projection_arguments), tiles);
        for (size_t tile = 0; tile < tiles; ++tile)
//$ if score.share then
            $(kernels.names.hash)(z + tile * $(kernels.projection.rows.z * tile), code + (first + tile * $(tile)) * $(shape.slots),
                score + (first + tile * $(tile)) * $(shape.slots)$(vertices_argument));
//$ else
            $(kernels.names.hash)(z + tile * $(kernels.projection.rows.z * tile), code + (first + tile * $(tile)) * $(shape.slots)$(vertices_argument));
//$ end
//$ if tables.scaled then
        $(helper)_scale_scores(weights->table_scales, code + first * $(shape.slots), score + first * $(shape.slots), tiles);
//$ end
    }
}
//$ end

/* The whole layer for many tokens, $(kernels.chunk) at a time: y = LookupFFN(x); see $(names.header).
   Projection and hash of a chunk end before its gather begins: so y may be x. */
void $(kernels.names.ffn)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch)
$(include("templates/lookup/shared/chunks.c"))

//$ local many = kernels.names.ffn
//$ if gather.names.columns then
//$     many = helper .. "_many_shared"
#ifdef $(names.macro("OPENMP"))
/* The same on several threads: of a chunk each one projects a range of the tokens, then gathers a range of the tiles of columns for all of them. So
   the tables are read once, not once a thread. */
static void $(many)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch)
{
    const size_t worthwhile = tokens / $(kernels.split.min), ranges = worthwhile < $(names.macro("OPENMP")) ? worthwhile : $(names.macro("OPENMP"));
    uint16_t *code = $(in_scratch("code", "uint16_t"));
//$ if weighted then
    float *score = $(in_scratch("score", "float"));
//$ end

    if (ranges < 2 || ranges > $(gather.parts)) {
        $(names.split)($(kernels.names.ffn), $(kernels.split.tile), $(kernels.split.min), weights, x, y, tokens, scratch);
        return;
    }
    for (size_t first = 0; first < tokens; first += $(kernels.chunk)) {
        const size_t left = tokens - first < $(kernels.chunk) ? tokens - first : $(kernels.chunk), tiles = (left + $(tile - 1)) / $(tile);
#pragma omp parallel for num_threads((int) ranges) schedule(static, 1)
        for (size_t range = 0; range < ranges; ++range) {
            const size_t at = range * tiles / ranges * $(tile), next = (range + 1) * tiles / ranges * $(tile);
            $(kernels.names.project)(weights, x + (first + at) * $(shape.x_step), (next < left ? next : left) - at,
                code + at * $(shape.slots), $(weighted and "score + at * " .. shape.slots or "NULL"), (unsigned char *) scratch + range * $(constant("THREAD_SCRATCH_BYTES")));
        }
#pragma omp parallel for num_threads((int) ranges) schedule(static, 1)
        for (size_t range = 0; range < ranges; ++range)
            $(gather.names.columns)(weights, code, $(weighted and "score" or "NULL"), y + first * $(shape.y_step), left, range * $(gather.parts) / ranges,
                (range + 1) * $(gather.parts) / ranges, (unsigned char *) scratch + range * $(constant("THREAD_SCRATCH_BYTES")));
    }
}
#endif

//$ end
//$ local function on_threads(i)
//$     if gather.names.columns then
$(i)$(many)(weights, x, y, tokens, scratch);
//$     else
$(i)$(names.split)($(kernels.names.ffn), $(kernels.split.tile), $(kernels.split.min), weights, x, y, tokens, scratch);
//$     end
//$ end
//$ if few then
/* Any number of tokens: up to $(few.up_to) are few. */
//$ else
/* Any number of tokens. */
//$ end
void $(symbol)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch)
{
//$ if openmp then
#ifdef $(names.macro("OPENMP"))
//$ if few then
    if (tokens <= $(few.up_to))
//$ if few.split then
        $(names.split)($(few.names.ffn), $(few.split.tile), $(few.split.min), weights, x, y, tokens, scratch);
//$ else
        $(few.names.ffn)(weights, x, y, tokens, scratch);
//$ end
    else
//$     on_threads("        ")
//$ else
//$     on_threads("    ")
//$ end
#else
//$ end
//$ if few then
    if (tokens <= $(few.up_to))
        $(few.names.ffn)(weights, x, y, tokens, scratch);
    else
        $(kernels.names.ffn)(weights, x, y, tokens, scratch);
//$ else
    $(kernels.names.ffn)(weights, x, y, tokens, scratch);
//$ end
//$ if openmp then
#endif
//$ end
}
