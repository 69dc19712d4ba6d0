//$ takes prologue, of_tile, helper, symbol, kernels, projection, parts, products, integers, measure, round, unpacked, blocks_argument
//$ takes weights_of, multiplied, tiled, score, slots_text, vertices_argument, adds_residual, adds_bias, z_rows
//$ takes factored, projection_parameters, up_to, gain_text, projection_rows, x_text, lane_axis, x_alignment
//$ -- Arguments of products by tiles.
//$ local given = adds_residual and "weights, x, " or "weights, "
//$ local hashed = tiled and "code" .. (score.scored and ", score" or "") .. vertices_argument .. ", tiles"
//$ -- What the kernel works on, one after the other.
//$ local item = kernels.layout == "rows" and "token" or "tile"
//$ local in_rows = integers and kernels.layout == "rows"
//$ lines(prologue)
$(include(parts.round)) //$ if integers
$(include(parts.product))
$(include("templates/lookup/lanes/tile_product.c", { of = tiled })) //$ if tiled
$(include("templates/lookup/shared/add_bias.c", { bypass = false })) //$ if adds_bias and not tiled
$(include("templates/lookup/shared/add_bias.c", { bypass = true })) //$ if adds_residual and not tiled

//$ if multiplied then
/* BH4 projection of $(up_to), multiplied out: z = x Wᵀ$(adds_residual and " + (1 - decay) x" or "") + bias,
   W [$(shape.bits)][$(shape.d)].
//$ else
/* Dense projection of $(up_to): z = x Wᵀ + bias, W [$(shape.bits)][$(shape.d)].
//$ end
   weights  bound weights$(gain_text)
   x        [$(item)s]$(projection_rows)$(lane_axis)$(x_text)
   z        [$(item)s][$(z_rows)]$(lane_axis)$(z_rows > shape.bits and ", the first " .. shape.bits .. " rows are the result" or "")
   $((buffer.name .. "         "):sub(1, 9))$(buffer.text), overwritten //$ for _, buffer in ipairs(kernels.work)
//$ if tiled then
   code      [tiles]$(slots_text)$(lane_axis)$(score.scored and "; score likewise" or ""): the sign hash of z
//$ end
   All 64-byte aligned$(x_alignment), none may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const float *restrict x,
    $(projection_parameters), size_t $(item)s)
{
//$ if not tiled then
    const $(projection.word.storage) *w = weights->$(weights_of);
    $(helper)_factors factors; //$ if factored

//$ end
//$ local source, from_step = "x", kernels.projection.x_step
//$ if integers then
    for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))$(measure and " {" or "")
        $(measure("x", from_step, shape.d, 0)); //$ if measure
        $(round("x", from_step, shape.d, 0));
    } //$ if measure
//$ source = in_rows and "integers, " .. integers.pitch or "integers"
//$ if factored then
    factors.units = units;
    factors.starts = starts; //$ if integers.starts
//$ end
//$ else
//$ source = "x, " .. from_step
//$ end
//$ for _, p in ipairs(products) do
//$ local y_step, before = kernels.projection.y_step, unpacked and "unpacked, " or ""
//$ local looped = p.count > 1 and not blocks_argument
//$ if looped then
    for (size_t block = 0; block < $(p.count); ++block)$(factored and " {" or "")
//$ end
//$ if factored then
    factors.scales = $(sum("weights->" .. weights_of .. "_scales", p.scale_at) .. (looped and " + block * " .. p.outputs or ""));
//$     before = "&factors, "
//$ end
//$ if looped then
        $(helper)_$(p.name)($(source), $(sum("w", p.at)) + block * $(p.block_words),
            $(before)z + block * $(of_tile(p.y_block)), $(y_step), $(item)s);
    } //$ if factored
//$ else
    $(helper)_$(p.name)($(source), $(sum("w", p.at)), $(before)$(sum("z", of_tile(p.y_at))), $(y_step),
        $(item)s$(blocks_argument and blocks_argument(p) or ""));
//$ end
//$ end
//$ if tiled and tiled.splits then
    for (size_t tile = 0; tile < tiles; ++tile)
        for (size_t at = 0; at < $(tiled.lines * kernels.tile); at += $(32 * kernels.tile))
            for (size_t token = 0; token < $(kernels.tile); token += 16) {
                uint32_t *words = integers + tile * $(integers.pitch) + at + token;
                $(helper)_split_bytes(words, $(kernels.tile), words, $(kernels.tile));
                $(helper)_turn(words);
                $(helper)_turn(words + $(16 * kernels.tile));
            }
    $(helper)_by_tiles($(given)integers, units, z, bytes, $(hashed));
//$ elseif tiled and integers then
    for (size_t tile = 0; tile < tiles; ++tile)
        for (size_t at = 0; at < $(tiled.lines * kernels.tile); at += $(16 * kernels.tile))
            for (size_t token = 0; token < $(kernels.tile); token += 16)
                $(helper)_turn(integers + tile * $(integers.pitch) + at + token);
    $(helper)_by_tiles($(given)integers, units, starts, z, $(hashed));
//$ elseif tiled then
    for (size_t tile = 0; tile < tiles; ++tile)
        for (size_t k = 0; k < $(tiled.lines); k += 16)
            for (size_t token = 0; token < $(kernels.tile); token += 16)
                $(helper)_turn(x + tile * $(kernels.projection.x_step) + k * $(2 * kernels.tile) + token,
                    halves + (tile * $(kernels.tile) + token) * $(tiled.lines) + k);
    $(helper)_by_tiles($(given)halves, z, $(hashed));
//$ end
//$ if adds_residual and not tiled then

$(include("templates/lookup/shared/bypass.c", { x_step = kernels.projection.x_step, period = kernels.shape.of.padded }))
//$ elseif not tiled then
    for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))
        $(helper)_add_bias(z + $(item) * $(of_tile(kernels.projection.y_step)), weights->projection_bias, $(shape.bits));
//$ end
}
