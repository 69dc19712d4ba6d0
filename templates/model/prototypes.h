//$ takes parts_of_blocks, variants, constants, plan, threads, matrix
$(include("templates/bundle/constants.h", { constants = constants }))
//$ if threads then

#ifdef $(names.macro("OPENMP"))
/* How many threads share `tokens` tokens that kernels take `chunk` at a time, of which `part` are worth a thread; and the token at which
   range number `range` of so many begins. A part never crosses the end of a chunk, so that a token has the neighbours in tiles that it has
   in one thread, and results the same bits. */
size_t $(threads.ranges)(size_t tokens, size_t chunk, size_t part);
size_t $(threads.range)(size_t tokens, size_t chunk, size_t part, size_t range, size_t ranges);
#endif
//$ end
//$ for _, v in ipairs(variants) do

/* $(v.isa.name): a dense product of some tokens; the forward pass. */
void $(v.names.product)(const $(matrix) *map, const $(shape.rounded and "uint32_t" or "float") *x, size_t x_step, float *y,
    size_t y_step, size_t tokens);
//$ if plan.causal then
void $(v.names.forward)(const $(names.weights) *weights, unsigned char *state, const int32_t *ids, size_t first,
    size_t tokens, float *y, int all, void *scratch);
//$ else
void $(v.names.forward)(const $(names.weights) *weights, const int32_t *ids, const size_t *offsets, size_t sequences,
    float *y, void *scratch);
//$ end
//$ end
$(include("templates/model/blocks/prototypes.h", part)) //$ for _, part in ipairs(parts_of_blocks)
