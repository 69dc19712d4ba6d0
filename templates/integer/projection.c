//$ lines("", prologue)
//$ local storage = layer.storage
//$ for _, block in ipairs(blocks) do

/* $(block.outputs) outputs of a block of $(block.folds > 1 and block.folds .. " times " or "")$(block.rows) inputs: sums, times multipliers / 2^16. */
static void $(helper)_$(block.name)(const int16_t *restrict x, const $(storage) *restrict w, const int16_t *restrict multiplier, int32_t *restrict y)
{
//$ for n, strip in ipairs(block.strips) do
//$ local step = strip.together
    for (size_t output = $(strip.at); output < $(strip.at + strip.count * step); output += $(step)) {
        int32_t sum[$(step)] = { 0 };
//$ local i = "        "
//$ if block.folds > 1 then
        for (size_t fold = 0; fold < $(block.folds); ++fold, w += $(block.rows)) {
//$ i = "            "
//$ end
//$ local input = block.folds > 1 and "fold * " .. block.fold_gap .. " + " or ""
//$ local eights, pairs_end = step == 4 and block.rows - block.rows % 8 or 0, block.rows - block.rows % 2
//$ if eights > 0 then
$(i)for (size_t i = 0; i < $(eights); i += 8)
$(i)    $(model)_dots8(sum, x + $(input)i, w + i, $(block.depth));
//$ end
//$ for _, part in ipairs { { from = eights, to = pairs_end, width = 2 }, { from = pairs_end, to = block.rows, width = 1 } } do
//$ if part.from < part.to then
$(i)for (size_t i = $(part.from); i < $(part.to); i += $(part.width))$(step > 1 and " {" or "")
//$ for s = 0, step - 1 do
//$ local at = (s > 0 and s * block.depth .. " + " or "") .. "i"
//$ if part.width == 2 then
$(i)    sum[$(s)] = $(model)_dot2(sum[$(s)], x + $(input)i, w + $(at));
//$ else
$(i)    sum[$(s)] += x[$(input)i] * w[$(at)];
//$ end
//$ end
//$ if step > 1 then
$(i)}
//$ end
//$ end
//$ end
//$ if block.folds > 1 then
        }
        w += $((step - 1) * block.depth);
//$ else
        w += $(step * block.depth);
//$ end
//$ for s = 0, step - 1 do
        y[$(sum("output", s))] = $(model)_scaled(sum[$(s)], multiplier[$(sum("output", s))]);
//$ end
    }
//$ end
}
//$ end
//$ if #passes > 0 then
$(include("templates/lookup/shared/butterfly.c"))
//$ end
//$ if layer.bh4 then
//$ local step = shape.padded < 4 and shape.padded or 4

/* A stage's sums as its values: y = round(sums / 2^shift). */
static void $(helper)_narrow(const int32_t *restrict sums, unsigned shift, int16_t *restrict y)
{
    for (size_t i = 0; i < $(shape.padded); i += $(step)) {
//$ for u = 0, step - 1 do
        y[$(sum("i", u))] = (int16_t) $(model)_rounded(sums[$(sum("i", u))], shift);
//$ end
    }
}
//$ end

//$ if layer.bh4 then
/* BH4 projection of one token (LookupFFN, section "Efficient projection: BH4"):
   z = $(residual and "decay H W4 H W3 H W2 H W1 x + (1 - decay) x" or "H W4 H W3 H W2 H W1 x") + bias, H the Hadamard matrix of $(shape.padded) rows, each W $(blocks_total) blocks of $(shape.block).
   Folded into the weights: the Hadamard matrix inside a block, decay$(normalise and ", LayerNorm's gain" or "").
   weights  bound weights
   x        [$(shape.d)]
   values   [$(shape.padded)] between stages, overwritten; sums likewise
   z        [$(z_rows)], the first $(shape.bits) are the result
   None may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const int16_t *restrict x, int16_t *restrict values, int32_t *restrict sums, int32_t *restrict z)
//$ else
/* Dense projection of one token: z = W x + bias.
   weights  bound weights
   x        [$(layer.inputs)]
   z        [$(layer.outputs)]
   None may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const int16_t *restrict x, int32_t *restrict z)
//$ end
{
    const $(storage) *w = weights->$(layer.weights);
    const int16_t *multipliers = weights->$(layer.multipliers);
//$ if layer.bh4 then
    const uint8_t *shifts = weights->shifts + 4;
//$ end
//$ for _, group in ipairs(groups) do

//$ local i = "    "
//$ local target_z = layer.bh4 and sum("z", group.first * shape.padded) or "z"
//$ if group.count > 1 then
//$     i = "        "
//$     target_z = "y"
    for (size_t repeat = $(group.first); repeat < $(group.first + group.count); ++repeat, w += $(group.words), multipliers += $(group.multipliers), shifts += 3) {
        int32_t *y = z + repeat * $(shape.padded);

//$ elseif layer.bh4 and shape.repeats > 1 then
    /* repeat $(group.first): $(group.need) of $(shape.padded) outputs */
//$ end
//$ for _, stage in ipairs(group.stages) do
//$ local source = stage.source == "x" and "x" or "values"
//$ local target = stage.last and target_z or "sums"
//$ if layer.bh4 then
$(i)/* stage $(stage.number): $(stage_text(stage)) */
//$ end
//$ for _, p in ipairs(stage.products) do
//$ if p.count > 1 then
$(i)for (size_t block = 0; block < $(p.count); ++block)
$(i)    $(helper)_$(p.name)($(source) + block * $(p.x_stride), $(sum("w", p.offset)) + block * $(p.block_words), $(sum("multipliers", p.multiplier_at)) + block * $(p.outputs), $(target) + block * $(p.outputs));
//$ else
$(i)$(helper)_$(p.name)($(sum(source, p.first_block * p.x_stride)), $(sum("w", p.offset)), $(sum("multipliers", p.multiplier_at)), $(sum(target, p.target_at)));
//$ end
//$ end
//$ for _, pass in ipairs(stage.passes) do
$(i)$(helper)_$(pass.name)($(target));
//$ end
//$ if not stage.last then
$(i)$(helper)_narrow(sums, shifts[$(stage.number - 1)], values);

//$ end
//$ end
//$ if group.count > 1 then
    }
//$ elseif group.after then
    w += $(group.words);
    multipliers += $(group.multipliers);
    shifts += 3;
//$ end
//$ end

    /* $(residual and "residual and bias" or "bias") */
//$ if residual then
    for (size_t first = 0; first < $(shape.bits); first += $(shape.padded))
        for (size_t i = 0; i < $(shape.d)$(shape.bits % shape.padded > 0 and " && first + i < " .. shape.bits or ""); ++i)
            z[first + i] += $(model)_rounded(x[i] * weights->residual[i], weights->shifts[1]);
//$ end
    for (size_t i = 0; i < $(layer.outputs); ++i)
        z[i] += weights->$(layer.bias)[i];
}
