/* Lets run.c run the dense FFN beside a model, which is no firmware bundle: its weights are linked in by baseline.S. */
#define BASELINE /* whose header declares no RAM */
#include MODEL_HEADER

extern const unsigned char baseline_weights[];

static inline int MODEL(bind_linked)(MODEL(weights) * weights)
{
    return MODEL(bind)(baseline_weights, MACRO(WEIGHTS_BYTES), weights);
}

static inline unsigned MODEL(selftest)(void *scratch)
{
    (void)scratch;
    return 0;
}
