//$ takes prologue, isa, lanes, symbol, helper, panel, type, rounded, product, sums, barriers, groups, matrix
//$ lines(prologue)
//$ local per_group = groups.inputs // rounded.rows -- words of inputs
//$ local function name(what, t, s, n) return what .. t .. "_" .. s .. "_" .. n end
//$ -- The body of a function for so many tokens, and panels side by side.
//$ local function body(tokens, streams, vectors)
//$ local function each(done)
//$     for t = 0, tokens - 1 do
//$         for s = 0, streams - 1 do
//$             for n = 0, vectors - 1 do done(t, s, n) end
//$         end
//$     end
//$ end
{
    const $(isa.index) low_halves = $(isa.index_broadcast("0x0f0f0f0f")); //$ if groups.bits == 4
    const $(isa.vector) zero = $(isa.zero());
//$ each(function(t, s, n)
    $(isa.vector) $(name("y", t, s, n)) = zero;
//$ end)
    const uint32_t *starts = x + words + 2; //$ if sums.started ~= false
    uint32_t last[$(tokens * per_group)]; /* of inputs that are no whole group */

    for (size_t k = 0; k < words; k += $(per_group), w += $(groups.words)) {
        const uint32_t *input = x + k;
//$ local step
//$ if tokens > 1 then
        size_t step = x_step;
//$ step = "step"
//$ end
//$ for t = 0, tokens - 1 do
//$ local start = "starts[" .. sum(times(t, "x_step"), "k / " .. per_group) .. "]"
//$ if groups.minimum then
        const float inputs$(t) = -0.125f * (float) ((int16_t) $(start) + (int16_t) ($(start) >> 16));
        const $(isa.index) start$(t) = $(isa.index_zero());
//$ else
        const $(isa.index) start$(t) = $(sums.start(start));
//$ end
//$ end
//$ each(function(t, s, n)
        $(isa.index) $(name("sum", t, s, n)) = start$(t);
//$ end)

        if (words - k < $(per_group)) {
//$ if tokens > 1 then
            for (size_t token = 0; token < $(tokens); ++token)
                for (size_t i = 0; i < $(per_group); ++i)
                    last[token * $(per_group) + i] = k + i < words ? x[token * x_step + k + i] : 0;
            step = $(per_group);
//$ else
            for (size_t i = 0; i < $(per_group); ++i)
                last[i] = k + i < words ? x[k + i] : 0;
//$ end
            input = last;
        }
        for (size_t i = 0; i < $(per_group); $(advance("i", groups.inputs_of_row))) {
            const $(type.storage) *row = w + at + $(groups.first_word) + i * $(panel // groups.inputs_of_row);
//$ for t = 0, tokens - 1 do
            const $(isa.index) first$(t) = $(isa.index_broadcast("input[" .. sum(t > 0 and times(t, step) or 0, "i") .. "]"));
//$ if groups.bits == 4 then
            const $(isa.index) second$(t) = $(isa.index_broadcast("input[" .. sum(t > 0 and times(t, step) or 0, "i + 1") .. "]"));
//$ end
//$ end
//$ local held = {}
//$ for s = 0, streams - 1 do
//$ for n = 0, vectors - 1 do
            {
                const $(isa.index) $(groups.bits == 8 and "weights" or "both") = $(isa.load_words("row", sum(times(s, "apart"), n * lanes)));
//$ if groups.bits == 4 then
                const $(isa.index) low = $(isa.index_and("both", "low_halves"));
                const $(isa.index) high = $(isa.high_nibbles("both"));
//$ end
//$ for t = 0, tokens - 1 do
//$ local total = sums.dot(name("sum", t, s, n), groups.bits == 8 and "weights" or "low", "first" .. t)
                $(name("sum", t, s, n)) = $(groups.bits == 8 and total or sums.dot(total, "high", "second" .. t));
//$ held[#held + 1] = name("sum", t, s, n)
//$ end
            }
//$ end
//$ end
//$ lines(barriers(held))
        }
//$ for s = 0, tokens == 1 and product.prefetch and streams - 1 or -1 do
//$ for line = 0, 4 * groups.words - 1, 64 do
        $(isa.prefetch_l1(s == 0 and "(uintptr_t) w" or "(uintptr_t) (w + " .. times(s, "apart") .. ")", product.prefetch + line));
//$ end
//$ end
//$ for s = 0, streams - 1 do
        {
            const uint16_t *scales = (const uint16_t *) (const void *) $(s == 0 and "w" or "(" .. sum("w", times(s, "apart")) .. ")") + at;
//$ for n = 0, vectors - 1 do
            const $(isa.vector) scale$(n) = $(isa.load_f16(sum("scales", n * lanes)));
            const $(isa.vector) minimum$(n) = $(isa.load_f16(sum("scales", panel + n * lanes))); //$ if groups.minimum
//$ for t = 0, tokens - 1 do
//$ if groups.minimum then
            $(name("y", t, s, n)) = $(isa.fma("minimum" .. n, isa.broadcast("inputs" .. t), name("y", t, s, n)));
//$ end
            $(name("y", t, s, n)) = $(isa.fma("scale" .. n, isa.float_of(sums.total(name("sum", t, s, n))), name("y", t, s, n)));
//$ end
//$ end
        }
//$ end
    }

//$ for t = 0, tokens - 1 do
    const float unit$(t) = ((const float *) (const void *) x)[$(sum(times(t, "x_step"), "words + 1"))];
//$ end
//$ each(function(t, s, n)
//$ local place = sum(times(t, "y_step"), times(s, "y_apart"), n * lanes)
//$ local bias = isa.load_unaligned("bias", sum(times(s, "y_apart"), n * lanes))
    $(isa.store_unaligned("y", place, isa.fma(name("y", t, s, n), isa.broadcast("unit" .. t), bias)));
//$ end)
}
//$ end
//$ for _, tokens in ipairs(product.tokens) do
//$ if tokens > 1 then

/* $(product.strip > 1 and product.strip .. " outputs" or "An output") from output `at` of a panel on, of $(tokens) tokens: sums of a
   group are integers. */
static inline void $(helper)_of_$(tokens)(const uint32_t *restrict x, size_t x_step, const $(type.storage) *restrict w, size_t at,
    const float *restrict bias, float *restrict y, size_t y_step, size_t words)
//$ body(tokens, 1, product.strip_vectors)
//$ end
//$ end
//$ for _, streams in ipairs(product.streams) do

//$ if streams > 1 then
/* $(plural(product.alone_outputs, "output")) from output `at` of each of $(plural(streams, "panel")) on, `apart` words and `y_apart`
   outputs from each other, of one token. Weights are read once, from
   memory, which delivers several streams faster than one. */
static inline void $(helper)_alone_$(streams)(const uint32_t *restrict x, const $(type.storage) *restrict w, size_t apart, size_t at,
    const float *restrict bias, float *restrict y, size_t y_apart, size_t words)
//$ else
/* $(plural(product.alone_outputs, "output")) from output `at` of a panel on, of one token. */
static inline void $(helper)_alone(const uint32_t *restrict x, const $(type.storage) *restrict w, size_t at,
    const float *restrict bias, float *restrict y, size_t words)
//$ end
//$ body(1, streams, product.alone_vectors)
//$ end

/* A dense product for some tokens whose inputs are rounded: y = W x + bias. Sums of products of a group are integers.
   x_rows  rows of words: inputs, $(rounded.rows) to a word as signed bytes, the rest of the last one
           zeros; a word that is not read here, the unit of the inputs as a float, and for each group what its sums start from
   map     weights are [panels][groups of $(groups.inputs) inputs][$(groups.words)]: $(groups.scales_text), then
           [$(groups.inputs // groups.of_word)][$(panel)] words of $(groups.of_word) weights of an output, $(groups.bits) bits each: $(groups.weights_text)
   y_rows  rows of panels * $(plural(panel, "float"))
   Nothing may overlap; any float alignment. Cannot fail. */
void $(symbol)(const $(matrix) *map, const $(names.rounded_rows) *x_rows, const $(names.rows) *y_rows, size_t tokens)
{
    const uint32_t *x = x_rows->at;
    const $(type.storage) *w = map->weights;
    const float *bias = map->bias;
    float *y = y_rows->at;
    const size_t x_step = x_rows->step, y_step = y_rows->step, panels = map->panels;
    const size_t words = (map->inputs + $(rounded.rows - 1)) / $(rounded.rows);
    const size_t of_panel = (words + $(per_group - 1)) / $(per_group) * $(groups.words);

//$ -- Lines that call the kernels of a token alone; its rows are x and y.
//$ local function alone(x, y)
//$ local function call(streams)
//$     local at, place = "0", "panel * " .. panel
//$     if product.alone_outputs < panel then
        for (size_t at = 0; at < $(panel); at += $(product.alone_outputs))
//$         at, place = "at", place .. " + at"
//$     end
//$     local apart, y_apart = streams > 1 and "each * of_panel", streams > 1 and "each * " .. panel
        $(helper)_alone$(streams > 1 and "_" .. streams or "")($(listed(x, "w + panel * of_panel", apart, at, "bias + " .. place, sum(y, place), y_apart, "words")));
//$ end
//$ if #product.streams > 1 then
        const size_t each = panels / $(product.streams[1]);
        for (size_t panel = 0; panel < each; ++panel)
//$ call(product.streams[1])
        for (size_t panel = $(product.streams[1]) * each; panel < panels; ++panel)
//$ else
        for (size_t panel = 0; panel < panels; ++panel)
//$ end
//$ call(1)
//$ end
//$ if product.tokens[1] > 1 then
    size_t token = 0;

//$ -- All tokens of a strip before the next strip: its weights stay in the caches.
    for (size_t output = 0; tokens > 1 && output < panels * $(panel); output += $(product.strip)) {
        const $(type.storage) *strip = w + output / $(panel) * of_panel;
        token = 0;
//$ for _, count in ipairs(product.tokens) do
//$ if count > 1 then
        for (; token + $(count) <= tokens; token += $(count))
            $(helper)_of_$(count)(x + token * x_step, x_step, strip, output % $(panel), bias + output,
                y + token * y_step + output, y_step, words);
//$ end
//$ end
    }
    for (; token < tokens; ++token) {
//$ else
    for (size_t token = 0; token < tokens; ++token) {
//$ end
//$ alone("x + token * x_step", "y + token * y_step")
    }
}
