/* The lookup FFN of a transformer's block in float64, and codes that rounding may decide either way. */
#include "harness/reference/block_lookup.h"

#include "harness/reference/checkpoint.h"
#include "harness/reference/row_cache.h"
#include "harness/reference/tables.h"

#include "gen/host/files.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reference_block_lookup {
    reference_model model;
    checkpoint *file;
    reference_tables tables;
    row_cache rows;
    reference_weights weights;
    double *multiplied, *projection; /* memory of theirs */
};

reference_block_lookup *reference_block_lookup_open(const reference_model *model, reference_lookup_weights how, const char *path,
                                                    const char *prefix, char *error, size_t error_size)
{
    reference_block_lookup *lookup = malloc(sizeof *lookup);
    if (!lookup) {
        files_error(error, error_size, "%s: not enough memory", path);
        return NULL;
    }
    *lookup = (reference_block_lookup){.model = *model};
    lookup->file = checkpoint_open(&lookup->model, path, prefix, how.blocks_in_out, error, error_size);
    if (!lookup->file) {
        free(lookup);
        return NULL;
    }
    lookup->tables = (reference_tables){.model = &lookup->model, .exact = checkpoint_weights(lookup->file), .type = how.tables};
    lookup->weights = reference_tables_rounded(&lookup->tables);
    if (!row_cache_open(&lookup->rows, &lookup->model, &lookup->weights) ||
        !reference_take_form(how.form, &lookup->model, &lookup->weights, &lookup->multiplied) ||
        !reference_round_projection(&lookup->model, how.projection, &lookup->weights, &lookup->projection)) {
        files_error(error, error_size, "%s: not enough memory", path);
        reference_block_lookup_close(lookup);
        return NULL;
    }
    return lookup;
}

void reference_block_lookup_close(reference_block_lookup *lookup)
{
    if (lookup) {
        checkpoint_close(lookup->file);
        row_cache_close(&lookup->rows);
        free(lookup->projection);
        free(lookup->multiplied);
    }
    free(lookup);
}

size_t reference_block_lookup_out(const reference_block_lookup *lookup)
{
    return lookup->model.d_out;
}

const reference_model *reference_block_lookup_model(const reference_block_lookup *lookup)
{
    return &lookup->model;
}

const reference_weights *reference_block_lookup_weights(const reference_block_lookup *lookup)
{
    return &lookup->weights;
}

size_t reference_looked_code(const reference_model *model, const reference_looked *looked, size_t slot)
{
    return looked->code[slot] & (((size_t)1 << model->tau) - 1);
}

double reference_looked_score(const reference_model *model, const reference_weights *weights, const reference_looked *looked, size_t slot)
{
    const size_t code = reference_looked_code(model, looked, slot);
    if (!weights->row_scale) /* rows that count alike have no scores */
        return reference_is_scored(model) ? (double)looked->score[slot] : 1.0;
    const double factor = weights->row_scale(weights->row_source, slot / model->neighbours, code);
    return factor > 0.0 ? (double)looked->score[slot] / factor : 0.0;
}

const reference_looked *reference_looked_of(const reference_looked *looked, size_t count, size_t layer, size_t *own)
{
    size_t first = 0, end;
    while (first < count && looked[first].layer < layer)
        ++first;
    for (end = first; end < count && looked[end].layer == layer;)
        ++end;
    *own = end - first;
    return looked + first;
}

/* |a - x| / |x|, and infinity for a NaN. */
static double distance(const float *a, const double *x, size_t d)
{
    double off = 0.0, power = 0.0;
    for (size_t i = 0; i < d; ++i) {
        off += ((double)a[i] - x[i]) * ((double)a[i] - x[i]);
        power += x[i] * x[i];
    }
    const double relative = sqrt(off / fmax(power, DBL_MIN));
    return relative <= DBL_MAX ? relative : INFINITY;
}

/* An x that is so near is surely the token's. */
#define SURELY_NEAR 0x1p-6

/* What is known of a token: number `number` of its layer, or where threads have shared the tokens, that with the nearest x. */
static const reference_looked *looked_of(reference_ties *ties, const double *x, size_t d, size_t number)
{
    size_t count;
    const reference_looked *own = reference_looked_of(ties->looked, ties->looked_count, ties->looked_layer, &count), *found = NULL;
    double off = INFINITY;
    if (number < count) {
        found = own + number;
        off = distance(found->x, x, d);
    }
    for (size_t i = 0; off > SURELY_NEAR && i < count; ++i) {
        const double other = distance(own[i].x, x, d);
        if (!found || other < off) {
            found = own + i;
            off = other;
        }
    }
    if (!found)
        ++ties->looked_missing;
    else if (number >= ties->looked_from)
        ties->looked_off = fmax(ties->looked_off, off);
    return found;
}

