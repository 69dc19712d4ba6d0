/* The reference computes what the definitions say: cases small enough to do by hand, and the identities of LookupFFN. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen/weights/quantise.h"
#include "gen/weights/random.h"
#include "harness/reference/error_bounds.h"
#include "harness/reference/lookup.h"
#include "harness/reference/projection.h"
#include "harness/reference/type.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not %.17g within %g", value, expected, tolerance);
}

/* Tables [h][2^tau][d_out] in memory. */
typedef struct {
    const reference_model *model;
    const double *rows;
} memory_tables;

static bool memory_row(void *source, size_t table, size_t code, double *row)
{
    const memory_tables *tables = source;
    const size_t d_out = tables->model->d_out;
    memcpy(row, tables->rows + ((table << tables->model->tau) + code) * d_out, d_out * sizeof *row);
    return true;
}

static bool broken_row(void *source, size_t table, size_t code, double *row)
{
    (void)source, (void)table, (void)code, (void)row;
    return false;
}

static double *random_values(random_state *random, size_t count, double deviation)
{
    double *values = malloc((count + 1) * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; ++i)
        values[i] = (double)(float)(deviation * random_normal(random));
    return values;
}

static void pads_and_repeats(void **state)
{
    (void)state;
    const struct {
        size_t d, h, tau, block, padded, repeats, count;
    } cases[] = {
        {1, 3, 1, 1, 1, 3, 3 * 4 * 1 * 1},
        {2, 1, 1, 2, 2, 1, 4 * 2 * 2},
        {5, 4, 5, 4, 8, 3, 3 * 4 * 8 * 4},
        {64, 8, 8, 16, 64, 1, 4 * 64 * 16},
        {65, 16, 8, 2, 128, 1, 4 * 128 * 2},
        {512, 128, 8, 64, 512, 2, 2 * 4 * 512 * 64},
        {768, 170, 9, 64, 1024, 2, 2 * 4 * 1024 * 64},
    };
    for (size_t i = 0; i < COUNT(cases); ++i) {
        const reference_model model = {.d = cases[i].d, .h = cases[i].h, .tau = cases[i].tau, .block = cases[i].block};
        assert_int_equal(reference_padded(&model), cases[i].padded);
        assert_int_equal(reference_repeats(&model), cases[i].repeats);
        assert_int_equal(reference_projection_count(&model), cases[i].count);
    }
    const reference_model dense = {.d = 5, .h = 4, .tau = 5, .projection = REFERENCE_DENSE};
    assert_int_equal(reference_projection_count(&dense), 4 * 5 * 5);
}

/* Column j of H_n is (-1)^popcount(i & j). */
static void hadamard_of_a_unit_vector(void **state)
{
    (void)state;
    double y[64];
    for (size_t n = 1; n <= 64; n *= 2) {
        for (size_t j = 0; j < n; ++j) {
            memset(y, 0, sizeof y);
            y[j] = 1.0;
            reference_hadamard(y, n);
            for (size_t i = 0; i < n; ++i)
                assert_true(y[i] == (__builtin_popcountll(i & j) % 2 == 0 ? 1.0 : -1.0));
        }
    }
}

