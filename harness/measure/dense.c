/* Times dense FFNs of other libraries, each checked before. */
#include "harness/base/memory.h"
#include "harness/baseline/ffn.h"
#include "harness/measure/baselines.h"

#include <stdio.h>

static const baseline_library *const libraries[] = {&baseline_openblas, &baseline_onednn, &baseline_onednn_bf16, &baseline_onednn_i8};

enum { LIBRARIES = sizeof(libraries) / sizeof(*libraries), CHECKED_TOKENS = 8 }; /* of each dense FFN */

/* A dense FFN for `batch` tokens, which walks through those of a pool [tokens][d]. */
typedef struct dense_call {
    const baseline_library *library;
    const baseline_weights *weights;
    const char *name; /* "openblas/f32" */
    void *ffn;
    const float *pool;
    float *y;
    size_t tokens, batch, at;
} dense_call;

static bool run_dense(void *self, size_t caller)
{
    (void)caller;
    dense_call *c = self;
    const float *x = c->pool + c->at * c->weights->d;
    c->at = c->at + 2 * c->batch <= c->tokens ? c->at + c->batch : 0;
    return c->library->run(c->ffn, x, c->y);
}

/* The largest relative error of some tokens, of one call or several; stops with one line if rounding does not explain what they are off. */
static double check_dense(const dense_call *c)
{
    double worst = 0.0;
    const size_t of_call = smaller(c->batch, CHECKED_TOKENS), calls = smaller(CHECKED_TOKENS / of_call, c->tokens / c->batch);
    for (size_t call = 0; call < calls; ++call) {
        const float *x = c->pool + call * c->batch * c->weights->d;
        if (!c->library->run(c->ffn, x, c->y)) {
            job_fail("%s: %zu tokens: the library reports an error", c->name, c->batch);
        }
        for (size_t i = 0; i < of_call; ++i) {
            const size_t token = of_call > 1 ? i * (c->batch - 1) / (of_call - 1) : 0;
            const baseline_error error = baseline_check(c->library, c->weights, x, c->batch, token, c->y + token * c->weights->d_out);
            if (!(error.deviations <= BASELINE_DEVIATIONS)) {
                job_fail("%s: %zu tokens: an output of token %zu is off by %.3g times what rounding explains: must be at most %d; "
                         "relative error %.2g",
                         c->name, c->batch, token, error.deviations, BASELINE_DEVIATIONS, error.relative);
            }
            worst = error.relative > worst ? error.relative : worst;
        }
    }
    return worst;
}

/* Adds the call of a dense FFN, and notes how far it is off. Returns false where its library has none of its type for this CPU. */
static bool add_dense(const dense_call *of, timing *to)
{
    char text[256], *name = job_room(64, 1);
    dense_call *made = job_room(1, sizeof(*made));
    *made = *of;
    made->ffn = of->library->create(of->weights, of->batch, to->threads, text, sizeof(text));
    if (!made->ffn && *text == '\0') {
        return false;
    }
    if (!made->ffn) {
        job_fail("%s", text);
    }
    snprintf(name, 64, "dense/%s/%zu", of->name, of->batch);
    timing_note_number(to, name, check_dense(made));
    timing_note_implementation(to, name, of->library->implementation(made->ffn));
    timing_add(to, (timed_call){.name = name, .run = run_dense, .self = made, .callers = 1, .threads = to->threads, .turns = 1});
    return true;
}

/* Adds the calls of the library that the job calls so, and notes what it chose, or that it has nothing of its type. */
static void add_library(const json_t *wanted, size_t batches, dense_call *of, timing *to)
{
    char text[256], known[128] = "", *name = job_room(32, 1);
    const baseline_library *library = NULL;
    for (size_t i = 0; i < LIBRARIES && !library; ++i) {
        snprintf(name, 32, "%s/%s", libraries[i]->name, libraries[i]->type);
        library = json_is_string(wanted) && strcmp(name, json_string_value(wanted)) == 0 ? libraries[i] : NULL;
        snprintf(known + strlen(known), sizeof(known) - strlen(known), i > 0 ? ", %s" : "%s", name);
    }
    if (!library) {
        job_refuse(to->job, "dense", wanted, "must be one of %s", known);
    }
    of->library = library;
    of->name = name;
    bool some = true;
    for (size_t i = 0; i < batches && some; ++i) {
        of->batch = (size_t)json_integer_value(job_value(to->job, "batches", i));
        some = add_dense(of, to);
    }
    snprintf(text, sizeof(text), "none");
    if (some) {
        library->describe(text, sizeof(text));
    }
    timing_note(to, library->description, text);
}

void baselines_add_dense(const buffers *memory, timing *to)
{
    const job_object *job = to->job;
    if (job_count(job, "dense") == 0) {
        return;
    }
    const size_t d = job_integer(job, "d", 1, 1 << 20), hidden = job_integer(job, "baseline_hidden", 1, 1 << 24),
                 d_out = job_integer(job, "d_out", 1, 1 << 20);
    baseline_weights *weights = job_room(1, sizeof(*weights));
    dense_call of = {.weights = weights,
                     .pool = buffers_copy(memory, "uniform", 0),
                     .tokens = buffers_bytes(memory, "uniform") / sizeof(float) / d,
                     .y = buffers_copy(memory, "y", 0)};
    if (!baseline_weights_create(weights, d, hidden, d_out, to->seed + 1)) {
        job_fail("out of memory for the dense FFN");
    }
    baseline_weights_calibrate(weights, of.pool, of.tokens);
    for (size_t i = 0; i < job_count(job, "dense"); ++i) {
        add_library(job_value(job, "dense", i), job_count(job, "batches"), &of, to);
    }
}
