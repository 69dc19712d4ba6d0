//$ takes isa, lanes, helper, panel, type, product, groups
//$ -- What number `b` of a word is to be multiplied by.
//$ local function scale(n, b)
//$     local factor = groups.factors[b]
//$     return factor == "1.0f" and "scale" .. n or isa.mul("scale" .. n, isa.broadcast(factor))
//$ end
//$ if product.unpacks then

/* A strip of $(plural(product.strip, "output")) from output `at` of a panel on, all its inputs with those that fill up their last
   group, as floats. */
static inline void $(helper)_unpack(const $(type.storage) *restrict w, size_t at, size_t inputs, float *restrict unpacked)
{
//$ if not groups.minimum then
    const $(isa.vector) below_zero = $(isa.broadcast(groups.below_zero));

//$ end
    for (size_t k = 0; k < inputs; k += $(groups.inputs), w += $(groups.words)) {
        const uint16_t *scales = (const uint16_t *) (const void *) w + at;
//$ for n = 0, product.strip_vectors - 1 do
        const $(isa.vector) scale$(n) = $(isa.load_f16(sum("scales", n * lanes)));
        const $(isa.vector) offset$(n) = $(groups.minimum and isa.load_f16(sum("scales", panel + n * lanes)) or isa.mul("scale" .. n, "below_zero"));
//$ end

        for (size_t word = 0; word < $(groups.inputs // groups.of_word); ++word, unpacked += $(groups.of_word * product.strip)) {
            const $(type.storage) *row = w + at + $(groups.first_word) + word * $(panel);
//$ for n = 0, product.strip_vectors - 1 do
            const $(isa.index) words$(n) = $(isa.load_words("row", n * lanes));
//$ for b, input in ipairs(groups.order) do
            $(isa.store_unaligned("unpacked", input * product.strip + n * lanes, isa.fma(scale(n, b), groups.unpack("words" .. n)[b], "offset" .. n)));
//$ end
//$ end
        }
    }
}
//$ end
//$ local sum_text = "Returns their sum."
//$ if not groups.minimum then
//$     sum_text = ("Returns their sum times -%d, as weights are %d too large."):format(groups.offset, groups.offset)
//$ end
//$ local factor = groups.minimum and "" or groups.below_zero .. " * "
//$ local sum_of_lanes = across("add")

/* scaled <- the inputs of a group, divided by what the numbers are multiplied by that unpacked words give. $(sum_text) */
static inline float $(helper)_scale_inputs(const float *restrict x, float *restrict scaled)
{
    static const float factor[$(groups.repeats)] = { $(groups.factors_of_inputs) };
//$ if lanes == 1 then
    float total = 0.0f;

    for (size_t i = 0; i < $(groups.inputs); ++i) {
        scaled[i] = x[i] * factor[i % $(groups.of_word)];
        total += x[i];
    }
    return $(factor)total;
//$ else
    $(isa.vector) total = $(isa.load_unaligned("x", 0));
//$ for at = 0, groups.inputs - 1, lanes do
    $(isa.store_unaligned("scaled", at, isa.mul(isa.load_unaligned("x", at), isa.load_unaligned("factor", at % groups.repeats))));
    total = $(isa.add("total", isa.load_unaligned("x", at))); //$ if at > 0
//$ end
    return $(factor .. sum_of_lanes("total"));
//$ end
}