/* N = 4, b = 2: y' = H_4 blockdiag([1 2; 3 4], [5 6; 7 8]) [1 10 100 1000] = H_4 [21 43 6500 8700]. */
static void one_step_by_hand(void **state)
{
    (void)state;
    const reference_model model = {.d = 3, .block = 2};
    const double blocks[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    double y[4] = {1, 10, 100, 1000}, temporary[4];
    reference_bh4_step(&model, blocks, y, temporary);
    assert_true(y[0] == 21 + 43 + 6500 + 8700);
    assert_true(y[1] == 21 - 43 + 6500 - 8700);
    assert_true(y[2] == 21 + 43 - 6500 - 8700);
    assert_true(y[3] == 21 - 43 - 6500 + 8700);
}

/* With W = 1 the four steps are H_N^4 = N^2. d = 3 of N = 4 is padded, h tau = 10 takes three repeats and cuts the last. */
static void bh4_of_identities(void **state)
{
    (void)state;
    const reference_model model = {.d = 3, .h = 5, .tau = 2, .block = 2, .decay = 0.75};
    double blocks[3 * 4 * 2 * 2 * 2], bias[10], z[11];
    assert_int_equal(reference_projection_count(&model), COUNT(blocks));
    for (size_t i = 0; i < COUNT(blocks); ++i)
        blocks[i] = i % 4 == 0 || i % 4 == 3 ? 1.0 : 0.0;
    for (size_t j = 0; j < 10; ++j)
        bias[j] = 100.0 * (double)j;
    z[10] = -7.0;
    const reference_weights weights = {.projection = blocks, .bias = bias};
    const double x[3] = {1, -2, 3};
    assert_true(reference_project(&model, &weights, x, z));
    for (size_t j = 0; j < 10; ++j)
        assert_near(z[j], 0.75 * 16 * (j % 4 < 3 ? x[j % 4] : 0.0) + 0.25 * (j % 4 < 3 ? x[j % 4] : 0.0) + 100.0 * (double)j, 1e-12);
    assert_true(z[10] == -7.0);
}

/* A BH4 model as the dense one whose rows are what BH4 makes of unit vectors. */
static void bh4_as_a_dense_matrix(void **state)
{
    (void)state;
    random_state random = random_seed(1);
    reference_model bh4 = {.d = 11, .h = 7, .tau = 5, .block = 4, .decay = 0.7};
    reference_model dense = bh4;
    dense.projection = REFERENCE_DENSE;
    double *blocks = random_values(&random, reference_projection_count(&bh4), 0.2), *bias = random_values(&random, 35, 1.0);
    double *x = random_values(&random, 11, 1.0), *rows = malloc(35 * 11 * sizeof *rows), zeros[35] = {0}, z[35], expected[35];
    assert_non_null(rows);
    for (size_t i = 0; i < 11; ++i) {
        double unit[11] = {0};
        unit[i] = 1.0;
        assert_true(reference_project(&bh4, &(reference_weights){.projection = blocks, .bias = zeros}, unit, z));
        for (size_t j = 0; j < 35; ++j)
            rows[j * 11 + i] = z[j];
    }
    assert_true(reference_project(&bh4, &(reference_weights){.projection = blocks, .bias = bias}, x, expected));
    assert_true(reference_project(&dense, &(reference_weights){.projection = rows, .bias = bias}, x, z));
    for (size_t j = 0; j < 35; ++j)
        assert_near(z[j], expected[j], 1e-12 * (1.0 + fabs(expected[j])));
    free(blocks);
    free(bias);
    free(x);
    free(rows);
}

static void dense_by_hand(void **state)
{
    (void)state;
    const reference_model model = {.d = 3, .h = 1, .tau = 2, .projection = REFERENCE_DENSE};
    const double rows[6] = {1, 2, 3, 4, 5, 6}, bias[2] = {0.5, -0.5}, x[3] = {1, 10, 100};
    double z[2];
    assert_true(reference_project(&model, &(reference_weights){.projection = rows, .bias = bias}, x, z));
    assert_true(z[0] == 321.5 && z[1] == 653.5);
}

static void code_of_signs(void **state)
{
    (void)state;
    const reference_model model = {.tau = 4};
    const struct {
        double z[4];
        size_t code;
    } cases[] = {
        {{1, -1, -1, -1}, 8},
        {{-1, -1, -1, 1}, 1},
        {{1, 1, 1, 1}, 15},
        {{0, 0, 0, 0}, 0},
        {{-0.0, 1, 0, 1}, 5},
        {{NAN, 1, NAN, 0}, 4},
        {{INFINITY, -1, 5e-324, -INFINITY}, 10},
    };
    for (size_t i = 0; i < COUNT(cases); ++i)
        assert_int_equal(reference_code(&model, cases[i].z), cases[i].code);
}

/* <z, S> for vertex S of the cube, whose first coordinate is the code's most significant bit. */
static double along_vertex(const double *z, size_t tau, size_t vertex)
{
    double sum = 0.0;
    for (size_t j = 0; j < tau; ++j)
        sum += (vertex >> (tau - 1 - j) & 1) != 0 ? z[j] : -z[j];
    return sum;
}

/* The code is the vertex with the largest <z, S>; scores are shares of the softmax over all vertices, for gelu times <z, S>; the best
   vertices are those with the largest shares, and costs say what they lack. */
static void codes_and_scores_are_the_softmax(void **state)
{
    (void)state;
    random_state random = random_seed(2);
    for (size_t tau = 1; tau <= 8; ++tau) {
        const reference_model softmax = {.tau = tau, .score = REFERENCE_SOFTMAX}, gelu = {.tau = tau, .score = REFERENCE_GELU},
                              one = {.tau = tau, .score = REFERENCE_ONE};
        for (int repeat = 0; repeat < 50; ++repeat) {
            double *z = random_values(&random, tau, 1.0), total = 0.0;
            size_t best = 0;
            for (size_t vertex = 0; vertex < (size_t)1 << tau; ++vertex) {
                total += exp(along_vertex(z, tau, vertex));
                if (along_vertex(z, tau, vertex) > along_vertex(z, tau, best))
                    best = vertex;
            }
            size_t vertices[256], seen = 0;
            assert_int_equal(reference_code(&softmax, z), best);
            assert_true(reference_vertices(&softmax, z, vertices));
            assert_int_equal(vertices[0], best);
            for (size_t i = 0; i < (size_t)1 << tau; ++i) {
                const size_t vertex = vertices[i];
                const double along = along_vertex(z, tau, vertex), share = exp(along) / total;
                assert_near(reference_along(&softmax, z, vertex), along, 1e-14);
                assert_near(reference_cost(&softmax, z, vertex), (along_vertex(z, tau, best) - along) / 2.0, 1e-14);
                assert_near(reference_score(&softmax, z, vertex), share, 1e-14);
                assert_near(reference_score(&gelu, z, vertex), share * along, 1e-13);
                assert_true(reference_score(&one, z, vertex) == 1.0);
                assert_true(i == 0 ||
                            reference_score(&softmax, z, vertex) <= reference_score(&softmax, z, vertices[i - 1]) * (1.0 + 1e-14));
                seen += vertex;
            }
            assert_int_equal(seen, ((size_t)1 << tau) * (((size_t)1 << tau) - 1) / 2);
            free(z);
        }
    }
}

/* Far from 0 the exponentials vanish; at 0 all vertices are equal. */
static void score_at_its_ends(void **state)
{
    (void)state;
    const reference_model softmax = {.tau = 2, .score = REFERENCE_SOFTMAX}, gelu = {.tau = 2, .score = REFERENCE_GELU},
                          one = {.tau = 2, .score = REFERENCE_ONE};
    assert_true(reference_score(&softmax, (double[]){-1e300, 1e300}, 1) == 1.0);
    assert_true(reference_score(&gelu, (double[]){-1e300, 1e300}, 1) == 2e300);
    for (size_t code = 0; code < 4; ++code) {
        assert_true(code == 1 || reference_score(&softmax, (double[]){-1e300, 1e300}, code) == 0.0);
        assert_true(reference_score(&softmax, (double[]){0, 0}, code) == 0.25);
        assert_true(reference_score(&gelu, (double[]){0, 0}, code) == 0.0);
        assert_true(isnan(reference_score(&softmax, (double[]){NAN, 1}, code)));
        assert_true(isnan(reference_score(&gelu, (double[]){NAN, 1}, code)));
        assert_true(reference_score(&one, (double[]){-1e300, 1e300}, code) == 1.0);
        assert_true(reference_score(&one, (double[]){NAN, 1}, code) == 1.0);
    }
}

/* z = 3 -1 0.5: the best vertex is 101; bits cost 3, 1, 0.5. Of equal ones the lower code comes first, which is what a bit of 0 or NaN is.
 */
static void vertices_by_hand(void **state)
{
    (void)state;
    const reference_model model = {.tau = 3};
    const struct {
        double z[3];
        size_t vertices[8];
    } cases[] = {
        {{3, -1, 0.5}, {5, 4, 7, 6, 1, 0, 3, 2}},    {{0.5, 0.5, 2}, {7, 3, 5, 1, 6, 2, 4, 0}},
        {{0, 1, -0.0}, {2, 3, 6, 7, 0, 1, 4, 5}},    {{1e-30, 1, 1e9}, {7, 3, 1, 5, 2, 6, 0, 4}}, /* 1 + 1e-30 is 1 */
        {{NAN, NAN, NAN}, {0, 1, 2, 3, 4, 5, 6, 7}},
    };
    for (size_t i = 0; i < COUNT(cases); ++i) {
        size_t vertices[8];
        assert_true(reference_vertices(&model, cases[i].z, vertices));
        assert_int_equal(vertices[0], reference_code(&model, cases[i].z));
        for (size_t n = 0; n < 8; ++n)
            assert_int_equal(vertices[n], cases[i].vertices[n]);
    }
}

/* tau = 1, T_k = {0, V_k}, z = 0.5 x·w: the best row alone gives V sigmoid(x·w) where x·w > 0, and 0 elsewhere. */
static void one_bit_is_half_a_sigmoid(void **state)
{
    (void)state;
    const reference_model model = {
        .d = 1, .d_out = 2, .h = 1, .tau = 1, .neighbours = 1, .projection = REFERENCE_DENSE, .score = REFERENCE_SOFTMAX, .scale = 1.0};
    const double half = 0.5, bias = 0.0, output_bias[2] = {0, 0}, table[4] = {0, 0, 3, -4};
    memory_tables tables = {&model, table};
    const reference_weights weights = {
        .projection = &half, .bias = &bias, .output_bias = output_bias, .row = memory_row, .row_source = &tables};
    for (double x = -3.0; x <= 3.0; x += 0.5) {
        double z, y[2];
        assert_true(reference_project(&model, &weights, &x, &z));
        const size_t code = reference_code(&model, &z);
        const double score = reference_score(&model, &z, code), sigmoid = x > 0.0 ? 1.0 / (1.0 + exp(-x)) : 0.0;
        assert_true(reference_gather(&model, &weights, &code, &score, y));
        assert_near(y[0], 3.0 * sigmoid, 1e-15);
        assert_near(y[1], -4.0 * sigmoid, 1e-15);
    }
}

/* With the score one the rows of the best vertices are summed as they are: z = 3 -1 takes 10, 11 and 00 in turn. */
static void score_one_adds_rows(void **state)
{
    (void)state;
    const double z[2] = {3, -1}, output_bias[2] = {0.5, 0}, table[8] = {1, 2, 4, 8, 16, 32, 64, 128}; /* [4][2] */
    const double sums[3][2] = {{16.5, 32}, {80.5, 160}, {81.5, 162}};
    for (size_t m = 1; m <= 3; ++m) {
        const reference_model model = {.d_out = 2, .h = 1, .tau = 2, .neighbours = m, .score = REFERENCE_ONE, .scale = 1.0};
        memory_tables tables = {&model, table};
        const reference_weights weights = {.output_bias = output_bias, .row = memory_row, .row_source = &tables};
        size_t vertices[4];
        double scores[3], y[2];
        assert_true(reference_vertices(&model, z, vertices));
        for (size_t n = 0; n < m; ++n)
            scores[n] = reference_score(&model, z, vertices[n]);
        assert_true(reference_gather(&model, &weights, vertices, scores, y));
        assert_true(y[0] == sums[m - 1][0] && y[1] == sums[m - 1][1]);
    }
}

/* y of a model with one bit a table and T_k = {0, V_k} that takes both rows.  d = 3, h = 5, d_out = 2 */
static void take_both_rows(reference_score_kind score, double gain, double factor, const double *w, const double *v, const double *x,
                           double *y)
{
    const reference_model model = {
        .d = 3, .d_out = 2, .h = 5, .tau = 1, .neighbours = 2, .projection = REFERENCE_DENSE, .score = score, .scale = 1.0};
    double rows[5 * 3], table[5 * 2 * 2] = {0}, z[5], scores[10];
    const double bias[5] = {0}, output_bias[2] = {0.5, -0.25};
    size_t codes[10];
    for (size_t i = 0; i < 15; ++i)
        rows[i] = gain * w[i];
    for (size_t k = 0; k < 5; ++k)
        for (size_t o = 0; o < 2; ++o)
            table[(2 * k + 1) * 2 + o] = factor * v[2 * k + o];
    memory_tables tables = {&model, table};
    const reference_weights weights = {
        .projection = rows, .bias = bias, .output_bias = output_bias, .row = memory_row, .row_source = &tables};
    assert_true(reference_project(&model, &weights, x, z));
    for (size_t k = 0; k < 5; ++k) {
        assert_true(reference_vertices(&model, z + k, codes + 2 * k));
        for (size_t n = 0; n < 2; ++n)
            scores[2 * k + n] = reference_score(&model, z + k, codes[2 * k + n]);
    }
    assert_true(reference_gather(&model, &weights, codes, scores, y));
}

/* z = 0.5 x·w and the softmax give a sigmoid FFN; z = 0.851 x·w and <z, S>, undone in the tables, x·w sigmoid(1.702 x·w), the fast GELU. */
static void both_rows_of_one_bit_are_an_ffn(void **state)
{
    (void)state;
    random_state random = random_seed(4);
    for (int repeat = 0; repeat < 50; ++repeat) {
        double *w = random_values(&random, 15, 1.0), *v = random_values(&random, 10, 1.0), *x = random_values(&random, 3, 1.0), y[2];
        double sigmoids[2] = {0.5, -0.25}, gelus[2] = {0.5, -0.25};
        for (size_t k = 0; k < 5; ++k) {
            const double u = w[3 * k] * x[0] + w[3 * k + 1] * x[1] + w[3 * k + 2] * x[2];
            for (size_t o = 0; o < 2; ++o) {
                sigmoids[o] += v[2 * k + o] / (1.0 + exp(-u));
                gelus[o] += v[2 * k + o] * u / (1.0 + exp(-1.702 * u));
            }
        }
        take_both_rows(REFERENCE_SOFTMAX, 0.5, 1.0, w, v, x, y);
        for (size_t o = 0; o < 2; ++o)
            assert_near(y[o], sigmoids[o], 1e-14);
        take_both_rows(REFERENCE_GELU, 0.851, 1.0 / 0.851, w, v, x, y);
        for (size_t o = 0; o < 2; ++o)
            assert_near(y[o], gelus[o], 1e-13);
        free(w);
        free(v);
        free(x);
    }
}

/* Two tables of four rows, scale 1/h; one row of each, then two. */
static void gather_by_hand(void **state)
{
    (void)state;
    const reference_model model = {.d_out = 2, .h = 2, .tau = 2, .neighbours = 1, .scale = 0.5};
    reference_model two = model;
    two.neighbours = 2;
    const double table[16] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80}, output_bias[2] = {0.25, -0.25},
                 score[2] = {2.0, 0.5};
    const size_t code[2] = {3, 1};
    memory_tables tables = {&model, table};
    reference_weights weights = {.output_bias = output_bias, .row = memory_row, .row_source = &tables};
    double y[2];
    assert_true(reference_gather(&model, &weights, code, score, y));
    assert_true(y[0] == 0.25 + 0.5 * (2.0 * 7 + 0.5 * 30));
    assert_true(y[1] == -0.25 + 0.5 * (2.0 * 8 + 0.5 * 40));
    assert_true(reference_gather(&two, &weights, (size_t[]){3, 1, 1, 0}, (double[]){2.0, 1.0, 0.5, -4.0}, y));
    assert_true(y[0] == 0.25 + 0.5 * (2.0 * 7 + 1.0 * 3 + 0.5 * 30 - 4.0 * 10));
    assert_true(y[1] == -0.25 + 0.5 * (2.0 * 8 + 1.0 * 4 + 0.5 * 40 - 4.0 * 20));
    weights.row = broken_row;
    assert_false(reference_gather(&model, &weights, code, score, y));
}

