//$ takes facts, splits, trie, name, inner
/* Puts the ids of text[bytes]: of the pieces of $(trie) that are found in it, the longest first, and of the stretches
   between them. Returns 0 or a code. */
static int $(model)_$(name)(const $(names.weights) *weights, const unsigned char *text, size_t bytes,
    int at_start, //$ if splits.at_start
    unsigned char *scratch, size_t scratch_bytes, $(model)_ids *ids)
{
    for (size_t done = 0, at = 0; done < bytes;) {
        size_t length = 0, end;
        uint32_t found = $(names.macro("NONE"));
        for (; at < bytes; ++at) {
            found = $(model)_longest(weights->$(trie), 0, text + at, bytes - at, &length);
//$ if facts.added_words then
            if (found != $(names.macro("NONE")) && (weights->added_rows[2 * found + 1] & 4u)
                && $(model)_beside_word(weights, text, at, at + length, bytes)) {
                at += length - 1;
                found = $(names.macro("NONE"));
            }
//$ end
            if (found != $(names.macro("NONE")))
                break;
        }
        end = at;
//$ if facts.added_spaces then
        if (found != $(names.macro("NONE")) && (weights->added_rows[2 * found + 1] & 1u))
            end = $(model)_before_spaces(weights, text, done, end);
//$ end
        if (end > done) {
            const int error = $(model)_$(inner)(weights, text + done, end - done,
                at_start && done == 0, //$ if splits.at_start
                scratch, scratch_bytes, ids);
            if (error)
                return error;
        }
        done = at = found == $(names.macro("NONE")) ? bytes : at + length;
        if (found != $(names.macro("NONE"))) {
            $(model)_put(weights->added_rows[2 * found], ids);
//$ if facts.added_spaces then
            while ((weights->added_rows[2 * found + 1] & 2u)
                && ($(model)_class(weights, text, at, bytes, &length) & $(names.macro("SPACE"))))
                done = at = at + length;
//$ end
        }
    }
    return 0;
}
