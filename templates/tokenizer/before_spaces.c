//$ takes
/* Where the white space that ends text[from..end) begins. */
static size_t $(model)_before_spaces(const $(names.weights) *weights, const unsigned char *text, size_t from, size_t end)
{
    for (;;) {
        size_t at = end, length; /* at: of the character before `end` */
        while (at > from && end - at < 4) {
            --at;
            if ((text[at] & 0xc0u) != 0x80u)
                break;
        }
        if (at == end || !($(model)_class(weights, text, at, end, &length) & $(names.macro("SPACE"))) || at + length != end)
            return end;
        end = at;
    }
}
