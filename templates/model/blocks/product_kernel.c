//$ takes matrix, isa, lanes, helper, panel, rounded, groups, length, barriers, outputs, kernel
//$ -- A kernel of a product: some vectors of outputs of several tokens, or of one token and panels side by side. Sums
//$ -- stay in registers along the inputs. gen/families/model/blocks/print_product.lua says what a kernel has.
//$ local tokens, streams, of = kernel.tokens, kernel.streams, kernel.reads
//$ local integers, grouped = rounded and rounded.integers, of.groups
//$ -- Adds products of `row` and of inputs from `x[k]` on, of as many tokens; turn: what is loaded and multiplied.
//$ local function add(turn, x, x_step, k)
//$     for _, part in ipairs(turn) do
        $(part.kept and "" or "const ")$(of.word) $(w.name) = $(of.load("row", w.at)); //$ for _, w in ipairs(part.weights)
//$     -- Else gcc loads them once for each token: loads are then as many as registers can take in the time of the products.
//$     lines(barriers(part.kept or {}))
        const $(of.input) $(one.name) = $(of.broadcast(x .. "[" .. sum(times(one.token, x_step), k, one.at) .. "]")); //$ for _, one in ipairs(part.inputs)
        const $(of.word) $(one.name) = $(one.value); //$ for _, one in ipairs(part.parts)
        $(one.to) = $(one.value); //$ for _, one in ipairs(part.products)
//$     end
//$ end
//$ local function stream(from, s) return s == 0 and from or "(" .. from .. " + " .. times(s, "apart") .. ")" end
//$ local function prefetch(from)
//$     for s = 0, kernel.prefetch and streams - 1 or -1 do
        $(isa.prefetch_l1("(uintptr_t) " .. stream(from, s), kernel.prefetch + byte)); //$ for byte = 0, kernel.prefetch_bytes - 1, 64
//$     end
//$ end

/* $(plural(kernel.vectors * lanes, "output"))$(of.at and " from output `at` on" or "") of $(streams > 1 and "each of " .. streams .. " panels" or "a panel"), of
   $(tokens > 1 and tokens .. " tokens" or "one token"): y $(kernel.adds and "+= W x, or y = W x for the first inputs" or "= W x")$(rounded and " + bias" or "").$(kernel.next and kernel.next.doc or "")
//$ if streams > 1 then
   Panels lie `apart` words or weights from each other, their outputs `y_apart` floats. Weights are read once, from
   memory, which delivers several streams faster than one.
//$ end
   */