/* x = 1 2 3 6: mean 3, variance 3.5. A constant row gives the norm's bias exactly. */
static void layernorm_by_hand(void **state)
{
    (void)state;
    const reference_model model = {.d = 4, .norm = true, .norm_eps = 0.5}, none = {.d = 4};
    const double gain[4] = {1, 2, -1, 0}, offset[4] = {0, 10, 0, 5}, x[4] = {1, 2, 3, 6}, constant[4] = {0.375, 0.375, 0.375, 0.375};
    const reference_weights weights = {.norm_weight = gain, .norm_bias = offset};
    double y[4];
    reference_norm(&model, &weights, x, y);
    assert_near(y[0], -1.0, 1e-15);
    assert_near(y[1], 9.0, 1e-14);
    assert_true(y[2] == 0.0 && y[3] == 5.0);
    reference_norm(&model, &weights, constant, y);
    assert_memory_equal(y, offset, sizeof y);
    reference_norm(&none, &weights, x, y);
    assert_memory_equal(y, x, sizeof y);
}

/* Rounds values to multiples of 1/levels of the largest. */
static void round_to_largest(float *values, size_t count, float levels)
{
    float largest = 0.0f;
    for (size_t i = 0; i < count; ++i)
        largest = fmaxf(largest, fabsf(values[i]));
    for (size_t i = 0; i < count && largest > 0.0f; ++i)
        values[i] = rintf(values[i] * (levels / largest)) * (largest / levels);
}

