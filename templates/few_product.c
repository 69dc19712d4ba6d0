//$ for _, block in ipairs(blocks) do
//$ for _, together in ipairs(token_counts) do

/* One block for $(together > 1 and together .. " tokens" or "a token"): $(block.outputs) outputs of $(block.folds > 1 and block.folds .. " times " or "")$(block.rows) inputs, outputs in the lanes. */
static inline void $(helper)_$(block.name)_by_$(together)(const float *restrict x, $(together > 1 and "size_t x_step, " or "")const float *restrict w,
    float *restrict y$(together > 1 and ", size_t y_step" or ""))
{
//$ for _, strip in ipairs(block.strips) do
//$ local i = strip.count > 1 and "        " or "    "
//$ local inner = i
//$ if strip.count > 1 then
    for (size_t strip = 0; strip < $(strip.count); ++strip, w += $(strip.w_step), y += $(strip.y_step)) {
//$ elseif #block.strips > 1 then
    {
//$ i, inner = "        ", "        "
//$ end
//$ for t = 0, together - 1 do
//$ lines(i, zeros(t, #strip.vectors))
//$ end
//$ if block.folds > 1 then
$(i)for (size_t fold = 0; fold < $(block.folds); ++fold)
//$ inner = i .. "    "
//$ end
$(inner)for (size_t row = 0; row < $(block.rows); ++row) {
//$ local w_row, x_row = "row", "row"
//$ if block.folds > 1 then
//$ w_row, x_row = "(fold * " .. block.rows .. " + row)", "fold * " .. block.fold_gap .. " + row"
//$ end
//$ for n, vector in ipairs(strip.vectors) do
//$ local at = sum(w_row .. " * " .. vector.step, vector.at)
$(inner)    const $(isa.vector) w$(n - 1) = $(vector.partial and isa.load_partial("w", at, vector.floats) or isa.load_unaligned("w", at));
//$ end
//$ for t = 0, together - 1 do
$(inner)    const $(isa.vector) x$(t) = $(isa.broadcast("x[" .. (t == 0 and "" or t == 1 and "x_step + " or t .. " * x_step + ") .. x_row .. "]"));
//$ for n = 0, #strip.vectors - 1 do
$(inner)    y$(t)_$(n) = $(isa.fma("x" .. t, "w" .. n, "y" .. t .. "_" .. n));
//$ end
//$ end
$(inner)}
//$ for t = 0, together - 1 do
//$ for n, vector in ipairs(strip.vectors) do
//$ local at = t == 0 and vector.y or sum(t == 1 and "y_step" or t .. " * y_step", vector.y)
//$ local name = "y" .. t .. "_" .. n - 1
$(i)$(vector.partial and isa.store_partial("y", at, vector.floats, name) or isa.store_unaligned("y", at, name));
//$ end
//$ end
//$ if strip.count > 1 or #block.strips > 1 then
    }
//$ end
//$ end
}
//$ end

/* One block for all tokens; steps are floats from token to token. */
static void $(helper)_$(block.name)(const float *restrict x, size_t x_step, const float *restrict w,
    float *restrict y, size_t y_step, size_t tokens)
{
    size_t token = 0;
//$ for _, together in ipairs(token_counts) do
//$ if together > 1 then
    for (; token + $(together) <= tokens; token += $(together))
        $(helper)_$(block.name)_by_$(together)(x + token * x_step, x_step, w, y + token * y_step, y_step);
//$ else
    for (; token < tokens; ++token)
        $(helper)_$(block.name)_by_1(x + token * x_step, w, y + token * y_step);
//$ end
//$ end
}
//$ end
