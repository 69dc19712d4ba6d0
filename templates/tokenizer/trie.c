//$ takes
/* The longest string below `node` of a trie that text[bytes] begins with: its value, or $(names.macro("NONE")); its length in *length. */
static uint32_t $(model)_longest(const uint32_t *trie, uint32_t node, const unsigned char *text, size_t bytes, size_t *length)
{
    uint32_t value = $(names.macro("NONE"));
    for (size_t k = 0; k < bytes;) {
        node = $(model)_child(trie, node, text[k++]);
        if (node == $(names.macro("NONE")))
            break;
        if (trie[3 * (size_t) node + 2] != $(names.macro("NONE"))) {
            value = trie[3 * (size_t) node + 2];
            *length = k;
        }
    }
    return value;
}
