/* Compares the emitted product of rounded inputs with one in int64. */
#include "harness/verify/exact_product.h"

#include "harness/base/guard.h"
#include "harness/base/library.h"
#include "harness/base/memory.h"

#include "gen/weights/random.h"

#include <stdint.h>
#include <string.h>

enum { PANEL = 32 };

/* How a type packs inputs and weights. */
typedef struct {
    const char *name;
    int largest, offset;     /* the largest magnitude that is drawn, and how much larger bytes of weights are */
    size_t per_word, behind; /* inputs of a word; words behind a token's inputs */
} product_type;

static const product_type types[] = {{"i8", 127, 128, 4, 2}, {"i7", 63, 64, 4, 2}, {"bf16", 8, 0, 2, 0}};

typedef void integer_function(const uint32_t *x, size_t x_step, const uint32_t *w, const float *scale, const float *bias, float *y,
                              size_t y_step, size_t inputs, size_t panels, size_t tokens);
typedef void float_function(const uint32_t *x, size_t x_step, const uint32_t *w, const float *bias, float *y, size_t y_step, size_t inputs,
                            size_t panels, size_t tokens);

typedef struct {
    const product_type *type;
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
    c->words = (c->inputs + c->type->per_word - 1) / c->type->per_word;
    c->x_step = c->words + 3;
    c->y_step = c->panels * PANEL + 5;
    const size_t outputs = c->panels * PANEL, x_words = (c->tokens - 1) * c->x_step + c->words + c->type->behind;
    return guard_create(&c->x, x_words * sizeof(uint32_t), sizeof(uint32_t), GUARD_END) &&
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

/* An integer of at most that magnitude; `extreme`: one of both ends. */
static int drawn(int largest, random_state *random, bool extreme)
{
    const uint64_t bits = random_bits(random);
    return extreme ? (bits & 1 ? largest : -largest) : (int)(bits % (2 * (unsigned)largest + 1)) - largest;
}

/* The upper half of a float, which must have no lower one. */
static uint16_t half_of(int value)
{
    const float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static int value_of(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return (int)number;
}

/* Puts `value` where element number `at` of x lies, or of w. */
static void put(const product_case *c, bool weight, size_t at, int value)
{
    unsigned char *memory = weight ? c->w.data : c->x.data;
    if (c->type->behind > 0)
        memory[at] = (unsigned char)(weight ? value + c->type->offset : value);
    else
        ((uint16_t *)(void *)memory)[at] = half_of(value);
}

static int get(const product_case *c, bool weight, size_t at)
{
    const unsigned char *memory = weight ? c->w.data : c->x.data;
    if (c->type->behind == 0)
        return value_of(((const uint16_t *)(const void *)memory)[at]);
    return weight ? memory[at] - c->type->offset : (int8_t)memory[at];
}

static void fill(product_case *c, random_state *random, bool extreme)
{
    const size_t per_word = c->type->per_word;
    float *scale = floats(&c->scale), *bias = floats(&c->bias);
    uint32_t *x = (uint32_t *)(void *)c->x.data;
    memset(x, 0, ((c->tokens - 1) * c->x_step + c->words + c->type->behind) * sizeof *x);
    for (size_t t = 0; t < c->tokens; ++t) {
        uint32_t start = 0;
        const float unit = 1.0f;
        for (size_t i = 0; i < c->inputs; ++i) {
            const int value = drawn(c->type->largest, random, extreme);
            put(c, false, t * c->x_step * per_word + i, value);
            start -= (uint32_t)(c->type->offset * value);
        }
        if (c->type->behind > 0) {
            x[t * c->x_step + c->words] = start;
            memcpy(x + t * c->x_step + c->words + 1, &unit, sizeof unit);
        }
    }
    for (size_t i = 0; i < c->panels * c->words * PANEL * per_word; ++i)
        put(c, true, i, drawn(c->type->largest, random, extreme));
    for (size_t i = 0; i < c->panels * PANEL; ++i) {
        scale[i] = 1.0f;
        bias[i] = 0.0f;
    }
}

static bool compare(const product_case *c, const char *symbol, char *error, size_t size)
{
    const size_t per_word = c->type->per_word;
    const float *y = floats(&c->y);
    for (size_t t = 0; t < c->tokens; ++t) {
        for (size_t o = 0; o < c->panels * PANEL; ++o) {
            int64_t sum = 0;
            for (size_t i = 0; i < c->inputs; ++i) {
                const size_t word = (o / PANEL * c->words + i / per_word) * PANEL + o % PANEL;
                sum += (int64_t)get(c, false, t * c->x_step * per_word + i) * get(c, true, word * per_word + i % per_word);
            }
            const float wanted = (float)sum, found = y[t * c->y_step + o];
            if (!(found == wanted))
                return files_error(error, size, "%s: %zu inputs: output %zu of token %zu of %zu is %.9g instead of %.9g", symbol, c->inputs,
                                   o, t, c->tokens, (double)found, (double)wanted);
        }
    }
    return true;
}

static const product_type *type_of(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

bool exact_product(const char *path, const char *symbol, const char *type, size_t inputs, char *error, size_t size)
{
    static const size_t tokens[] = {1, 2, 3, 13, 29};
    if (!type_of(type))
        return files_error(error, size, "%s: inputs of type %s: no such products", path, type);
    loaded_library file;
    integer_function *of_integers;
    float_function *of_floats;
    if (!library_open(&file, path, LIBRARY_ALONE, error, size) || !library_find(&file, symbol, &of_integers, error, size) ||
        !library_find(&file, symbol, &of_floats, error, size))
        return false;
    random_state random = random_seed(inputs);
    bool ok = true;
    for (size_t n = 0; ok && n < sizeof tokens / sizeof *tokens; ++n) {
        product_case c = {.type = type_of(type), .inputs = inputs, .panels = n % 2 ? 1 : 5, .tokens = tokens[n]};
        if (!make(&c))
            return files_error(error, size, "%s: not enough memory", path);
        fill(&c, &random, n == 2);
        if (c.type->behind > 0)
            of_integers(words(&c.x), c.x_step, words(&c.w), floats(&c.scale), floats(&c.bias), floats(&c.y), c.y_step, c.inputs, c.panels,
                        c.tokens);
        else
            of_floats(words(&c.x), c.x_step, words(&c.w), floats(&c.bias), floats(&c.y), c.y_step, c.inputs, c.panels, c.tokens);
        ok = guard_intact(&c.x) && guard_intact(&c.w) && guard_intact(&c.scale) && guard_intact(&c.bias) && guard_intact(&c.y);
        ok = ok ? compare(&c, symbol, error, size) : files_error(error, size, "%s: %s wrote beyond its memory", path, symbol);
        drop(&c);
    }
    return ok;
}
