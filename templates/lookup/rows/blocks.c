//$ takes helper, projection, token_counts, integers, of
//$ -- The function that multiplies a block, or blocks side by side, by those for a token and for several.
//$ local word, starts = projection.word.storage, integers and integers.starts
//$ local name = helper .. "_" .. of.name
//$ local factors = starts and "scales, units, starts, " or integers and "scales, units, " or ""
//$ local parameters = integers and "const float *restrict scales, const float *restrict units, " or ""
//$ if starts then parameters = parameters .. "const " .. word .. " *restrict starts, " end
//$ local factors_at = starts
//$     and "scales, units + token * " .. integers.blocks .. ", starts + token * " .. integers.blocks .. ", "
//$     or integers and "scales, units + token, " or ""

/* $(of.counted and "Blocks side by side" or "One block") for all tokens; steps are
   $(integers and "words or " or "")floats from token to token. */
static void $(name)(const $(integers and word or "float") *restrict x, size_t x_step, const $(word) *restrict w,
    $(parameters)float *restrict y, size_t y_step, size_t tokens$(of.counted and ", size_t blocks" or ""))
{
//$ if of.counted then
//$     local along = of.x_stride > 0 and ", x += " .. of.x_stride .. (starts and ", ++units, ++starts" or "") or ""
//$     local outputs = (integers and ", scales += " .. of.outputs or "") .. ", y += " .. of.outputs
//$     local steps = "++block" .. along .. ", w += " .. of.block_words .. outputs
//$     if #token_counts > 1 then
    if (tokens == 1) { /* without loops over tokens inside */
        for (size_t block = 0; block < blocks; $(steps))
            $(name)_by_1(x, w, $(factors)y);
        return;
    }
//$     end
    for (size_t block = 0; block < blocks; $(steps)) {
//$ end
        size_t token = 0;
//$ for _, together in ipairs(token_counts) do
//$     if together > 1 then
        for (; token + $(together) <= tokens; token += $(together))
            $(name)_by_$(together)(x + token * x_step, x_step, w, $(factors_at)y + token * y_step, y_step);
//$     else
        for (; token < tokens; ++token)
            $(name)_by_1(x + token * x_step, w, $(factors_at)y + token * y_step);
//$     end
//$ end
    } //$ if of.counted
}
