//$ takes
/* The entry of a pair in a table of slots entries, a power of two, open to the next one: its two last words, or null. */
static const uint32_t *$(model)_pair(const uint32_t *table, uint32_t slots, uint32_t left, uint32_t right)
{
    uint32_t at = left * 0x9e3779b1u + right * 0x85ebca77u;
    at ^= at >> 15;
    for (;; ++at) {
        const uint32_t *entry = table + 4 * (size_t) (at & (slots - 1));
        if (entry[0] == left && entry[1] == right)
            return entry + 2;
        if (entry[0] == $(names.macro("NONE")))
            return 0;
    }
}
