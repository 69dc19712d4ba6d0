/* See imitate.h. The error of a linear map on tokens of covariance L L^T is its error on the columns of L: as many "tokens" as x has
   elements stand for all of them. */
#include "harness/convert/imitate.h"

#include "gen/weights/random.h"
#include "harness/base/memory.h"
#include "harness/convert/projection.h"
#include "harness/train/optimiser.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.141592653589793;

/* The covariance of element `row` with `column` >= row. */
static double covariance(const imitate_moments *m, size_t d, size_t row, size_t column)
{
    const double share = 1 / (double)m->tokens;
    return share * ((double)m->products[row * d + column] - share * m->x[row] * m->x[column]);
}

/* columns[t][i] = L[i][t] of the covariance's Cholesky factor. What hardly varies beside the columns before it, or not at all, is left out:
   where tokens fill a part of the space only, as behind a norm, its differences are rounding errors. */
static void factor(const imitate_moments *m, size_t d, double *columns)
{
    double trace = 0;
    for (size_t i = 0; i < d; ++i)
        trace += covariance(m, d, i, i);
    const double least = 1e-5 * trace / (double)d;
    for (size_t row = 0; row < d; ++row)
        for (size_t i = row; i < d; ++i)
            columns[row * d + i] = covariance(m, d, row, i);
    for (size_t t = 0; t < d; ++t) {
        double *own = columns + t * d;
        const double root = own[t] > least ? sqrt(own[t]) : 0;
        for (size_t i = t; i < d; ++i)
            own[i] = root > 0 ? own[i] / root : 0;
        for (size_t row = t + 1; root > 0 && row < d; ++row)
            for (size_t i = row; i < d; ++i)
                columns[row * d + i] -= own[row] * own[i];
        memset(own, 0, t * sizeof *own);
    }
}

static int heavier(const void *a, const void *b)
{
    const imitate_rank *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->neuron < y->neuron ? -1 : x->neuron > y->neuron;
}

void imitate_sort(const fit_teacher *teacher, const imitate_moments *m, imitate_rank *ranks)
{
    const size_t d = teacher->d, f = teacher->f;
    const double n = (double)m->tokens;
    for (size_t i = 0; i < f; ++i) {
        double length = 0;
        for (size_t k = 0; k < d; ++k)
            length += (double)teacher->columns[k * f + i] * (double)teacher->columns[k * f + i];
        const double variance = m->squares[i] / n - m->hidden[i] / n * (m->hidden[i] / n);
        ranks[i] = (imitate_rank){variance * length, i};
    }
    qsort(ranks, f, sizeof *ranks, heavier);
}

bool imitate_targets(const fit_teacher *teacher, const imitate_moments *m, size_t bits, uint64_t seed, float *weights)
{
    const size_t d = teacher->d, f = teacher->f;
    imitate_rank *ranks = malloc(f * sizeof *ranks);
    size_t *order = malloc(bits * sizeof *order);
    if (!ranks || !order) {
        free(ranks);
        free(order);
        return false;
    }
    imitate_sort(teacher, m, ranks);
    random_state random = random_seed(seed);
    for (size_t bit = 0; bit < bits; ++bit) {
        const size_t other = (size_t)(random_bits(&random) % (bit + 1));
        order[bit] = order[other];
        order[other] = bit;
    }
    for (size_t bit = 0; bit < bits; ++bit) {
        const size_t first = ranks[bit % f].neuron, second = ranks[random_bits(&random) % f].neuron;
        const float share = bit < f ? 0.0f : 1.0f;
        float *to = weights + order[bit] * d;
        for (size_t k = 0; k < d; ++k)
            to[k] = teacher->rows[first * d + k] + share * teacher->rows[second * d + k];
        double variance = 0;
        for (size_t row = 0; row < d; ++row)
            for (size_t column = row; column < d; ++column)
                variance += (column == row ? 1 : 2) * (double)to[row] * (double)to[column] * covariance(m, d, row, column);
        const float scale = (float)(1 / sqrt(variance > 1e-20 ? variance : 1e-20));
        for (size_t k = 0; k < d; ++k)
            to[k] *= scale;
    }
    free(ranks);
    free(order);
    return true;
}

typedef struct {
    double *columns;
    float *x, *target, *y, *dx, *z, *score, *slope, *sums, *tables, *prepared, *folded, *first, *second;
    uint16_t *code;
    void *scratch;
} memory;

