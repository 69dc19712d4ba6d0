//$ takes parts, variants, dense, attention_parameters, constants, tokens_parameters
$(include("templates/bundle/constants.h", { constants = constants }))
//$ for i, part in ipairs(parts) do
//$ if i == 1 then

/* The lookup FFN of one layer. */
typedef struct $(part.names.weights) {
//$ for _, section in ipairs(part.sections) do
    const $(section.storage) *$(section.name); /* $(section.doc) */
//$ end
} $(part.names.weights);
//$ end
//$ -- Those of a LookupFFN's kernels, under the part's names.
//$ local given = {
//$     names = part.names,
//$     shape = part.shape,
//$     variants = part.variants,
//$     constants = part.constants,
//$     openmp = part.openmp,
//$     makes_codes = part.makes_codes,
//$     norm = part.norm,
//$     projection_parameters = part.projection_parameters,
//$ }
$(include("templates/lookup/prototypes.h", given))
//$ end
//$ for _, v in ipairs(variants) do

/* $(v.isa.name): $(dense and "a dense product of some tokens, " or "")attention of a group of heads, all blocks. */
//$ if dense then
void $(v.names.product)(const $(shape.rounded and shape.rounded.storage or "float") *restrict x, size_t x_step,
    const $(shape.rounded and shape.rounded.storage or shape.type.storage) *restrict w,
    $(shape.type.scaled and "const float *restrict scale, " or "")const float *restrict bias,
    float *restrict y, size_t y_step, size_t inputs, size_t panels, size_t tokens$(v.unpacked_at and ", float *restrict unpacked" or ""));
//$ end
//$ if shape.lsh then
void $(v.names.attention)($(attention_parameters));
//$ else
void $(v.names.attention)($(attention_parameters), float *restrict sums, float *restrict score,
    $(shape.cache.words and shape.cache.storage .. " *restrict weight, " or "")float *restrict total$(v.buffers.tile_floats > 0 and ", float *restrict tile_floats" or ""));
//$ end
void $(v.names.blocks)(const $(names.weights) *weights, unsigned char *cache, const float *x, float *y,
    $(tokens_parameters), void *scratch);
//$ end
