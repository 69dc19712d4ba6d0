//$ takes facts
/* Ids as they come, and working memory for the pieces of a word. */
typedef struct {
    int32_t *list;
    size_t most, count;   /* room of the list; ids so far, which may be more */
    unsigned char *room;  /* [room_bytes], aligned to 8 */
    size_t room_bytes;
    int after_unknown;    /* whether the last id was the one of what no piece stands for */
} $(model)_ids;

/* Adds an id; one for which there is no room only counts. */
static void $(model)_put(uint32_t id, $(model)_ids *ids)
{
    if (ids->count < ids->most)
        ids->list[ids->count] = (int32_t) id;
    ++ids->count;
    ids->after_unknown = 0;
}
//$ if facts.byte_fallback and facts.kind == "unigram" then

/* Puts the ids of the bytes of what no piece stands for. */
static void $(model)_put_unknown(const $(names.weights) *weights, const unsigned char *text, size_t bytes, $(model)_ids *ids)
{
    for (size_t i = 0; i < bytes; ++i)
        $(model)_put(weights->byte_ids[text[i]], ids);
}
//$ elseif facts.unknown >= 0 and facts.kind ~= "wordpiece" and not facts.byte_fallback then

/* Puts the id of what no piece stands for$(facts.fuse and ", one for several beside each other" or ""). */
static void $(model)_put_unknown($(model)_ids *ids)
{
//$ if facts.fuse then
    if (!ids->after_unknown)
        $(model)_put($(facts.unknown)u, ids);
    ids->after_unknown = 1;
//$ else
    $(model)_put($(facts.unknown)u, ids);
//$ end
}
//$ end
