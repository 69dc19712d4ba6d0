/* Times products and attention of other libraries, as they are in blocks of transformers, each checked before. */
#include "harness/baseline/products.h"
#include "gen/weights/random.h"
#include "harness/base/blob_memory.h"
#include "harness/base/memory.h"
#include "harness/measure/baselines.h"

#include <stdio.h>

#define MOST_TOKENS ((size_t)1 << 24)
#define MOST_WIDTH ((size_t)1 << 24)

static const baseline_product_library *const libraries[] = {&baseline_products_openblas, &baseline_products_onednn};

enum { LIBRARIES = sizeof(libraries) / sizeof(*libraries) };

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Random numbers. They live until the process ends. */
static float *random_numbers(size_t count, uint64_t seed, double deviation)
{
    float *numbers = memory_of_large_pages(count * sizeof(*numbers));
    if (!numbers) {
        job_fail("out of memory for %zu numbers", count);
    }
    buffers_random(numbers, count, seed, deviation);
    return numbers;
}

static const baseline_product_library *find_library(const job_object *row)
{
    const char *name = job_word(row, "library");
    for (size_t i = 0; i < LIBRARIES; ++i) {
        if (strcmp(libraries[i]->dense->name, name) == 0) {
            return libraries[i];
        }
    }
    job_fail("%.60s: must be openblas or onednn", name);
}

/* What a library makes for each caller, `count` things, which write one after the other to the caller's y. */
typedef struct library_call {
    bool (*run)(void *one, float *y);
    size_t count;
    void **made; /* [callers][count] */
    float **y;   /* [callers] */
} library_call;

static bool run_made(void *self, size_t caller)
{
    const library_call *c = self;
    bool good = true;
    for (size_t i = 0; i < c->count && good; ++i) {
        good = c->run(c->made[caller * c->count + i], c->y[caller]);
    }
    return good;
}

static library_call *make_call(const timing *to, bool (*run)(void *one, float *y), size_t count)
{
    library_call *c = job_room(1, sizeof(*c));
    *c = (library_call){run, count, job_room(to->threads * count, sizeof(*c->made)), job_room(to->threads, sizeof(*c->y))};
    return c;
}

static void add_made(timing *to, const job_object *row, library_call *c)
{
    timing_add(to,
               (timed_call){
                   .name = job_text(row, "name"), .run = run_made, .self = c, .callers = to->threads, .threads = to->threads, .turns = 1});
}

/* The products of a job: of each caller all of these matrices. */
typedef struct products {
    baseline_matrix *matrices; /* [count] */
    size_t count, y_step;
    float *x, *y; /* y [callers][y_step] */
} products;

/* A product that is right, with *worst raised to its error, or NULL with one line in error. */
static void *checked_product(const products *of, const baseline_matrix *matrix, const job_object *row, double *worst, char *error,
                             size_t error_size)
{
    const baseline_product_library *library = find_library(row);
    const char *type = job_word(row, "type");
    const size_t tokens = job_integer(row, "tokens", 1, MOST_TOKENS);
    void *made = library->product(matrix, type, tokens, of->x, error, error_size);
    if (!made) {
        return NULL;
    }
    const bool ran = library->multiply(made, of->y);
    const double off = baseline_product_error(matrix, tokens, of->x, of->y), most = baseline_product_tolerance(type);
    if (ran && off <= most) {
        *worst = off > *worst ? off : *worst;
        return made;
    }
    snprintf(error, error_size, "%s: %s, %zu tokens: relative error %.2g of a product: must be at most %g", library->dense->name, type,
             tokens, off, most);
    return NULL;
}

/* Adds the call, and notes its largest relative error. Of types narrower than float32 a library may have no product for this CPU, or one
   that overflows: those are left out. */
static void add_product_call(const products *of, const job_object *row, timing *to)
{
    const baseline_product_library *library = find_library(row);
    library_call *call = make_call(to, library->multiply, of->count);
    char implementation[128] = "";
    double worst = 0.0;
    for (size_t i = 0; i < to->threads * of->count; ++i) {
        char error[512];
        call->y[i / of->count] = of->y + i / of->count * of->y_step;
        call->made[i] = checked_product(of, &of->matrices[i % of->count], row, &worst, error, sizeof(error));
        if (!call->made[i] && strcmp(job_word(row, "type"), "f32") == 0) {
            job_fail("%s", error);
        }
        if (!call->made[i] && *error) {
            fprintf(stderr, "lookupc-measure: %s: left out\n", error);
        }
        if (!call->made[i]) {
            return;
        }
        baseline_add_name(implementation, sizeof(implementation), library->dense->implementation(call->made[i]));
    }
    timing_note_number(to, job_text(row, "name"), worst);
    timing_note_implementation(to, job_text(row, "name"), implementation);
    add_made(to, row, call);
}