/* The inputs of a product as kernels round them: in i8 each block by itself. */
static void round_by_blocks(const reference_weights *weights, float *values, size_t count, size_t block)
{
    const size_t together = weights->input_levels < 1000.0 ? block : count;
    for (size_t i = 0; weights->input_levels > 0.0 && i < count; i += together)
        round_to_largest(values + i, count - i < together ? count - i : together, (float)weights->input_levels);
}

/* A plain float32 kernel: the norm in two passes, gain folded into nothing, sums one term after the other. */
static void project_in_float(const reference_model *model, const reference_weights *weights, const double *x, float *z)
{
    const size_t padded = reference_padded(model), count = model->h * model->tau;
    float *input = malloc(2 * (model->d + padded) * sizeof *input);
    assert_non_null(input);
    float *projected = input + model->d, *y = projected + model->d, *sum = y + padded, mean = 0.0f, variance = 0.0f;
    for (size_t i = 0; i < model->d; ++i)
        mean += (float)x[i];
    mean /= (float)model->d;
    for (size_t i = 0; i < model->d; ++i)
        variance += ((float)x[i] - mean) * ((float)x[i] - mean);
    const float root = sqrtf(variance / (float)model->d + (float)model->norm_eps);
    for (size_t i = 0; i < model->d; ++i)
        input[i] = projected[i] = model->norm ? ((float)x[i] - mean) / root : (float)x[i];
    const size_t block = model->projection == REFERENCE_DENSE ? model->d : model->block;
    round_by_blocks(weights, projected, model->d, block);
    for (size_t i = 0; model->norm && i < model->d; ++i) {
        input[i] = input[i] * (float)weights->norm_weight[i] + (float)weights->norm_bias[i];
        projected[i] = projected[i] * (float)weights->norm_weight[i] + (float)weights->norm_bias[i];
    }
    if (model->projection == REFERENCE_DENSE) {
        for (size_t j = 0; j < count; ++j) {
            z[j] = (float)weights->bias[j];
            for (size_t i = 0; i < model->d; ++i)
                z[j] += (float)weights->projection[j * model->d + i] * projected[i];
        }
        free(input);
        return;
    }
    const double *row = weights->projection;
    for (size_t repeat = 0; repeat < reference_repeats(model); ++repeat) {
        for (size_t i = 0; i < padded; ++i)
            y[i] = i < model->d ? projected[i] : 0.0f;
        for (int step = 0; step < 4; ++step) {
            if (step > 0)
                round_by_blocks(weights, y, padded, block);
            for (size_t o = 0; o < padded; ++o, row += model->block) {
                sum[o] = 0.0f;
                for (size_t i = 0; i < model->block; ++i)
                    sum[o] += (float)row[i] * y[o / model->block * model->block + i];
            }
            for (size_t half = 1; half < padded; half *= 2) {
                for (size_t i = 0; i < padded; ++i)
                    y[i] = (i & half) == 0 ? sum[i] + sum[i + half] : sum[i - half] - sum[i];
                memcpy(sum, y, padded * sizeof *y);
            }
            memcpy(y, sum, padded * sizeof *y);
        }
        for (size_t i = 0, j = repeat * padded; i < padded && j < count; ++i, ++j)
            z[j] = (float)model->decay * y[i] + (1.0f - (float)model->decay) * (i < model->d ? input[i] : 0.0f) + (float)weights->bias[j];
    }
    free(input);
}

