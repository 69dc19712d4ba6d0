/* The reference of attention by tables, in float64. */
#include "harness/reference/table_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double reference_code_chance(double cosine, size_t tau)
{
    return pow(1.0 - acos(fmin(fmax(cosine, -1.0), 1.0)) / acos(-1.0), (double)tau);
}

/* z[padded] = the Hadamard transform of the signs times x, which zeros fill up: z_i = sum of (-1)^(common bits of i and j) sign_j x_j. */
static void transform(const double *signs, const double *x, size_t width, size_t padded, double *z)
{
    for (size_t i = 0; i < padded; ++i) {
        z[i] = 0.0;
        for (size_t j = 0; j < width; ++j) {
            size_t common = i & j, odd = 0;
            for (; common; common >>= 1)
                odd ^= common & 1;
            z[i] += (odd ? -1.0 : 1.0) * signs[j] * x[j];
        }
    }
}

/* The code of z[tau]; the bit that is nearest to the other side, `least`. */
static size_t code_of(const double *z, size_t tau, size_t *least)
{
    size_t code = 0;
    *least = 0;
    for (size_t j = 0; j < tau; ++j) {
        code |= (size_t)(z[j] > 0.0) << (tau - 1 - j);
        if (fabs(z[j]) < fabs(z[*least]))
            *least = j;
    }
    return code;
}

/* What a block hashes with: its signs, for vectors of `padded` elements, and where ties of its codes are noted. */
typedef struct {
    const reference_transformer *model;
    const reference_block *block;
    reference_ties *ties;
    const double *signs;
    size_t padded;
} hashing;

/* codes[tokens][heads][tables] of heads x[tokens][heads][width]; first: the number of their first tie. */
static bool hash(const hashing *by, const double *x, size_t heads, size_t tokens, size_t first, size_t *codes)
{
    const reference_transformer *model = by->model;
    const size_t padded = by->padded;
    const size_t tables = model->lsh.tables, tau = model->lsh.tau, each = padded / tau, width = model->width;
    double *z = malloc(padded * sizeof *z);
    bool ok = z != NULL;
    for (size_t row = 0; ok && row < tokens * heads; ++row)
        for (size_t t = 0; ok && t < tables; ++t) {
            if (t % each == 0)
                transform(by->signs + t / each * padded, x + row * width, width, padded, z);
            double square = 0.0;
            for (size_t i = 0; i < padded; ++i)
                square += z[i] * z[i] / (double)padded;
            const double *own = z + t % each * tau;
            const reference_tie tie = {by->block->number, row / heads, first + row % heads * tables + t};
            size_t least;
            codes[row * tables + t] = code_of(own, tau, &least);
            if (fabs(own[least]) > by->ties->margin * sqrt(square))
                continue;
            ok = reference_ties_note(by->ties, tie);
            if (reference_ties_turned(by->ties, tie))
                codes[row * tables + t] ^= (size_t)1 << (tau - 1 - least);
        }
    free(z);
    return ok;
}

/* Random bits: splitmix64. */
static uint64_t next_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The signs of the layer: the checkpoint's, or those of the seed, in a new array. */
static double *signs_of(const reference_transformer *model, const reference_block *block, size_t padded)
{
    const size_t each = padded / model->lsh.tau, count = (model->lsh.tables + each - 1) / each * padded;
    double *signs = malloc(count * sizeof *signs);
    uint64_t state = model->lsh.seed << 32 | block->layer;
    for (size_t i = 0; signs && i < count; ++i)
        signs[i] = block->signs ? block->signs[i] : next_bits(&state) >> 63 ? -1.0 : 1.0;
    return signs;
}

/* Whether the weight of token s is exact for token t. */
static bool is_near(const reference_lsh *lsh, size_t t, size_t s)
{
    return lsh->expected || (s < t ? t - s : s - t) < lsh->window;
}

/* The exact weight of the value of a key for a query. */
static double exact_weight(const reference_transformer *model, const double *q, const double *k)
{
    double product = 0.0;
    for (size_t i = 0; i < model->width; ++i)
        product += q[i] * k[i] / (double)model->width;
    return reference_code_chance(product, model->lsh.tau);
}

/* The share of the tables in which codes agree. */
static double share_of(const reference_lsh *lsh, const size_t *q_code, const size_t *k_code)
{
    size_t agree = 0;
    for (size_t n = 0; n < lsh->tables; ++n)
        agree += q_code[n] == k_code[n];
    return (double)agree / (double)lsh->tables;
}

/* The least unit of a table that values of a head enter, from token `first` to `end`: 127 for the largest magnitude of a value, 8191 for
   that of a sum at any time. v, code: of the head and the table, as of all of them apart. rows: [2^tau][width], overwritten. */
