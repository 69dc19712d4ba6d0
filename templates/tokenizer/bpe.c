//$ takes facts, slots
/* The symbols of a word while they merge, in arrays of `count`: a list from left to right. A dead symbol has no rank. */
typedef struct {
    uint32_t *id, *before, *behind;
    uint32_t *rank, *merged; /* of the symbol and the one behind it, $(names.macro("NONE")): they do not merge */
    uint64_t *heap;          /* [2 * count] ranks and, in the low half, symbols; the least comes first; some are out of date */
    size_t count, waiting;   /* waiting: entries of the heap */
} $(model)_symbols;

/* Adds an entry to the heap, a binary one: each entry is at most those at twice its place + 1 and + 2. */
static void $(model)_push($(model)_symbols *s, uint64_t entry)
{
    size_t at = s->waiting++;
    while (at > 0 && s->heap[(at - 1) / 2] > entry) {
        s->heap[at] = s->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    s->heap[at] = entry;
}

/* Removes the least entry of the heap, which is not empty. */
static uint64_t $(model)_pop($(model)_symbols *s)
{
    const uint64_t first = s->heap[0], entry = s->heap[--s->waiting];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < s->waiting; at = child) {
        child += child + 1 < s->waiting && s->heap[child + 1] < s->heap[child];
        if (s->heap[child] >= entry)
            break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = entry;
    return first;
}

/* Looks up whether a symbol merges with the one behind it, and if so lets it wait for its turn. */
static void $(model)_pair_up(const $(names.weights) *weights, $(model)_symbols *s, uint32_t at)
{
    const uint32_t behind = s->behind[at];
    const uint32_t *merge = behind == $(names.macro("NONE")) ? 0 : $(model)_pair(weights->merges, $(slots)u, s->id[at], s->id[behind]);
    s->rank[at] = merge ? merge[0] : $(names.macro("NONE"));
    if (merge) {
        s->merged[at] = merge[1];
        $(model)_push(s, (uint64_t) merge[0] << 32 | at);
    }
}

/* Splits word[bytes] into symbols and merges them, the pair of the least rank first and of equal ones the leftmost. */
static int $(model)_pieces(const $(names.weights) *weights, const unsigned char *word, size_t bytes, $(model)_ids *ids)
{
    $(model)_symbols s;
    uint32_t at;
    size_t most = 0; /* symbols at most */
//$ if facts.whole_words then
    size_t length = 0;
    const uint32_t whole = $(model)_longest(weights->pieces, 0, word, bytes, &length);
    if (whole != $(names.macro("NONE")) && length == bytes) {
        $(model)_put(whole, ids);
        return 0;
    }
//$ end
//$ if facts.byte_level or facts.byte_fallback then
    most = bytes;
//$ else
    for (size_t i = 0; i < bytes; ++i)
        most += (word[i] & 0xc0u) != 0x80u;
//$ end
    if (ids->room_bytes / 36 < most) /* a symbol takes two entries of the heap and five words */
        return $(names.macro("ERROR_SCRATCH"));
    s.heap = (uint64_t *) (void *) ids->room;
    s.id = (uint32_t *) (void *) (s.heap + 2 * most);
    s.before = s.id + most;
    s.behind = s.before + most;
    s.rank = s.behind + most;
    s.merged = s.rank + most;
    s.count = s.waiting = 0;

    /* symbols: $(facts.byte_level and "bytes" or "characters") */
//$ if facts.byte_level then
    for (; s.count < bytes; ++s.count)
        s.id[s.count] = weights->byte_ids[word[s.count]];
//$ else
    for (size_t in = 0, size; in < bytes; in += size) {
        size_t found = 0;
        (void) $(model)_character(word + in, bytes - in, &size);
        const uint32_t id = $(model)_longest(weights->pieces, 0, word + in, size, &found);
        if (id != $(names.macro("NONE")) && found == size) {
            s.id[s.count++] = id;
        } else {
//$ if facts.byte_fallback then
            for (size_t k = 0; k < size; ++k)
                s.id[s.count++] = weights->byte_ids[word[in + k]];
//$ elseif facts.unknown >= 0 then
            s.id[s.count++] = $(facts.unknown)u;
//$ else
            continue; /* dropped */
//$ end
        }
    }
    if (s.count == 0)
        return 0;
//$ end
    for (at = 0; at < s.count; ++at) {
        s.before[at] = at - 1;
        s.behind[at] = at + 1 < s.count ? at + 1 : $(names.macro("NONE"));
    }
    for (at = 0; at < s.count; ++at)
        $(model)_pair_up(weights, &s, at);

    while (s.waiting > 0) {
        const uint64_t entry = $(model)_pop(&s);
        uint32_t dead;
        at = (uint32_t) entry;
        if (s.rank[at] != entry >> 32)
            continue; /* out of date: it is dead, or has another one behind it by now */
        dead = s.behind[at];
        s.id[at] = s.merged[at];
        s.rank[dead] = $(names.macro("NONE"));
        s.behind[at] = s.behind[dead];
        if (s.behind[at] != $(names.macro("NONE")))
            s.before[s.behind[at]] = at;
        $(model)_pair_up(weights, &s, at);
        if (s.before[at] != $(names.macro("NONE")))
            $(model)_pair_up(weights, &s, s.before[at]);
    }

    ids->after_unknown = 0;
    for (at = 0; at != $(names.macro("NONE")); at = s.behind[at])
//$ if facts.unknown >= 0 and not facts.byte_fallback then
        if (s.id[at] == $(facts.unknown)u)
            $(model)_put_unknown(ids);
        else
            $(model)_put(s.id[at], ids);
//$ else
        $(model)_put(s.id[at], ids);
//$ end
    return 0;
}
