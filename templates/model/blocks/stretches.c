//$ takes helper

/* A stretch: tokens of a chunk that follow each other in one sequence. */
typedef struct $(helper)_stretch {
    size_t sequence; /* whose tokens they are */
    size_t tokens;   /* of all of that sequence */
    size_t base;     /* the position of the cache at which the sequence starts */
    size_t first;    /* the position in the sequence of the stretch's first token */
    size_t token;    /* the number of that token in the chunk */
    size_t count;    /* tokens of the stretch */
} $(helper)_stretch;

/* What the first stretch of a chunk follows. Not an initialiser: small targets would call memset for it. */
static $(helper)_stretch $(helper)_no_stretch(void)
{
    $(helper)_stretch s;

    s.sequence = 0;
    s.tokens = 0;
    s.base = 0;
    s.first = 0;
    s.token = 0;
    s.count = 0;
    return s;
}

/* Goes on to the next stretch of the chunk of `count` tokens from token `at` on; 0: there is none. */
static int $(helper)_next_stretch(const size_t *offsets, size_t at, size_t count, $(helper)_stretch *s)
{
    const size_t token = s->token + s->count, number = offsets[0] + at + token;

    if (token == count)
        return 0;
    for (;; ++s->sequence) {
        s->tokens = offsets[s->sequence + 1] - offsets[s->sequence];
        if (offsets[s->sequence + 1] > number)
            break;
//$ local tile = names.constant("TILE_POSITIONS")
        s->base += (s->tokens + $(tile) - 1) / $(tile) * $(tile);
    }
    s->first = number - offsets[s->sequence];
    s->token = token;
    s->count = s->tokens - s->first < count - token ? s->tokens - s->first : count - token;
    return 1;
}