static double unit_of(const reference_transformer *model, const double *v, const size_t *code, size_t first, size_t end, double *rows)
{
    const size_t width = model->width, step = model->kv_heads * width, code_step = model->kv_heads * model->lsh.tables;
    double unit = 0.0;
    memset(rows, 0, (width << model->lsh.tau) * sizeof *rows);
    for (size_t s = first; s < end; ++s)
        for (size_t i = 0; i < width; ++i) {
            double *sum = rows + code[s * code_step] * width + i;
            *sum += v[s * step + i];
            unit = fmax(unit, fmax(fabs(v[s * step + i]) / 127.0, fabs(*sum) / 8191.0));
        }
    return unit;
}

/* Rounds heads of v[tokens][kv_heads][width] as tables of integers hold them: to whole multiples of a unit of the sequence, of which a
   value has 127 at most and a sum 8191; kernels double theirs, which may be twice as large. rows: [2^tau][width], overwritten. */
static void round_values(const reference_transformer *model, const size_t *k_codes, double *v, size_t tokens, double *rows)
{
    const size_t width = model->width, step = model->kv_heads * width, tables = model->lsh.tables;
    for (size_t first = 0, end; first < tokens; first = end) {
        end = reference_sequence_of(model, first, tokens, &first);
        for (size_t head = 0; head < model->kv_heads; ++head) {
            double unit = 0.0;
            for (size_t n = 0; n < tables; ++n)
                unit = fmax(unit, unit_of(model, v + head * width, k_codes + head * tables + n, first, end, rows));
            for (size_t s = first; s < end && unit > 0.0; ++s)
                for (size_t i = 0; i < width; ++i) {
                    double *value = v + s * step + head * width + i;
                    *value = reference_round_to(*value / (2.0 * unit), 1.0) * 2.0 * unit;
                }
        }
    }
}

/* A head of all tokens: keys and their codes, values, and these as tables hold them. */
typedef struct {
    const double *k, *v, *far;
    const size_t *code;
    size_t tokens;
} seen_head;

/* out[width] = the values of the tokens of its sequence that token t sees, by their weights, shortened; in an encoder tables hold those of
   near tokens, too, from which it takes their values as they are. q_code: [tables] of q. */
static void attend(const reference_transformer *model, const double *q, const size_t *q_code, const seen_head *seen, size_t t, double *out)
{
    size_t first;
    const size_t end = reference_sequence_of(model, t, seen->tokens, &first);
    const size_t width = model->width, step = width * model->kv_heads, code_step = model->lsh.tables * model->kv_heads;
    double square = 0.0;
    memset(out, 0, width * sizeof *out);
    for (size_t s = first; s < (model->causal ? t + 1 : end); ++s) {
        const bool near = is_near(&model->lsh, t, s), held = !(model->causal || model->lsh.expected) || !near;
        const double share = held ? share_of(&model->lsh, q_code, seen->code + s * code_step) : 0.0;
        const double weight = near ? exact_weight(model, q, seen->k + s * step) : share;
        for (size_t i = 0; i < width; ++i) {
            const double value = seen->v[s * step + i];
            out[i] += weight * value + share * (seen->far[s * step + i] - value);
        }
    }
    for (size_t i = 0; i < width; ++i)
        square += out[i] * out[i];
    for (size_t i = 0; i < width; ++i)
        out[i] /= sqrt(square + model->lsh.eps * model->lsh.eps);
}

bool reference_table_attend(const reference_transformer *model, const reference_block *block, reference_ties *ties,
                            const reference_heads *given, double *y)
{
    const double *q = given->q, *k = given->k, *v = given->v;
    const size_t tokens = given->tokens;
    const size_t tables = model->lsh.tables, heads = model->heads, kv_heads = model->kv_heads, width = model->width;
    size_t padded = 1;
    while (padded < width)
        padded *= 2;
    double *signs = signs_of(model, block, padded);
    size_t *q_codes = malloc((heads + kv_heads) * tables * tokens * sizeof *q_codes + 1), *k_codes = q_codes + heads * tables * tokens;
    const size_t values = tokens * kv_heads * width;
    double *far = malloc(values * sizeof *far + 1), *rows = malloc((width << model->lsh.tau) * sizeof *rows);
    const hashing by = {model, block, ties, signs, padded};
    const bool ok = signs && q_codes && far && rows && hash(&by, q, heads, tokens, REFERENCE_TABLE_TIES, q_codes) &&
                    hash(&by, k, kv_heads, tokens, REFERENCE_TABLE_TIES + heads * tables, k_codes);
    if (ok)
        memcpy(far, v, values * sizeof *far);
    if (ok && reference_type_is_scaled(model->cache))
        round_values(model, k_codes, far, tokens, rows);
    for (size_t row = 0; ok && row < tokens * heads; ++row) {
        const size_t t = row / heads, shared = row % heads / (heads / kv_heads);
        const seen_head seen = {k + shared * width, v + shared * width, far + shared * width, k_codes + shared * tables, tokens};
        attend(model, q + row * width, q_codes + row * tables, &seen, t, y + row * width);
    }
    free(signs);
    free(q_codes);
    free(far);
    free(rows);
    return ok;
}
