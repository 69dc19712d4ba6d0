//$ takes isa, helper, projection, blocks, token_counts, load_words, zeros, chains, barriers, counter, dot, dot_two,
//$ takes integers, integers_text, weights_text
//$ -- The sums of `vectors` over word `k` of inputs, together with the next one if `pair`. Inputs that are blocks with
//$ -- units of their own have `integers.blocks` a token.
//$ local starts = integers.starts
//$ local starts_parameter = starts and "const " .. projection.word.storage .. " *restrict starts, " or ""
//$ local function add_word(vectors, tokens, k, x_k, name, pair)
//$     local before = name == "sum" and "" or name .. "_"
//$     for t = 0, tokens - 1 do
//$         local at = t == 0 and x_k or sum(t == 1 and "x_step" or t .. " * x_step", x_k)
            const $(isa.index) $(before)x$(t) = $(isa.index_broadcast("x[" .. at .. "]"));
            const $(isa.index) next_x$(t) = $(isa.index_broadcast("x[" .. sum(at, 1) .. "]")); //$ if pair
//$     end
//$     for n, vector in ipairs(vectors) do
            const $(isa.index) $(before)w$(n - 1) = $(load_words(vector, k));
            const $(isa.index) next_w$(n - 1) = $(load_words(vector, k, 1)); //$ if pair
//$         for t = 0, tokens - 1 do
//$             local to = name .. t .. "_" .. n - 1
//$             local x, w = before .. "x" .. t, before .. "w" .. n - 1
            $(to) = $(dot_two(to, w, x, "next_" .. w, "next_" .. x)); //$ if pair
            $(to) = $(starts and dot(to, w, x) or dot(to, x, w)); //$ if not pair
//$         end
//$     end
//$ end
//$ -- The place of token `t`'s unit, or start.
//$ local function unit_at(t, block)
//$     local at = sum(t * (integers.blocks or 1), 0)
//$     if block.folds == 1 or not starts then return at end
//$     return "fold * " .. block.fold_blocks .. (t > 0 and " + " .. at or "")
//$ end
//$ local function scales_of(vector, at)
//$     return vector.partial and isa.load_partial("scales", at, vector.floats) or isa.load_unaligned("scales", at)
//$ end
//$ for _, block in ipairs(blocks) do
//$ for _, together in ipairs(token_counts) do

/* One block for $(together > 1 and together .. " tokens" or "a token"), y = W x: $(plural(block.outputs, "output")) of
   $(block.folds > 1 and block.folds .. " times " or "")$(plural(block.rows, "input")), outputs in the
   lanes. $(together > 1 and "Steps are words or floats from token to token. " or "")$(integers_text)
   x       [tokens] words of integers, in units of the $(starts and (block.folds > 1 and "fold's" or "block's") or "token's") unit
   w       $(weights_text(block))
   starts  what the sums begin with, beside the units: weights are $(projection.word.offset) too large //$ if starts
   scales  of the outputs' weights$(block.folds > 1 and ", " .. block.fold_gap .. " from those of one fold to the next" or "") */
static inline void $(helper)_$(block.name)_by_$(together)(const $(projection.word.storage) *restrict x,
    $(together > 1 and "size_t x_step, " or "")const $(projection.word.storage) *restrict w,
    const float *restrict scales, const float *restrict units,
    $(starts_parameter)float *restrict y$(together > 1 and ", size_t y_step" or ""))
{
//$ local strips = block.strips[together]
//$ for _, strip in ipairs(strips) do
//$ local vectors = strip.vectors
//$ local pair = dot_two and block.lines % 2 == 0
//$ local chains = pair and 1 or chains(block, #vectors, together)
//$ if strip.count > 1 then
    for (size_t strip = 0; strip < $(strip.count); ++strip, w += $(strip.w_step), scales += $(strip.y_step), y += $(strip.y_step)) {
//$ elseif #strips > 1 then
    {
//$ end
//$ if block.folds > 1 then
//$ for t = 0, together - 1 do
//$ lines(zeros(t, #vectors))
//$ end
        for (size_t fold = 0; fold < $(block.folds); ++fold) {
//$ end
//$ for t = 0, together - 1 do
        const $(isa.index) start$(t) = $(isa.index_broadcast("starts[" .. unit_at(t, block) .. "]")); //$ if starts
//$ lines(zeros(t, #vectors, "sum", starts and "start" .. t))
//$ if chains > 1 then
//$ lines(zeros(t, #vectors, "next"))
//$ end
//$ end
//$ loop(counter, 0, block.lines, pair and 2 or chains, function(line)
//$ for chain = 1, chains do
//$     local k = sum(line, chain - 1)
//$     local x_k = k
//$     if block.folds > 1 then
//$         k, x_k = sum(times("fold", block.lines), k), sum("fold * " .. block.fold_words, k)
//$     end
//$     if type(k) == "string" and k:find("+", 1, true) then k = "(" .. k .. ")" end
//$     add_word(vectors, together, k, x_k, chain == 1 and "sum" or "next", pair)
//$ end
//$ local sums = {}
//$ for t = 0, together - 1 do
//$     for n = 0, #vectors - 1 do
//$         sums[#sums + 1] = "sum" .. t .. "_" .. n
//$         if chains > 1 then sums[#sums + 1] = "next" .. t .. "_" .. n end
//$     end
//$ end
//$ lines(barriers(sums))
//$ end)
//$ for t = 0, together - 1 do
//$ local unit = "unit" .. t
//$ if block.folds > 1 and starts then
        const $(isa.vector) $(unit) = $(isa.broadcast("units[" .. unit_at(t, block) .. "]"));
//$ end
//$ for n, vector in ipairs(vectors) do
//$ local name = t .. "_" .. n - 1
//$ local total = chains > 1 and isa.index_add("sum" .. name, "next" .. name) or "sum" .. name
//$ if block.folds > 1 then
//$     local scales = scales_of(vector, sum("fold * " .. block.fold_gap, vector.y))
        y$(name) = $(isa.fma(isa.float_of(total), starts and isa.mul(scales, unit) or scales, "y" .. name));
//$ else
        const $(isa.vector) y$(name) = $(isa.mul(isa.float_of(total), scales_of(vector, vector.y)));
//$ end
//$ end
//$ end
        } //$ if block.folds > 1
//$ for t = 0, together - 1 do
//$ local apart = block.folds > 1 and starts -- already in units
        const $(isa.vector) unit$(t) = $(isa.broadcast("units[" .. unit_at(t, block) .. "]")); //$ if not apart
//$ for n, vector in ipairs(vectors) do
//$ local at = t == 0 and vector.y or sum(t == 1 and "y_step" or t .. " * y_step", vector.y)
//$ local value = "y" .. t .. "_" .. n - 1
//$ if not apart then value = isa.mul(value, "unit" .. t) end
        $(vector.partial and isa.store_partial("y", at, vector.floats, value) or isa.store_unaligned("y", at, value));
//$ end
//$ end
    } //$ if strip.count > 1 or #strips > 1
//$ end
}
//$ end
$(include("templates/lookup/rows/blocks.c", { of = block }))
//$ end
