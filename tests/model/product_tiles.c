/* Products by tiles give the numbers of those by vectors, at every count of tokens up to three blocks, and use no more
   tiles than they need: `BY_VECTORS` and `BY_TILES` are functions of one emitted bundle, `tiles_used` counts what the
   latter do; with SCALED the inputs are bytes, else words of two whole numbers in bf16, whose sums are exact in any
   order. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static const size_t some_words[] = {16, 23, 56, 96}; /* two of them no multiples of 16 */

enum { TOKENS = 100, WORDS = 96, PANELS = 3, X_STEP = WORDS + 16, Y_STEP = 32 * PANELS + 5 };

/* As the bundle's runtime header has them. */
typedef struct {
    const uint32_t *weights;
#ifdef SCALED
    const float *scales;
#endif
    const float *bias;
    size_t inputs, panels;
} matrix;

typedef void product(const matrix *, const uint32_t *, size_t, float *, size_t, size_t);
product BY_VECTORS, BY_TILES;
size_t tiles_used;

static uint32_t x[TOKENS * X_STEP], w[PANELS * WORDS * 32];
static float scale[32 * PANELS], bias[32 * PANELS], by_vectors[TOKENS * Y_STEP], by_tiles[TOKENS * Y_STEP];

static uint32_t random_word(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state ^ state >> 15;
}

/* Bytes as they come, or two whole numbers of bf16 from -8 to 7. */
static uint32_t word(void)
{
#ifdef SCALED
    return random_word();
#else
    uint32_t pair = 0;
    for (int part = 0; part < 2; ++part) {
        const float value = (float)(random_word() >> 28) - 8.0f;
        uint32_t bits;
        memcpy(&bits, &value, 4);
        pair |= bits >> 16 << 16 * part;
    }
    return pair;
#endif
}

static int compare(size_t words, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token) {
        uint32_t *row = x + token * X_STEP, start = 0;
        const float unit = 0.01f * (float)(token + 1);
        for (size_t k = 0; k < words; ++k) {
            row[k] = word();
            for (int byte = 0; byte < 32; byte += 8)
                start -= 128u * (uint32_t)(int8_t)(uint8_t)(row[k] >> byte);
        }
        row[words] = start; /* weights are 128 more than they are */
        memcpy(row + words + 1, &unit, 4);
    }
    memset(by_vectors, 0, sizeof by_vectors);
    memset(by_tiles, 0, sizeof by_tiles);
    const matrix map = {
        .weights = w,
#ifdef SCALED
        .scales = scale,
#endif
        .bias = bias,
        .inputs = words * PER_WORD,
        .panels = PANELS,
    };
    BY_VECTORS(&map, x, X_STEP, by_vectors, Y_STEP, tokens);
    tiles_used = 0;
    BY_TILES(&map, x, X_STEP, by_tiles, Y_STEP, tokens);
    if (memcmp(by_vectors, by_tiles, sizeof by_tiles) == 0)
        return 0;
    printf("%zu words, %zu tokens: not the same\n", words, tokens);
    return 1;
}

int main(void)
{
    int wrong = 0;
    for (size_t k = 0; k < sizeof w / sizeof w[0]; ++k)
        w[k] = word();
    for (int k = 0; k < 32 * PANELS; ++k)
        scale[k] = 0.001f * (float)(k + 1), bias[k] = (float)k;
    (void)scale;
    for (size_t n = 0; n < sizeof some_words / sizeof *some_words; ++n) {
        size_t of_half = 0, of_block = 0; /* uses for up to 16 tokens, and for up to 32 */
        for (size_t tokens = 1; tokens <= TOKENS; tokens += tokens < 50 ? 1 : 7) {
            wrong |= compare(some_words[n], tokens);
            const size_t uses = tiles_used > 0 ? tiles_used - 1 : 0, rest = tokens % 32; /* but for the configuration */
            of_half = tokens == 16 ? uses : of_half;
            of_block = tokens == 32 ? uses : of_block;
            const size_t expected = tokens / 32 * of_block + (rest > 16 ? of_block : rest > 0 ? of_half : 0);
            if (tokens < 16 ? uses == 0 : tokens < 32 ? uses > 0 : uses == expected)
                continue;
            printf("%zu words, %zu tokens: %zu uses of tiles\n", some_words[n], tokens, uses);
            wrong = 1;
        }
        wrong |= 4 * of_half > 3 * of_block;
    }
    return wrong;
}
