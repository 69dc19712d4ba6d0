//$ takes prologue, of_tile, symbol, helper, kernels, tile, in_scratch, training
//$ takes projection_arguments, vertices_argument, hash, buffers, inverse_h
//$ lines(prologue)

/* The parameters as kernels of inference take them. */
static void $(helper)_bind(const $(training.names.parameters) *parameters, $(names.weights) *weights)
{
    weights->projection = parameters->prepared;
    weights->projection_bias = parameters->projection_bias;
    weights->tables = parameters->tables;
    weights->bias = parameters->bias;
}

/* y = LookupFFN(x), and what backward needs of these tokens: see the header.
   Cannot fail. */
void $(symbol)(const $(training.names.parameters) *parameters, const $(training.names.tokens) *tokens, size_t first, size_t count,
    void *scratch)
{
    const float *x = tokens->x;
    float *y = tokens->y, *z = tokens->z, *score = tokens->score;
    uint16_t *code = tokens->code;
    const size_t end = first + count;
    $(names.weights) weights;
//$ for _, buffer in ipairs(buffers) do
    $(buffer.storage) *$(buffer.name == "x" and "x_tiles" or buffer.name) = $(in_scratch(buffer.name, buffer.storage));
//$ end
    void *vertices = $(in_scratch("vertices", "void")); //$ if hash.bytes > 0
    $(helper)_bind(parameters, &weights);

    for (; first < end; first += $(kernels.chunk)) {
        const size_t left = end - first < $(kernels.chunk) ? end - first : $(kernels.chunk);
        for (size_t at = 0; at < left; at += $(kernels.tiles * tile)) {
            const size_t here = left - at < $(kernels.tiles * tile) ? left - at : $(kernels.tiles * tile);
            const size_t tiles = (here + $(tile - 1)) / $(tile);
            float *z_here = z + (first + at) * $(kernels.projection.rows.z);
            for (size_t tile = 0; tile < tiles; ++tile) {
                const size_t before = tile * $(tile);
                const size_t present = here - before < $(tile) ? here - before : $(tile);
                $(kernels.names.load)(x + (first + at + before) * $(shape.x_step), present, x_tiles + tile * $(of_tile(shape.d * tile)));
            }
            $(kernels.names.projection)($(projection_arguments), tiles);
            for (size_t tile = 0; tile < tiles; ++tile)
                $(kernels.names.hash)(z_here + tile * $(of_tile(kernels.projection.rows.z * tile)),
                    code + (first + at + tile * $(tile)) * $(shape.slots),
                    score + (first + at + tile * $(tile)) * $(shape.slots)$(vertices_argument));
//$ if inverse_h then
            for (size_t i = (first + at) * $(shape.slots); i < (first + at + tiles * $(tile)) * $(shape.slots); ++i)
                score[i] *= $(inverse_h);
//$ end
        }
        $(kernels.gathers[1].names.gather)(&weights, code + first * $(shape.slots), score + first * $(shape.slots),
            y + first * $(shape.y_step), left, scratch);
    }
}
