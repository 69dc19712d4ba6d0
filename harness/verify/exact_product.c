/* Compares the emitted product of rounded inputs with one in int64. */
#include "harness/verify/exact_product.h"

#include "harness/base/guard.h"
#include "harness/base/memory.h"

#include "gen/host/files.h"
#include "gen/weights/random.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

enum { PANEL = 32, PER_WORD = 4 };

typedef void product_function(const uint32_t *x, size_t x_step, const uint32_t *w, const float *scale, const float *bias, float *y,
                              size_t y_step, size_t inputs, size_t panels, size_t tokens);

typedef struct {
    size_t inputs, panels, tokens, words, x_step, y_step;
    guarded x, w, scale, bias, y;
} product_case;

static float *floats(const guarded *memory)
{
    return (float *)(void *)memory->data;
}

static const uint32_t *words(const guarded *memory)
{
    return (const uint32_t *)(const void *)memory->data;
}

static bool make(product_case *c)
{
    c->words = (c->inputs + PER_WORD - 1) / PER_WORD;
    c->x_step = c->words + 3;
    c->y_step = c->panels * PANEL + 5;
    const size_t outputs = c->panels * PANEL;
    return guard_create(&c->x, ((c->tokens - 1) * c->x_step + c->words + 2) * sizeof(uint32_t), sizeof(uint32_t), GUARD_END) &&
           guard_create(&c->w, c->panels * c->words * PANEL * sizeof(uint32_t), MEMORY_ALIGNMENT, GUARD_END) &&
           guard_create(&c->scale, outputs * sizeof(float), MEMORY_ALIGNMENT, GUARD_END) &&
           guard_create(&c->bias, outputs * sizeof(float), MEMORY_ALIGNMENT, GUARD_END) &&
           guard_create(&c->y, ((c->tokens - 1) * c->y_step + outputs) * sizeof(float), sizeof(float), GUARD_END);
}

static void drop(product_case *c)
{
    guard_free(&c->x);
    guard_free(&c->w);
    guard_free(&c->scale);
    guard_free(&c->bias);
    guard_free(&c->y);
}

/* An integer from -127 to 127; `extreme`: one of both ends. */
static int drawn(random_state *random, bool extreme)
{
    const uint64_t bits = random_bits(random);
    return extreme ? (bits & 1 ? 127 : -127) : (int)(bits % 255) - 127;
}

static void fill(product_case *c, random_state *random, bool extreme)
{
    int8_t *x = (int8_t *)c->x.data;
    uint8_t *w = c->w.data;
    float *scale = floats(&c->scale), *bias = floats(&c->bias);
    memset(x, 0, ((c->tokens - 1) * c->x_step + c->words + 2) * sizeof(uint32_t));
    for (size_t t = 0; t < c->tokens; ++t, x += c->x_step * sizeof(uint32_t)) {
        uint32_t start = 0;
        const float unit = 1.0f;
        for (size_t i = 0; i < c->inputs; ++i) {
            x[i] = (int8_t)drawn(random, extreme);
            start -= (uint32_t)(128 * x[i]);
        }
        memcpy(x + c->words * sizeof start, &start, sizeof start);
        memcpy(x + (c->words + 1) * sizeof start, &unit, sizeof unit);
    }
    for (size_t i = 0; i < c->panels * c->words * PANEL * PER_WORD; ++i)
        w[i] = (uint8_t)(128 + drawn(random, extreme));
    for (size_t i = 0; i < c->panels * PANEL; ++i) {
        scale[i] = 1.0f;
        bias[i] = 0.0f;
    }
}

static bool compare(const product_case *c, const char *symbol, char *error, size_t size)
{
    const uint8_t *w = c->w.data;
    const float *y = floats(&c->y);
    for (size_t t = 0; t < c->tokens; ++t) {
        const int8_t *x = (const int8_t *)c->x.data + t * c->x_step * sizeof(uint32_t);
        for (size_t o = 0; o < c->panels * PANEL; ++o) {
            int64_t sum = 0;
            for (size_t i = 0; i < c->inputs; ++i) {
                const size_t word = (o / PANEL * c->words + i / PER_WORD) * PANEL + o % PANEL;
                sum += (int64_t)x[i] * (w[word * PER_WORD + i % PER_WORD] - 128);
            }
            const float wanted = (float)sum, found = y[t * c->y_step + o];
            if (!(found == wanted))
                return files_error(error, size, "%s: %zu inputs: output %zu of token %zu of %zu is %.9g instead of %.9g", symbol, c->inputs,
                                   o, t, c->tokens, (double)found, (double)wanted);
        }
    }
    return true;
}

bool exact_product(const char *library, const char *symbol, size_t inputs, char *error, size_t size)
{
    static const size_t tokens[] = {1, 2, 3, 13, 29};
    void *file = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        return files_error(error, size, "%s: %s", library, dlerror());
    product_function *product;
    *(void **)&product = dlsym(file, symbol);
    if (!product)
        return files_error(error, size, "%s: lacks %s", library, symbol);
    random_state random = random_seed(inputs);
    bool ok = true;
    for (size_t n = 0; ok && n < sizeof tokens / sizeof *tokens; ++n) {
        product_case c = {.inputs = inputs, .panels = n % 2 ? 1 : 5, .tokens = tokens[n]};
        if (!make(&c))
            return files_error(error, size, "%s: not enough memory", library);
        fill(&c, &random, n == 2);
        product(words(&c.x), c.x_step, words(&c.w), floats(&c.scale), floats(&c.bias), floats(&c.y), c.y_step, c.inputs, c.panels,
                c.tokens);
        ok = guard_intact(&c.x) && guard_intact(&c.w) && guard_intact(&c.scale) && guard_intact(&c.bias) && guard_intact(&c.y);
        ok = ok ? compare(&c, symbol, error, size) : files_error(error, size, "%s: %s wrote beyond its memory", library, symbol);
        drop(&c);
    }
    return ok;
}
