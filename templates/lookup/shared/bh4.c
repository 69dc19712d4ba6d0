//$ takes prologue, of_tile, helper, symbol, kernels, tile, projection, parts, groups, passes, residual, adds_residual, adds_bias
//$ takes integers, measure, round, unpacked, blocks_argument, pass_arguments, projection_parameters
//$ takes counter, rows_first, find_units, block_of, panel, folded, up_to, gain_text, projection_rows, x_text, lane_axis,
//$ takes x_alignment, z_rows, blocks_total, factored
//$ -- What the kernel works on, one after the other.
//$ local item = kernels.layout == "rows" and "token" or "tile"
//$ local in_rows = integers and kernels.layout == "rows"
//$ -- Where the words of product `p` of a stage begin among those of a repeat; how many each block has.
//$ local function words_at(p, stage)
//$     local rest = p ~= stage.products[1] and "_REST_AT" or "_AT"
//$     return p.offset > 0 and names.constant("W" .. stage.number .. rest) or 0
//$ end
//$ local function block_words(p) return p.depth > 1 and p.depth .. " * " .. p.outputs or p.outputs end
//$ lines(prologue)
$(include(parts.round)) //$ if integers
$(include(parts.product))
$(include("templates/lookup/shared/butterfly.c")) //$ if #passes > 0
$(include("templates/lookup/shared/add_bias.c", { bypass = false })) //$ if adds_bias
$(include("templates/lookup/shared/add_bias.c", { bypass = true })) //$ if adds_residual

/* BH4 projection of $(up_to) (LookupFFN, section "Efficient projection: BH4"):
   z = $(residual and "decay H W4 H W3 H W2 H W1 x + (1 - decay) x" or "H W4 H W3 H W2 H W1 x") + bias, H the Hadamard
   matrix of $(plural(shape.padded, "row")), each W $(plural(blocks_total, "block")) of $(shape.block).
   Folded into the weights: the Hadamard matrix inside a block, decay$(gain_text).
   weights  bound weights
   x        [$(item)s]$(projection_rows)$(lane_axis)$(x_text)
   $(kernels.projection.rows.b and "a, b" or "a   ")     [$(item)s][$(shape.padded)]$(lane_axis), overwritten
   z        [$(item)s][$(z_rows)]$(lane_axis)$(z_rows > shape.bits and ", the first " .. plural(shape.bits, "row") .. ": the result" or "")
   $((buffer.name .. "         "):sub(1, 9))$(buffer.text), overwritten //$ for _, buffer in ipairs(kernels.work)
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
    $(helper)_factors factors; //$ if factored
    $(helper)_folds folds; //$ if folded and rows_first
//$ for _, group in ipairs(groups) do
//$ local units_at -- where factors.units begin

//$ if group.count > 1 then
    for (size_t repeat = $(group.first); repeat < $(group.first + group.count); ++repeat,
        w += $(names.constant("REPEAT_WORDS"))$(integers and ", scales += " .. 4 * shape.padded or "")) {
        float *y = z + repeat * $(of_tile(shape.padded * tile));

//$ elseif shape.repeats > 1 then
    /* repeat $(group.first): $(group.need) of $(plural(shape.padded, "output")) */
//$ end
//$ for _, stage in ipairs(group.stages) do
//$ local source, target = stage.source, stage.target
//$ if target == "z" then target = group.count > 1 and "y" or sum("z", of_tile(group.z_at)) end
    /* stage $(stage.number): $(stage.text) */
