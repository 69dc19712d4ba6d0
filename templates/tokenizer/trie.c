//$ takes
/* The longest string of a trie that text[bytes] begins with: its value, or $(names.macro("NONE")); its length in *length. A node is three words: the
   base of its children, its parent and its value; the child for a byte is the node base ^ byte, if that node's parent is this one. */
static uint32_t $(model)_longest(const uint32_t *trie, const unsigned char *text, size_t bytes, size_t *length)
{
    uint32_t node = 0, value = $(names.macro("NONE"));
    for (size_t k = 0; k < bytes;) {
        const uint32_t next = trie[3 * (size_t) node] ^ text[k];
        if (trie[3 * (size_t) next + 1] != node)
            break;
        node = next;
        ++k;
        if (trie[3 * (size_t) node + 2] != $(names.macro("NONE"))) {
            value = trie[3 * (size_t) node + 2];
            *length = k;
        }
    }
    return value;
}
