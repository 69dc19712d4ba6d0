//$ takes prologue, helper, symbol, storage, bh4, blocks, passes, groups, z_rows, blocks_total, residual, normalise, eights
//$ lines(prologue)
//$ if eights then

$(include("templates/lookup/integer/dots.c"))
//$ end
//$ local function at(base, value, name) return value == 0 and base or base .. " + " .. names.macro(name) end
//$ for _, block in ipairs(blocks) do

/* $(plural(block.outputs, "output")) of a block of
   $(block.folds > 1 and block.folds .. " times " or "")$(plural(block.rows, "input")): sums, times multipliers /
   2^16. Sums stay in int32, whatever x is, since lookupc pack chooses the units of weights by their bounds. */
static void $(helper)_$(block.name)(const int16_t *restrict x, const $(storage) *restrict w,
    const int16_t *restrict multiplier, int32_t *restrict y)
{
//$ for _, strip in ipairs(block.strips) do
//$ -- A loop over the strips, or what it does once.
//$ local step, once = strip.together, strip.count == 1
//$ local function output(s) return once and tostring(strip.at + s) or sum("output", s) end
//$ if not once then
    for (size_t output = $(strip.at); output < $(strip.at + strip.count * step); output += $(step)) {
//$ elseif #block.strips > 1 then
    {
//$ end
    int32_t sum[$(step)] = { 0 };
//$ local input = ""
//$ if block.folds > 1 then
    for (size_t fold = 0; fold < $(block.folds); ++fold, w += $(block.rows)) {
//$     input = " + fold * " .. block.fold_gap
//$ end
//$ local eights_end, pairs_end = step == 4 and block.rows - block.rows % 8 or 0, block.rows - block.rows % 2
//$ local function place(base, i) return i == "0" and base or base .. " + " .. i end
//$ -- The sums of inputs `from` to `to`, `width` at a time; `one` prints those of inputs from `k` on.
//$ local function over(from, to, width, one)
//$     if from == to then return end
//$     if to - from == width then one(tostring(from)) return end
    for (size_t k = $(from); k < $(to); k += $(width)) {
//$     one("k")
    }
//$ end
//$ over(0, eights_end, 8, function(k)
        $(model)_add_dots8(sum, $(place("x" .. input, k)), $(place("w", k)), $(block.depth));
//$ end)
//$ over(eights_end, pairs_end, 2, function(k)
//$     for s = 0, step - 1 do
        sum[$(s)] = $(model)_add_dot2(sum[$(s)], $(place("x" .. input, k)), $(place(s > 0 and "w + " .. s * block.depth or "w", k)));
//$     end
//$ end)
//$ over(pairs_end, block.rows, 1, function(k)
//$     for s = 0, step - 1 do
//$         local at = s == 0 and k or k == "0" and tostring(s * block.depth) or s * block.depth .. " + " .. k
        sum[$(s)] += x[$(input == "" and k or input:sub(4) .. " + " .. k)] * w[$(at)];
//$     end
//$ end)
//$ local done = step * block.depth
//$ if block.folds > 1 then
    }
//$     done = (step - 1) * block.depth
//$ end
    w += $(done); //$ if done > 0 and not (once and strip.at + step == block.outputs)
    y[$(output(s))] = $(model)_scale_by(sum[$(s)], multiplier[$(output(s))]); //$ for s = 0, step - 1
    } //$ if not once or #block.strips > 1
//$ end
}
//$ end
$(include("templates/lookup/shared/butterfly.c")) //$ if #passes > 0
//$ if bh4 then
//$ local step = shape.padded < 4 and shape.padded or 4

/* A stage's sums as its values: y = round(sums / 2^shift). */
static void $(helper)_narrow(const int32_t *restrict sums, unsigned shift, int16_t *restrict y)
{
    for (size_t i = 0; i < $(shape.padded); i += $(step)) {
        y[$(sum("i", u))] = (int16_t) $(model)_shift_rounded(sums[$(sum("i", u))], shift); //$ for u = 0, step - 1
    }
}
//$ end

//$ if bh4 then
/* BH4 projection of one token (LookupFFN, section "Efficient projection: BH4"):
   z = $(residual and "decay H W4 H W3 H W2 H W1 x + (1 - decay) x" or "H W4 H W3 H W2 H W1 x") + bias, H the Hadamard
   matrix of $(plural(shape.padded, "row")), each W $(plural(blocks_total, "block")) of $(shape.block).
   Folded into the weights: the Hadamard matrix inside a block, decay$(normalise and ", LayerNorm's gain" or "").
   weights  bound weights
   x        [$(shape.d)]
   values   [$(shape.padded)] between stages, overwritten; sums likewise
//$ local behind = z_rows > shape.bits and ", the first " .. (shape.bits == 1 and "is" or shape.bits .. " are") .. " the result"
   z        [$(z_rows)]$(behind or "")
   None may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const int16_t *restrict x, int16_t *restrict values,
    int32_t *restrict sums, int32_t *restrict z)
//$ else
/* Dense projection of one token: z = W x + bias.
   weights  bound weights
   x        [$(shape.d)]
   z        [$(shape.bits)]
   None may overlap. Cannot fail. */
void $(symbol)(const $(names.weights) *weights, const int16_t *restrict x, int32_t *restrict z)
//$ end
{
    const $(storage) *w = weights->projection;
    const int16_t *multipliers = weights->multipliers;
    const uint8_t *shifts = weights->shifts + $(names.macro("SHIFT_STAGES")); //$ if bh4
//$ for _, group in ipairs(groups) do

//$ local target_z = bh4 and sum("z", group.first * shape.padded) or "z"
//$ if group.count > 1 then
//$     target_z = "y"
    for (size_t repeat = $(group.first); repeat < $(group.first + group.count); ++repeat,
        w += $(names.macro(group.name .. "_WEIGHTS")), multipliers += $(names.macro(group.name .. "_MULTIPLIERS")),
        shifts += 3) {
        int32_t *y = z + repeat * $(shape.padded);

//$ elseif bh4 and shape.repeats > 1 then
    /* repeat $(group.first): $(group.need) of $(plural(shape.padded, "output")) */
//$ end
//$ for _, stage in ipairs(group.stages) do
//$ local source = stage.source == "x" and "x" or "values"
//$ local target = stage.last and target_z or "sums"
    /* stage $(stage.number): $(stage.text) */ //$ if bh4
//$ for _, p in ipairs(stage.products) do
//$ if p.count > 1 then
    for (size_t block = 0; block < $(p.count); ++block)
//$ local words = p.outputs == 1 and p.block_words or "(" .. p.outputs .. " * " .. p.block_words // p.outputs .. ")"
        $(helper)_$(p.name)($(source) + block * $(p.x_stride),
            $(at("w", p.offset, p.constant .. "_WEIGHTS")) + block * $(words),
            $(at("multipliers", p.multiplier_at, p.constant .. "_MULTIPLIERS")) + block * $(p.outputs),
            $(target) + block * $(p.outputs));
//$ else
    $(helper)_$(p.name)($(sum(source, p.first_block * p.x_stride)), $(at("w", p.offset, p.constant .. "_WEIGHTS")),
        $(at("multipliers", p.multiplier_at, p.constant .. "_MULTIPLIERS")), $(sum(target, p.target_at)));
//$ end
//$ end
    $(helper)_$(pass.name)($(target)); //$ for _, pass in ipairs(stage.passes)
//$ if not stage.last then
    $(helper)_narrow(sums, shifts[$(stage.number - 1)], values);

//$ end
//$ end
//$ if group.count > 1 then
    }
//$ elseif group.after then
    w += $(names.macro(group.name .. "_WEIGHTS"));
    multipliers += $(names.macro(group.name .. "_MULTIPLIERS"));
    shifts += 3;
//$ end
//$ end

    /* $(residual and "residual and bias" or "bias") */
//$ if residual then
//$ if shape.bits <= shape.padded then
    for (size_t i = 0; i < $(shape.bits < shape.d and shape.bits or shape.d); ++i)
        z[i] += $(model)_shift_rounded(x[i] * weights->residual[i], weights->shifts[$(names.macro("SHIFT_RESIDUAL"))]);
//$ else
    for (size_t first = 0; first < $(shape.bits); first += $(shape.padded))
        for (size_t i = 0; i < $(shape.d)$(shape.bits % shape.padded > 0 and " && first + i < " .. shape.bits or ""); ++i)
            z[first + i] += $(model)_shift_rounded(x[i] * weights->residual[i], weights->shifts[$(names.macro("SHIFT_RESIDUAL"))]);
//$ end
//$ end
//$ loop("i", 0, shape.bits, 1, function(output)
        z[$(output)] += weights->projection_bias[$(output)];
//$ end)
}
