//$ takes facts, bytes_of
/* Splits word[bytes] into the longest pieces from left to right; a word that has none somewhere, or is too long, is unknown. */
static int $(model)_pieces(const $(names.weights) *weights, const unsigned char *word, size_t bytes, $(model)_ids *ids)
{
//$ if facts.prefix ~= "" then
    static const unsigned char prefix[$(#facts.prefix)] = { $(bytes_of(facts.prefix)) }; /* of pieces inside a word */
//$ end
    const size_t count = ids->count;
    size_t at, characters = 0, length;

    for (at = 0; at < bytes; ++at)
        characters += (word[at] & 0xc0u) != 0x80u;
    for (at = 0; characters <= $(facts.longest) && at < bytes; at += length) {
        const uint32_t *trie = weights->pieces;
        uint32_t node = 0, id = $(names.macro("NONE"));
//$ if facts.prefix ~= "" then
        size_t k;
//$ end
        length = 0;
//$ if facts.prefix ~= "" then
        for (k = 0; at > 0 && k < $(#facts.prefix); ++k) {
            const uint32_t next = trie[3 * (size_t) node] ^ prefix[k];
            if (trie[3 * (size_t) next + 1] != node)
                break;
            node = next;
        }
        if (at > 0 && k < $(#facts.prefix))
            break;
//$ end
        for (size_t end = at; end < bytes;) {
            const uint32_t next = trie[3 * (size_t) node] ^ word[end];
            if (trie[3 * (size_t) next + 1] != node)
                break;
            node = next;
            ++end;
            if (trie[3 * (size_t) node + 2] != $(names.macro("NONE"))) {
                id = trie[3 * (size_t) node + 2];
                length = end - at;
            }
        }
        if (id == $(names.macro("NONE")))
            break;
        $(model)_put(id, ids);
    }
    if (at < bytes) {
        ids->count = count;
        $(model)_put($(facts.unknown)u, ids);
    }
    return 0;
}
