/* The reference of a transformer's blocks, in float64. */
#include "harness/reference/transformer.h"

#include "harness/reference/table_attention.h"

#include "gen/host/files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* row[columns] <- row number `from` of the map's tensor; of a transposed one, whose elements are all[], its column. */
static bool read_row(const reference_map *map, const double *all, size_t from, double *row, char *error, size_t size)
{
    if (!map->transposed)
        return safetensors_read(map->file, map->weight, from * map->columns, map->columns, row, error, size);
    const size_t pitch = map->weight->count / map->columns;
    for (size_t i = 0; i < map->columns; ++i)
        row[i] = all[i * pitch + from];
    return true;
}

size_t reference_map_row(const reference_map *map, size_t r)
{
    return map->group ? r / map->group * map->stride + map->offset + r % map->group : r;
}

bool reference_map_matrix(const reference_map *map, double *matrix, char *error, size_t size)
{
    double *all = map->transposed ? safetensors_load(map->file, map->weight, error, size) : NULL;
    bool ok = all || !map->transposed;
    for (size_t r = 0; ok && r < map->rows; ++r)
        ok = read_row(map, all, reference_map_row(map, r), matrix + r * map->columns, error, size);
    free(all);
    return ok;
}

void reference_map_round(const reference_map *map, reference_type type, double *row)
{
    const char *const blocks = safetensors_blocks_name(map->weight);
    if (!blocks || map->transposed || !reference_type_has_blocks(type, blocks))
        reference_round_row(type, row, map->columns);
}

enum { LANES = 4 }; /* tokens whose sums do not wait for each other */

/* y[tokens][rows], column r <- bias + the product of row and x[tokens / LANES, rounded up][columns][LANES], in the order of columns. */
static void multiply_row(const reference_map *map, size_t r, const double *row, double bias, const double *x, double *y, size_t tokens)
{
    for (size_t first = 0; first < tokens; first += LANES) {
        double sum0 = bias, sum1 = bias, sum2 = bias, sum3 = bias;
        for (size_t i = 0; i < map->columns; ++i, x += LANES) {
            sum0 += row[i] * x[0];
            sum1 += row[i] * x[1];
            sum2 += row[i] * x[2];
            sum3 += row[i] * x[3];
        }
        const double sums[LANES] = {sum0, sum1, sum2, sum3};
        for (size_t lane = 0; lane < LANES && first + lane < tokens; ++lane)
            y[(first + lane) * map->rows + r] = sums[lane];
    }
}

bool reference_map_apply(const reference_map *map, reference_map_types types, const double *given, double *y, size_t tokens, char *error,
                         size_t size)
{
    if (map->stand_in)
        return map->stand_in->apply(map->stand_in, map, given, y, tokens, error, size);
    const size_t columns = map->columns;
    double *row = calloc((tokens + LANES) * columns, sizeof *row), *x = row + columns;
    if (!row)
        return files_error(error, size, "%s: not enough memory", safetensors_path(map->file));
    for (size_t t = 0; t < tokens; ++t) {
        memcpy(row, given + t * columns, columns * sizeof *row);
        reference_round_row(types.inputs, row, columns);
        for (size_t i = 0; i < columns; ++i)
            x[(t / LANES * columns + i) * LANES + t % LANES] = row[i];
    }
    double *all = map->transposed ? safetensors_load(map->file, map->weight, error, size) : NULL;
    bool ok = all || !map->transposed;
    for (size_t r = 0; ok && r < map->rows; ++r) {
        const size_t from = reference_map_row(map, r);
        double bias = 0.0;
        ok = read_row(map, all, from, row, error, size) &&
             (!map->bias || safetensors_read(map->bias_file, map->bias, from, 1, &bias, error, size));
        if (!ok)
            break;
        reference_map_round(map, types.weights, row);
        multiply_row(map, r, row, bias, x, y, tokens);
    }
    free(all);
    free(row);
    return ok;
}

