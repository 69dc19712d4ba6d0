//$ takes
/* The first character of text[bytes], bytes > 0, and its length. Of what is not UTF-8, the length is that of the longest beginning of a
   character, at least 1. */
static uint32_t $(model)_character(const unsigned char *text, size_t bytes, size_t *length)
{
    const uint32_t first = text[0];
    uint32_t least = 0x80u, most = 0xbfu, value;
    size_t all, k;

    *length = 1;
    if (first < 0x80u)
        return first;
    if (first >= 0xc2u && first <= 0xdfu) {
        all = 2;
        value = first & 0x1fu;
    } else if (first >= 0xe0u && first <= 0xefu) {
        all = 3;
        value = first & 0x0fu;
        least = first == 0xe0u ? 0xa0u : 0x80u;
        most = first == 0xedu ? 0x9fu : 0xbfu;
    } else if (first >= 0xf0u && first <= 0xf4u) {
        all = 4;
        value = first & 0x07u;
        least = first == 0xf0u ? 0x90u : 0x80u;
        most = first == 0xf4u ? 0x8fu : 0xbfu;
    } else {
        return $(names.macro("BROKEN"));
    }
    for (k = 1; k < all; ++k) {
        *length = k;
        if (k >= bytes || text[k] < least || text[k] > most)
            return $(names.macro("BROKEN"));
        value = value << 6 | (text[k] & 0x3fu);
        least = 0x80u;
        most = 0xbfu;
    }
    *length = all;
    return value;
}