/* 8 significant bits, ties to even. */
static void rounding_to_bf16(void **state)
{
    (void)state;
    const struct {
        double value, rounded;
    } cases[] = {
        {1.0, 1.0},
        {1.0 + 0x1p-8, 1.0},
        {1.0 + 0x1.8p-7, 1.0 + 0x1p-6},
        {-1.0 - 0x1.000002p-8, -1.0 - 0x1p-7},
        {0x1.FFp3, 16.0},
        {0x1.8p-134, 0x1p-133},
        {0x1p-134, 0.0},
        {0.0, 0.0},
    };
    for (size_t i = 0; i < COUNT(cases); ++i)
        assert_true(reference_round(REFERENCE_BF16, cases[i].value) == cases[i].rounded);
    assert_true(reference_round(REFERENCE_F32, 0.1) == 0.1);
}

/* W' = W g, rounded, and its effect on the norm's offset made up for: x̂ = t g + offset, t = 3 and 5. */
static void rounded_dense_by_hand(void **state)
{
    (void)state;
    const reference_model model = {.d = 2, .h = 1, .tau = 1, .projection = REFERENCE_DENSE, .norm = true};
    const double row[2] = {0.5, 7.0}, gain[2] = {2.0 + 0x1p-7, 0.0}, offset[2] = {10.0, 100.0}, bias = 0.25;
    const reference_weights exact = {.projection = row, .bias = &bias, .norm_weight = gain, .norm_bias = offset};
    reference_weights weights = exact;
    double *memory, z;
    assert_true(reference_round_projection(&model, REFERENCE_F32, &weights, &memory));
    assert_true(!memory && weights.projection == row && weights.bias == &bias);
    assert_true(reference_round_projection(&model, REFERENCE_BF16, &weights, &memory));
    /* 0.5 (2 + 2^-7) is halfway between two numbers of 8 bits: it becomes 1. The second input has no gain: its weight is 0. */
    assert_near(weights.projection[0], 1.0 / gain[0], 1e-16);
    assert_true(weights.projection[1] == 0.0);
    assert_true(reference_project(&model, &weights, (double[]){3.0 * gain[0] + 10.0, 100.0}, &z));
    assert_near(z, 3.0 * 1.0 + 0.5 * 10.0 + 7.0 * 100.0 + 0.25, 1e-12);
    free(memory);
}

