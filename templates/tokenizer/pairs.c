//$ takes
/* What a hash table says of a pair: the two last words of its entry, or null. Entries are left, right and these two;
   there are `slots` of them, a power of two, some free: where an entry's place was taken, it is in the next free one. */
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
