//$ takes prologue, isa, lanes, symbol, helper, panel, type, product, load_weights, groups, matrix
//$ lines(prologue)
//$ local function accumulator(t, n) return "y" .. t .. "_" .. n end
//$ -- One input: a strip of `vectors` vectors of weights at `row`, of `tokens` tokens.
//$ local function add_input(tokens, vectors, k, name)
//$     for n = 0, vectors - 1 do
        const $(isa.vector) w$(n) = $(product.unpacks and isa.load_unaligned("row", n * lanes) or load_weights("row", n * lanes));
//$     end
//$     for t = 0, tokens - 1 do
        const $(isa.vector) x$(t) = $(isa.broadcast("x[" .. sum(times(t, "x_step"), k) .. "]"));
        $(name(t, n)) = $(isa.fma("x" .. t, "w" .. n, name(t, n))); //$ for n = 0, vectors - 1
//$     end
//$ end
//$ if groups then
$(include("templates/model/blocks/product_groups.c"))
//$ elseif product.several and product.unpacks then

/* A strip of $(plural(product.strip, "output")) of a panel, all its inputs, as floats. */
static inline void $(helper)_unpack(const $(type.storage) *restrict w, size_t inputs, float *restrict unpacked)
{
    for (size_t k = 0; k < inputs; ++k, unpacked += $(product.strip)) {
        const $(type.storage) *row = w + k * $(panel);
//$ for n = 0, product.strip_vectors - 1 do
        $(isa.store_unaligned("unpacked", n * lanes, load_weights("row", n * lanes)));
//$ end
    }
}
//$ end
$(include("templates/model/blocks/ahead.c")) //$ if product.several and product.next
//$ for at, tokens in ipairs(product.several and product.tokens or {}) do
//$ local next = at == 1 and product.next -- not beside a rest of the tokens

/* $(product.strip > 1 and product.strip .. " outputs" or "An output") of
   $(tokens > 1 and tokens .. " tokens" or "a token"), a strip of a panel: y += W x, or y = W x for the first inputs.$(next and next.doc or "") */
static inline void $(helper)_of_$(tokens)(const float *restrict x,
    $(tokens > 1 and "size_t x_step, " or "")const $(product.unpacks and "float" or type.storage) *restrict w,
    size_t inputs,
    float *restrict y, $(tokens > 1 and "size_t y_step, " or "")int first$(next and ", const " .. helper .. "_ahead *ahead" or ""))
{
    const $(isa.vector) zero = $(isa.broadcast("$hidden(0.0f)")); /* else a loop around it is a call of memset */
    const uintptr_t next = ahead->next; //$ if next
    const size_t step = ahead->step; //$ if next
//$ for t = 0, tokens - 1 do
//$ for n = 0, product.strip_vectors - 1 do
    $(isa.vector) $(accumulator(t, n)) = first ? zero : $(isa.load_unaligned("y", sum(times(t, "y_step"), n * lanes)));
//$ end
//$ end
//$ for t = 0, next and tokens - 1 or -1 do
//$ for _, byte in ipairs(next.lines) do
    $(isa.prefetch_l2("(uintptr_t) " .. (t == 0 and "y" or "(y + " .. times(t, "y_step") .. ")"), byte));
//$ end
//$ end

    for (size_t k = 0; k < inputs; ++k) {
        const $(product.unpacks and "float" or type.storage) *row = w + $(times("k", product.unpacks and product.strip or panel));
//$ for line = 0, product.ahead and product.strip_bytes - 1 or -1, 64 do
        $(isa.prefetch_l1("(uintptr_t) row", product.ahead + line));
//$ end
        $(isa.prefetch_l2("next + k * step", 0)); //$ if next
//$ add_input(tokens, product.strip_vectors, "k", accumulator)
    }

//$ for t = 0, tokens - 1 do
//$ for n = 0, product.strip_vectors - 1 do
    $(isa.store_unaligned("y", sum(times(t, "y_step"), n * lanes), accumulator(t, n)));
//$ end
//$ end
}
//$ end
//$ local function partial(s, u, n) return "y" .. s .. "_" .. u .. "_" .. n end
//$ for _, streams in ipairs(groups and {} or product.streams) do
//$ local function add_inputs(u)
            const $(isa.vector) x$(u) = $(isa.broadcast("x[" .. sum("k", u) .. "]"));
