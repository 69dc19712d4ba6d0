//$ takes prologue, symbol, normalise
//$ lines(prologue)

/* LayerNorm of one token without gain and offset, which are folded into the projection. c = d x - sum of x, which is
   d (x - mean), is an integer, and with d = $(shape.d)

     (x - mean) / sqrt(variance + eps) = sqrt(d) c / sqrt(s), s = sum of c^2 + d^3 eps

   x           [$(shape.d)] in units of $(names.macro("X_SCALE"))
   normalised  [$(shape.d)] with $(normalise.fraction) binary places, must not overlap x. Cannot fail.
   c is shifted right until it has 14 bits, so that its square fits in a word. The quotient stays the same: sqrt(s)
   shrinks as c does. */
void $(symbol)(const int16_t *restrict x, int16_t *restrict normalised)
{
    int32_t sum = 0;
    for (size_t i = 0; i < $(shape.d); ++i)
        sum += x[i];

    uint32_t any = 0; /* has the highest bit of all |c| */
    for (size_t i = 0; i < $(shape.d); ++i) {
        const int32_t centred = $(shape.d) * x[i] - sum;
        any |= (uint32_t) (centred ^ (centred >> 31));
    }
    unsigned shift = $(normalise.least_shift);
    while (any >> shift >= 0x4000u)
        ++shift;

//$ local least = normalise.least_shift
    /* sum of squares, in two words, and eps: $(normalise.eps) in its units$(least > 0 and " at a shift of " .. least or "") */
//$ local down = least > 0 and "shift - " .. least or "shift"
//$ local twice = "2 * " .. (least > 0 and "(" .. down .. ")" or down)
    uint32_t high = 0, low = $(down) < 16 ? $(normalise.eps)u >> $(twice) : 0u;
    for (size_t i = 0; i < $(shape.d); ++i) {
        const int32_t centred = $(model)_shift_rounded($(shape.d) * x[i] - sum, shift);
        const uint32_t square = (uint32_t) (centred * centred);
        low += square;
        high += low < square ? 1u : 0u;
        normalised[i] = (int16_t) centred;
    }
    if ((high | low) == 0)
        return; /* all x are equal: all results are 0 */

    /* s = low 2^(2 n), 2^14 <= low < 2^16; results are c gain / 2^places, places = n + $(normalise.shift) */
    unsigned places = $(normalise.shift);
    for (; high != 0; ++places) {
        low = low >> 2 | high << 30;
        high >>= 2;
    }
    for (; low >= 0x10000u; ++places)
        low >>= 2;
    for (; low < 0x4000u; --places)
        low <<= 2;

    /* root = 2^15 / sqrt(v), v = low / 2^14: from a line near it, 2^15 (1.1 - 0.165 v), by root (3 - v root^2) / 2 */
    uint32_t root = 36045u - (low * 21627u >> 16);
    for (int step = 0; step < 3; ++step)
        root = root * ((3u << 15) - ((root * root >> 15) * low >> 14)) >> 16;

    const int32_t gain = $(normalise.gain == 32768 and "(int32_t) root" or "(int32_t) (root * " .. normalise.gain .. "u >> 15)");
    for (size_t i = 0; i < $(shape.d); ++i)
        normalised[i] = (int16_t) $(model)_shift_rounded(normalised[i] * gain, places);
}
