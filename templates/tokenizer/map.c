//$ takes broken, hangul, darts
//$ if darts then
/* Replaces the longest key at each place by its text, with the tables of a SentencePiece model: a double array of `count`
   units, whose values are places in `texts`, [texts_size], where texts end with a zero byte. Nothing beyond either is
   read, whatever they hold. */
static size_t $(model)_charsmap(const uint32_t *units, size_t count, const unsigned char *texts, size_t texts_size,
//$ else
//$ local also = hangul and ", and Hangul syllables by their letters if `hangul`" or ""
//$ local each = broken == "byte" and ", each byte." or "."
//$ local replaced = broken ~= "keep" and " What is not UTF-8 becomes U+FFFD" .. each or ""
/* Replaces the longest key of a trie at each place by its text$(also).$(replaced) */
static size_t $(model)_map(const uint32_t *trie, const uint32_t *at, const unsigned char *texts,
    int hangul, //$ if hangul
//$ end
    const unsigned char *from, size_t bytes, unsigned char *to, size_t room)
{
    static const unsigned char replacement[3] = { 0xefu, 0xbfu, 0xbdu };
    size_t out = 0;
    for (size_t in = 0; in < bytes;) {
        size_t length = 0, size;
        const unsigned char *text;
//$ if darts then
        uint32_t value = $(model)_charsmap_value(units, count, from + in, bytes - in, &length);
        if (value >= texts_size)
            value = $(names.macro("NONE"));
//$ else
        const uint32_t value = $(model)_longest(trie, 0, from + in, bytes - in, &length);
//$ end
        unsigned char letters[12]; //$ if hangul
        if (value != $(names.macro("NONE"))) {
//$ if darts then
            text = texts + value;
            for (size = 0; text[size] != 0; ++size)
                $(names.macro("NO_LIBRARY"));
//$ else
            text = texts + at[value];
            size = at[value + 1] - at[value];
//$ end
        } else {
            const uint32_t character = $(model)_character(from + in, bytes - in, &length);
            text = from + in;
            size = length;
//$ if hangul then
            if (hangul && character >= 0xac00u && character <= 0xd7a3u) {
                const uint32_t syllable = character - 0xac00u; /* The Unicode Standard, section 3.12 */
                text = letters;
                size = $(model)_put_character(0x1100u + syllable / 588u, letters);
                size += $(model)_put_character(0x1161u + syllable % 588u / 28u, letters + size);
                if (syllable % 28u)
                    size += $(model)_put_character(0x11a7u + syllable % 28u, letters + size);
            }
//$ end
            if (character == $(names.macro("BROKEN"))) {
                text = replacement;
                size = 3;
                length = 1; //$ if broken == "byte"
            }
        }
        if (size > room - out)
            return $(names.macro("FULL"));
        $(model)_copy(text, size, to + out);
        out += size;
        in += length;
    }
    return out;
}
