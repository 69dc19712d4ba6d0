//$ takes prologue, v, symbol, helper, norm, gelu, initialiser, in_scratch
//$ lines("", prologue)

/* |x| (1 - Phi(|x|)) for |x| = 0, 2^-5, 2^-4 … 8, with $(gelu.fraction) binary places: GELU is max(x, 0) less that. */
static const uint16_t $(model)_gelu_rest[$(#gelu.rest)] = {
//$ lines("    ", initialiser(gelu.rest))
};

/* GELU of `hidden` values z, with $(gelu.fraction) binary places after a shift; they saturate at 16. Linear between entries. */
static void $(helper)_gelu(const int32_t *restrict z, unsigned shift, int16_t *restrict hidden)
{
    for (size_t i = 0; i < $(shape.hidden); ++i) {
        const int32_t value = z[i];
        uint32_t magnitude = (uint32_t) (value < 0 ? -value : value) >> shift;
        int32_t rest = 0;
        if (magnitude > 32767u)
            magnitude = 32767u;
        if (magnitude < $(gelu.limit)u) {
            const uint16_t *entry = $(model)_gelu_rest + (magnitude >> $(gelu.step));
            rest = entry[0] + ((entry[1] - entry[0]) * (int32_t) (magnitude & $((1 << gelu.step) - 1)u) >> $(gelu.step));
        }
        hidden[i] = (int16_t) ((value > 0 ? (int32_t) magnitude : 0) - rest);
    }
}

/* The dense FFN, token by token; see $(names.header). */
void $(symbol)(const $(names.weights) *weights, const int16_t *x, int32_t *y, size_t tokens, void *scratch)
{
//$ for _, buffer in ipairs(v.buffers) do
//$ if buffer.bytes > 0 then
    $(buffer.storage) *$(buffer.name) = $(in_scratch(buffer.name, buffer.storage));
//$ end
//$ end

    for (size_t token = 0; token < tokens; ++token, x += $(shape.d), y += $(shape.d_out)) {
//$ if norm then
        $(v.names.normalise)(x, normalised);
//$ end
        $(v.names.first)(weights, $(norm and "normalised" or "x"), sums);
        $(helper)_gelu(sums, weights->shifts[$(names.macro("SHIFT_HIDDEN"))], hidden);
        $(v.names.second)(weights, hidden, sums);
        for (size_t i = 0; i < $(shape.d_out); ++i)
            y[i] = $(model)_shift_rounded(sums[i], weights->shifts[$(names.macro("SHIFT_Y"))]);
    }
}
