//$ takes weighted, in_scratch, constant, symbol, helper, kernels, few, gather, tile, openmp
//$ -- The whole layer for calls of any number of tokens, on one thread or several.

//$ local many = kernels.names.ffn
//$ if gather.names.columns then
//$     many = helper .. "_many_shared"
#ifdef $(names.macro("OPENMP"))
/* The same on several threads: of a chunk each one projects a range of the tokens, then gathers a range of the tiles of
   columns for all of them. So the tables are read once, not once a thread. */
static void $(many)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch)
{
    const size_t worthwhile = tokens / $(kernels.split.min);
    const size_t ranges = worthwhile < $(names.macro("OPENMP")) ? worthwhile : $(names.macro("OPENMP"));
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
                code + at * $(shape.slots), $(weighted and "score + at * " .. shape.slots or "NULL"),
                (unsigned char *) scratch + range * $(constant("THREAD_SCRATCH_BYTES")));
        }
#pragma omp parallel for num_threads((int) ranges) schedule(static, 1)
        for (size_t range = 0; range < ranges; ++range)
            $(gather.names.columns)(weights, code, $(weighted and "score" or "NULL"), y + first * $(shape.y_step), left,
                range * $(gather.parts) / ranges, (range + 1) * $(gather.parts) / ranges,
                (unsigned char *) scratch + range * $(constant("THREAD_SCRATCH_BYTES")));
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
