/* Compares codes and scores of kernels with the reference's. */
#include "harness/verify/hash_tally.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static void __attribute__((format(printf, 2, 3))) wrong_code(hash_tally *tally, const char *format, ...)
{
    va_list arguments;
    if (tally->wrong_codes++ > 0)
        return;
    va_start(arguments, format);
    vsnprintf(tally->first_code, sizeof tally->first_code, format, arguments);
    va_end(arguments);
}

/* Compares the only code of a table with the reference's; what differs must be near bits. */
static void compare_code(const sample *s, size_t token, size_t table, size_t code, hash_tally *tally)
{
    const size_t tau = s->model->tau, h = s->model->h;
    const double *z = s->z + (token * h + table) * tau, *bound = s->bound + (token * h + table) * tau;
    const size_t expected = reference_code(s->model, z);
    for (size_t j = 0; j < tau; ++j) {
        const bool differs = ((code ^ expected) >> (tau - 1 - j) & 1) != 0;
        if (differs && !sample_near_bit(s, token, table * tau + j)) {
            wrong_code(tally, "token %zu, table %zu, bit %zu: z = %.9g, bound %.3g", token, table, j, z[j], bound[j]);
            return;
        }
    }
    if (code >> tau != 0)
        wrong_code(tally, "token %zu, table %zu: code %zu is not below 2^tau", token, table, code);
    tally->within += s->near[token * h + table] ? 1 : 0;
    tally->flips += code != expected ? 1 : 0;
    ++tally->compared;
}

/* Compares the codes of a table with the reference's: they must differ from each other, and none may cost more than the last of the best
   but for rounding. Equal costs may be in any order.  code [neighbours], seen [2^tau]: zeros, also afterwards */
static void compare_codes(const sample *s, size_t token, size_t table, const size_t *code, bool *seen, hash_tally *tally)
{
    const size_t tau = s->model->tau, m = s->model->neighbours, at = token * s->model->h + table, last = ((size_t)1 << tau) - 1;
    const double most = s->most_cost[at], slack = sample_slack(s, token, table, 0, last);
    for (size_t n = 0; n < m; ++n) {
        const bool inside = code[n] <= last;
        const double cost = inside ? reference_cost(s->model, s->z + at * tau, code[n]) : 0.0;
        if (!inside)
            wrong_code(tally, "token %zu, table %zu: code %zu is not below 2^tau", token, table, code[n]);
        else if (seen[code[n]])
            wrong_code(tally, "token %zu, table %zu: code %zu is there twice", token, table, code[n]);
        else if (!(cost <= most + slack))
            wrong_code(tally, "token %zu, table %zu: code %zu costs %.9g, the best %zu at most %.9g", token, table, code[n], cost, m, most);
        else
            ++tally->compared;
        tally->flips += cost > most ? 1 : 0;
        if (inside)
            seen[code[n]] = true;
    }
    for (size_t n = 0; n < m; ++n)
        if (code[n] <= last)
            seen[code[n]] = false;
    tally->within += s->near[at] ? 1 : 0;
}

/* Below it exp is cut off, and floats lose digits. */
#define SMALLEST_SHARE 2e-38

/* Compares a score with the reference's for that code. What is added up to <z, S> may cancel: errors are relative to its terms. */
static void compare_score(const sample *s, size_t token, size_t slot, size_t code, double score, hash_tally *tally)
{
    const reference_model *model = s->model;
    const size_t table = slot / model->neighbours, at = token * model->h * model->neighbours + slot;
    const size_t z_at = (token * model->h + table) * model->tau;
    const double *z = s->z + z_at;
    double expected = s->score[at], moved = s->score_error[at], factor = s->row_scale[at];
    if (code != s->code[at]) {
        expected = reference_score(model, z, code);
        moved = error_bounds_score(model, z, s->bound + z_at, code);
        factor = s->weights->row_scale ? s->weights->row_scale(s->weights->row_source, table, code) : 1.0;
    }
    const double terms = reference_score_terms(model, z);
    const double magnitude = factor * terms * reference_score_share(model, z, code), error = fabs(score - factor * expected);
    const double allowed = SAMPLE_TOLERANCE * magnitude + factor * (moved + SMALLEST_SHARE * terms);
    if (!(error <= allowed) && tally->wrong_scores++ == 0)
        snprintf(tally->first_score, sizeof tally->first_score, "token %zu, table %zu, code %zu: score %.9g, must be %.9g", token, table,
                 code, score, factor * expected);
    if (magnitude > 1e10 * factor * terms * SMALLEST_SHARE && error / magnitude > tally->worst_score)
        tally->worst_score = error / magnitude;
}

void hash_compare(const sample *s, size_t token, const size_t *code, const float *score, bool *seen, hash_tally *tally)
{
    const reference_model *model = s->model;
    const size_t m = model->neighbours;
    for (size_t slot = 0; slot < model->h * m; ++slot) {
        if (m == 1)
            compare_code(s, token, slot, code[slot], tally);
        else if (slot % m == 0)
            compare_codes(s, token, slot / m, code + slot, seen, tally);
        compare_score(s, token, slot, code[slot] & (((size_t)1 << model->tau) - 1), (double)score[slot], tally);
    }
}
