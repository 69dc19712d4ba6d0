//$ lines("", prologue)
//$ if #micro > 0 then
$(include("templates/block_product.c"))
//$ end
//$ if #passes > 0 then
$(include("templates/butterfly.c"))
//$ end
//$ if biased then
$(include("templates/add_bias.c"))
//$ end
//$ if residual then

/* The share of the input that bypasses the projection, and the bias: z[row] += residual x[row] + bias[row]. */
//$ if residual == "vector" then
static void $(model)_add_residual(float *restrict z, const float *restrict x,
    const float *restrict residual, const float *restrict bias, size_t rows)
//$ else
static void $(model)_add_residual(float *restrict z, const float *restrict x, const float *restrict bias, size_t rows)
//$ end
{
    for (size_t row = 0; row < rows; ++row, z += $(tile), x += $(tile)) {
        const $(isa.vector) gain = $(isa.broadcast(residual == "vector" and "residual[row]" or residual));
        const $(isa.vector) offset = $(isa.broadcast("bias[row]"));
//$ for n = 0, vectors - 1 do
        const $(isa.vector) z$(n) = $(isa.add(isa.load("z", n * isa.lanes), "offset"));
        $(isa.store("z", n * isa.lanes, isa.fma("gain", isa.load("x", n * isa.lanes), "z" .. n)));
//$ end
    }
}
//$ end

/* BH4 projection of up to $(tiles) tiles of $(tile) tokens (LookupFFN, section "Efficient projection: BH4"):
   z = decay H W4 H W3 H W2 H W1 x + (1 - decay) x + bias, H the Hadamard matrix of $(shape.padded) rows, each W $(blocks_total) blocks of $(shape.block).
   Folded into the weights: the Hadamard matrix inside a block, decay$(gain_text).
   weights  bound weights
   x        [tiles][$(shape.d)][$(tile)]$(x_text)
   a, b     [tiles][$(shape.padded)][$(tile)], overwritten
   z        [tiles][$(z_rows)][$(tile)], the first $(shape.bits) rows are the result
   All 64-byte aligned, none may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const float *restrict x,
    float *restrict a, float *restrict b, float *restrict z, size_t tiles)
{
    const float *w = weights->projection;
//$ for _, group in ipairs(groups) do

//$ local i = "    "
//$ if group.count > 1 then
//$     i = "        "
    for (size_t repeat = $(group.first); repeat < $(group.first + group.count); ++repeat, w += $(group.weights)) {
        float *y = z + repeat * $(shape.padded * tile);

//$ else
    /* repeat $(group.first): $(group.need) of $(shape.padded) outputs */
//$ end
//$ for _, stage in ipairs(group.stages) do
//$ local target = stage.target == "z" and group.target or stage.target
$(i)/* stage $(stage.number): $(stage.text) */
//$ for _, p in ipairs(stage.products) do
//$ local source_at = stage.source .. " + tile * " .. (buffer_rows[stage.source] * tile)
//$ local target_at = target .. " + tile * " .. (buffer_rows[stage.target] * tile)
//$ if p.count > 1 then
$(i)for (size_t block = 0; block < $(p.count); ++block)
$(i)    for (size_t tile = 0; tile < tiles; ++tile)
$(i)        $(model)_$(p.name)($(source_at) + block * $(p.x_stride * tile), $(sum("w", p.offset)) + block * $(p.block_weights),
$(i)            $(target_at) + block * $(p.outputs * tile));
//$ else
$(i)for (size_t tile = 0; tile < tiles; ++tile)
$(i)    $(model)_$(p.name)($(sum(source_at, p.first_block * p.x_stride * tile)), $(sum("w", p.offset)), $(sum(target_at, p.first_block * p.outputs * tile)));
//$ end
//$ end
//$ if #stage.passes > 0 then
$(i)for (size_t tile = 0; tile < tiles; ++tile)$(#stage.passes > 1 and " {" or "")
//$ for _, pass in ipairs(stage.passes) do
$(i)    $(model)_$(pass.name)($(target) + tile * $(buffer_rows[stage.target] * tile));
//$ end
//$ if #stage.passes > 1 then
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
//$ end
//$ end

    /* residual and bias */
    for (size_t tile = 0; tile < tiles; ++tile) {
//$ for _, group in ipairs(groups) do
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
$(i)$(model)_add_residual($(z_at), x + tile * $(shape.d * tile), $(vector)$(bias_at), $(first));
//$ end
//$ if group.need > first then
$(i)$(model)_add_bias($(sum(z_at, first * tile)), $(sum(bias_at, first)), $(group.need - first));
//$ end
//$ if group.count > 1 then
        }
//$ end
//$ end
    }
}
