//$ takes
/* Whether a character that words consist of is beside text[from..to), a part of text[bytes]. */
static int $(model)_beside_word(const $(names.weights) *weights, const unsigned char *text, size_t from, size_t to, size_t bytes)
{
    size_t length, back = 1;
    if (to < bytes && $(model)_property(weights->word_characters_pages, weights->word_characters, $(model)_character(text + to, bytes - to, &length)))
        return 1;
    while (back < 4 && back < from && (text[from - back] & 0xc0u) == 0x80u)
        ++back;
    return back <= from
        && $(model)_property(weights->word_characters_pages, weights->word_characters, $(model)_character(text + from - back, back, &length))
        && length == back;
}
