/* Lets run.c run the dense FFN beside a model, which is no firmware bundle: its weights are linked in by rival.S. */
#define RIVAL /* whose header declares no RAM */
#include MODEL_HEADER

extern const unsigned char rival_weights[];

static inline int MODEL(bind_linked)(MODEL(weights) * weights)
{
    return MODEL(bind)(rival_weights, MACRO(WEIGHTS_BYTES), weights);
}

static inline unsigned MODEL(selftest)(void *scratch)
{
    (void)scratch;
    return 0;
}
