/* How run.c calls a LookupFFN, or the dense FFN beside it. The types of tokens: -DINPUT=… -DOUTPUT=…. */
static INPUT x[MACRO(D)];
static OUTPUT y[MACRO(D_OUT)];

#define GIVEN_BYTES (sizeof scratch + sizeof weights)

/* How many outputs the self-test finds wrong. */
static inline unsigned selftest_wrong(void)
{
    return MODEL(selftest)(scratch);
}

static unsigned others_wrong(void)
{
    return 0;
}

static void one_token(void)
{
    for (unsigned i = 0; i < MACRO(D); ++i)
        x[i] = (INPUT)((int)(i & 7) * 100 - 250);
    MODEL(ffn)(&weights, x, y, 1, scratch);
}

static void other_calls(void) {}
