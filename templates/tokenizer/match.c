//$ takes facts, name, bytes
/* The length of the match of an automaton that text[bytes] begins with, 0: there is none. A row of `entries` is a state: an entry for each
   class of $(bytes and "bytes" or "characters"), the last one for the end of the text. It is twice the next state, 0: none, and 1 more if a match ends here. */
static size_t $(model)_$(name)(const $(names.weights) *weights, const uint16_t *entries, const unsigned char *text, size_t bytes)
{
    size_t at = 0, end = 0$(bytes and "" or ", length = 0");
    unsigned entry = 0;
    do {
        unsigned class = $(facts.classes);
        if (at < bytes)
//$ if bytes then
            class = weights->byte_classes[text[at]];
//$ else
            class = $(model)_property(weights->alphabet_pages, weights->alphabet, $(model)_character(text + at, bytes - at, &length));
//$ end
        entry = entries[(entry >> 1) * $(facts.classes + 1)u + class];
        if (entry & 1u)
            end = at;
        $(bytes and "++at" or "at += length");
    } while (entry > 1u && at <= bytes);
    return end;
}
