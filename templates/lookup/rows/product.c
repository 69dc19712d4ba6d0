//$ takes isa, helper, projection, blocks, token_counts, counter, x_inputs, load_weights, load_words, unpack, zeros,
//$ takes barriers, weights_text
//$ local function x_at(t, row) return "x[" .. (t == 0 and row or sum(t == 1 and "x_step" or t .. " * x_step", row)) .. "]" end
//$ -- Adds the products of one input.
//$ local function add_input(vectors, tokens, k, x_k)
    const $(isa.vector) w$(n - 1) = $(load_weights(vector, k)); //$ for n, vector in ipairs(vectors)
//$     for t = 0, tokens - 1 do
    const $(isa.vector) x$(t) = $(isa.broadcast(x_at(t, x_k)));
    y$(t)_$(n) = $(isa.fma("x" .. t, "w" .. n, "y" .. t .. "_" .. n)); //$ for n = 0, #vectors - 1
//$     end
//$ end
//$ -- Adds the products of the inputs that share word number `k`. Words are loaded last: they take registers.
//$ local function add_word(vectors, tokens, k, inputs)
//$     for part, input in ipairs(inputs) do
            const $(isa.vector) x$(t)_$(part - 1) = $(isa.broadcast(x_at(t, input))); //$ for t = 0, tokens - 1
//$     end
//$     for n, vector in ipairs(vectors) do
//$         local parts = unpack("words" .. n - 1)
//$         local kept = barriers { "words" .. n - 1 }
            $(#kept > 0 and "" or "const ")$(isa.index) words$(n - 1) = $(load_words(vector, k));
//$         lines(kept)
//$         for part = 0, #inputs - 1 do
            const $(isa.vector) w$(n - 1)_$(part) = $(parts[part + 1]);
//$             for t = 0, tokens - 1 do
            y$(t)_$(n - 1) = $(isa.fma("x" .. t .. "_" .. part, "w" .. n - 1 .. "_" .. part, "y" .. t .. "_" .. n - 1));
//$             end
//$         end
//$     end
//$ end
//$ local function add(vectors, tokens, k, inputs)
//$     if unpack then add_word(vectors, tokens, k, inputs) else add_input(vectors, tokens, k, inputs[1]) end
//$ end
//$ for _, block in ipairs(blocks) do
//$ for _, together in ipairs(token_counts) do
//$ local steps = together > 1 and " Steps are floats from token to token." or ""
//$ local word = unpack and " A word holds the weights of " .. projection.word.rows .. " inputs." or ""

/* One block for $(together > 1 and together .. " tokens" or "a token"), y = W x: $(plural(block.outputs, "output")) of
   $(block.folds > 1 and block.folds .. " times " or "")$(plural(block.rows, "input")), outputs in the
   lanes.$(steps)$(word)
   w  $(weights_text(block)) */
static inline void $(helper)_$(block.name)_by_$(together)(const float *restrict x,
    $(together > 1 and "size_t x_step, " or "")const $(projection.word.storage) *restrict w,
    float *restrict y$(together > 1 and ", size_t y_step" or ""))
{
//$ local strips = block.strips[together]
//$ for _, strip in ipairs(strips) do
//$ if strip.count > 1 then
    for (size_t strip = 0; strip < $(strip.count); ++strip, w += $(strip.w_step), y += $(strip.y_step)) {
//$ elseif #strips > 1 then
    {
//$ end
//$ for t = 0, together - 1 do
//$ lines(zeros(t, #strip.vectors))
//$ end
        for (size_t fold = 0; fold < $(block.folds); ++fold) //$ if block.folds > 1
//$ loop(counter, 0, block.k_pairs, 1, function(k)
//$ if block.folds == 1 then
//$ add(strip.vectors, together, k, x_inputs(0, k))
//$ else
//$ local word = sum(times("fold", block.k_pairs), k)
//$ add(strip.vectors, together, k == 0 and word or "(" .. word .. ")", x_inputs("fold * " .. block.fold_gap, k))
//$ end
//$ end, { block = block.folds > 1 or #block.last_rows > 0 })
//$ if #block.last_rows > 0 then
//$ add(strip.vectors, together, block.k_pairs, block.last_rows)
//$ end
//$ for t = 0, together - 1 do
//$ for n, vector in ipairs(strip.vectors) do
//$ local at = t == 0 and vector.y or sum(t == 1 and "y_step" or t .. " * y_step", vector.y)
//$ local name = "y" .. t .. "_" .. n - 1
        $(vector.partial and isa.store_partial("y", at, vector.floats, name) or isa.store_unaligned("y", at, name));
//$ end
//$ end
    } //$ if strip.count > 1 or #strips > 1
//$ end
}
//$ end
$(include("templates/lookup/rows/blocks.c", { of = block }))
//$ end
