//$ takes prologue, helper, symbol, kernels, tile, projection, parts, groups, passes, residual, adds_residual, adds_bias
//$ takes integers, measure, round, unpacked, blocks_argument, pass_arguments, projection_parameters
//$ takes rows_first, find_units, block_of, panel, folded, up_to, gain_text, projection_rows, x_text, lane_axis,
//$ takes x_alignment, z_rows, blocks_total
//$ -- What the kernel works on, one after the other.
//$ local item = kernels.layout == "rows" and "token" or "tile"
//$ lines("", prologue)
//$ if integers then
$(include(parts.round))
//$ end
$(include(parts.product))
//$ if #passes > 0 then
$(include("templates/lookup/shared/butterfly.c"))
//$ end
//$ if adds_bias then
$(include("templates/lookup/shared/add_bias.c", { bypass = false }))
//$ end
//$ if adds_residual then
$(include("templates/lookup/shared/add_bias.c", { bypass = true }))
//$ end

/* BH4 projection of $(up_to) (LookupFFN, section "Efficient projection: BH4"):
   z = $(residual and "decay H W4 H W3 H W2 H W1 x + (1 - decay) x" or "H W4 H W3 H W2 H W1 x") + bias, H the Hadamard
   matrix of $(plural(shape.padded, "row")), each W $(plural(blocks_total, "block")) of $(shape.block).
   Folded into the weights: the Hadamard matrix inside a block, decay$(gain_text).
   weights  bound weights
   x        [$(item)s]$(projection_rows)$(lane_axis)$(x_text)
   $(kernels.projection.rows.b and "a, b" or "a   ")     [$(item)s][$(shape.padded)]$(lane_axis), overwritten
   z        [$(item)s][$(z_rows)]$(lane_axis), the first $(shape.bits == 1 and "row is" or shape.bits .. " rows are") the result
//$ for _, buffer in ipairs(kernels.work) do
   $((buffer.name .. "         "):sub(1, 9))$(buffer.text), overwritten
//$ end
   All 64-byte aligned$(x_alignment), none may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const float *restrict x,
    $(projection_parameters), size_t $(item)s)
{
    const $(projection.word.storage) *w = weights->projection;
//$ if integers then
    const float *scales = weights->projection_scales;
//$     if measure then

    for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))
        $(measure("x", groups[1].stages[1].x_step, shape.d, 0));
//$     end
//$ end
//$ for _, group in ipairs(groups) do

//$ local i = "    "
//$ if group.count > 1 then
//$     i = "        "
    for (size_t repeat = $(group.first); repeat < $(group.first + group.count); ++repeat,
        w += $(group.words)$(integers and ", scales += " .. 4 * shape.padded or "")) {
        float *y = z + repeat * $(shape.padded * tile);

//$ elseif shape.repeats > 1 then
    /* repeat $(group.first): $(group.need) of $(plural(shape.padded, "output")) */
