//$ takes constants, variants, projection_parameters, work_text, makes_codes, norm, openmp
$(include("templates/bundle/constants.h", { constants = constants }))
//$ for _, v in ipairs(variants) do
//$ for _, kernels in ipairs(v.stages) do
//$ local lanes, first = kernels.layout == "lanes", kernels.gathers[1]

/* $(v.isa.name), $(work_text(kernels, makes_codes, norm)). */
//$ if makes_codes then
void $(kernels.names.load)(const float *restrict x, size_t tokens, float *restrict loaded); //$ if lanes
void $(kernels.names.load)(const float *restrict x, float *restrict normalised); //$ if norm and not lanes
void $(kernels.names.projection)(const $(names.weights) *weights, const float *restrict x,
    $(listed(projection_parameters(kernels), lanes and "size_t tiles" or "size_t tokens")));
//$ end
//$ if makes_codes and not kernels.projection.tiled then
//$ local score = shape.score.scored and ", float *restrict score" or ""
//$ local vertices = kernels.hash.bytes > 0 and ", void *restrict vertices" or ""
//$ local prefetch = first.prefetch_first and ", const " .. names.weights .. " *prefetched" or ""
void $(kernels.names.hash)(const float *restrict z, uint16_t *restrict code$(score)$(vertices)$(prefetch));
//$ end
//$ for _, gather in ipairs(kernels.gathers) do
void $(gather.names.gather)(const $(names.weights) *weights, const uint16_t *code, const float *score,
    float *y, size_t tokens, void *scratch);
//$ end
//$ if first.names.columns then
void $(first.names.columns)(const $(names.weights) *weights, const uint16_t *code, const float *score,
    float *y, size_t tokens, size_t first, size_t end, void *scratch);
//$ end
//$ if makes_codes then
void $(kernels.names.project)(const $(names.weights) *weights, const float *x, size_t tokens,
    uint16_t *code, float *score, void *scratch);
//$ end
void $(kernels.names.ffn)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch);
//$ end
//$ if v.stages[1].layout == "lanes" then

/* $(v.isa.name), any number of tokens. */
void $(v.names.ffn)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch);
//$ end
//$ end
//$ if openmp then

#ifdef $(names.macro("OPENMP"))

/* Calls `ffn` for contiguous ranges of the tokens at the same time: up to $(names.macro("OPENMP")) ranges of whole tiles, each of at least
   `min` tokens and with its own part of scratch. So a tile holds the same tokens as in one call, and y the same bits. */
void $(names.split)(void ffn(const $(names.weights) *, const float *, float *, size_t, void *), size_t tile, size_t min,
    const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch);
#endif
//$ end
