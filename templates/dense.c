//$ lines("", prologue)
$(include("templates/block_product.c"))
$(include("templates/add_bias.c"))

/* Dense projection of up to $(tiles) tiles of $(tile) tokens: z = x Wᵀ + bias, W [$(shape.bits)][$(shape.d)].
   weights  bound weights$(gain_text)
   x        [tiles][$(shape.d)][$(tile)]$(x_text)
   z        [tiles][$(shape.bits)][$(tile)]
   All 64-byte aligned, none may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const float *restrict x, float *restrict z, size_t tiles)
{
    const float *w = weights->projection;

//$ for _, p in ipairs(products) do
//$ if p.count > 1 then
    for (size_t block = 0; block < $(p.count); ++block)
        for (size_t tile = 0; tile < tiles; ++tile)
            $(model)_$(p.name)(x + tile * $(shape.d * tile), $(sum("w", p.at)) + block * $(p.block_weights),
                z + tile * $(shape.bits * tile) + block * $(p.outputs * tile));
//$ else
    for (size_t tile = 0; tile < tiles; ++tile)
        $(model)_$(p.name)(x + tile * $(shape.d * tile), $(sum("w", p.at)), $(sum("z + tile * " .. shape.bits * tile, p.first_output * tile)));
//$ end
//$ end
    for (size_t tile = 0; tile < tiles; ++tile)
        $(model)_add_bias(z + tile * $(shape.bits * tile), weights->projection_bias, $(shape.bits));
}
