//$ lines("", prologue)

/* |x| (1 - Phi(|x|)) for |x| = 0, 2^-5, 2^-4 … 8, with $(gelu.fraction) binary places: GELU is max(x, 0) less that. */
static const uint16_t $(model)_gelu_rest[$(#gelu.rest)] = {
//$ lines("    ", lines_of(gelu.rest))
};

/* GELU of `hidden` values z, with $(gelu.fraction) binary places after a shift; they saturate at 16. Linear between entries. */
static void $(helper)_gelu(const int32_t *restrict z, unsigned shift, int16_t *restrict hidden)
{
    for (size_t i = 0; i < $(shape.hidden); ++i) {
        const int32_t value = z[i];
        uint32_t size = (uint32_t) (value < 0 ? -value : value) >> shift;
        int32_t rest = 0;
        if (size > 32767u)
            size = 32767u;
        if (size < $(gelu.limit)u) {
            const uint16_t *entry = $(model)_gelu_rest + (size >> $(gelu.step));
            rest = entry[0] + ((entry[1] - entry[0]) * (int32_t) (size & $((1 << gelu.step) - 1)u) >> $(gelu.step));
        }
        hidden[i] = (int16_t) ((value > 0 ? (int32_t) size : 0) - rest);
    }
}

/* The dense FFN, token by token; see $(names.header). */
void $(symbol)(const $(names.weights) *weights, const int16_t *x, int32_t *y, size_t tokens, void *scratch)
{
//$ for _, buffer in ipairs(v.buffers) do
//$ if buffer.bytes > 0 then
    $(buffer.storage) *$(buffer.name) = ($(buffer.storage) *) (void *) ($(sum("(unsigned char *) scratch", v.scratch[buffer.name])));
//$ end
//$ end

    for (size_t token = 0; token < tokens; ++token, x += $(shape.d), y += $(shape.d_out)) {
//$ if norm then
        $(v.names.normalise)(x, normalised);
//$ end
        $(v.names.first)(weights, $(norm and "normalised" or "x"), sums);
        $(helper)_gelu(sums, weights->shifts[0], hidden);
        $(v.names.second)(weights, hidden, sums);
        for (size_t i = 0; i < $(shape.d_out); ++i)
            y[i] = $(model)_rounded(sums[i], weights->shifts[1]);
    }
}