//$ end
//$ for _, stage in ipairs(group.stages) do
//$ local source, target = stage.source, stage.target
//$ if target == "z" then target = group.count > 1 and "y" or sum("z", group.z_at) end
$(i)/* stage $(stage.number): $(stage.text) */
//$ if stage.rows_first then
//$ -- What follows `base` for the block at hand of product p: `at`, then `step` from block to block.
//$ local function of_block(p, base, at, step) return p.count > 1 and sum(base, at) .. " + block * " .. step or sum(base, at) end
//$ local function rounded(p, base, name) return of_block(p, base, p.rounded[name].at, p.rounded[name].block) end
$(i)for (size_t tile = 0; tile < tiles; ++tile) {
//$ for _, p in ipairs(stage.products) do
//$ local i = i .. "    "
//$ local x = of_block(p, source, p.x_at, p.x_block) .. " + tile * " .. stage.x_step
//$ local function of_fold(base, name) return rounded(p, base, name) .. (p.folds > 1 and " + fold * " .. p.rounded[name].fold or "") end
//$ local to_units = of_fold("units", "units")
//$ if p.count > 1 then
$(i)for (size_t block = 0; block < $(p.count); ++block)$(p.folds == 1 and " {" or "")
//$ i = i .. "    "
//$ end
//$ if p.folds > 1 then
$(i)for (size_t fold = 0; fold < $(p.folds); ++fold) {
//$ i = i .. "    "
//$ x = x .. " + fold * " .. p.fold_step
//$ end
//$ if stage.maxima then
$(i)$(helper)_units_of_maxima($(of_fold("maxima + tile * " .. integers.blocks * kernels.tile, "maxima")), $(to_units));
//$ else
$(i)$(helper)_units_$(p.rows)($(x), $(to_units));
//$ end
$(i)$(helper)_round_$(p.rows)($(x), $(to_units), $(of_fold("integers", "integers")), $(of_fold("starts", "starts")));
//$ if p.count > 1 or p.folds > 1 then
$(i:sub(5))}
//$ end
//$ end
$(i)    for (size_t row = 0; row < $(shape.block); row += $(panel)) {
//$ for _, p in ipairs(stage.products) do
//$ local i, block = i .. "        ", block_of(p)
//$ if p.count > 1 then
$(i)for (size_t block = 0; block < $(p.count); ++block)$(#block.full > 1 and " {" or "")
//$ i = i .. "    "
//$ end
//$ for _, part in ipairs(block.full) do
$(i)$(helper)_outputs_$(part.outputs)($(rounded(p, "integers", "integers")),
$(i)    $(block.lines)$(folded and ", " .. p.folds .. ", " .. p.fold_gap or ""),
$(i)    $(of_block(p, "w", p.offset + part.at, p.block_words)) + row * $(block.depth), $(panel),
$(i)    $(of_block(p, "scales", p.scale_at + part.at, p.outputs)) + row,
$(i)    $(rounded(p, "units", "units")), $(rounded(p, "starts", "starts")),
$(i)    $(of_block(p, target, p.y_at + part.at * kernels.tile, p.y_block)) + row * $(kernels.tile) + tile * $(stage.y_step));
//$ end
//$ if p.count > 1 and #block.full > 1 then
$(i:sub(5))}
//$ end
//$ end
//$ for _, pass in ipairs(stage.steps) do
$(i)        $(helper)_$(pass.name)($(target) + tile * $(stage.y_step)$(pass_arguments(pass, group)));
//$ end
$(i)    }
$(i)}
//$ else
//$ if integers and kernels.layout == "rows" then
$(i)for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))
$(i)    $(round(source, stage.x_step, stage.inputs));
//$ elseif measure and stage.unit_place == 1 and not stage.measured then
$(i)for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))
$(i)    $(measure(source, stage.x_step, stage.inputs, stage.unit_place));
//$ end
//$ for _, p in ipairs(stage.products) do
//$ local looped, before = p.count > 1 and not blocks_argument, unpacked and "unpacked, " or ""
//$ local function block(base, at, step) return looped and base .. " + block * " .. step or sum(base, at) end
//$ local i, x, x_step = i, block(source, p.x_at, p.x_block), stage.x_step
//$ local rounded = integers and kernels.layout == "lanes"
//$ if looped then
$(i)for (size_t block = 0; block < $(p.count); ++block)$(rounded and " {" or "")
//$     i = i .. "    "
//$ end
//$ if integers then
//$     local place = measure and stage.units_at or not rounded and integers.starts and p.first_block or 0
//$     before = sum("scales", p.scale_at) .. (looped and " + block * " .. p.outputs or "") .. ", "
//$         .. sum("units", place) .. ", " .. (integers.starts and sum("starts", place) .. ", " or "")
//$     if rounded then
$(i)for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))$(rows_first and p.folds == 1 and " {" or "")
//$         local i, fold_step = i .. "    ", p.folds > 1 and p.fold_step or nil
//$         if fold_step then
$(i)for (size_t fold = 0; fold < $(p.folds); ++fold)$(rows_first and " {" or "")
//$             i = i .. "    "
//$         end
//$         if rows_first then
$(i)$(find_units(x, x_step, p.rows, fold_step));
//$         end
$(i)$(round(x, x_step, p.rows, stage.unit_place, fold_step));
//$         if rows_first then
$(i:sub(5))}
//$         end
//$         x, x_step = "integers", integers.pitch
//$     else
//$         x, x_step = sum("integers", p.integers_at), integers.pitch
//$     end
//$ end
$(i)$(helper)_$(p.name)($(x), $(x_step), $(sum("w", p.offset))$(looped and " + block * " .. p.block_words or ""),
$(i)    $(before)$(block(target, p.y_at, p.y_block)), $(stage.y_step), $(item)s$(blocks_argument and blocks_argument(p) or ""));
//$ if looped and rounded then
$(i:sub(5))}
//$ end
//$ end
//$ if #stage.steps > 0 then
$(i)for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))$(#stage.steps > 1 and " {" or "")
//$ for _, pass in ipairs(stage.steps) do
$(i)    $(helper)_$(pass.name)($(target) + $(item) * $(stage.y_step)$(pass_arguments(pass, group)));
//$ end
//$ if #stage.steps > 1 then
$(i)}
//$ end
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
//$ if adds_residual or adds_bias then

$(include("templates/lookup/shared/bypass.c", { x_step = groups[1].stages[1].x_step, period = shape.padded }))
//$ end
}
