/* A library around a model of its own: what the bundle makes of one token. Compiled with PLUGIN, the function's name. */
#include "tiny_linked.h"

__attribute__((visibility("default"))) double PLUGIN(void);

double PLUGIN(void)
{
    static _Alignas(TINY_ALIGN) unsigned char scratch[TINY_SCRATCH_BYTES];
    tiny_weights weights;
    float x[TINY_D] = {1.0f, -1.0f}, y[TINY_D_OUT];
    if (tiny_bind_linked(&weights) != TINY_OK)
        return -1e9;
    tiny_ffn(&weights, x, y, 1, scratch);
    return (double)y[0];
}
