//$ takes
/* The value of a character in a table of pages; 0 for what is none. */
static unsigned $(model)_property(const uint16_t *pages, const unsigned char *values, uint32_t character)
{
    return character > 0x10ffffu ? 0 : values[(size_t) pages[character >> 8] << 8 | (character & 0xffu)];
}