static void add_products(timing *to)
{
    const job_object *job = to->job;
    size_t inputs = 1, outputs = 1, tokens = 1;
    products *of = job_room(1, sizeof(*of));
    of->count = job_count(job, "products");
    of->matrices = job_room(of->count, sizeof(*of->matrices));
    for (job_object row = {0}; job_next(job, "products", &row);) {
        const size_t own_inputs = job_integer(&row, "inputs", 1, MOST_WIDTH), own_outputs = job_integer(&row, "outputs", 1, MOST_WIDTH);
        of->matrices[row.place] = (baseline_matrix){
            own_inputs, own_outputs, random_numbers(own_inputs * own_outputs, to->seed + row.place, 1.0 / (double)own_inputs)};
        inputs = larger(inputs, own_inputs);
        outputs = larger(outputs, own_outputs);
    }
    for (job_object row = {0}; job_next(job, "product_calls", &row);) {
        tokens = larger(tokens, job_integer(&row, "tokens", 1, MOST_TOKENS));
    }
    of->y_step = tokens * outputs;
    of->y = random_numbers(to->threads * of->y_step, to->seed, 0.0);
    of->x = random_numbers(tokens * inputs, to->seed, 0.0);
    random_state random = random_seed(to->seed);
    for (size_t i = 0; i < tokens * inputs; ++i) {
        of->x[i] = (float)random_uniform(&random);
    }
    for (job_object row = {0}; job_next(job, "product_calls", &row);) {
        add_product_call(of, &row, to);
    }
}

/* Adds the call, which is checked when it is made. */
static void add_attention_call(const baseline_attention *of, const buffers *memory, const job_object *row, timing *to)
{
    const double tolerance = 1e-4;
    const baseline_product_library *library = find_library(row);
    library_call *call = make_call(to, library->attend, 1);
    for (size_t caller = 0; caller < to->threads; ++caller) {
        char error[512];
        call->y[caller] = buffers_copy(memory, "y", caller);
        call->made[caller] = library->attention(of, error, sizeof(error));
        if (!call->made[caller]) {
            job_fail("%s: no attention of %zu tokens: %s", library->dense->name, of->tokens, error);
        }
        const bool ran = run_made(call, caller);
        const double off = baseline_attention_error(of, call->y[caller]);
        if (!ran || !(off <= tolerance)) {
            job_fail("%s: attention of %zu tokens: relative error %.2g: must be at most %g", library->dense->name, of->tokens, off,
                     tolerance);
        }
    }
    timing_note_implementation(to, job_text(row, "name"), library->dense->implementation(call->made[0]));
    add_made(to, row, call);
}

static void add_attention(const buffers *memory, timing *to)
{
    const job_object *job = to->job;
    const size_t heads = job_integer(job, "heads", 1, MOST_WIDTH), kv_heads = job_integer(job, "kv_heads", 1, heads),
                 width = job_integer(job, "width", 1, MOST_WIDTH), layers = job_integer(job, "layers", 1, MOST_WIDTH);
    size_t end = 1, tokens = 1; /* of the longest */
    for (job_object row = {0}; job_next(job, "attention_calls", &row);) {
        const size_t own = job_integer(&row, "tokens", 1, MOST_TOKENS);
        end = larger(end, job_integer(&row, "position", 0, MOST_TOKENS) + own);
        tokens = larger(tokens, own);
    }
    baseline_attention of = {.heads = heads, .kv_heads = kv_heads, .width = width, .layers = layers, .causal = job_flag(job, "causal")};
    of.keys = random_numbers(2 * layers * end * kv_heads * width, to->seed + 1, 1.0);
    of.q = random_numbers(tokens * heads * width, to->seed + 2, 1.0);
    for (job_object row = {0}; job_next(job, "attention_calls", &row);) {
        of.tokens = job_integer(&row, "tokens", 1, MOST_TOKENS);
        of.position = job_integer(&row, "position", 0, MOST_TOKENS);
        of.values = of.keys + layers * (of.position + of.tokens) * kv_heads * width;
        add_attention_call(&of, memory, &row, to);
    }
}

void baselines_add_products(const buffers *memory, timing *to)
{
    if (!job_has(to->job, "product_calls")) {
        return;
    }
    add_products(to);
    add_attention(memory, to);
    for (size_t i = 0; i < LIBRARIES; ++i) {
        char text[256];
        const baseline_library *of = libraries[i]->dense;
        of->describe(text, sizeof(text));
        timing_note(to, of->description, text);
    }
}