/* The vertices that a table takes, the best first, and the next best one, unless all are taken. */
static bool best_vertices(const reference_model *model, const double *z, size_t *code, size_t *next)
{
    if (model->neighbours == 1) {
        size_t least = 0;
        for (size_t j = 1; j < model->tau; ++j)
            if (fabs(z[j]) < fabs(z[least]))
                least = j;
        *code = reference_code(model, z);
        *next = *code ^ (size_t)1 << (model->tau - 1 - least);
        return true;
    }
    size_t *all = malloc(sizeof *all << model->tau);
    if (!all || !reference_vertices(model, z, all)) {
        free(all);
        return false;
    }
    memcpy(code, all, model->neighbours * sizeof *code);
    *next = model->neighbours >> model->tau ? 0 : all[model->neighbours];
    free(all);
    return true;
}

bool reference_ties_note(reference_ties *ties, reference_tie tie)
{
    if (ties->found_count == ties->found_room) {
        const size_t room = 2 * ties->found_room + 16;
        reference_tie *found = realloc(ties->found, room * sizeof *found);
        if (!found)
            return false;
        ties->found = found;
        ties->found_room = room;
    }
    ties->found[ties->found_count++] = tie;
    return true;
}

bool reference_ties_turned(const reference_ties *ties, reference_tie tie)
{
    for (size_t i = 0; i < ties->turned_count; ++i)
        if (ties->turned[i].layer == tie.layer && ties->turned[i].token == tie.token && ties->turned[i].table == tie.table)
            return true;
    return false;
}

/* Codes and scores of one token. */
static bool look_up(const reference_model *model, reference_ties *ties, reference_tie tie, const double *z, size_t *code, double *score)
{
    const size_t m = model->neighbours, bits = model->h * model->tau;
    double square = 0.0;
    for (size_t j = 0; j < bits; ++j)
        square += z[j] * z[j] / (double)bits;
    for (tie.table = 0; tie.table < model->h; ++tie.table, z += model->tau, code += m, score += m) {
        size_t next;
        if (!best_vertices(model, z, code, &next))
            return false;
        if (m >> model->tau == 0 && reference_cost(model, z, next) - reference_cost(model, z, code[m - 1]) <= ties->margin * sqrt(square)) {
            if (!reference_ties_note(ties, tie))
                return false;
            if (reference_ties_turned(ties, tie))
                code[m - 1] = next;
        }
        for (size_t n = 0; n < m; ++n)
            score[n] = reference_score(model, z, code[n]);
    }
    return true;
}

/* Appends x[count] to looked_inputs. */
static bool keep_inputs(reference_ties *ties, const double *x, size_t count)
{
    double *inputs = realloc(ties->looked_inputs, (ties->looked_inputs_count + count + 1) * sizeof *inputs);
    if (!inputs)
        return false;
    memcpy(inputs + ties->looked_inputs_count, x, count * sizeof *x);
    ties->looked_inputs = inputs;
    ties->looked_inputs_count += count;
    return true;
}

bool reference_block_lookup_run(const reference_block_lookup *lookup, size_t layer, reference_ties *ties, const double *x, size_t tokens,
                                double *y)
{
    const reference_model *model = &lookup->model;
    const size_t slots = model->h * model->neighbours, bits = model->h * model->tau;
    double *z = malloc((bits + slots) * sizeof *z);
    size_t *code = malloc(slots * sizeof *code);
    bool ok = z && code && (!ties->looked || keep_inputs(ties, x, tokens * model->d));
    for (size_t token = 0; ok && token < tokens; ++token) {
        const double *own = x + token * model->d;
        const reference_looked *looked = ties->looked ? looked_of(ties, own, model->d, ties->looked_first + token) : NULL;
        for (size_t slot = 0; looked && slot < slots; ++slot) {
            code[slot] = reference_looked_code(model, looked, slot);
            z[bits + slot] = reference_looked_score(model, &lookup->weights, looked, slot);
        }
        ok = (looked || (reference_project(model, &lookup->weights, own, z) &&
                         look_up(model, ties, (reference_tie){.layer = layer, .token = token}, z, code, z + bits))) &&
             reference_gather(model, &lookup->weights, code, z + bits, y + token * model->d_out);
    }
    ++ties->looked_layer;
    free(z);
    free(code);
    return ok;
}
