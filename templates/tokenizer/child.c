//$ takes
/* The child of a trie's node for a byte, or $(names.macro("NONE")). A node is three words: the base of its children,
   its parent and its value; the child for a byte is the node base ^ byte, if that node's parent is this one. */
static uint32_t $(model)_child(const uint32_t *trie, uint32_t node, unsigned char byte)
{
    const uint32_t child = trie[3 * (size_t) node] ^ byte;
    return trie[3 * (size_t) child + 1] == node ? child : $(names.macro("NONE"));
}