/* Integers in units that leave the largest, or the sum of all, in range. */
static void rounding_a_row_to_i16(void **state)
{
    (void)state;
    double row[4] = {32767.0, 0.4, -2.6, 0.0}, even[3] = {-3.0, 3.0, 3.0}, zeros[2] = {0.0, 0.0};
    reference_round_row(REFERENCE_I16, row, 4);
    assert_true(row[0] == 32767.0 && row[1] == 0.0 && row[2] == -3.0 && row[3] == 0.0);
    reference_round_row(REFERENCE_I16, even, 3);
    const double scale = (double)(float)(9.0 / (65534.0 - 1.5));
    assert_true(even[0] == -21844.0 * scale && even[1] == 21844.0 * scale && even[2] == even[1]);
    reference_round_row(REFERENCE_I16, zeros, 2);
    assert_true(zeros[0] == 0.0 && zeros[1] == 0.0);
}

/* Floats of 4 bits in units that make the largest one 448/256; below 2^-6/256 they are multiples of 2^-9/256. */
static void rounding_a_row_to_e4m3(void **state)
{
    (void)state;
    double row[8] = {-448.0, 17.0, 19.0, 447.9, 0x1p-10, 0x1.8p-9, 0x1.01p-10, 0.0}, zeros[2] = {0.0, 0.0};
    const double expected[8] = {-448.0, 16.0, 20.0, 448.0, 0.0, 0x1p-8, 0x1p-9, 0.0};
    assert_true(reference_scale(REFERENCE_E4M3, row, 8) == 256.0);
    reference_round_row(REFERENCE_E4M3, row, 8);
    for (size_t i = 0; i < 8; ++i)
        assert_true(row[i] == expected[i]);
    reference_round_row(REFERENCE_E4M3, zeros, 2);
    assert_true(zeros[0] == 0.0 && zeros[1] == 0.0);
}

/* What the blob holds of a rounded BH4 projection, H_b W times its factor, is a number of bf16 at most half a unit from the exact one, and
   the norm's offset gives what it gave. */
static void rounded_bh4_is_folded(void **state)
{
    (void)state;
    random_state random = random_seed(4);
    const reference_model model = {.d = 11, .h = 7, .tau = 5, .block = 4, .decay = 0.7, .norm = true};
    const size_t count = reference_projection_count(&model);
    double *blocks = random_values(&random, count, 0.2), *bias = random_values(&random, 35, 1.0), *gain = random_values(&random, 11, 1.0),
           *offset = random_values(&random, 11, 1.0), z[35], expected[35], *memory;
    gain[3] = 0.0;
    const reference_weights exact = {.projection = blocks, .bias = bias, .norm_weight = gain, .norm_bias = offset};
    reference_weights rounded = exact;
    assert_true(reference_round_projection(&model, REFERENCE_BF16, &rounded, &memory));
    size_t changed = 0;
    for (size_t i = 0; i < count; ++i) {
        /* element o, j of H W, block by block */
        const size_t o = i / 4 % 4, j = i % 4, input = i / 16 % 4 * 4 + j, step = i / 64 % 4;
        const double factor = step == 0 && input < 11 ? gain[input] : step == 3 ? 0.7 : 1.0;
        double before = 0.0, after = 0.0;
        for (size_t k = 0; k < 4; ++k) {
            const double sign = __builtin_popcountll(o & k) % 2 == 0 ? factor : -factor;
            before += sign * blocks[i / 16 * 16 + 4 * k + j];
            after += sign * rounded.projection[i / 16 * 16 + 4 * k + j];
        }
        assert_near(after, reference_round(REFERENCE_BF16, before), 1e-15);
        assert_near(after, before, fabs(before) * 0x1p-8);
        changed += rounded.projection[i] != blocks[i] ? 1 : 0;
    }
    assert_true(changed > count / 2);
    assert_true(reference_project(&model, &exact, offset, expected) && reference_project(&model, &rounded, offset, z));
    for (size_t j = 0; j < 35; ++j)
        assert_near(z[j], expected[j], 1e-12);
    free(memory);
    free(blocks);
    free(bias);
    free(gain);
    free(offset);
}

/* 0.3 of the largest input is 38 of 127 levels. The norm's gain comes after the rounding, its offset is not rounded. */
static void rounded_inputs_by_hand(void **state)
{
    (void)state;
    const reference_model model = {.d = 2, .h = 1, .tau = 1, .projection = REFERENCE_DENSE, .norm = true};
    const double rows[2] = {1.0, 10.0}, bias = 0.25, gain[2] = {2.0, 0.5}, offset[2] = {1.0, -1.0};
    const reference_weights weights = {
        .projection = rows, .bias = &bias, .norm_weight = gain, .norm_bias = offset, .input_levels = 127.0, .rounds_inputs = true};
    const double normalised[2] = {2.0 * 1.0 + 1.0, 0.5 * -0.3 - 1.0};
    double z;
    assert_true(reference_project(&model, &weights, normalised, &z));
    assert_near(z, 2.0 - 5.0 * 38.0 / 127.0 + 1.0 - 10.0 + 0.25, 1e-14);
}

