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
    float *score = $(in_scratch("score", "float")); //$ if weighted

    if (ranges < 2 || ranges > $(gather.parts)) { /* one range shares nothing, and each needs a tile of columns */
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
//$ local function stage(of)
        $(of.names.ffn)(weights, x, y, tokens, scratch);
//$ end
//$ local function split(of)
    $(names.split)($(of.names.ffn), $(of.split.tile), $(of.split.min), weights, x, y, tokens, scratch);
//$ end
//$ local function on_threads()
//$     if gather.names.columns then
        $(many)(weights, x, y, tokens, scratch);
//$     else
//$         split(kernels)
//$     end
//$ end
/* Any number of tokens$(few and ": up to " .. few.up_to .. " are few" or ""). */
void $(symbol)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch)
{
//$ if few then
    if (tokens <= $(few.up_to))
//$     if few.split and openmp then
#ifdef $(names.macro("OPENMP"))
//$         split(few)
#else
//$         stage(few)
#endif
//$     else
//$         stage(few)
//$     end
    else
//$ end
//$ if openmp then
#ifdef $(names.macro("OPENMP"))
//$     on_threads()
#else
//$     stage(kernels)
#endif
//$ else
//$     stage(kernels)
//$ end
}