//$ local step, y_step = tokens > 1 and "size_t x_step", tokens > 1 and "size_t y_step" or streams > 1 and "size_t y_apart"
//$ local scale, bias = integers and not groups and "const float *restrict scale", rounded and "const float *restrict bias"
//$ local of_map = tokens > 1 and rounded and not groups -- its scales, biases and number of words
//$ local parameters = listed("const " .. kernel.x .. " *restrict x", step, "const " .. of.storage .. " *restrict w",
//$     streams > 1 and "size_t apart", of.at and "size_t at", not of_map and scale, not of_map and bias,
//$     of_map and "const " .. matrix .. " *map, size_t output", "float *restrict y", y_step, not of_map and "size_t " .. length,
//$     kernel.adds and "int first", not rounded and not kernel.adds and isa.vector .. " zero",
//$     kernel.next and "const " .. helper .. "_ahead *ahead")
static inline void $(helper)_$(kernel.name)($(parameters))
{
//$ if of_map then
    const size_t words = (map->inputs + $(rounded.rows - 1)) / $(rounded.rows);
    const float *scale = map->scales + output; //$ if integers
    const float *bias = map->bias + output;
//$ end
    const $(isa.vector) zero = $(isa.broadcast("$hidden(0.0f)")); /* else a loop around it is a call of memset */ //$ if kernel.adds
    const uintptr_t next = ahead->next; //$ if kernel.next
    const size_t step = ahead->step; //$ if kernel.next
//$ if grouped then
    $(isa.vector) $(one.y) = $(rounded and isa.zero() or "zero"); //$ for _, one in ipairs(kernel.list)
    const uint32_t *starts = x + words + 2; //$ if of.started
    $(kernel.x) last[$(tokens * of.per_group)]; /* of inputs that are no whole group */
    float scaled[$(of.per_group)]; //$ if not rounded

    for (size_t k = 0; k < $(length); k += $(of.per_group), w += $(groups.words)) {
        const $(kernel.x) *input = x + k;
        size_t step = x_step; //$ if tokens > 1
//$ for t = 0, tokens - 1 do
//$ local start = "starts[" .. sum(times(t, "x_step"), "k / " .. of.per_group) .. "]"
        const float offset$(t) = -0.125f * (float) ((int16_t) $(start) + (int16_t) ($(start) >> 16)); //$ if rounded and groups.minimum
        const $(of.sum) start$(t) = $(of.start(start)); //$ if rounded
//$ end
        $(of.sum) $(one.sum) = $(rounded and "start" .. one.token or "zero"); //$ for _, one in ipairs(kernel.list)

        if ($(length) - k < $(of.per_group)) {
//$ loop("token", 0, tokens, 1, function(token)
            for (size_t i = 0; i < $(of.per_group); ++i)
                last[$(sum(times(token, of.per_group), "i"))] = k + i < $(length) ? x[$(sum(times(token, "x_step"), "k", "i"))] : 0;
//$ end, { braces = false })
            step = $(of.per_group); //$ if tokens > 1
            input = last;
        }
        const float offset0 = $(helper)_scale_inputs(input, scaled); //$ if not rounded
        for (size_t i = 0; i < $(of.per_group); $(advance("i", of.per_row))) {
            const $(of.storage) *row = w + at + $(groups.first_word) + i * $(panel // of.per_row);
//$ add(kernel.rest, rounded and "input" or "scaled", "step", "i")
//$ lines(barriers(kernel.sums))
        }
//$ prefetch("w")
//$ for s = 0, streams - 1 do
        {
            const uint16_t *scales = (const uint16_t *) (const void *) $(stream("w", s)) + at;
//$ for _, one in ipairs(kernel.list) do
//$ if one.stream == s then
            const $(isa.vector) scale$(one.n) = $(isa.load_f16(sum("scales", one.n * lanes))); //$ if one.token == 0
            const $(isa.vector) minimum$(one.n) = $(isa.load_f16(sum("scales", panel + one.n * lanes))); //$ if one.token == 0 and groups.minimum
//$ local offset = isa.broadcast("offset" .. one.token)
            $(one.y) = $(isa.fma("minimum" .. one.n, offset, one.y)); //$ if groups.minimum
            $(one.y) = $(isa.fma("scale" .. one.n, of.total(one.sum, offset), one.y));
//$ end
//$ end
        }
//$ end
    }
//$ else
//$ for _, one in ipairs(kernel.list) do
//$ local start = of.start("x[" .. sum(times(one.token, "x_step"), length) .. "]")
    $(of.sum) $(name) = $(kernel.adds and "first ? zero : " .. isa.load_unaligned("y", one.place) or start); //$ for _, name in ipairs(one.sums)
//$ end
//$ for t = 0, kernel.next and tokens - 1 or -1 do
    $(isa.prefetch_l2("(uintptr_t) " .. (t == 0 and "y" or "(y + " .. times(t, "y_step") .. ")"), byte)); //$ for _, byte in ipairs(kernel.next.lines)
//$ end
    size_t k = 0; //$ if kernel.step > 1

//$ if kernel.step > 1 then
    for (; k < $(length) - $(length) % $(kernel.step); k += $(kernel.step)) {
        const $(of.storage) *row = w + $(times("k", of.pitch));
        $(isa.prefetch_l2("next + k * step", 0)); //$ if kernel.next
//$ prefetch("row")
//$ for _, line in ipairs(kernel.turn) do
        { //$ if not kernel.pair
//$ add(line, "x", "x_step", "k")
        } //$ if not kernel.pair
//$ end
//$ lines(barriers(kernel.sums))
    }
//$ end
    for ($(kernel.step > 1 and "" or "size_t k = 0"); k < $(length); ++k) {
        const $(of.storage) *row = w + $(times("k", of.pitch));
        $(isa.prefetch_l2("next + k * step", 0)); //$ if kernel.next and kernel.step == 1
//$ if kernel.step == 1 then prefetch("row") end
//$ add(kernel.rest, "x", "x_step", "k")
//$ lines(barriers(kernel.sums))
    }
    $(pair[1]) = $(isa.add(pair[1], pair[2])); //$ for _, pair in ipairs(kernel.additions)
//$ end

    const float unit$(t) = ((const float *) (const void *) x)[$(sum(times(t, "x_step"), "words + 1"))]; //$ if integers for t = 0, tokens - 1
    $(isa.store_unaligned("y", one.place, outputs(grouped and one.y or one.sum, "unit" .. one.token, one.at))); //$ for _, one in ipairs(kernel.list)
}
