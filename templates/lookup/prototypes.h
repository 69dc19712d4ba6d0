//$ takes constants, variants, projection_parameters, makes_codes, norm, openmp
$(include("templates/bundle/constants.h", { constants = constants }))
//$ local function prototypes(v, load)
//$ if makes_codes then
//$ if load then
$(load)
//$ end
void $(v.names.projection)(const $(names.weights) *weights, const float *restrict x,
    $(projection_parameters(v)), size_t $(v.regime == "few" and "tokens" or "tiles"));
void $(v.names.hash)(const float *restrict z, uint16_t *restrict code$(shape.score.share and ", float *restrict score" or "")$(v.hash.bytes > 0 and ", void *restrict vertices" or "")$(v.prefetch_first and ", const " .. names.weights .. " *prefetch" or ""));
//$ end
void $(v.names.gather)(const $(names.weights) *weights, const uint16_t *code, const float *score,
    float *y, size_t tokens, void *scratch);
//$ if v.whole then
void $(v.whole.names.gather)(const $(names.weights) *weights, const uint16_t *code, const float *score,
    float *y, size_t tokens, void *scratch);
//$ end
//$ if v.names.columns then
void $(v.names.columns)(const $(names.weights) *weights, const uint16_t *code, const float *score,
    float *y, size_t tokens, size_t first, size_t end, void *scratch);
//$ end
//$ if makes_codes then
void $(v.names.project)(const $(names.weights) *weights, const float *x, size_t tokens,
    uint16_t *code, float *score, void *scratch);
//$ end
void $(v.names.many or v.names.ffn)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch);
//$ end
//$ for _, v in ipairs(variants) do
//$ local few = v.regime == "few" and v or v.few
//$ if v.regime == "many" then

/* $(v.isa.name), many tokens$(v.isa.lanes > 1 and " in the lanes" or ""): $(makes_codes and "load one tile of " .. v.tile .. " tokens, project " .. (v.tiles == 1 and "it" or "up to " .. v.tiles .. " tiles") .. ", hash one, gather; all codes and scores; the whole layer" or "gather, and the whole layer"). */
//$ prototypes(v, "void " .. v.names.load .. "(const float *restrict x, size_t tokens, float *restrict loaded);")
//$ end
//$ if few then

/* $(v.isa.name), few tokens$(v.isa.lanes > 1 and ", features in the lanes" or ""): $(makes_codes and (norm and "normalise one, " or "") .. "project " .. (few.chunk == 1 and "one" or "up to " .. few.chunk) .. ", hash one, gather; all codes and scores; the whole layer" or "gather, and the whole layer"). */
//$ prototypes(few, norm and "void " .. few.names.load .. "(const float *restrict x, float *restrict normalised);")
//$ end
//$ if v.regime == "many" then

/* $(v.isa.name), any number of tokens. */
void $(v.names.ffn)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch);
//$ end
//$ end
//$ if openmp then

#ifdef $(names.macro("OPENMP"))

/* Calls `ffn` for contiguous ranges of the tokens at the same time: up to $(names.macro("OPENMP")) ranges of whole tiles, each of at
   least `min` tokens and with its own part of scratch. So a tile holds the same tokens as in one call, and y the same bits. */
void $(names.split)(void ffn(const $(names.weights) *, const float *, float *, size_t, void *), size_t tile, size_t min,
    const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch);
#endif
//$ end
