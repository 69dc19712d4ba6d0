/* The dense FFNs of all libraries are as exact as their types allow, and each mistake in a scale or a bias is noticed. */
#include "gen/weights/random.h"
#include "harness/base/memory.h"
#include "harness/baseline/ffn.h"
#include "harness/baseline/memory.h"

/* cmocka.h needs the first four */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static const baseline_library *const libraries[] = {&baseline_openblas, &baseline_onednn, &baseline_onednn_bf16, &baseline_onednn_i8};

enum { LIBRARIES = sizeof libraries / sizeof *libraries, POOL = 512 };

typedef struct shape {
    size_t d, hidden, d_out, tokens, threads;
} shape;

static float *inputs(size_t count, uint64_t seed)
{
    float *x = aligned_memory(count * sizeof *x);
    assert_non_null(x);
    random_state random = random_seed(seed);
    random_fill(&random, x, count, 0.0, 1.0);
    return x;
}

static baseline_weights calibrated(const shape *of, const float *x, uint64_t seed)
{
    baseline_weights weights;
    assert_true(baseline_weights_create(&weights, of->d, of->hidden, of->d_out, seed));
    baseline_weights_calibrate(&weights, x, POOL);
    return weights;
}

/* Makes the FFN with `made` and compares it with `wanted`: the worst token. Returns false where the library has none of its type. */
static bool worst_of(const baseline_library *library, const baseline_weights *made, const baseline_weights *wanted, const shape *of,
                     const float *x, baseline_error *worst)
{
    char error[256];
    void *ffn = library->create(made, of->tokens, of->threads, error, sizeof error);
    *worst = (baseline_error){0.0, 0.0};
    if (!ffn) {
        assert_string_equal(error, "");
        return false;
    }
    float *y = aligned_memory(of->tokens * of->d_out * sizeof *y);
    assert_non_null(y);
    assert_true(library->run(ffn, x, y));
    for (size_t token = 0; token < of->tokens; ++token) {
        const baseline_error found = baseline_check(library, wanted, x, of->tokens, token, y + token * of->d_out);
        worst->relative = fmax(worst->relative, found.relative);
        worst->deviations = fmax(worst->deviations, found.deviations);
    }
    free(y);
    return true;
}

static void all_are_right(void **state)
{
    (void)state;
    const shape shapes[] = {{1, 4, 1, 1, 1},     {1, 4, 3, 9, 1},     {7, 28, 5, 1, 1},    {13, 52, 40, 6, 1},     {40, 160, 1, 33, 2},
                            {64, 256, 64, 1, 1}, {64, 256, 64, 8, 2}, {96, 200, 33, 3, 1}, {256, 1024, 256, 20, 2}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; ++s) {
        float *x = inputs(POOL * shapes[s].d, s);
        for (uint64_t seed = 0; seed < (shapes[s].d < 64 ? 8 : 1); ++seed) {
            baseline_weights weights = calibrated(&shapes[s], x, seed);
            for (size_t l = 0; l < LIBRARIES; ++l) {
                baseline_error worst;
                if (worst_of(libraries[l], &weights, &weights, &shapes[s], x, &worst) && !(worst.deviations <= BASELINE_DEVIATIONS)) {
                    fail_msg("%s %s, %zu -> %zu -> %zu, %zu tokens, seed %zu: %g deviations, relative error %g", libraries[l]->name,
                             libraries[l]->type, shapes[s].d, shapes[s].hidden, shapes[s].d_out, shapes[s].tokens, (size_t)seed,
                             worst.deviations, worst.relative);
                }
            }
            baseline_weights_destroy(&weights);
        }
        free(x);
    }
}

/* What each type costs, at least and at most: an FFN that computes in a wider type than it says is no rival of that type. */
static void errors_are_those_of_the_type(void **state)
{
    (void)state;
    const double least[] = {0.0, 0.0, 5e-4, 5e-3}, most[] = {1e-5, 1e-5, 2e-2, 5e-2};
    const shape of = {256, 1024, 256, 16, 1};
    float *x = inputs(POOL * of.d, 3);
    baseline_weights weights = calibrated(&of, x, 4);
    for (size_t l = 0; l < LIBRARIES; ++l) {
        baseline_error worst;
        if (!worst_of(libraries[l], &weights, &weights, &of, x, &worst)) {
            printf("skipped: %s has no products in %s for this CPU\n", libraries[l]->name, libraries[l]->type);
        } else if (worst.relative < least[l] || worst.relative > most[l]) {
            fail_msg("%s %s: relative error %g", libraries[l]->name, libraries[l]->type, worst.relative);
        }
    }
    baseline_weights_destroy(&weights);
    free(x);
}

static void scale(float *values, size_t count, float factor)
{
    for (size_t i = 0; i < count; ++i)
        values[i] *= factor;
}

