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
        uint32_t node = 0, id;
//$ if facts.prefix ~= "" then
        for (size_t k = 0; at > 0 && k < $(#facts.prefix) && node != $(names.macro("NONE")); ++k)
            node = $(model)_child(weights->pieces, node, prefix[k]);
        if (node == $(names.macro("NONE")))
            break;
//$ end
        length = 0;
        id = $(model)_longest(weights->pieces, node, word + at, bytes - at, &length);
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
