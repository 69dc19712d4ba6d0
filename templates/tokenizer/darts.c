//$ takes
/* The value of the longest key that text[bytes] begins with, or $(names.macro("NONE")); its length in *length.
   Of a unit, bits 0 to 7 are the byte that leads to it, 8 says that a value is below it, the others say where its children are. */
static uint32_t $(model)_charsmap_value(const uint32_t *units, size_t count, const unsigned char *text, size_t bytes, size_t *length)
{
    uint32_t value = $(names.macro("NONE"));
    size_t node = units[0] >> 10 << ((units[0] & 0x200u) >> 6);
    for (size_t k = 0; k < bytes;) {
        const size_t at = node ^ text[k];
        if (at >= count || (units[at] & 0x800000ffu) != text[k])
            break;
        ++k;
        node = at ^ (size_t) (units[at] >> 10 << ((units[at] & 0x200u) >> 6));
        if ((units[at] & 0x100u) && node < count) {
            value = units[node] & 0x7fffffffu;
            *length = k;
        }
    }
    return value;
}
