//$ takes
/* Writes a character in UTF-8 to to[4]. Returns its length. */
static size_t $(model)_put_character(uint32_t character, unsigned char *to)
{
    if (character < 0x80u) {
        to[0] = (unsigned char) character;
        return 1;
    }
    if (character < 0x800u) {
        to[0] = (unsigned char) (0xc0u | character >> 6);
        to[1] = (unsigned char) (0x80u | (character & 0x3fu));
        return 2;
    }
    if (character < 0x10000u) {
        to[0] = (unsigned char) (0xe0u | character >> 12);
        to[1] = (unsigned char) (0x80u | (character >> 6 & 0x3fu));
        to[2] = (unsigned char) (0x80u | (character & 0x3fu));
        return 3;
    }
    to[0] = (unsigned char) (0xf0u | character >> 18);
    to[1] = (unsigned char) (0x80u | (character >> 12 & 0x3fu));
    to[2] = (unsigned char) (0x80u | (character >> 6 & 0x3fu));
    to[3] = (unsigned char) (0x80u | (character & 0x3fu));
    return 4;
}
