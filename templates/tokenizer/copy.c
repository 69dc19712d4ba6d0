//$ takes
/* What memcpy does. */
static void $(model)_copy(const unsigned char *from, size_t bytes, unsigned char *to)
{
    for (size_t i = 0; i < bytes; ++i) {
        to[i] = from[i];
        $(names.macro("NO_LIBRARY"));
    }
}