typedef struct {
    double worst;         /* of |float32 kernel - reference| / bound */
    size_t near, counted; /* elements of z within the bound, and all */
} bound_use;

/* Random weights and tokens. */
static bound_use use_of_bound(const reference_model *model, double input_levels, uint64_t seed, size_t tokens)
{
    random_state random = random_seed(seed);
    const size_t d = model->d, count = model->h * model->tau;
    const double width = model->projection == REFERENCE_DENSE ? (double)d : (double)(reference_padded(model) * model->block);
    double *projection = random_values(&random, reference_projection_count(model), 1.0 / sqrt(width));
    double *bias = random_values(&random, count, 0.1), *gain = random_values(&random, d, 0.2), *offset = random_values(&random, d, 0.2);
    double *work = malloc((2 * d + 2 * count) * sizeof *work), *input = work + d, *z = input + d, *bound = z + count;
    float *rounded = malloc(count * sizeof *rounded);
    bound_use use = {0};
    assert_true(work && rounded);
    for (size_t i = 0; i < d; ++i)
        gain[i] = (double)(float)(1.0 + gain[i]);
    const reference_weights weights = {
        .projection = projection, .bias = bias, .norm_weight = gain, .norm_bias = offset, .input_levels = input_levels};
    error_bounds *bounds = error_bounds_create(model, &weights);
    assert_non_null(bounds);
    for (size_t token = 0; token < tokens; ++token) {
        const double scale = pow(10.0, 4.0 * random_uniform(&random) - 2.0), shift = model->norm ? 2.0 * random_normal(&random) : 0.0;
        for (size_t i = 0; i < d; ++i)
            work[i] = (double)(float)(scale * (random_normal(&random) + shift));
        reference_norm(model, &weights, work, input);
        assert_true(reference_project(model, &weights, input, z) && error_bounds_project(bounds, work, bound));
        project_in_float(model, &weights, work, rounded);
        for (size_t j = 0; j < count; ++j, ++use.counted) {
            assert_true(bound[j] > 0.0);
            use.worst = fmax(use.worst, fabs((double)rounded[j] - z[j]) / bound[j]);
            use.near += fabs(z[j]) <= bound[j] ? 1 : 0;
        }
    }
    error_bounds_free(bounds);
    free(projection);
    free(bias);
    free(gain);
    free(offset);
    free(work);
    free(rounded);
    return use;
}

/* Not too small for a plain float32 kernel, and not so large that a wrong one could hide. */
static void rounding_bound_is_tight(void **state)
{
    (void)state;
    const reference_model models[] = {
        {.d = 2, .h = 4, .tau = 8, .block = 2, .decay = 0.7},
        {.d = 4, .h = 4, .tau = 8, .block = 2, .decay = 0.7, .norm = true, .norm_eps = 1e-5},
        {.d = 7, .h = 9, .tau = 5, .block = 4, .decay = 1.0},
        {.d = 7, .h = 9, .tau = 5, .block = 4, .decay = 0.0},
        {.d = 40, .h = 4, .tau = 8, .block = 16, .decay = 0.7, .norm = true, .norm_eps = 1e-5},
        {.d = 64, .h = 32, .tau = 8, .block = 2, .decay = 0.7, .norm = true, .norm_eps = 1e-5},
        {.d = 64, .h = 32, .tau = 8, .block = 64, .decay = 0.7},
        {.d = 512, .h = 128, .tau = 8, .block = 64, .decay = 0.7, .norm = true, .norm_eps = 1e-5},
        {.d = 1, .h = 8, .tau = 8, .projection = REFERENCE_DENSE},
        {.d = 3, .h = 8, .tau = 8, .projection = REFERENCE_DENSE, .norm = true, .norm_eps = 1e-5},
        {.d = 300, .h = 8, .tau = 8, .projection = REFERENCE_DENSE},
        {.d = 300, .h = 8, .tau = 8, .projection = REFERENCE_DENSE, .norm = true, .norm_eps = 1e-5},
    };
    const double levels[] = {0.0, 32767.0, 127.0}, most_near[] = {2e-4, 5e-3, 0.5};
    for (size_t i = 0; i < COUNT(levels) * COUNT(models); ++i) {
        const reference_model *model = &models[i / COUNT(levels)];
        const size_t type = i % COUNT(levels);
        const bound_use use = use_of_bound(model, levels[type], 100 + i / COUNT(levels), model->d > 100 ? 40 : 400);
        print_message("d = %3zu, %s, block %2zu%s%s: worst error %.2f of the bound, %.2g of all z within it\n", model->d,
                      model->projection == REFERENCE_DENSE ? "dense" : "BH4", model->block, model->norm ? ", norm" : "",
                      type == 2   ? ", inputs in i8"
                      : type == 1 ? ", inputs in i16"
                                  : "",
                      use.worst, (double)use.near / (double)use.counted);
        assert_in_range((uintmax_t)(1000.0 * use.worst), model->d == 1 ? 0 : 1000 / 100, 1000 / 2); /* one input is its unit */
        assert_true((double)use.near <= most_near[type] * (double)use.counted);
    }
}

