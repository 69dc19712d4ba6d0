//$ takes parts, variants, dense, constants, structs, tokens_parameters
$(include("templates/bundle/constants.h", { constants = constants }))
//$ for i, part in ipairs(parts) do
//$ if i == 1 then

/* The lookup FFN of one layer. */
typedef struct $(part.weights) {
    const $(section.storage) *$(section.name); /* $(section.doc) */ //$ for _, section in ipairs(part.sections)
} $(part.weights);
//$ end
$(include("templates/lookup/prototypes.h", part.kernels))
//$ end
$(include("templates/model/blocks/structs.h"))
//$ for _, v in ipairs(variants) do

/* $(v.isa.name): $(dense and "a dense product of some tokens, " or "")attention of a group of heads, all blocks. */
//$ if dense then
void $(v.names.product)(const $(structs.matrix) *map, const $(shape.rounded and "uint32_t" or "float") *x, size_t x_step, float *y,
    size_t y_step, size_t tokens);
//$ end
void $(v.names.attention)(const $(names.type("cache")) *kept, const $(names.span) *span, const $(names.type("attention")) *a);
void $(v.names.blocks)(const $(names.weights) *weights, unsigned char *cache, const float *x, float *y,
    $(tokens_parameters), void *scratch);
//$ end
