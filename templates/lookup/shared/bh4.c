//$ takes prologue, helper, symbol, of_tile, kernels, tile, parts, contract, groups, passes, blocks_total, integers, measures, structs
//$ takes residual, adds_residual, adds_bias
//$ lines(prologue)
$(include(parts.round)) //$ if integers
$(include(parts.product))
$(include("templates/lookup/shared/butterfly.c")) //$ if #passes > 0
$(include("templates/lookup/shared/add_bias.c", { bypass = false })) //$ if adds_bias
$(include("templates/lookup/shared/add_bias.c", { bypass = true })) //$ if adds_residual

/* BH4 projection of $(contract.up_to) (LookupFFN, section "Efficient projection: BH4"):
   z = $(residual and "decay H W4 H W3 H W2 H W1 x + (1 - decay) x" or "H W4 H W3 H W2 H W1 x") + bias, H the Hadamard
   matrix of $(plural(shape.padded, "row")), each W $(plural(blocks_total, "block")) of $(shape.block).
   Folded into the weights: the Hadamard matrix inside a block, decay$(contract.gain).
   weights  bound weights
   x        $(contract.x)
   $(contract.scratch_names)     [$(contract.item)s][$(shape.padded)]$(contract.axis), overwritten
   z        $(contract.z)
   $((buffer.name .. "         "):sub(1, 9))$(buffer.text), overwritten //$ for _, buffer in ipairs(kernels.work)
   All 64-byte aligned$(contract.but_x), none may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const float *restrict x,
    $(listed(contract.parameters, "size_t " .. contract.item .. "s")))
{
    const $(contract.weights_type) *w = weights->projection;
    const float *scales = weights->projection_scales; //$ if integers
//$ if measures then

$(include("templates/lookup/lanes/find_units.c", { stage = groups[1].stages[1] }))
//$ end
    $(helper)_$(name) $(name); //$ for _, name in ipairs(structs)
//$ for _, group in ipairs(groups) do

//$ if group.count > 1 then
    for (size_t repeat = $(group.first); repeat < $(group.first + group.count); ++repeat,
        w += $(names.constant("REPEAT_WORDS"))$(integers and ", scales += " .. 4 * shape.padded or "")) {
        float *y = z + repeat * $(of_tile(shape.padded * tile));

//$ elseif shape.repeats > 1 then
    /* repeat $(group.first): $(group.need) of $(plural(shape.padded, "output")) */
//$ end
//$ for _, stage in ipairs(group.stages) do
//$ local target = stage.number < 4 and stage.target or group.count > 1 and "y" or sum("z", of_tile(group.z_at))
    /* stage $(stage.number): $(stage.text) */
$(include(stage.rows_first and parts.rows_first or parts.stage, { stage = stage, target = target }))
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
