//$ takes prologue, of_tile, helper, symbol, kernels, parts, contract, integers, structs, tiled, multiplied, weights_of
//$ takes score, slots_text, adds_residual, adds_bias
//$ local item = contract.item
//$ lines(prologue)
$(include(parts.round)) //$ if integers
$(include(parts.product))
$(include("templates/lookup/lanes/tile_product.c", { of = tiled })) //$ if tiled
$(include("templates/lookup/shared/add_bias.c", { bypass = false })) //$ if adds_bias and not tiled
$(include("templates/lookup/shared/add_bias.c", { bypass = true })) //$ if adds_residual and not tiled

//$ if multiplied then
/* BH4 projection of $(contract.up_to), multiplied out: z = x Wᵀ$(adds_residual and " + (1 - decay) x" or "") + bias,
   W [$(shape.bits)][$(shape.d)].
//$ else
/* Dense projection of $(contract.up_to): z = x Wᵀ + bias, W [$(shape.bits)][$(shape.d)].
//$ end
   weights  bound weights$(contract.gain)
   x        $(contract.x)
   z        $(contract.z)
   $((buffer.name .. "         "):sub(1, 9))$(buffer.text), overwritten //$ for _, buffer in ipairs(kernels.work)
   code     [tiles]$(slots_text)$(contract.axis)$(score.scored and "; score likewise" or ""): the sign hash of z //$ if tiled
   All 64-byte aligned$(contract.but_x), none may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const float *restrict x,
    $(listed(contract.parameters, "size_t " .. item .. "s")))
{
//$ if tiled then
$(include("templates/lookup/lanes/dense_by_tiles.c"))
//$ else
    const $(contract.weights_type) *w = weights->$(weights_of);
    $(helper)_$(name) $(name); //$ for _, name in ipairs(structs)

$(include(parts.dense))
//$ if adds_residual then

$(include("templates/lookup/shared/bypass.c", { x_step = kernels.projection.x_step, period = kernels.shape.of.padded }))
//$ else
    for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))
        $(helper)_add_bias(z + $(item) * $(of_tile(kernels.projection.y_step)), weights->projection_bias, $(shape.bits));
//$ end
//$ end
}
