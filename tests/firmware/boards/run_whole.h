/* How run.c calls a whole model: -DDECODER or not, -DTEXT=… and -DTEXT_IDS=…, a text and its ids, if it has a tokenizer,
 * and for a model that sorts six digits below 3 -DSORT_STRIDE=…. */
static int32_t ids[MACRO(CONTEXT)];
static float results[MACRO(D_OUT) * MACRO(CONTEXT)];

#ifdef DECODER
static unsigned char state[MACRO(STATE_BYTES)] ALIGNED;
#define GIVEN_BYTES (sizeof state + sizeof scratch + sizeof weights)
#else
#define GIVEN_BYTES (sizeof scratch + sizeof weights)
#endif

#ifdef TEXT
static const char text[] = TEXT;
static const int32_t text_ids[] = {TEXT_IDS};
enum { text_id_count = sizeof text_ids / sizeof *text_ids };
static unsigned char tokenizer_scratch[MACRO(TOKENIZE_SCRATCH)(sizeof text)] ALIGNED;

/* Texts of ids and ids of texts; both need the tables that are linked in. */
static unsigned tokenizer_wrong(void)
{
    static int32_t found[4 * sizeof text];
    static size_t bytes;
    const ptrdiff_t count =
        MODEL(tokenize)(&weights, text, sizeof text - 1, found, sizeof found / sizeof *found, tokenizer_scratch, sizeof tokenizer_scratch);
    unsigned wrong = count != text_id_count;
    for (ptrdiff_t i = 0; i < count && i < text_id_count; ++i)
        wrong += found[i] != text_ids[i];
    return wrong + !MODEL(text_of)(&weights, found[0], &bytes) + (MODEL(text_of)(&weights, -1, &bytes) != 0);
}
#endif

#ifdef SORT_STRIDE
enum { digits = 6 };

/* Whether the model continues number `number` of the inputs by its digits in order. */
static int is_sorted(unsigned number)
{
    unsigned counts[3], at = 0;
    int good = 1;

    counts[0] = counts[1] = counts[2] = 0; /* no initialiser: there is no memset */
    for (unsigned i = 0; i < digits; ++i, number /= 3) {
        ids[i] = (int32_t)(number % 3);
        ++counts[ids[i]];
    }
    MODEL(start)(state);
    good &= MODEL(prefill)(&weights, state, ids, digits, results, scratch) == MACRO(OK);
    for (unsigned i = 0; i < digits; ++i) {
        int32_t best = 0;
        for (int32_t id = 1; id < MACRO(VOCAB); ++id)
            if (results[id] > results[best])
                best = id;
        while (counts[at] == 0)
            ++at;
        --counts[at];
        good &= best == (int32_t)at;
        if (i + 1 < digits)
            good &= MODEL(step)(&weights, state, best, results, scratch) == MACRO(OK);
    }
    return good;
}
#endif

/* How many values the self-test finds wrong. */
static inline unsigned selftest_wrong(void)
{
#ifdef DECODER
    return MODEL(selftest)(state, scratch);
#else
    return MODEL(selftest)(scratch);
#endif
}

/* How many ids are wrong, and inputs that are not sorted. */
static unsigned others_wrong(void)
{
    unsigned wrong = 0;
    if (MODEL(bind_linked)(&weights) != MACRO(OK))
        return wrong + 1;
#ifdef TEXT
    wrong += tokenizer_wrong();
#endif
#ifdef SORT_STRIDE
    for (unsigned number = 0; number < 729; number += SORT_STRIDE)
        wrong += !is_sorted(number);
#endif
    return wrong;
}

#ifdef DECODER
static void one_token(void)
{
    MODEL(start)(state);
    (void)MODEL(step)(&weights, state, 0, results, scratch);
}

static void other_calls(void)
{
    for (unsigned i = 0; i < MACRO(CONTEXT); ++i)
        ids[i] = (int32_t)(i & 1);
    MODEL(start)(state);
    (void)MODEL(prefill)(&weights, state, ids, MACRO(CONTEXT) / 2, results, scratch);
    (void)MODEL(prefill_all)(&weights, state, ids, MACRO(CONTEXT) - MACRO(CONTEXT) / 2, results, scratch);
}
#else
static void one_token(void)
{
    (void)MODEL(encode)(&weights, ids, 1, results, scratch);
}

static void other_calls(void)
{
    (void)MODEL(encode)(&weights, ids, MACRO(CONTEXT), results, scratch);
#ifdef TOKENIZER
    (void)tokenizer_wrong();
#endif
}
#endif
