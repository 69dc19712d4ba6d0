//$ takes prologue, isa, lanes, symbol, helper, panel, type, rounded, product, kernels, groups, length,
//$ takes load_weights, started, tiles, matrix
//$ lines(prologue)
//$ local integers, scaled = rounded and rounded.integers, rounded and rounded.integers and not groups
//$ if groups and not rounded then
$(include("templates/model/blocks/product_groups.c"))
//$ elseif product.unpacks then

/* A strip of $(plural(product.strip, "output")) of a panel, all its inputs, as floats. */
static inline void $(helper)_unpack(const $(type.storage) *restrict w, size_t inputs, float *restrict unpacked)
{
    for (size_t k = 0; k < inputs; ++k, unpacked += $(product.strip)) {
        const $(type.storage) *row = w + k * $(panel);
        $(isa.store_unaligned("unpacked", n * lanes, load_weights("row", n * lanes))); //$ for n = 0, product.strip_vectors - 1
    }
}
//$ end
$(include("templates/model/blocks/ahead.c")) //$ if product.several and product.next
$(include("templates/model/blocks/product_kernel.c", { kernel = kernel })) //$ for _, kernel in ipairs(kernels)
$(include("templates/model/blocks/product_tiles.c", tiles)) //$ if tiles

/* A dense product for some tokens$(rounded and " whose inputs are rounded" or ""): y = W x + bias$(rounded and not integers and ", sums in float32" or "").$(integers and " Sums of products are integers." or "")
//$ if not rounded then
   x       inputs, rows x_step apart
//$ elseif integers then
   x       words, rows x_step apart: inputs, $(rounded.rows) to a word as signed bytes, the rest of the last one
           zeros; $(started and "the word from which sums start" or "a word that is not read here"), and the unit of
           the inputs as a float$(groups and ", and for each group what its sums start from" or "")
//$ else
   x       words, rows x_step apart: inputs in bf16, $(rounded.rows) to a word, the first in the low bits, the rest of the last one zeros
//$ end
//$ if groups then
   map     weights are [panels][groups of $(groups.inputs) inputs][$(groups.words)]: $(groups.scales_text), then
           [$(groups.inputs // groups.of_word)][$(panel)] words of $(groups.of_word) weights of an output, $(groups.bits) bits each: $(groups.weights_text)
//$ elseif rounded then
   map     weights are [panels][words][$(plural(panel, "output"))], $(rounded.rows) inputs to a word$(integers and "" or " likewise")
           as unsigned bytes, $(rounded.offset) more than the weight in units of its row's scale //$ if integers
//$ else
   map     weights are [panels][inputs][$(plural(panel, "output"))]
//$ end
           strip: $(plural(product.unpacked_floats, "float")) for several tokens, overwritten //$ if product.unpacks
   y       panels * $(plural(panel, "float")), rows y_step apart
   Nothing may overlap; any float alignment. Cannot fail. */