/* A new array: the map of x, or a copy of x where there is no map. NULL on failure. */
static double *mapped(const reference_transformer *model, const reference_map *map, const double *x, size_t width, size_t tokens,
                      char *error, size_t size)
{
    const size_t count = tokens * (map->weight ? map->rows : width);
    double *y = malloc(count * sizeof *y);
    if (!y) {
        files_error(error, size, "not enough memory for %zu tokens", tokens);
        return NULL;
    }
    if (!map->weight)
        memcpy(y, x, count * sizeof *y);
    else if (!reference_map_apply(map, (reference_map_types){model->type, model->activations}, x, y, tokens, error, size)) {
        free(y);
        return NULL;
    }
    return y;
}

/* A new array: columns at … at + width - 1 of x[tokens][in]. NULL on failure. */
static double *part_of(const double *x, size_t in, size_t at, size_t width, size_t tokens, char *error, size_t size)
{
    double *y = malloc(tokens * width * sizeof *y);
    if (!y)
        files_error(error, size, "not enough memory for %zu tokens", tokens);
    for (size_t t = 0; y && t < tokens; ++t)
        memcpy(y + t * width, x + t * in + at, width * sizeof *y);
    return y;
}

static double gelu(double x)
{
    return x * 0.5 * erfc(-x / sqrt(2.0));
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static double silu(double x)
{
    return x / (1.0 + exp(-x));
}

static double relu(double x)
{
    return x > 0.0 ? x : 0.0;
}

static double none(double x)
{
    return x;
}

reference_activation *reference_activation_named(const char *name)
{
    static const struct {
        const char *name;
        reference_activation *activation;
    } rows[] = {{"gelu", gelu}, {"gelu_tanh", gelu_tanh}, {"silu", silu}, {"relu", relu}, {"tanh", tanh}, {"none", none}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if (strcmp(name, rows[i].name) == 0)
            return rows[i].activation;
    return NULL;
}

static double clamped(double x)
{
    return fmin(fmax(x, 0.0), 1.0);
}

/* The pair, by its number, that turns so many times within the original context: theta^(-pair / half) original = 2 pi turns. */
static double pair_that_turns(const reference_transformer *model, double turns)
{
    return (double)model->half * log(model->scaling.original / (2.0 * acos(-1.0) * turns)) / log(model->theta);
}

/* By how much of the way from 1 / factor to 1 frequency i, `f` radians a position, is scaled. */
static double kept_share(const reference_transformer *model, size_t i, double f)
{
    const reference_rope_scaling *s = &model->scaling;
    if (s->kind == REFERENCE_ROPE_LINEAR)
        return 0.0;
    if (s->kind == REFERENCE_ROPE_LLAMA3) {
        const double wavelength = 2.0 * acos(-1.0) / f;
        if (wavelength < s->original / s->fast)
            return 1.0;
        return wavelength > s->original / s->slow ? 0.0 : (s->original / wavelength - s->slow) / (s->fast - s->slow);
    }
    double low = pair_that_turns(model, s->fast), high = pair_that_turns(model, s->slow);
    low = fmax(s->truncate ? floor(low) : low, 0.0);
    high = fmin(s->truncate ? ceil(high) : high, 2.0 * (double)model->half - 1.0);
    return 1.0 - clamped(((double)i - low) / (low == high ? 0.001 : high - low));
}

/* RoPE of one head at a position: pair i is turned by position * theta^(-i / half), or that scaled. */
static void turn(const reference_transformer *model, double *head, size_t position)
{
    const reference_rope_scaling *scaling = &model->scaling;
    for (size_t i = 0; i < model->half; ++i) {
        double f = pow(model->theta, -(double)i / (double)model->half);
        if (scaling->kind != REFERENCE_ROPE_PLAIN)
            f *= 1.0 / scaling->factor + kept_share(model, i, f) * (1.0 - 1.0 / scaling->factor);
        const double angle = (double)position * f, factor = scaling->kind == REFERENCE_ROPE_YARN ? scaling->attention_factor : 1.0;
        double *a = head + (model->interleaved ? 2 * i : i), *b = model->interleaved ? a + 1 : a + model->half;
        const double x = *a, y = *b;
        *a = factor * (x * cos(angle) - y * sin(angle));
        *b = factor * (x * sin(angle) + y * cos(angle));
    }
}

size_t reference_sequence_of(const reference_transformer *model, size_t token, size_t tokens, size_t *first)
{
    size_t end = tokens;
    *first = 0;
    for (const size_t *length = model->lengths; length && (end = *first + *length) <= token; ++length)
        *first = end;
    return end;
}

enum { TILE = 32 }; /* positions whose weights are rounded together */

/* Rounds the weights of the values v[count], `step` apart, of a tile: each by itself, or to units of the largest one, where values are in
   units of their own: times these. */
static void round_weights(reference_type type, double *weight, const double *v, size_t step, size_t width, size_t count)
{
    double unit[TILE], in_units[TILE];
    if (!reference_type_is_scaled(type)) {
        for (size_t s = 0; s < count; ++s)
            weight[s] = reference_round(type, weight[s]);
        return;
    }
    for (size_t s = 0; s < count; ++s) {
        unit[s] = reference_scale(type, v + s * step, width);
        in_units[s] = weight[s] * unit[s];
    }
    reference_round_row(type, in_units, count);
    for (size_t s = 0; s < count; ++s)
        weight[s] = unit[s] > 0.0 ? in_units[s] / unit[s] : 0.0;
}

/* What a token attends to: keys and values of a head, `step` apart, from token `first` to `last`; `begin`: the first of their sequence. */
typedef struct {
    const double *k, *v;
    size_t step, v_width;
    size_t begin, first, last;
} seen_tokens;

/* out[v_width] = softmax(q k) v over those tokens, scores with their soft cap, tile by tile: weights are relative to the largest score of
   all tiles so far, and rounded. */
static void mix(const reference_transformer *model, const double *q, const seen_tokens *seen, double *out)
{
    const double *k = seen->k, *v = seen->v;
    const size_t width = model->width, v_width = seen->v_width, step = seen->step, begin = seen->begin, last = seen->last;
    double largest = -INFINITY, total = 0.0;
    memset(out, 0, v_width * sizeof *out);
    for (size_t s = seen->first, count; s <= last; s += count) {
        double weight[TILE], high = largest;
        count = TILE - (model->start + s - begin) % TILE;
        if (count > last - s + 1)
            count = last - s + 1;
        for (size_t n = 0; n < count; ++n) {
            weight[n] = 0.0;
            for (size_t i = 0; i < width; ++i)
                weight[n] += q[i] * k[(s + n) * step + i];
            if (model->soft_cap > 0.0)
                weight[n] = model->soft_cap * tanh(weight[n] / model->soft_cap);
            high = fmax(high, weight[n]);
        }
        const double shrink = exp(largest - high);
        largest = high;
        total *= shrink;
        for (size_t n = 0; n < count; ++n)
            total += weight[n] = exp(weight[n] - largest);
        round_weights(model->attention, weight, v + s * step, step, v_width, count);
        for (size_t i = 0; i < v_width; ++i) {
            out[i] *= shrink;
            for (size_t n = 0; n < count; ++n)
                out[i] += weight[n] * v[(s + n) * step + i];
        }
    }
    for (size_t i = 0; i < v_width; ++i)
        out[i] /= total;
}

/* y[tokens][heads][v_width] = softmax(q k scale) v, q <- q scale, rounded, the scale times the head's own; with a shape alpha v of the
   token itself + beta softmax(q k scale) v - gamma times the mean of v. v: of a head, or, from keys, the same for all of them. */
static void attend(const reference_transformer *model, const reference_block *block, double *q, const double *k, const double *v, double *y,
                   size_t tokens)
{
    const size_t width = model->width, all = width * model->heads, e = width * model->kv_heads, window = block->window;
    const size_t v_width = model->from_keys ? e : width;
    const double *shape = block->shape;
    for (size_t t = 0; t < tokens; ++t) {
        size_t begin;
        const size_t end = reference_sequence_of(model, t, tokens, &begin);
        for (size_t head = 0; head < model->heads; ++head) {
            const size_t shared = head / (model->heads / model->kv_heads) * width;
            const size_t reach = window && window < end - t ? t + window - 1 : end - 1;
            const size_t last = model->causal ? t : reach;
            const size_t first = window && t - begin + 1 > window ? t + 1 - window : begin;
            double *own = q + t * all + head * width, *out = y + (t * model->heads + head) * v_width;
            for (size_t i = 0; i < width; ++i)
                own[i] *= model->scale * (block->scales ? block->scales[head] : 1.0);
            reference_round_row(model->attention, own, width);
            const seen_tokens seen = {k + shared, model->from_keys ? v : v + shared, e, v_width, begin, first, last};
            mix(model, own, &seen, out);
            for (size_t i = 0; shape && i < width; ++i) {
                const double *part = shape + 3 * head;
                double mean = 0.0;
                for (size_t s = first; s <= last; ++s)
                    mean += v[s * e + shared + i] / (double)(last - first + 1);
                out[i] = part[0] * v[t * e + shared + i] + part[1] * out[i] - part[2] * mean;
            }
        }
    }
}

double reference_norm_root(bool with_mean, double eps, const double *row, size_t width, double *mean)
{
    double square = 0.0;
    *mean = 0.0;
    for (size_t i = 0; with_mean && i < width; ++i)
        *mean += row[i] / (double)width;
    for (size_t i = 0; i < width; ++i)
        square += (row[i] - *mean) * (row[i] - *mean) / (double)width;
    return sqrt(square + eps);
}

void reference_normalise(const reference_block_norm *norm, bool with_mean, double eps, double *x, size_t width, size_t tokens)
{
    for (size_t t = 0; norm->gain && t < tokens; ++t) {
        double *row = x + t * width, mean;
        const double root = reference_norm_root(with_mean, eps, row, width, &mean);
        for (size_t i = 0; i < width; ++i)
            row[i] = (row[i] - mean) / root * norm->gain[i] + (norm->offset ? norm->offset[i] : 0.0);
    }
}

#define UNIT_EPS 1e-6

/* Likewise without gains: x[tokens][width] <- every row divided by the root of its mean square. */
static void divide_by_root(double *x, size_t width, size_t tokens)
{
    for (size_t t = 0; t < tokens; ++t) {
        double mean;
        const double root = reference_norm_root(false, UNIT_EPS, x + t * width, width, &mean);
        for (size_t i = 0; i < width; ++i)
            x[t * width + i] /= root;
    }
}

static void normalise(const reference_transformer *model, const reference_block_norm *norm, double *x, size_t width, size_t tokens)
{
    reference_normalise(norm, model->mean, model->eps, x, width, tokens);
}

static void add(double *to, const double *x, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        to[i] += x[i];
}

/* A new array [tokens][heads * width]: of every head its own of the values that V makes of sums of keys, [tokens][heads][e]. */
static double *values_of(const reference_transformer *model, const reference_block *block, const double *sums, size_t tokens, char *error,
                         size_t size)
{
    const size_t width = model->width, e = width * model->kv_heads, rows = tokens * model->heads;
    double *values = mapped(model, &block->v, sums, e, rows, error, size);
    for (size_t row = 0; values && row < rows; ++row)
        memmove(values + row * width, values + row * e + row % model->heads * width, width * sizeof *values);
    return values;
}

/* Attention with its projections: a new array [tokens][d]. */
static double *attention(const reference_transformer *model, const reference_block *block, reference_ties *ties, const double *x,
                         size_t tokens, char *error, size_t size)
{
    const size_t in = block->in, width = model->width, all = width * model->heads, e = width * model->kv_heads;
    const bool given = block->delivered;
    double *q = given ? part_of(x, in, 0, all, tokens, error, size) : mapped(model, &block->q, x, in, tokens, error, size);
    double *k = given ? part_of(x, in, all, e, tokens, error, size) : mapped(model, &block->k, x, in, tokens, error, size);
    for (size_t row = 0; k && model->from_keys && row < tokens * model->kv_heads; ++row)
        reference_round_row(model->cache, k + row * width, width);
    double *v = model->from_keys ? k ? part_of(k, e, 0, e, tokens, error, size) : NULL
                : given          ? part_of(x, in, all + e, e, tokens, error, size)
                                 : mapped(model, &block->v, x, in, tokens, error, size);
    double *mixed = malloc((tokens * all * (model->from_keys ? model->heads : 1) + 1) * sizeof *mixed), *y = NULL;
    if (q && k && v && mixed) {
        reference_normalise(&block->q_norm, false, model->head_eps, q, width, tokens * model->heads);
        reference_normalise(&block->k_norm, false, model->head_eps, k, width, tokens * model->kv_heads);
        if (model->unit || model->lsh.tables > 0) {
            divide_by_root(q, width, tokens * model->heads);
            divide_by_root(k, width, tokens * model->kv_heads);
        }
        for (size_t t = 0; t < tokens; ++t) {
            size_t first;
            reference_sequence_of(model, t, tokens, &first);
            for (size_t head = 0; head < model->heads; ++head)
                turn(model, q + t * all + head * width, model->start + t - first);
            for (size_t head = 0; head < model->kv_heads; ++head) {
                turn(model, k + t * e + head * width, model->start + t - first);
                if (model->from_keys || model->lsh.tables > 0)
                    continue;
                reference_round_row(model->cache, k + t * e + head * width, width);
                reference_round_row(model->cache, v + t * e + head * width, width);
            }
        }
        /* Where keys are like queries the weights of attention by tables depend on the last bits of cosines. */
        if (model->lsh.tables > 0 && model->activations == REFERENCE_SINGLE) {
            reference_round_row(model->activations, q, tokens * all);
            reference_round_row(model->activations, k, tokens * e);
        }
        for (size_t t = tokens; t-- > 0;) {
            size_t first;
            reference_sequence_of(model, t, tokens, &first);
            if (t > first)
                memcpy(k + t * e, k + (t - 1) * e, model->shifted * width * sizeof *k);
        }
        bool good = true;
        if (model->lsh.tables > 0)
            good = reference_table_attend(model, block, ties, &(reference_heads){q, k, v, tokens}, mixed) ||
                   files_error(error, size, "not enough memory for %zu tokens", tokens);
        else
            attend(model, block, q, k, v, mixed, tokens);
        double *made = model->from_keys ? values_of(model, block, mixed, tokens, error, size) : NULL;
        if (good && (made || !model->from_keys))
            y = mapped(model, &block->p, made ? made : mixed, all, tokens, error, size);
        free(made);
    }
    free(q);
    free(k);
    free(v);
    free(mixed);
    return y;
}

/* The lookup FFN: a new array [tokens][out]. */
static double *looked_up(const reference_block *block, reference_ties *ties, const double *x, size_t tokens, char *error, size_t size)
{
    double *y = malloc(tokens * reference_block_lookup_out(block->lookup) * sizeof *y);
    if (y && reference_block_lookup_run(block->lookup, block->number, ties, x, tokens, y))
        return y;
    free(y);
    files_error(error, size, "not enough memory for %zu tokens, or a table with a value that is not finite", tokens);
    return NULL;
}

/* x[tokens][width] <- the mean of all rows, in each of them. */
static void average(double *x, size_t width, size_t tokens)
{
    for (size_t i = 0; i < width; ++i) {
        double sum = 0.0;
        for (size_t t = 0; t < tokens; ++t)
            sum += x[t * width + i];
        for (size_t t = 0; t < tokens; ++t)
            x[t * width + i] = sum / (double)tokens;
    }
}

/* The dense FFN: a new array [tokens][d]. */
static double *dense(const reference_transformer *model, const reference_block *block, const double *x, size_t tokens, char *error,
                     size_t size)
{
    double *hidden = mapped(model, &block->m, x, model->d, tokens, error, size), *y = NULL;
    double *gate = model->gated ? mapped(model, &block->g, x, model->d, tokens, error, size) : NULL;
    if (hidden && (gate || !model->gated)) {
        for (size_t i = 0; i < tokens * model->f; ++i)
            hidden[i] = gate ? model->activation(gate[i]) * hidden[i] : model->activation(hidden[i]);
        if (block->means)
            average(hidden, model->f, tokens);
        y = mapped(model, &block->o, hidden, model->f, tokens, error, size);
    }
    free(hidden);
    free(gate);
    return y;
}

/* The FFN, dense, of tables, or the sum of both: a new array [tokens][out]. */
static double *ffn(const reference_transformer *model, const reference_block *block, reference_ties *ties, const double *x, size_t tokens,
                   char *error, size_t size)
{
    if (!block->lookup)
        return dense(model, block, x, tokens, error, size);
    double *y = looked_up(block, ties, x, tokens, error, size);
    if (!y || model->f == 0)
        return y;
    double *beside = dense(model, block, x, tokens, error, size);
    const bool good = beside != NULL;
    if (good)
        add(y, beside, tokens * model->d);
    else
        free(y);
    free(beside);
    return good ? y : NULL;
}

/* to[tokens][d] += the skip connection of the block's input x. */
static bool add_skipped(const reference_transformer *model, const reference_block *block, const double *x, double *to, size_t tokens,
                        char *error, size_t size)
{
    /* Where it is delivered, it lies behind q, k and v. */
    double *skipped = block->delivered ? part_of(x, block->in, block->in - model->d, model->d, tokens, error, size)
                                       : mapped(model, &block->s, x, block->in, tokens, error, size);
    if (skipped)
        add(to, skipped, tokens * model->d);
    free(skipped);
    return skipped != NULL;
}

size_t reference_block_out(const reference_transformer *model, const reference_block *block)
{
    return block->lookup && !block->qkv ? reference_block_lookup_out(block->lookup) : model->d;
}

/* x[tokens][d] <- the output of a block whose tables make all of it: of rows of q, k, v and y, attention's output and y. */
static bool run_out_of_tables(const reference_transformer *model, const reference_block *block, reference_ties *ties, double *x,
                              size_t tokens, char *error, size_t size)
{
    const size_t count = tokens * model->d;
    reference_block of_rows = *block;
    of_rows.in = reference_block_lookup_out(block->lookup);
    of_rows.delivered = true;
    double *in = part_of(x, model->d, 0, model->d, tokens, error, size), *rows = NULL, *mixed = NULL, *made = NULL;
    if (in) {
        normalise(model, &block->first, in, model->d, tokens);
        rows = looked_up(block, ties, in, tokens, error, size);
    }
    if (rows) {
        mixed = attention(model, &of_rows, ties, rows, tokens, error, size);
        made = part_of(rows, of_rows.in, of_rows.in - model->d, model->d, tokens, error, size);
    }
    const bool good = mixed && made;
    if (good) {
        if (!model->skip)
            memset(x, 0, count * sizeof *x);
        add(x, mixed, count);
        add(x, made, count);
    }
    free(in);
    free(rows);
    free(mixed);
    free(made);
    return good;
}

bool reference_block_run(const reference_transformer *model, const reference_block *block, reference_ties *ties, double *x, size_t tokens,
                         char *error, size_t error_size)
{
    if (block->qkv)
        return run_out_of_tables(model, block, ties, x, tokens, error, error_size);
    const size_t count = tokens * model->d, widest = block->in > model->d ? block->in : model->d;
    double *in = malloc((tokens * widest + 1) * sizeof *in), *mixed = NULL, *out = NULL;
    if (!in)
        return files_error(error, error_size, "not enough memory for %zu tokens", tokens);
    memcpy(in, x, tokens * block->in * sizeof *in);
    if (!model->post)
        normalise(model, &block->first, in, block->in, tokens);
    mixed = attention(model, block, ties, in, tokens, error, error_size);
    if (mixed)
        normalise(model, &block->after_attention, mixed, model->d, tokens);
    if (mixed && model->parallel) {
        if (!model->post && block->second.gain) {
            memcpy(in, x, count * sizeof *in);
            normalise(model, &block->second, in, model->d, tokens);
        }
        out = ffn(model, block, ties, in, tokens, error, error_size);
        if (out) {
            normalise(model, &block->after_ffn, out, model->d, tokens);
            add(out, mixed, count);
            if (model->skip)
                add(out, x, count);
        }
    } else if (mixed && (!model->skip || add_skipped(model, block, x, mixed, tokens, error, error_size))) {
        if (model->post)
            normalise(model, &block->first, mixed, model->d, tokens);
        memcpy(in, mixed, count * sizeof *in);
        if (!model->post)
            normalise(model, &block->second, in, model->d, tokens);
        out = ffn(model, block, ties, in, tokens, error, error_size);
        if (out)
            normalise(model, &block->after_ffn, out, model->d, tokens);
        if (out && model->skip)
            add(out, mixed, count);
    }
    if (out && model->post)
        normalise(model, &block->second, out, model->d, tokens);
    if (out)
        memcpy(x, out, tokens * reference_block_out(model, block) * sizeof *x);
    free(in);
    free(mixed);
    free(out);
    return out != NULL;
}
