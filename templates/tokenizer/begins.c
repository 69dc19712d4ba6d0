//$ takes
/* Whether text[bytes] begins with with[size]. */
static int $(model)_begins(const unsigned char *text, size_t bytes, const unsigned char *with, size_t size)
{
    if (bytes < size)
        return 0;
    for (size_t i = 0; i < size; ++i)
        if (text[i] != with[i])
            return 0;
    return 1;
}
