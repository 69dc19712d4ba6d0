/* Compares the lookups of kernels with the reference's. */
#include "harness/verify/compare_lookups.h"

#include "harness/verify/hash_tally.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What scores may be off by beside the rounding of inputs. */
#define SCORES_TOLERANCE 1e-5

/* The sample of all tokens by `weights`, its input what kernels were given. */
static bool sample_of(sample *s, const reference_model *model, const reference_weights *weights, const reference_looked *looked,
                      size_t count)
{
    *s = (sample){.model = model, .weights = weights, .share = SAMPLE_RANDOM_SHARE};
    float *x = malloc((count * model->d + 1) * sizeof *x);
    for (size_t token = 0; x && token < count; ++token)
        memcpy(x + token * model->d, looked[token].x, model->d * sizeof *x);
    return sample_extend(s, x, count);
}

static double square(double v)
{
    return v * v;
}

/* Codes of a token's table that are not among the best of `s`. */
static size_t flips_of(const sample *s, const size_t *best, const size_t *code)
{
    size_t flips = 0;
    for (size_t n = 0; n < s->model->neighbours; ++n) {
        bool found = false;
        for (size_t other = 0; other < s->model->neighbours; ++other)
            found = found || best[other] == code[n];
        flips += found ? 0 : 1;
    }
    return flips;
}

/* Adds up how far the kernel's codes and scores of a token are from those of `own`, and those of `exact` from `own`. */
static void add_token(const sample *own, const sample *exact, size_t token, const reference_looked *looked, const size_t *code,
                      looked_result *result, double sums[3])
{
    const reference_model *model = own->model;
    const size_t slots = model->h * model->neighbours, bits = model->h * model->tau;
    for (size_t slot = 0; slot < slots; ++slot) {
        const size_t table = slot / model->neighbours, at = token * bits + table * model->tau, of = token * slots + slot;
        if (slot % model->neighbours == 0) {
            result->flips += flips_of(own, own->code + of, code + slot);
            result->flips_explained += flips_of(own, own->code + of, exact->code + of);
        }
        if (own->weights->row_scale && own->weights->row_scale(own->weights->row_source, table, code[slot]) == 0.0)
            continue; /* a row of zeros has no score */
        const double score = reference_score(model, own->z + at, code[slot]);
        sums[0] += square(reference_looked_score(model, own->weights, looked, slot) - score);
        sums[1] += square(reference_score(model, exact->z + at, code[slot]) - score);
        sums[2] += square(score);
    }
    result->codes += slots;
}

/* How many inputs the products of `count` tokens round. */
static double inputs_of(const reference_model *model, size_t count)
{
    const size_t own = model->projection == REFERENCE_BH4 ? reference_repeats(model) * 4 * reference_padded(model) : model->d;
    return (double)(own * count);
}

/* What is wrong with all of them together. */
static void judge(const reference_block_lookup *lookup, size_t count, const hash_tally *tally, looked_result *result)
{
    const reference_model *model = reference_block_lookup_model(lookup);
    const double share = sample_moved_share(reference_block_lookup_weights(lookup));
    const double explained = (double)result->flips_explained, few = 4.0 / sqrt(inputs_of(model, count) + 1.0);
    if (tally->wrong_codes > 0)
        snprintf(result->wrong, sizeof result->wrong, "%zu wrong codes of %zu, the first: %s", tally->wrong_codes, result->codes,
                 tally->first_code);
    else if (tally->wrong_scores > 0)
        snprintf(result->wrong, sizeof result->wrong, "%zu wrong scores, the first: %s", tally->wrong_scores, tally->first_score);
    else if ((double)result->flips > share * explained + 4.0 * sqrt(explained) + 4.0)
        snprintf(result->wrong, sizeof result->wrong, "%zu of %zu codes differ: rounding the inputs of products explains %zu",
                 result->flips, result->codes, result->flips_explained);
    else if (!(result->scores <= (share + few) * result->scores_explained + SCORES_TOLERANCE))
        snprintf(result->wrong, sizeof result->wrong, "scores differ by %.2g: rounding the inputs of products explains %.2g",
                 result->scores, result->scores_explained);
}

bool looked_compare(const reference_block_lookup *lookup, const reference_looked *looked, size_t count, looked_result *result)
{
    const reference_model *model = reference_block_lookup_model(lookup);
    const reference_weights *weights = reference_block_lookup_weights(lookup);
    const size_t slots = model->h * model->neighbours;
    reference_weights unrounded = *weights;
    unrounded.rounds_inputs = false;
    sample own, exact = {0};
    hash_tally tally = {0};
    double sums[3] = {0.0, 0.0, 0.0};
    size_t *code = malloc((slots + 1) * sizeof *code);
    bool *seen = calloc((size_t)1 << model->tau, sizeof *seen);
    *result = (looked_result){0};
    float *score = malloc((slots + 1) * sizeof *score);
    const bool is_weighted = reference_is_scored(model) || weights->row_scale;
    bool ok = sample_of(&own, model, weights, looked, count) && sample_of(&exact, model, &unrounded, looked, count);
    ok = ok && code && seen && score;
    for (size_t token = 0; ok && token < count; ++token) {
        for (size_t slot = 0; slot < slots; ++slot)
            code[slot] = looked[token].code[slot];
        for (size_t slot = 0; slot < slots; ++slot)
            score[slot] = is_weighted ? looked[token].score[slot] : 1.0f;
        hash_compare(&own, token, code, score, seen, &tally);
        for (size_t slot = 0; slot < slots; ++slot)
            code[slot] = reference_looked_code(model, &looked[token], slot);
        add_token(&own, &exact, token, &looked[token], code, result, sums);
    }
    result->scores = sums[2] > 0.0 ? sqrt(sums[0] / sums[2]) : 0.0;
    result->scores_explained = sums[2] > 0.0 ? sqrt(sums[1] / sums[2]) : 0.0;
    if (ok)
        judge(lookup, count, &tally, result);
    free(code);
    free(seen);
    free(score);
    sample_free(&own);
    sample_free(&exact);
    return ok;
}