/* Each plants one mistake in weights or calibration. */
static void scale_of_x(baseline_weights *of)
{
    scale(of->w1, of->hidden * of->d, 1.05f);
}

static void scale_of_hidden(baseline_weights *of)
{
    scale(of->w2, of->d_out * of->hidden, 1.05f);
}

static void scale_of_one_unit(baseline_weights *of)
{
    scale(of->w1 + 5 * of->d, of->d, 4.0f);
}

static void scale_of_one_output(baseline_weights *of)
{
    scale(of->w2 + 3 * of->hidden, of->hidden, 1.5f);
}

static void no_first_bias(baseline_weights *of)
{
    scale(of->b1, of->hidden, 0.0f);
}

static void no_second_bias(baseline_weights *of)
{
    scale(of->b2, of->d_out, 0.0f);
}

static void range_of_hidden(baseline_weights *of)
{
    of->high *= 0.5f;
}

static void zero_of_hidden(baseline_weights *of)
{
    of->low = 0.0f;
}

static void mistakes_are_noticed(void **state)
{
    (void)state;
    static const struct mistake {
        const char *name;
        void (*plant)(baseline_weights *);
        bool only_i8;
    } mistakes[] = {
        {"scale of x", scale_of_x, false},
        {"scale of hidden", scale_of_hidden, false},
        {"scale of one unit", scale_of_one_unit, false},
        {"scale of one output", scale_of_one_output, false},
        {"no first bias", no_first_bias, false},
        {"no second bias", no_second_bias, false},
        {"range of hidden", range_of_hidden, true},
        {"zero of hidden", zero_of_hidden, true},
    };
    const shape of = {128, 512, 128, 8, 1};
    float *x = inputs(POOL * of.d, 1);
    baseline_weights weights = calibrated(&of, x, 2);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; ++i) {
        baseline_weights wrong = calibrated(&of, x, 2);
        mistakes[i].plant(&wrong);
        for (size_t l = 0; l < LIBRARIES; ++l) {
            baseline_error worst;
            if ((!mistakes[i].only_i8 || libraries[l]->largest_weight) && worst_of(libraries[l], &wrong, &weights, &of, x, &worst) &&
                !(worst.deviations > BASELINE_DEVIATIONS)) {
                fail_msg("%s %s: %s: not noticed: %g deviations", libraries[l]->name, libraries[l]->type, mistakes[i].name,
                         worst.deviations);
            }
        }
        baseline_weights_destroy(&wrong);
    }
    baseline_weights_destroy(&weights);
    free(x);
}

/* No number compares as right, whatever the library returned. */
static void no_number_is_wrong(void **state)
{
    (void)state;
    const shape of = {8, 32, 4, 1, 1};
    float *x = inputs(POOL * of.d, 1), y[4] = {0.0f, NAN, 0.0f, 0.0f};
    baseline_weights weights = calibrated(&of, x, 2);
    assert_true(isinf(baseline_check(&baseline_onednn_i8, &weights, x, 1, 0, y).deviations));
    y[1] = INFINITY;
    assert_true(isinf(baseline_check(&baseline_openblas, &weights, x, 1, 0, y).relative));
    baseline_weights_destroy(&weights);
    free(x);
}

static void bytes_are_nearest(void **state)
{
    (void)state;
    enum { COUNT = 70001 };
    float *x = inputs(COUNT, 9);
    uint8_t *to = aligned_memory(COUNT);
    assert_non_null(to);
    for (size_t threads = 1; threads <= 3; ++threads) {
        x[COUNT - 1] = -4.0f;
        const float largest = baseline_largest(x, COUNT, threads), unit = largest / 127.0f;
        assert_true(largest == 4.0f);
        baseline_bytes(x, COUNT, unit, to, threads);
        for (size_t i = 0; i < COUNT; ++i) {
            const double off = (double)x[i] / (double)unit + 128.0 - (double)to[i];
            if (!(fabs(off) <= 0.501))
                fail_msg("x[%zu] = %g becomes %d in units of %g", i, (double)x[i], to[i], (double)unit);
        }
        assert_int_equal(to[COUNT - 1], 1);
    }
    free(to);
    free(x);
}

/* Pages that nobody wrote are all the same one, which a library reads faster than memory. */
static void memory_is_written(void **state)
{
    (void)state;
    enum { PAGES = 5000 };
    static unsigned char there[PAGES];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (PAGES - 1) * page + 1;
    unsigned char *memory = baseline_memory(bytes, true);
    assert_non_null(memory);
    assert_int_equal(mincore(memory, bytes, there), 0);
    for (size_t i = 0; i < PAGES; ++i)
        assert_int_equal(there[i] & 1, 1);
    munmap(memory, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_right),        cmocka_unit_test(errors_are_those_of_the_type),
        cmocka_unit_test(mistakes_are_noticed), cmocka_unit_test(no_number_is_wrong),
        cmocka_unit_test(bytes_are_nearest),    cmocka_unit_test(memory_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
