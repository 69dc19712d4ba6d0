//$ lines("", prologue)
//$ local unpacked = v.unpacks and "unpacked, " or ""
$(include(parts.product))
$(include(parts.bias))

/* Dense projection of $(up_to): z = x Wᵀ + bias, W [$(shape.bits)][$(shape.d)].
   weights  bound weights$(gain_text)
   x        [tiles]$(projection_rows)$(lane_axis)$(x_text)
   z        [tiles][$(shape.bits)]$(lane_axis)
//$ if v.unpacks then
   unpacked [$(v.projection.panel_floats)], overwritten
//$ end
   All 64-byte aligned$(x_alignment), none may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const float *restrict x, float *restrict z$(v.unpacks and ", float *restrict unpacked" or ""), size_t tiles)
{
    const $(projection.word.storage) *w = weights->projection;

//$ for _, p in ipairs(products) do
//$ local step, y_step = x_step * tile, shape.bits * tile
//$ if p.count > 1 then
    for (size_t block = 0; block < $(p.count); ++block)
        $(helper)_$(p.name)(x, $(step), $(sum("w", p.at)) + block * $(p.block_words), $(unpacked)z + block * $(p.outputs * tile), $(y_step), tiles);
//$ else
    $(helper)_$(p.name)(x, $(step), $(sum("w", p.at)), $(unpacked)$(sum("z", p.first_output * tile)), $(y_step), tiles);
//$ end
//$ end
    for (size_t tile = 0; tile < tiles; ++tile)
        $(helper)_add_bias(z + tile * $(shape.bits * tile), weights->projection_bias, $(shape.bits));
}