static void release(memory *m)
{
    void *all[] = {m->columns, m->x,        m->target, m->y,     m->dx,     m->z,    m->score,  m->slope,
                   m->sums,    m->prepared, m->folded, m->first, m->second, m->code, m->tables, m->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        free(all[i]);
}

static bool take(memory *m, const fit_lookup *l)
{
    const size_t tokens = round_up(l->d, l->tile);
    *m = (memory){
        .columns = aligned_memory(l->d * l->d * sizeof(double)),
        .x = aligned_memory(tokens * l->d * 4),
        .target = aligned_memory(tokens * l->slots * 4),
        .y = aligned_memory(tokens * 4),
        .dx = aligned_memory(tokens * l->d * 4),
        .z = aligned_memory(tokens * l->z * 4),
        .score = aligned_memory(tokens * l->slots * 4),
        .slope = aligned_memory(tokens * l->slots * 4),
        .sums = aligned_memory(l->sums * 4),
        .tables = aligned_memory(l->h * l->table_rows * l->pitch * 4),
        .prepared = aligned_memory(l->prepared * 4),
        .folded = aligned_memory(l->projection * 4),
        .first = aligned_memory(l->projection * 4),
        .second = aligned_memory(l->projection * 4),
        .code = aligned_memory(tokens * l->slots * 2),
        .scratch = aligned_memory(l->scratch + 8 * tokens),
    };
    return m->columns && m->x && m->target && m->y && m->dx && m->z && m->score && m->slope && m->sums && m->tables && m->prepared &&
           m->folded && m->first && m->second && m->code && m->scratch;
}

/* Where bit `bit` of a token lies: [tiles][pitch][whole]. */
static size_t place_of(const fit_lookup *l, size_t pitch, size_t token, size_t bit)
{
    return (token / l->whole * pitch + bit) * l->whole + token % l->whole;
}

/* The slope of a one-bit table's score that gives z the gradient dz. The score is |z| p, p = 1 / (1 + exp(-2 |z|)), which grows by
   p + 2 (1 - p) |z| p with |z|. */
static float slope_for(float dz, float z, float score)
{
    const float a = fabsf(z), p = a > 1e-6f ? score / a : 0.5f, gain = p + 2 * (1 - p) * score;
    return z > 0 ? dz / gain : -dz / gain;
}

/* What kernels read and write of the first `tokens` rows of x; of the outputs there are no gradients. */
static fit_tokens tokens_of(const memory *m, size_t tokens)
{
    return (fit_tokens){m->x, m->y, m->y, m->dx, m->z, m->code, m->score, m->slope, NULL, tokens};
}

/* The errors of z for the first `tokens` rows of x, as slopes; returns the sum of their squares. */
static double errors(const fit_lookup *l, memory *m, const fit_parameters *p, size_t tokens)
{
    const fit_tokens all = tokens_of(m, tokens);
    double sum = 0;
    l->prepare(p, m->prepared, m->scratch);
    l->forward(p, &all, 0, tokens, m->scratch);
    for (size_t first = 0; first < tokens; first += l->whole)
        for (size_t bit = 0; bit < l->bits; ++bit) {
            const size_t here = smaller(l->whole, tokens - first);
            const size_t at = place_of(l, l->slots, first, bit), z_at = place_of(l, l->z, first, bit);
            float own = 0;
            for (size_t i = 0; i < here; ++i) {
                const float rest = m->z[z_at + i] - m->target[at + i];
                m->slope[at + i] = slope_for(rest, m->z[z_at + i], m->score[at + i]);
                own += rest * rest;
            }
            sum += (double)own;
        }
    return sum;
}

double imitate_fit(const fit_lookup *linear, const imitate_moments *moments, const float *weights, size_t steps, double rate,
                   float *projection, float *projection_bias)
{
    const fit_lookup *l = linear;
    const size_t d = l->d;
    memory m;
    if (!take(&m, l)) {
        release(&m);
        return -1;
    }
    const float zero = 0;
    const fit_parameters p = {projection, projection_bias, &zero, m.tables, NULL, m.prepared};
    const fit_tokens all = tokens_of(&m, d);
    double total = 0, sum = 0;
    factor(moments, d, m.columns);
    for (size_t i = 0; i < d * d; ++i)
        m.x[i] = (float)m.columns[i];
    for (size_t token = 0; token < d; ++token)
        for (size_t bit = 0; bit < l->bits; ++bit) {
            float own = 0;
            for (size_t k = 0; k < d; ++k)
                own += weights[bit * d + k] * m.x[token * d + k];
            m.target[place_of(l, l->slots, token, bit)] = own;
            total += (double)own * (double)own;
        }
    memset(projection_bias, 0, l->bits * sizeof *projection_bias);
    projection_fold(l, projection, m.folded);
    for (size_t n = 1; n <= steps; ++n) {
        sum = errors(l, &m, &p, d);
        memset(m.y, 0, d * sizeof *m.y);
        memset(m.sums, 0, l->sums * sizeof *m.sums);
        l->project(&p, &all, 0, d, m.sums, m.scratch);
        const double share = rate * 0.5 * (1 + cos(pi * (double)(n - 1) / (double)steps));
        const adam_step step = adam_at(n, (float)share, 0, 0.9f, 0.98f, 1e-12f);
        adam_update(&step, 1, m.folded, m.sums, m.first, m.second, l->projection);
        projection_unfold(l, m.folded, projection);
    }
    sum = errors(l, &m, &p, d);
    /* Bits that are balanced: the mean is where their signs change. */
    for (size_t k = 0; k < d; ++k)
        m.x[k] = (float)(moments->x[k] / (double)moments->tokens);
    errors(l, &m, &p, 1);
    for (size_t bit = 0; bit < l->bits; ++bit)
        projection_bias[bit] = -m.z[place_of(l, l->z, 0, bit)];
    release(&m);
    return total > 0 ? sum / total : 0;
}

void imitate_exactly(const imitate_moments *m, const float *weights, size_t d, size_t bits, float *projection, float *projection_bias)
{
    for (size_t bit = 0; bit < bits; ++bit) {
        double mean = 0;
        for (size_t k = 0; k < d; ++k) {
            projection[bit * d + k] = weights[bit * d + k];
            mean += (double)weights[bit * d + k] * m->x[k] / (double)m->tokens;
        }
        projection_bias[bit] = (float)-mean;
    }
}