//$ if stage.rows_first then
//$ -- What follows `base` for the block at hand of product p: `at`, then `step` from block to block.
//$ local function of_block(p, base, at, step) return p.count > 1 and sum(base, at) .. " + block * " .. step or sum(base, at) end
//$ local function rounded(p, base, name) return of_block(p, base, of_tile(p.rounded[name].at), of_tile(p.rounded[name].block)) end
    for (size_t tile = 0; tile < tiles; ++tile) {
//$ for _, p in ipairs(stage.products) do
//$ local x = of_block(p, source, of_tile(p.x_at), of_tile(p.x_block)) .. " + tile * " .. of_tile(stage.x_step)
//$ local function of_fold(base, name)
//$     return rounded(p, base, name) .. (p.folds > 1 and " + fold * " .. of_tile(p.rounded[name].fold) or "")
//$ end
//$ local to_units = of_fold("units", "units")
        for (size_t block = 0; block < $(p.count); ++block)$(p.folds == 1 and " {" or "") //$ if p.count > 1
//$ if p.folds > 1 then
        for (size_t fold = 0; fold < $(p.folds); ++fold) {
//$ x = x .. " + fold * " .. of_tile(p.fold_step)
//$ end
//$ if stage.maxima then
        $(helper)_units_of_maxima($(of_fold("maxima + tile * " .. of_tile(integers.blocks * tile), "maxima")), $(to_units));
//$ else
        $(helper)_units_$(p.rows)($(x), $(to_units));
//$ end
        $(helper)_round_$(p.rows)($(x), $(to_units), $(of_fold("integers", "integers")), $(of_fold("starts", "starts")));
    } //$ if p.count > 1 or p.folds > 1
//$ end
        for (size_t row = 0; row < $(shape.block); row += $(panel)) {
//$ for _, p in ipairs(stage.products) do
//$ local block = block_of(p)
//$ if folded then
            folds.count = $(p.folds);
            folds.$(counter)s = $(block.lines);
            folds.scales = $(p.fold_gap);
//$ end
            for (size_t block = 0; block < $(p.count); ++block)$(#block.full > 1 and " {" or "") //$ if p.count > 1
//$ for _, part in ipairs(block.full) do
            $(helper)_outputs_$(part.outputs)($(rounded(p, "integers", "integers")),
                $(folded and "&folds" or block.lines),
                $(of_block(p, "w", sum(words_at(p, stage), part.at), block_words(p))) + row * $(block.depth), $(panel),
                $(of_block(p, "scales", p.scale_at + part.at, p.outputs)) + row,
                $(rounded(p, "units", "units")), $(rounded(p, "starts", "starts")),
                $(of_block(p, target, of_tile(p.y_at + part.at * tile), of_tile(p.y_block))) + row * $(tile)
                + tile * $(of_tile(stage.y_step)));
//$ end
        } //$ if p.count > 1 and #block.full > 1
//$ end
//$ for _, pass in ipairs(stage.steps) do
            $(helper)_$(pass.name)($(target) + tile * $(of_tile(stage.y_step))$(pass_arguments(pass, group)));
//$ end
        }
    }
//$ else
//$ if in_rows then
    for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))
        $(round(source, stage.x_step, stage.inputs));
//$ elseif measure and stage.unit_place == 1 and not stage.measured then
    for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))
        $(measure(source, stage.x_step, stage.inputs, stage.unit_place));
//$ end
//$ for _, p in ipairs(stage.products) do
//$ local looped, before = p.count > 1 and not blocks_argument, unpacked and "unpacked, " or ""
//$ local function block(base, at, step) return looped and base .. " + block * " .. of_tile(step) or sum(base, of_tile(at)) end
//$ local x, x_step = block(source, p.x_at, p.x_block), stage.x_step
//$ local rounded = integers and kernels.layout == "lanes"
//$ local place = measure and stage.units_at or integers and integers.starts and not rounded and p.first_block or 0
    factors.units = $(sum("units", place)); //$ if integers and place ~= units_at
    factors.starts = $(sum("starts", place)); //$ if integers and integers.starts and place ~= units_at
    for (size_t block = 0; block < $(p.count); ++block)$(rounded and " {" or "") //$ if looped
//$ if integers then
    factors.scales = $(sum("scales", p.scale_at) .. (looped and " + block * " .. p.outputs or ""));
//$     units_at, before = place, "&factors, "
//$     if rounded then
    for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))$(rows_first and p.folds == 1 and " {" or "")
//$         local fold_step = p.folds > 1 and p.fold_step or nil
        for (size_t fold = 0; fold < $(p.folds); ++fold)$(rows_first and " {" or "") //$ if fold_step
        $(find_units(x, x_step, p.rows, fold_step)); //$ if rows_first
        $(round(x, x_step, p.rows, stage.unit_place, fold_step));
    } //$ if rows_first
//$         x = "integers"
//$     else
//$         x, x_step = sum("integers", p.integers_at), integers.pitch
//$     end
//$ end
    $(helper)_$(p.name)($(x)$(rounded and "" or ", " .. x_step),
        $(sum("w", words_at(p, stage)))$(looped and " + block * " .. block_words(p) or ""),
        $(before)$(block(target, p.y_at, p.y_block)), $(stage.y_step), $(item)s$(blocks_argument and blocks_argument(p) or ""));
} //$ if looped and rounded
//$ end
//$ if #stage.steps > 0 then
    for (size_t $(item) = 0; $(item) < $(item)s; ++$(item))$(#stage.steps > 1 and " {" or "")
//$ for _, pass in ipairs(stage.steps) do
        $(helper)_$(pass.name)($(target) + $(item) * $(of_tile(stage.y_step))$(pass_arguments(pass, group)));
//$ end
    } //$ if #stage.steps > 1
//$ end
//$ end
//$ if stage.number < 4 then

//$ end
//$ end
//$ if group.count > 1 then
    }
//$ elseif group.after > 0 then
    w += $(names.constant("REPEAT_WORDS"));
    scales += $(4 * shape.padded); //$ if integers
//$ end
//$ end
//$ if adds_residual or adds_bias then

$(include("templates/lookup/shared/bypass.c", { x_step = groups[1].stages[1].x_step, period = shape.padded }))
//$ end
}