/* No input and no bias: nothing to round, so an exact 0 is no excuse for a bit. */
static void zero_has_no_bound(void **state)
{
    (void)state;
    const reference_model model = {.d = 2, .h = 1, .tau = 2, .block = 2, .decay = 0.7};
    const double blocks[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, bias[2] = {0, 0}, x[2] = {0, 0};
    const reference_weights weights = {.projection = blocks, .bias = bias};
    double bound[2] = {1, 1};
    error_bounds *bounds = error_bounds_create(&model, &weights);
    assert_non_null(bounds);
    assert_true(error_bounds_project(bounds, x, bound));
    assert_true(bound[0] == 0.0 && bound[1] == 0.0);
    error_bounds_free(bounds);
}

/* Against the score at the corners of the box that the bounds span. */
static void score_error_follows_z(void **state)
{
    (void)state;
    random_state random = random_seed(3);
    for (int repeat = 0; repeat < 200; ++repeat) {
        const reference_model model = {.tau = 3, .score = (reference_score_kind)(repeat % REFERENCE_SCORES)};
        const size_t code = (size_t)repeat / REFERENCE_SCORES % 8;
        double z[3], moved[3], bound[3], largest = 0.0;
        for (size_t j = 0; j < 3; ++j) {
            z[j] = random_normal(&random);
            bound[j] = (repeat % 2 ? 1e-7 : 1.0) * random_uniform(&random);
        }
        for (int corner = 0; corner < 8; ++corner) {
            for (size_t j = 0; j < 3; ++j)
                moved[j] = z[j] + ((corner >> j & 1) != 0 ? bound[j] : -bound[j]);
            largest = fmax(largest, fabs(reference_score(&model, moved, code) - reference_score(&model, z, code)));
        }
        const double error = error_bounds_score(&model, z, bound, code);
        assert_true(largest <= 1.001 * error + 1e-15);
        if (repeat % 2 && code == reference_code(&model, z)) /* for gelu others' two derivatives may have different signs */
            assert_true(error <= 1.001 * largest + 1e-15);
    }
    const reference_model gelu = {.tau = 2, .score = REFERENCE_GELU};
    const reference_model one = {.tau = 2, .score = REFERENCE_ONE};
    assert_near(error_bounds_score(&gelu, (double[]){0, 0}, (double[]){4e-7, 4e-7}, 0), 0.25 * 8e-7, 1e-12);
    assert_true(error_bounds_score(&one, (double[]){1, -2}, (double[]){4e-7, 4e-7}, 2) == 0.0);
}

/* Groups of any size, also where scales are subnormal numbers of half precision, lose what they lose in the packer. */
static void groups_as_packed(void **state)
{
    (void)state;
    static const char *const names[] = {"q8", "u4", "i4"};
    random_state random = random_seed(9);
    for (int k = 0; k < 3000; ++k) {
        const double size = ldexp(1.0, -28 + k % 30), middle = k % 5 == 0 ? size : 0.0;
        double values[32], rounded[32], units[32], error = 0.0;
        for (size_t i = 0; i < COUNT(values); ++i)
            units[i] = rounded[i] = values[i] = middle + size * random_normal(&random);
        uint16_t scale, low;
        quantise_tally tally = {0};
        reference_type type;
        assert_true(reference_type_named(names[k % 3], REFERENCE_WEIGHTS, &type));
        reference_round_row(type, rounded, COUNT(rounded));
        assert_true(quantise_group(units, COUNT(units), k % 3 == 0 ? 8 : 4, &scale, k % 3 == 1 ? &low : NULL, &tally));
        for (size_t i = 0; i < COUNT(values); ++i)
            error += (rounded[i] - values[i]) * (rounded[i] - values[i]);
        assert_near(error, tally.error, 1e-12 * tally.power);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pads_and_repeats),        cmocka_unit_test(hadamard_of_a_unit_vector),
        cmocka_unit_test(one_step_by_hand),        cmocka_unit_test(bh4_of_identities),
        cmocka_unit_test(bh4_as_a_dense_matrix),   cmocka_unit_test(dense_by_hand),
        cmocka_unit_test(code_of_signs),           cmocka_unit_test(codes_and_scores_are_the_softmax),
        cmocka_unit_test(vertices_by_hand),        cmocka_unit_test(both_rows_of_one_bit_are_an_ffn),
        cmocka_unit_test(score_at_its_ends),       cmocka_unit_test(one_bit_is_half_a_sigmoid),
        cmocka_unit_test(gather_by_hand),          cmocka_unit_test(layernorm_by_hand),
        cmocka_unit_test(rounding_bound_is_tight), cmocka_unit_test(zero_has_no_bound),
        cmocka_unit_test(score_error_follows_z),   cmocka_unit_test(rounding_to_bf16),
        cmocka_unit_test(rounded_dense_by_hand),   cmocka_unit_test(rounded_bh4_is_folded),
        cmocka_unit_test(rounded_inputs_by_hand),  cmocka_unit_test(rounding_a_row_to_i16),
        cmocka_unit_test(rounding_a_row_to_e4m3),  cmocka_unit_test(score_one_adds_rows),
        cmocka_unit_test(groups_as_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
