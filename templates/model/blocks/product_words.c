//$ takes prologue, isa, lanes, symbol, helper, panel, rounded, product, sums, barriers, outputs, tiles, matrix
//$ lines(prologue)
//$ local word, group = rounded.rows, panel -- inputs of a word; words of a panel's step
//$ local function name(t, n) return "sum" .. t .. "_" .. n end
//$ local function names_of(tokens, vectors)
//$     local list = {}
//$     for t = 0, tokens - 1 do
//$         for n = 0, vectors - 1 do list[#list + 1] = name(t, n) end
//$     end
//$     return list
//$ end
//$ local scale = rounded.integers and "const float *restrict scale, " or ""
$(include("templates/model/blocks/ahead.c")) //$ if product.tokens[1] > 1 and product.next
//$ for at, tokens in ipairs(product.tokens) do
//$ local next = at == 1 and product.next -- not beside a rest of the tokens
//$ if tokens > 1 then

/* $(product.strip > 1 and product.strip .. " outputs" or "An output") of $(tokens) tokens, a strip of a panel: sums
   of all inputs$(rounded.integers and " as integers" or ""), then y in one go.$(next and next.doc or "") */
static inline void $(helper)_of_$(tokens)(const uint32_t *restrict x, size_t x_step, const uint32_t *restrict w, const $(matrix) *map,
    size_t output, float *restrict y, size_t y_step$(next and ", const " .. helper .. "_ahead *ahead" or ""))
{
    const size_t words = (map->inputs + $(word - 1)) / $(word);
    const float *scale = map->scales + output; //$ if rounded.integers
    const float *bias = map->bias + output;
    const uintptr_t next = ahead->next; //$ if next
    const size_t step = ahead->step; //$ if next
    float unit[$(tokens)]; //$ if rounded.integers
//$ for t = 0, tokens - 1 do
    unit[$(t)] = ((const float *) (const void *) x)[$(sum(times(t, "x_step"), "words + 1"))]; //$ if rounded.integers
//$ for n = 0, product.strip_vectors - 1 do
    $(sums.type) $(name(t, n)) = $(sums.start("x[" .. sum(times(t, "x_step"), "words") .. "]"));
//$ end
//$ end
//$ for t = 0, next and tokens - 1 or -1 do
//$ for _, byte in ipairs(next.lines) do
    $(isa.prefetch_l2("(uintptr_t) " .. (t == 0 and "y" or "(y + " .. times(t, "y_step") .. ")"), byte));
//$ end
//$ end
//$ local function prefetch(step)
        $(isa.prefetch_l2("next + k * step", 0)); //$ if next
//$ for line = 0, product.ahead and step * product.strip_bytes - 1 or -1, 64 do
        $(isa.prefetch_l1("(uintptr_t) weights", product.ahead + line));
//$ end
//$ end
//$ if sums.dot_two then
    size_t k = 0;

    for (; k + 2 <= words; k += 2) {
        const uint32_t *weights = w + k * $(panel);
//$ prefetch(2)
//$ for t = 0, tokens - 1 do
        const $(isa.index) x$(t) = $(isa.index_broadcast("x[" .. sum(times(t, "x_step"), "k") .. "]"));
        const $(isa.index) next_x$(t) = $(isa.index_broadcast("x[" .. sum(times(t, "x_step"), "k + 1") .. "]"));
//$ end
//$ for n = 0, product.strip_vectors - 1 do
        $(isa.index) w$(n) = $(isa.load_words("weights", n * lanes));
        $(isa.index) next_w$(n) = $(isa.load_words("weights", panel + n * lanes));
//$ -- Else gcc loads them once for each token: loads are then as many as registers can take in the time of the products.
//$ lines(barriers { "w" .. n, "next_w" .. n })
//$ for t = 0, tokens - 1 do
        $(name(t, n)) = $(sums.dot_two(name(t, n), "w" .. n, "x" .. t, "next_w" .. n, "next_x" .. t));
//$ end
//$ end
//$ lines(barriers(names_of(tokens, product.strip_vectors)))
    }
    for (; k < words; ++k) {
//$ else

    for (size_t k = 0; k < words; ++k) {
//$ end
        const uint32_t *weights = w + k * $(panel);
//$ if not sums.dot_two then
//$ prefetch(1)
//$ end
        const $(isa.index) w$(n) = $(isa.load_words("weights", n * lanes)); //$ for n = 0, product.strip_vectors - 1
//$ for t = 0, tokens - 1 do
        const $(isa.index) x$(t) = $(isa.index_broadcast("x[" .. sum(times(t, "x_step"), "k") .. "]"));
        $(name(t, n)) = $(sums.dot(name(t, n), "w" .. n, "x" .. t)); //$ for n = 0, product.strip_vectors - 1
//$ end
//$ lines(barriers(names_of(tokens, product.strip_vectors)))
    }

//$ for t = 0, tokens - 1 do
//$ for n = 0, product.strip_vectors - 1 do
    $(isa.store_unaligned("y", sum(times(t, "y_step"), n * lanes), outputs(name(t, n), "unit[" .. t .. "]", n * lanes)));
//$ end
//$ end
}
//$ end
//$ end
//$ for _, streams in ipairs(product.streams) do

//$ if streams > 1 then
/* $(plural(product.alone_outputs, "output")) of each of $(plural(streams, "panel")), `apart` words and `y_apart`
   outputs from each other, of one token. Weights are read once, from
   memory, which delivers several streams faster than one. */
static inline void $(helper)_alone_$(streams)(const uint32_t *restrict x, const uint32_t *restrict w, size_t apart,
    $(scale)const float *restrict bias, float *restrict y, size_t y_apart, size_t words)
//$ else
/* $(plural(product.alone_outputs, "output")) of one token. */
static inline void $(helper)_alone(const uint32_t *restrict x, const uint32_t *restrict w, $(scale)const float *restrict bias,
    float *restrict y, size_t words)
//$ end
{
    const float unit = ((const float *) (const void *) x)[words + 1]; //$ if rounded.integers
//$ for s = 0, streams - 1 do
    $(sums.type) $(name(s, n)) = $(sums.start("x[words]")); //$ for n = 0, product.alone_vectors - 1
//$ end

    for (size_t k = 0; k < words; ++k) {
        const uint32_t *weights = w + k * $(panel);
        const $(isa.index) inputs = $(isa.index_broadcast("x[k]"));
//$ if product.prefetch then
//$ for s = 0, streams - 1 do
//$ for line = 0, product.step_bytes - 1, 64 do
//$ local stream = s == 0 and "(uintptr_t) weights" or "(uintptr_t) (weights + " .. times(s, "apart") .. ")"
        $(isa.prefetch_l1(stream, product.prefetch + line));
//$ end
//$ end
//$ end
//$ for s = 0, streams - 1 do
//$ for n = 0, product.alone_vectors - 1 do
        $(name(s, n)) = $(sums.dot(name(s, n), isa.load_words("weights", sum(times(s, "apart"), n * lanes)), "inputs"));
//$ end
//$ end
//$ lines(barriers(names_of(streams, product.alone_vectors)))
    }
//$ for s = 0, streams - 1 do
//$ for n = 0, product.alone_vectors - 1 do
//$ local at = sum(times(s, "y_apart"), n * lanes)
    $(isa.store_unaligned("y", at, outputs(name(s, n), "unit", at)));
//$ end
//$ end
}
//$ end
$(include("templates/model/blocks/product_tiles.c", tiles)) //$ if tiles

//$ if rounded.integers then
/* A dense product for some tokens whose inputs are rounded: y = W x + bias. Sums of products are integers, and exact.
   x_rows  rows of words: inputs, $(word) to a word as signed bytes, the rest of the last one
           zeros; $(sums.started and "the word from which sums start" or "a word that is not read here"), and the unit of
           the inputs as a float
   map     weights are [panels][words][$(plural(panel, "output"))], $(word) inputs to a word, unsigned bytes: $(rounded.offset) more than
           the weight in units of its row's scale
//$ else
/* A dense product for some tokens whose inputs are rounded: y = W x + bias, sums in float32.
   x_rows  rows of words: inputs in bf16, $(word) to a word, the first in the low bits, the rest of the last one zeros
   map     weights are [panels][words][$(plural(panel, "output"))], $(word) inputs to a word likewise
//$ end
   y_rows  rows of panels * $(plural(panel, "float"))
   Nothing may overlap; any float alignment. Cannot fail. */
void $(symbol)(const $(matrix) *map, const $(names.rounded_rows) *x_rows, const $(names.rows) *y_rows, size_t tokens)
{
    const uint32_t *x = x_rows->at, *w = map->weights;
    const float *$(rounded.integers and "scale = map->scales, *" or "")bias = map->bias;
    float *y = y_rows->at;
    const size_t x_step = x_rows->step, y_step = y_rows->step, panels = map->panels;
    const size_t words = (map->inputs + $(word - 1)) / $(word);

//$ -- Lines that call the kernels of a token alone; its rows are x and y.
//$ local function alone(x, y)
//$ local function call(streams)
//$     local function scales(from) return rounded.integers and "scale + " .. from .. ", " or "" end
//$     local from, place = "w + panel * words * " .. panel, "panel * " .. panel
//$     if product.alone_outputs < panel then
        for (size_t at = 0; at < $(panel); at += $(product.alone_outputs))
//$         from, place = from .. " + at", place .. " + at"
//$     end
//$     if streams > 1 then
        $(helper)_alone_$(streams)($(x), $(from), each * words * $(panel), $(scales(place))bias + $(place),
            $(sum(y, place)), each * $(panel), words);
//$     else
        $(helper)_alone($(x), $(from), $(scales(place))bias + $(place), $(sum(y, place)), words);
//$     end
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
//$ if tiles then
    if (tokens >= $(product.tiles.from) && words >= 16) {
        $(helper)_output to;
        to.y = y;
        to.y_step = y_step;
        $(helper)_by_tiles(map, x_rows, &to, 0, panels, tokens);
        return;
    }
//$ end
//$ if product.tokens[1] > 1 then
    size_t token = 0;
//$ if product.next then
    $(helper)_ahead ahead;
    ahead.step = ($(product.next.share - 1) + tokens) / tokens; /* of the next panel's bytes, for a word of inputs */
//$ end

//$ -- All tokens of a strip before the next strip: its weights stay in the caches.
    for (size_t output = 0; tokens > 1 && output < panels * $(panel); output += $(product.strip)) {
        const uint32_t *strip = w + output / $(panel) * words * $(panel) + output % $(panel);
        const uintptr_t next = $(product.next.at("(uintptr_t) strip", "words", "output", "words")); //$ if product.next
        token = 0;
//$ for _, count in ipairs(product.tokens) do
//$ if count > 1 then
//$ local ahead = product.next and count == product.tokens[1]
        for (; token + $(count) <= tokens; token += $(count)) {
            ahead.next = next + token / $(count) * words * ahead.step; //$ if ahead
            $(helper)_of_$(count)(x + token * x_step, x_step, strip, map, output, y + token * y_step + output,
                y_step$(ahead and ", &ahead" or ""));
        }
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