//$     for s = 0, streams - 1 do
//$     for n = 0, product.alone_vectors - 1 do
            const $(isa.vector) w$(s)_$(n) = $(load_weights("row", sum(times(s, "apart"), u * panel + n * lanes)));
            $(partial(s, u, n)) = $(isa.fma("x" .. u, "w" .. s .. "_" .. n, partial(s, u, n)));
//$     end
//$     end
//$ end

//$ if streams > 1 then
/* $(plural(product.alone_outputs, "output")) of each of $(plural(streams, "panel")), `apart` weights and `y_apart`
   outputs from each other, of one token: y = W x. Weights are read once,
   from memory, which delivers several streams faster than one. */
static inline void $(helper)_alone_$(streams)(const float *restrict x, const $(type.storage) *restrict w, size_t apart,
    size_t inputs, float *restrict y, size_t y_apart, $(isa.vector) zero)
//$ else
/* $(plural(product.alone_outputs, "output")) of one token: y = W x. */
static inline void $(helper)_alone(const float *restrict x, const $(type.storage) *restrict w, size_t inputs,
    float *restrict y, $(isa.vector) zero)
//$ end
{
//$ for s = 0, streams - 1 do
    $(isa.vector) $(partial(s, u, n)) = zero; //$ for u = 0, product.unroll - 1 for n = 0, product.alone_vectors - 1
//$ end
    size_t k = 0; //$ if product.unroll > 1

    for (; k < inputs - inputs % $(product.unroll); k += $(product.unroll)) { //$ if product.unroll > 1
    for (size_t k = 0; k < inputs; ++k) { //$ if product.unroll <= 1
        const $(type.storage) *row = w + k * $(panel);
//$ if product.prefetch then
//$ for s = 0, streams - 1 do
//$ for line = 0, product.step_bytes - 1, 64 do
        $(isa.prefetch_l1(s == 0 and "(uintptr_t) row" or "(uintptr_t) (row + " .. times(s, "apart") .. ")", product.prefetch + line));
//$ end
//$ end
//$ end
//$ for u = 0, product.unroll - 1 do
        { //$ if product.unroll > 1
//$ add_inputs(u)
        } //$ if product.unroll > 1
//$ end
    }
//$ if product.unroll > 1 then
    for (; k < inputs; ++k) {
        const $(type.storage) *row = w + k * $(panel);
//$ add_inputs(0)
    }
//$ end
//$ for s = 0, streams - 1 do
//$ local step = 1
//$ while step < product.unroll do
//$ for u = 0, product.unroll - 1, 2 * step do
//$ for n = 0, product.alone_vectors - 1 do
    $(partial(s, u, n)) = $(isa.add(partial(s, u, n), partial(s, u + step, n)));
//$ end
//$ end
//$ step = 2 * step
//$ end
//$ for n = 0, product.alone_vectors - 1 do
    $(isa.store_unaligned("y", sum(times(s, "y_apart"), n * lanes), partial(s, 0, n)));
//$ end
//$ end
}
//$ end

/* A dense product for some tokens: y = W x + bias.
   x_rows  rows of inputs
//$ if groups then
   map     weights are [panels][groups of $(groups.inputs) inputs][$(groups.words)]: $(groups.scales_text), then
           [$(groups.inputs // groups.of_word)][$(panel)] words of $(groups.of_word) weights of an output, $(groups.bits) bits each: $(groups.weights_text)
//$ else
   map     weights are [panels][inputs][$(plural(panel, "output"))]
//$ end
           strip: $(plural(product.unpacked_floats, "float")) for several tokens, overwritten //$ if product.unpacks
   y_rows  rows of panels * $(plural(panel, "float"))
   Nothing may overlap; any float alignment. Cannot fail. */
void $(symbol)(const $(matrix) *map, const $(names.rows) *x_rows, const $(names.rows) *y_rows, size_t tokens)
{
    const float *x = x_rows->at;
    const $(type.storage) *w = map->weights;
    float *y = y_rows->at;
    const size_t inputs = map->inputs, panels = map->panels;
    const $(isa.vector) zero = $(isa.broadcast("$hidden(0.0f)")); /* else its loop is a call of memset */
//$ local of_panel = groups and "words" or "inputs * " .. panel
//$ if groups then
    const size_t words = (inputs + $(groups.inputs - 1)) / $(groups.inputs) * $(groups.words); /* of a panel */
//$ end

//$ -- Lines that call the kernels of a token alone; its rows are x and y.
//$ local function alone(x, y)
//$ local function call(streams)
//$     local from, to, at = "w + panel * " .. of_panel, y .. " + panel * " .. panel, groups and "0"
//$     if product.alone_outputs < panel then
        for (size_t at = 0; at < $(panel); at += $(product.alone_outputs))
//$         from, to, at = groups and from or from .. " + at", to .. " + at", groups and "at"
//$     end
//$     if streams > 1 then
        $(helper)_alone_$(streams)($(listed(x, from, "each * " .. of_panel, at, "inputs", to, "each * " .. panel, "zero")));
//$     else
        $(helper)_alone($(listed(x, from, at, "inputs", to, "zero")));
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
//$ if product.several then
    if (tokens == 1) {
//$ alone("x", "y")
    } else {
        const size_t x_step = x_rows->step, y_step = y_rows->step;
        float *unpacked = map->strip; //$ if product.unpacks
        for (size_t k = 0; k < inputs; k += $(product.depth)) {
            const size_t depth = inputs - k < $(product.depth) ? inputs - k : $(product.depth);
//$ if product.next then
            $(helper)_ahead ahead;
            ahead.step = ($(product.next.share - 1) + tokens) / tokens; /* of the next panel's bytes, for an input */
//$ end
            for (size_t output = 0; output < panels * $(panel); output += $(product.strip)) {
//$ if groups then
                const $(type.storage) *strip = w + output / $(panel) * words + k / $(groups.inputs) * $(groups.words);
//$ else
                const $(type.storage) *strip = w + (output / $(panel) * inputs + k) * $(panel) + output % $(panel);
//$ end
                size_t token = 0;
//$ if product.next then
                const uintptr_t next = $(product.next.at("(uintptr_t) strip", "inputs", "output", "depth"));
//$ end
//$ if product.unpacks then
                $(helper)_unpack($(listed("strip", groups and "output % " .. panel, "depth", "unpacked")));
//$ end
//$ for number, count in ipairs(product.tokens) do
                $(count == 1 and "for (; token < tokens; ++token) {" or "for (; token + " .. count .. " <= tokens; token += " .. count .. ") {")
//$ local x_step, y_step, ahead = count > 1 and "x_step", count > 1 and "y_step", product.next and number == 1 and "&ahead"
//$ local strip = product.unpacks and "unpacked" or "strip"
//$ local given = listed("x + token * x_step + k", x_step, strip, "depth", "y + token * y_step + output", y_step, "k == 0", ahead)
                    ahead.next = next + token / $(count) * depth * ahead.step; //$ if ahead
                    $(helper)_of_$(count)($(given));
                }
//$ end
            }
        }
    }
//$ else
    for (size_t token = 0; token < tokens; ++token) {
//$ alone("x + token * x_rows->step", "y + token * y_rows->step")
    }
//$ end
    for (size_t token = 0; token < tokens; ++token, y += y_rows->step)
        for (size_t output = 0; output < panels * $(panel); $(advance("output", lanes))) {
            const $(isa.vector) sums = $(isa.load_unaligned("y", "output"));
            const $(isa.vector) offsets = $(isa.load_unaligned("map->bias", "output"));
//$ if type.scaled then
            const $(isa.vector) scales = $(isa.load_unaligned("map->scales", "output"));
            $(isa.store_unaligned("y", "output", isa.fma("sums", "scales", "offsets")));
//$ else
            $(isa.store_unaligned("y", "output", isa.add("sums", "offsets")));
//$ end
        }
}
