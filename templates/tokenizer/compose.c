//$ takes slots
/* The character that two make, or $(names.macro("NONE")). */
static uint32_t $(model)_composite(const $(names.weights) *weights, uint32_t first, uint32_t second)
{
    const uint32_t *found;

    /* syllables of Hangul (The Unicode Standard, section 3.12): consonant and vowel; these two and a last consonant */
    if (first - 0x1100u < 19u && second - 0x1161u < 21u)
        return 0xac00u + ((first - 0x1100u) * 21u + (second - 0x1161u)) * 28u;
    if (first - 0xac00u < 11172u && (first - 0xac00u) % 28u == 0 && second - 0x11a8u < 27u)
        return first + (second - 0x11a7u);
    found = $(model)_pair(weights->compositions, $(slots)u, first, second);
    return found ? found[0] : $(names.macro("NONE"));
}

/* Joins characters and the marks behind them where one character stands for both. */
static size_t $(model)_compose(const $(names.weights) *weights, const unsigned char *from, size_t bytes, unsigned char *to, size_t room)
{
    uint32_t starter = $(names.macro("NONE")); /* to be written at `place`, which has 4 bytes for it; marks follow up to `out` */
    size_t place = 0, out = 0;
    unsigned last = 0;

    for (size_t in = 0; in <= bytes;) {
        size_t length = 1;
        const uint32_t character = in < bytes ? $(model)_character(from + in, bytes - in, &length) : $(names.macro("NONE"));
        const unsigned order = $(model)_property(weights->orders_pages, weights->orders, character);
        if (in < bytes && starter != $(names.macro("NONE")) && (out == place + 4 || last < order)) {
            const uint32_t both = $(model)_composite(weights, starter, character);
            if (both != $(names.macro("NONE"))) {
                starter = both;
                in += length;
                continue;
            }
        }
        if (order == 0) {
            if (starter != $(names.macro("NONE"))) {
                const size_t size = $(model)_put_character(starter, to + place);
                if (size < 4)
                    $(model)_copy(to + place + 4, out - place - 4, to + place + size);
                out -= 4 - size;
            }
            place = out;
            starter = character;
            if (in < bytes) {
                if (room - out < 4)
                    return $(names.macro("FULL"));
                out += 4;
            }
        } else {
            if (room - out < length)
                return $(names.macro("FULL"));
            $(model)_copy(from + in, length, to + out);
            out += length;
        }
        last = order;
        in += length;
    }
    return out;
}
