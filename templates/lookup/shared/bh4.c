//$ lines("", prologue)
//$ if integers then
$(include(parts.round))
//$ end
$(include(parts.product))
//$ if #passes > 0 then
$(include("templates/lookup/shared/butterfly.c"))
//$ end
//$ if biased then
$(include(parts.bias))
//$ end
//$ if residual_apart then
$(include(parts.residual))
//$ end

/* BH4 projection of $(up_to) (LookupFFN, section "Efficient projection: BH4"):
   z = $(residual and "decay H W4 H W3 H W2 H W1 x + (1 - decay) x" or "H W4 H W3 H W2 H W1 x") + bias, H the Hadamard matrix of $(shape.padded) rows, each W $(blocks_total) blocks of $(shape.block).
   Folded into the weights: the Hadamard matrix inside a block, decay$(gain_text).
   weights  bound weights
   x        [tiles]$(projection_rows)$(lane_axis)$(x_text)
   $(buffer_rows.b and "a, b" or "a   ")     [tiles][$(shape.padded)]$(lane_axis), overwritten
   z        [tiles][$(z_rows)]$(lane_axis), the first $(shape.bits) rows are the result
//$ for _, buffer in ipairs(v.work) do
   $((buffer.name .. "         "):sub(1, 9))$(buffer.text), overwritten
//$ end
   All 64-byte aligned$(x_alignment), none may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const float *restrict x,
    $(projection_parameters), size_t tiles)
{
    const $(projection.word.storage) *w = weights->projection;
//$ if integers then
    const float *scales = weights->projection_scales;
//$     if measure then

    for (size_t tile = 0; tile < tiles; ++tile)
        $(measure("x", x_step * tile, shape.d, 0));
//$     end
//$ end
//$ for _, group in ipairs(groups) do

//$ local i = "    "
//$ if group.count > 1 then
//$     i = "        "
    for (size_t repeat = $(group.first); repeat < $(group.first + group.count); ++repeat, w += $(group.words)$(integers and ", scales += " .. 4 * shape.padded or "")) {
        float *y = z + repeat * $(shape.padded * tile);

//$ else
//$ if shape.repeats > 1 then
    /* repeat $(group.first): $(group.need) of $(shape.padded) outputs */
//$ end
//$ end
//$ for _, stage in ipairs(group.stages) do
//$ local target = stage.target == "z" and group.target or stage.target
$(i)/* stage $(stage.number): $(stage.text) */
//$ local place = stage.number == 1 and 0 or 1 -- of the units of its inputs
//$ local source, from_step = stage.source, (stage.source == "x" and x_step or buffer_rows[stage.source]) * tile
//$ if integers then
//$ if not measure then
$(i)for (size_t tile = 0; tile < tiles; ++tile)
$(i)    $(round(source, from_step, stage.number == 1 and shape.d or shape.padded));
//$ elseif place == 1 and not stage.measured then
$(i)for (size_t tile = 0; tile < tiles; ++tile)
$(i)    $(measure(source, from_step, shape.padded, place));
//$ end
//$ end
//$ for _, p in ipairs(stage.products) do
//$ local y_step = buffer_rows[stage.target] * tile
//$ local x_stride, x_step, before = p.x_stride * tile, from_step, unpacked and "unpacked, " or ""
//$ local looped = p.count > 1 and not blocks_argument
//$ local i, x = i, looped and source .. " + block * " .. x_stride or sum(source, p.first_block * x_stride)
//$ local rounded = integers and measure
//$ if looped then
$(i)for (size_t block = 0; block < $(p.count); ++block)$(rounded and " {" or "")
//$     i = i .. "    "
//$ end
//$ if integers then
//$     before = sum("scales", p.scale_at) .. (looped and " + block * " .. p.outputs or "") .. ", " .. (measure and sum("units", place * 2 * tile) or "units") .. ", "
//$     if rounded then
$(i)for (size_t tile = 0; tile < tiles; ++tile)
//$         if p.folds > 1 then
$(i)    for (size_t fold = 0; fold < $(p.folds); ++fold)
$(i)        $(round(x, from_step, p.rows, place, p.fold_gap * tile));
//$         else
$(i)    $(round(x, from_step, p.rows, place));
//$         end
//$         x, x_step = "integers", integers.pitch
//$     else
//$         x, x_step = sum("integers", p.first_block * x_stride // projection.word.rows), integers.pitch
//$     end
//$ end
//$ local target_at = looped and target .. " + block * " .. p.outputs * tile or sum(target, p.first_block * p.outputs * tile)
$(i)$(helper)_$(p.name)($(x), $(x_step), $(sum("w", p.offset))$(looped and " + block * " .. p.block_words or ""),
$(i)    $(before)$(target_at), $(y_step), tiles$(blocks_argument and blocks_argument(p) or ""));
//$ if looped and rounded then
$(i:sub(5))}
//$ end
//$ end
//$ if #stage.steps > 0 then
$(i)for (size_t tile = 0; tile < tiles; ++tile)$(#stage.steps > 1 and " {" or "")
//$ for _, pass in ipairs(stage.steps) do
$(i)    $(helper)_$(pass.name)($(target) + tile * $(buffer_rows[stage.target] * tile)$(pass_arguments(pass, group)));
//$ end
//$ if #stage.steps > 1 then
$(i)}
//$ end
//$ end
//$ if stage.number < 4 then

//$ end
//$ end
//$ if group.count > 1 then
    }
//$ elseif group.after > 0 then
    w += $(group.after);
//$ if integers then
    scales += $(4 * shape.padded);
//$ end
//$ end
//$ end
//$ if residual_apart or biased then

    /* residual and bias */
    for (size_t tile = 0; tile < tiles; ++tile) {
//$ for _, group in ipairs(groups) do
//$ if not group.finished then
//$ local i, row0 = "        ", tostring(group.first * shape.padded)
//$ local z_at = "z + " .. group.first * shape.padded * tile
//$ if group.first == 0 then z_at = "z" end
//$ z_at = z_at .. " + tile * " .. z_rows * tile
//$ local bias_at = sum("weights->projection_bias", group.first * shape.padded)
//$ if group.count > 1 then
//$     i = "            "
//$     z_at = z_at .. " + repeat * " .. shape.padded * tile
//$     bias_at = bias_at .. " + repeat * " .. shape.padded
        for (size_t repeat = 0; repeat < $(group.count); ++repeat) {
//$ end
//$ local first = 0
//$ if residual then
//$     first = group.residual_rows
//$     local vector = residual == "vector" and "weights->residual, " or ""
$(i)$(helper)_add_residual($(z_at), x + tile * $(x_step * tile), $(vector)$(bias_at), $(first));
//$ end
//$ if group.need > first then
$(i)$(helper)_add_bias($(sum(z_at, first * tile)), $(sum(bias_at, first)), $(group.need - first));
//$ end
//$ if group.count > 1 then
        }
//$ end
//$ end
//$ end
    }
//$ end
}
