/* A product by tiles that activates and rounds its outputs meanwhile gives what the product, the activation and the
   rounding give after each other, to the bit, at every count of tokens of up to two blocks. The activation, ACTIVATED, is
   off by at most ERROR of its input, what attention takes for exp by as much as it says. `EMITTED` is a file of kernels of
   blocks, an MLP with GELU, or with GATED a GLU with SiLU; with SCALED its inputs are bytes, else bf16. */
#include EMITTED
#include <math.h>
#include <stdio.h>
#include <string.h>

#ifdef GATED
#define EXACT(x) ((x) / (1 + exp(-(x))))
#else
#define EXACT(x) ((x) / 2 * erfc(-(x) / sqrt(2)))
#endif

enum {
    TOKENS = 64,
    X_STEP = TILES_NORMED_ROUNDED_PITCH,
    WORDS = (TILES_M_INPUTS + PER_WORD - 1) / PER_WORD,
    HIDDEN = 32 * TILES_M_PANELS,
    ROUNDED = TILES_HIDDEN_ROUNDED_PITCH
};

size_t tiles_used;
static uint32_t x[TOKENS * X_STEP], w[HIDDEN * WORDS], together[TOKENS * ROUNDED], apart[TOKENS * ROUNDED];
static float inputs[TOKENS * TILES_M_INPUTS], scale[HIDDEN], bias[HIDDEN], gate[TOKENS * HIDDEN * 2], hidden[TOKENS * HIDDEN * 2];

static float number(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / (float)(1 << 23) - 1.0f;
}

static int is_near(float x, float found, double exact, double bound)
{
    if (fabs(found - exact) <= bound)
        return 1;
    printf("%g becomes %g instead of %g\n", x, found, exact);
    return 0;
}

/* Of 16 numbers from `from` on. */
static int approximations_are_near(float from)
{
    float x[16], activated[16], power[16];
    for (int i = 0; i < 16; ++i)
        x[i] = from + (float)i / 256.0f;
    _mm512_storeu_ps(activated, ACTIVATED(_mm512_loadu_ps(x)));
    _mm512_storeu_ps(power, tiles_exp_short(_mm512_loadu_ps(x)));
    for (int i = 0; i < 16; ++i) {
        const double exact = exp(fmax(x[i], -87.0)), bound = x[i] == 0.0f ? 0.0 : 5e-6 * exact;
        if (!is_near(x[i], activated[i], EXACT((double)x[i]), ERROR * fabs(x[i])))
            return 0;
        if (x[i] <= 0.0f && !is_near(x[i], power[i], exact, bound))
            return 0;
    }
    return 1;
}

int main(void)
{
    for (float x = -100.0f; x < 100.0f; x += 0.0625f)
        if (!approximations_are_near(x))
            return 1;
    for (size_t i = 0; i < TOKENS * TILES_M_INPUTS; ++i)
        inputs[i] = number();
    for (size_t i = 0; i < TOKENS * HIDDEN * 2; ++i)
        gate[i] = 4.0f * number();
    for (size_t i = 0; i < TILES_O_INPUTS; ++i) /* those that fill up the last panel are 0 */
        scale[i] = 0.001f, bias[i] = number();
    for (size_t i = 0; i < HIDDEN * WORDS; ++i) {
        const float pair[2] = {number(), number()};
        uint32_t bits[2];
        memcpy(bits, pair, 8);
        w[i] = bits[0] >> 16 | (bits[1] & 0xffff0000u);
    }
    MATRIX map = {.weights = w, .bias = bias, .inputs = TILES_M_INPUTS, .panels = TILES_M_PANELS};
    tiles_rows outputs = {hidden, TILES_HIDDEN_PITCH};
    tiles_buffers b = {.hidden = outputs, .hidden_rounded = {apart, ROUNDED}};
    tiles_blocks_hidden_output to = {.rounded = together, .rounded_step = ROUNDED};
#ifdef SCALED
    map.scales = scale;
    to.y = hidden;
    to.y_step = TILES_HIDDEN_PITCH;
#else
    (void)scale;
#endif
#ifdef GATED
    b.gate = (tiles_rows){gate, TILES_GATE_PITCH};
    to.gate_step = TILES_GATE_PITCH;
#else
    (void)gate;
#endif
    ROUND_INPUTS(inputs, TILES_M_INPUTS, x, X_STEP, TOKENS);
    for (size_t tokens = 16; tokens <= TOKENS; ++tokens) {
        memset(together, 0, sizeof together);
        memset(apart, 0, sizeof apart);
        PRODUCT(&map, x, X_STEP, hidden, TILES_HIDDEN_PITCH, tokens);
        tiles_blocks_activate(&b, tokens);
        memset(hidden, 0, sizeof hidden);
#ifdef GATED /* from the third panel on in another call */
        to.gate = gate;
        tiles_blocks_hidden_by_tiles(&map, x, X_STEP, &to, 0, 2, tokens);
        to.gate = gate + 64;
        tiles_blocks_hidden_by_tiles(&map, x, X_STEP, &to, 2, TILES_M_PANELS, tokens);
#else
        tiles_blocks_hidden_by_tiles(&map, x, X_STEP, &to, 0, TILES_M_PANELS, tokens);
#endif
#ifdef SCALED
        ROUND_MEASURED(hidden, TILES_HIDDEN_PITCH, together, ROUNDED, tokens);
#endif
        for (size_t token = 0; token < tokens; ++token)
            if (memcmp(together + token * ROUNDED, apart + token * ROUNDED, 4 * COMPARED) != 0) {
                printf("token %zu of %zu is not the same\n", token, tokens);
                return 1;
            }
    }
    return 0;
}
