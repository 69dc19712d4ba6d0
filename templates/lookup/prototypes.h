//$ takes constants, variants, projection_parameters, makes_codes, norm, openmp
$(include("templates/bundle/constants.h", { constants = constants }))
//$ local function gather_prototype(name, more)
void $(name)(const $(names.weights) *weights, const uint16_t *code, const float *score,
    float *y, size_t tokens, $(more)void *scratch);
//$ end
//$ local function prototypes(kernels, load)
//$ if makes_codes then
//$ local hash_parameters = shape.score.scored and ", float *restrict score" or ""
//$ if kernels.hash.bytes > 0 then hash_parameters = hash_parameters .. ", void *restrict vertices" end
//$ if kernels.gathers[1].prefetch_first then hash_parameters = hash_parameters .. ", const " .. names.weights .. " *prefetch" end
$(load) //$ if load
void $(kernels.names.projection)(const $(names.weights) *weights, const float *restrict x,
    $(projection_parameters(kernels)), size_t $(kernels.layout == "rows" and "tokens" or "tiles"));
//$ if not kernels.projection.tiled then
void $(kernels.names.hash)(const float *restrict z, uint16_t *restrict code$(hash_parameters));
//$ end
//$ end
//$ for _, gather in ipairs(kernels.gathers) do
//$     gather_prototype(gather.names.gather, "")
//$ end
//$ local columns = kernels.gathers[1].names.columns
//$ if columns then gather_prototype(columns, "size_t first, size_t end, ") end
//$ if makes_codes then
void $(kernels.names.project)(const $(names.weights) *weights, const float *x, size_t tokens,
    uint16_t *code, float *score, void *scratch);
//$ end
void $(kernels.names.ffn)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch);
//$ end
//$ local all, gathered = "gather; all codes and scores; the whole layer", "gather, and the whole layer"
//$ for _, v in ipairs(variants) do
//$ for _, kernels in ipairs(v.stages) do
//$ if kernels.layout == "lanes" then
//$ local tiles = kernels.tiles == 1 and "it" or "up to " .. kernels.tiles .. " tiles"
//$ local steps = "load one tile of " .. kernels.tile .. " tokens, project " .. tiles .. ", hash one, "

/* $(v.isa.name), many tokens$(v.isa.lanes > 1 and " in the lanes" or ""): $(makes_codes and steps .. all or gathered). */
//$ prototypes(kernels, "void " .. kernels.names.load .. "(const float *restrict x, size_t tokens, float *restrict loaded);")
//$ else
//$ local tokens = kernels.chunk == 1 and "one" or "up to " .. kernels.chunk
//$ local steps = (norm and "normalise one, " or "") .. "project " .. tokens .. ", hash one, "

/* $(v.isa.name), few tokens$(v.isa.lanes > 1 and ", features in the lanes" or ""): $(makes_codes and steps .. all or gathered). */
//$ prototypes(kernels, norm and "void " .. kernels.names.load .. "(const float *restrict x, float *restrict normalised);")
//$ end
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