//$ local per_group = groups and groups.inputs // (rounded and rounded.rows or 1)
//$ local storage = rounded and rounded.storage or type.storage
void $(symbol)(const $(matrix) *map, const $(rounded and "uint32_t" or "float") *x, size_t x_step, float *y, size_t y_step, size_t tokens)
{
    const $(storage) *w = map->weights;
    const float *scale = map->scales; //$ if scaled
    const float *bias = map->bias; //$ if rounded
    const size_t panels = map->panels;
    const size_t inputs = map->inputs; //$ if not rounded
    const size_t words = (map->inputs + $(rounded.rows - 1)) / $(rounded.rows); //$ if rounded
    const size_t of_panel = $(times(length, panel)); //$ if not groups
    const size_t of_panel = ($(sum(length, (per_group or 1) - 1))) / $(per_group) * $(groups.words); //$ if groups
    const $(isa.vector) zero = $(isa.broadcast("$hidden(0.0f)")); /* else its loop is a call of memset */ //$ if not rounded
//$ if tiles then

    if (tokens >= $(product.tiles.from) && words >= 16) {
        $(helper)_output to;
        to.y = y;
        to.y_step = y_step;
        $(helper)_by_tiles(map, x, x_step, &to, 0, panels, tokens);
        return;
    }
//$ end
    size_t token = 0;
//$ if product.several then
    float *unpacked = map->strip; //$ if product.unpacks
//$ if product.next then
    $(helper)_ahead ahead;
    ahead.step = ($(product.next.share - 1) + tokens) / tokens; /* of the next panel's bytes, a turn */
//$ end

//$ -- All tokens of a strip before the next strip: its weights stay in the caches.
    if (tokens > 1)
//$ if not rounded then
    for (size_t k = 0; k < inputs; k += $(product.depth)) {
        const size_t depth = inputs - k < $(product.depth) ? inputs - k : $(product.depth);
//$ end
    for (size_t output = 0; output < panels * $(panel); output += $(product.strip)) {
//$ local along, at = not rounded and (groups and times("k / " .. groups.inputs, groups.words) or "k * " .. panel), "output % " .. panel
        const $(storage) *strip = $(sum("w + output / " .. panel .. " * of_panel", along or 0, groups and 0 or at));
        const uintptr_t next = $(product.next.at("(uintptr_t) strip", "output", rounded and length or "depth")); //$ if product.next
        $(helper)_unpack($(listed("strip", groups and at, "depth", "unpacked"))); //$ if product.unpacks
        token = 0;
//$ for _, count in ipairs(product.tokens) do
//$ local x_at, y_at, step = "x + token * x_step", "y + token * y_step + output", count > 1
//$ local of_map, ahead = step and rounded and not groups, product.next and count == product.tokens[1]
//$ local turns = rounded and length or "depth"
//$ local given = listed(rounded and x_at or x_at .. " + k", step and "x_step", product.unpacks and "unpacked" or "strip",
//$     rounded and groups and at, of_map and "map, output" or scaled and "scale + output", rounded and not of_map and "bias + output",
//$     y_at, step and "y_step", not of_map and turns, not rounded and "k == 0", ahead and "&ahead")
        for (; $(sum("token", count - 1)) < tokens; $(advance("token", count))) {
            ahead.next = next + token / $(count) * $(turns) * ahead.step; //$ if ahead
            $(helper)_of_$(count)($(given));
        }
//$ end
    }
    } //$ if not rounded
//$ end
    for (; token < tokens; ++token) { /* a token alone */
//$ local function alone(streams)
//$     local x, w, place, at = "x + token * x_step", "w + panel * of_panel", "panel * " .. panel, groups and "0"
//$     if product.alone_outputs < panel then
        for (size_t at = 0; at < $(panel); at += $(product.alone_outputs))
//$         w, place, at = groups and w or w .. " + at", place .. " + at", groups and "at"
//$     end
//$     local given = listed(x, w, streams > 1 and "each * of_panel", at, scaled and "scale + " .. place, rounded and "bias + " .. place,
//$         "y + token * y_step + " .. place, streams > 1 and "each * " .. panel, length, not rounded and "zero")
            $(helper)_alone$(streams > 1 and "_" .. streams or "")($(given));
//$ end
//$ local first = "size_t panel = 0"
//$ if #product.streams > 1 then
        const size_t each = panels / $(product.streams[1]);
        for ($(first); panel < each; ++panel)
//$ alone(product.streams[1])
//$ first = "size_t panel = " .. product.streams[1] .. " * each"
//$ end
        for ($(first); panel < panels; ++panel)
//$ alone(1)
    }
//$ if not rounded then
    for (token = 0; token < tokens; ++token, y += y_step)
        for (size_t output = 0; output < panels * $(panel); $(advance("output", lanes))) {
            const $(isa.vector) sums = $(isa.load_unaligned("y", "output"));
            const $(isa.vector) offsets = $(isa.load_unaligned("map->bias", "output"));
            const $(isa.vector) scales = $(isa.load_unaligned("map->scales", "output")); //$ if type.scaled
            $(isa.store_unaligned("y", "output", type.scaled and isa.fma("sums", "scales", "offsets") or isa.add("sums", "offsets")));
        }
//$ end
}
