//$ takes causal
#include "$(names.header)"
#include "$(model)_selftest.h"

//$ if causal then
static unsigned char state[$(names.macro("STATE_BYTES"))] __attribute__((aligned($(names.macro("ALIGN")))));
//$ end
static unsigned char scratch[$(names.macro("SCRATCH_BYTES"))] __attribute__((aligned($(names.macro("ALIGN")))));
static $(names.weights) weights;
//$ if causal then
static float logits[$(names.macro("D_OUT"))];

/* The place of the largest logit: the likeliest id. */
static int32_t likeliest(void)
{
    int32_t best = 0;
    for (int32_t id = 1; id < $(names.macro("D_OUT")); ++id)
        if (logits[id] > logits[best])
            best = id;
    return best;
}

/* Tests the model once, then continues the id 0 by the likeliest ids. */
int main(void)
{
    int32_t id = 0;

    if ($(names.selftest)(state, scratch) != 0)
        return 1;
    if ($(names.bind_linked)(&weights) != $(names.macro("OK")))
        return 2;
    $(names.start)(state);
    while ($(names.position)(state) < 4 && $(names.position)(state) < $(names.macro("CONTEXT"))) {
        if ($(names.step)(&weights, state, id, logits, scratch) != $(names.macro("OK")))
            return 3;
        id = likeliest();
    }
    return 0;
}
//$ else
static float y[$(names.macro("D_OUT"))];

/* Tests the model once, then applies it to a sequence of one id. */
int main(void)
{
    const int32_t id = 0;

    if ($(names.selftest)(scratch) != 0)
        return 1;
    if ($(names.bind_linked)(&weights) != $(names.macro("OK")))
        return 2;
    return $(names.encode)(&weights, &id, 1, y, scratch) == $(names.macro("OK")) ? 0 : 3;
}
//$ end
