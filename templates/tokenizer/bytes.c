//$ takes
/* Every byte is an id. */
static int $(model)_pieces(const unsigned char *word, size_t bytes, $(model)_ids *ids)
{
    for (size_t i = 0; i < bytes; ++i)
        $(model)_put(word[i], ids);
    return 0;
}
