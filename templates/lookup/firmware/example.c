//$ takes firmware
#include "$(names.header)"
#include "$(model)_selftest.h"

static unsigned char scratch[$(names.macro("SCRATCH_BYTES"))] __attribute__((aligned($(names.macro("ALIGN")))));
static $(names.weights) weights;
static $(firmware.input) x[$(names.macro("D"))];
static $(firmware.output) y[$(names.macro("D_OUT"))];

/* Tests the layer once, then applies it to a token of zeros. */
int main(void)
{
    if ($(names.selftest)(scratch) != 0)
        return 1;
    if ($(names.bind_linked)(&weights) != $(names.macro("OK")))
        return 2;
    $(names.ffn)(&weights, x, y, 1, scratch);
    return 0;
}
