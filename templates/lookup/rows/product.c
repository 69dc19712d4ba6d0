//$ takes isa, helper, projection, blocks, token_counts, integers, integers_text, unpack, weights_text
//$ -- Multiplies blocks, tokens in rows: a function for some tokens and for one, and one that calls these.
//$ local word, starts, several = projection.word, integers and integers.starts, integers and "words or floats" or "floats"
//$ local start = starts and ", const " .. word.storage .. " *restrict starts" or ""
//$ local factors = integers and "const float *restrict scales, const float *restrict units" .. start .. ", " or ""
//$ local given = integers and "scales, units, " .. (starts and "starts, " or "") or ""
//$ local text = integers and " " .. integers_text or unpack and " A word holds the weights of " .. word.rows .. " inputs." or ""
$(include("templates/lookup/shared/factors.c")) //$ if integers
//$ for _, block in ipairs(blocks) do
//$ local name, folds = helper .. "_" .. block.name, block.folds > 1
//$ local owner = not starts and "token" or folds and "fold" or "block" -- whose unit it is
//$ for _, together in ipairs(token_counts) do

/* One block for $(together > 1 and together .. " tokens" or "a token"), y = W x: $(plural(block.outputs, "output")) of
   $(folds and block.folds .. " times " or "")$(plural(block.rows, "input")), outputs in the
   lanes.$(together > 1 and " Steps are " .. several .. " from token to token." or "")$(text)
   x       $(together > 1 and "rows of " or "")words of integers, in units of the $(owner)'s unit //$ if integers
   w$(integers and "     " or "")  $(weights_text(block))
   starts  what the sums begin with, beside the units: weights are $(word.offset) too large //$ if starts
   scales  of the outputs' weights$(folds and ", " .. block.fold_gap .. " from those of one fold to the next" or "") //$ if integers
   */
static inline void $(name)_by_$(together)(const $(integers and word.storage or "float") *restrict x,
    $(together > 1 and "size_t x_step, " or "")const $(word.storage) *restrict w,
    $(factors)float *restrict y$(together > 1 and ", size_t y_step" or ""))
{
//$ local strips = block.strips[together]
//$ for _, strip in ipairs(strips) do
//$ local step = integers and "scales += " .. strip.y_step .. ", " or ""
    for (size_t strip = 0; strip < $(strip.count); ++strip, w += $(strip.w_step), $(step)y += $(strip.y_step)) { //$ if strip.count > 1
    { //$ if strip.count == 1 and #strips > 1
$(include("templates/lookup/rows/" .. (integers and "integer_sums.c" or "sums.c"), { of = block, strip = strip, together = together }))
//$ local in_units = integers and not (folds and starts) -- otherwise each fold's have been multiplied by its own
//$ for t = 0, together - 1 do
        const $(isa.vector) unit$(t) = $(isa.broadcast("units[" .. t * (integers.blocks or 1) .. "]")); //$ if in_units
//$ for n, vector in ipairs(strip.vectors) do
//$ local at, value = sum(times(t, "y_step"), vector.y), "y" .. t .. "_" .. n - 1
//$ if in_units then value = isa.mul(value, "unit" .. t) end
        $(vector.partial and isa.store_partial("y", at, vector.floats, value) or isa.store_unaligned("y", at, value));
//$ end
//$ end
    } //$ if strip.count > 1 or #strips > 1
//$ end
}
//$ end

/* $(block.counted and "Blocks side by side" or "One block") for all tokens; steps are
   $(several) from token to token. */
static void $(name)(const $(integers and word.storage or "float") *restrict x, size_t x_step, const $(word.storage) *restrict w,
    $(integers and "const " .. helper .. "_factors *factors, " or "")float *restrict y, size_t y_step,
    size_t tokens$(block.counted and ", size_t blocks" or ""))
{
//$ if integers then
    const float *scales = factors->scales, *units = factors->units;
    const $(word.storage) *starts = factors->starts; //$ if starts

//$ end
//$ if block.counted then
//$     local along = block.x_stride > 0 and ", x += " .. block.x_stride .. (starts and ", ++units, ++starts" or "") or ""
//$     local outputs = (integers and ", scales += " .. block.outputs or "") .. ", y += " .. block.outputs
//$     local steps = "++block" .. along .. ", w += " .. block.block_words .. outputs
//$     if #token_counts > 1 then
    if (tokens == 1) { /* without loops over tokens inside */
        for (size_t block = 0; block < blocks; $(steps))
            $(name)_by_1(x, w, $(given)y);
        return;
    }
//$     end
    for (size_t block = 0; block < blocks; $(steps)) {
//$ end
        size_t token = 0;
//$ local unit = starts and times("token", integers.blocks) or "token"
//$ local factors_at = integers and "scales, units + " .. unit .. ", " .. (starts and "starts + " .. unit .. ", " or "") or ""
//$ for _, together in ipairs(token_counts) do
//$     local many = together > 1
        for (; $(many and "token + " .. together .. " <= tokens" or "token < tokens"); $(advance("token", together)))
//$ local given = listed("x + token * x_step", many and "x_step", "w", factors_at .. "y + token * y_step", many and "y_step")
            $(name)_by_$(together)($(given));
//$ end
    } //$ if block.counted
}
//$ end
