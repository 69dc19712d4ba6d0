/* The reference's projection rounded to the type of a blob's elements. */
#include "reference_projection.h"

#include <stdlib.h>
#include <string.h>

/* The factor that folding gives to the weights of input i: where it is 0 they do not count. */
static double gain_of(const reference_model *model, const reference_weights *weights, size_t i)
{
    return model->norm && i < model->d ? weights->norm_weight[i] : 1.0;
}

/* One column of a block [b out][b in]: folded, rounded, unfolded. H_b is its own inverse but for the factor b.  column [b] */
static void round_column(const reference_model *model, reference_type type, double factor, double *first, double *column)
{
    const size_t block = model->block;
    if (factor == 0.0)
        return;
    for (size_t o = 0; o < block; ++o)
        column[o] = first[o * block];
    reference_hadamard(column, block);
    for (size_t o = 0; o < block; ++o)
        column[o] = reference_round(type, column[o] * factor) / factor;
    reference_hadamard(column, block);
    for (size_t o = 0; o < block; ++o)
        first[o * block] = column[o] / (double)block;
}

static void round_bh4(const reference_model *model, reference_type type, const reference_weights *weights, double *projection,
                      double *column)
{
    const size_t padded = reference_padded(model), block = model->block;
    for (size_t repeat = 0; repeat < reference_repeats(model); ++repeat)
        for (int step = 0; step < 4; ++step, projection += padded * block)
            for (size_t i = 0; i < padded; ++i) {
                const double factor = step == 0 ? gain_of(model, weights, i) : step == 3 ? model->decay : 1.0;
                round_column(model, type, factor, projection + i / block * block * block + i % block, column);
            }
}

static void round_dense(const reference_model *model, reference_type type, const reference_weights *weights, double *projection)
{
    for (size_t j = 0; j < model->h * model->tau; ++j)
        for (size_t i = 0; i < model->d; ++i, ++projection) {
            const double factor = gain_of(model, weights, i);
            if (factor != 0.0)
                *projection = reference_round(type, *projection * factor) / factor;
        }
}

/* bias += the projection of the norm's offset by the exact weights, less that by the rounded ones.  z [h tau] */
static bool correct_bias(const reference_model *model, const reference_weights *exact, reference_weights rounded, double *bias, double *z)
{
    const size_t count = model->h * model->tau;
    if (!model->norm)
        return true;
    if (!reference_project(model, &rounded, exact->norm_bias, z))
        return false;
    for (size_t j = 0; j < count; ++j)
        bias[j] -= z[j];
    if (!reference_project(model, exact, exact->norm_bias, z))
        return false;
    for (size_t j = 0; j < count; ++j)
        bias[j] += z[j];
    return true;
}

bool reference_round_projection(const reference_model *model, reference_type type, reference_weights *weights, double **memory)
{
    const size_t count = reference_projection_count(model), bits = model->h * model->tau;
    *memory = NULL;
    if (type == REFERENCE_F32)
        return true;
    const size_t room = bits > model->block ? bits : model->block;
    double *projection = malloc((count + bits + room) * sizeof *projection), *bias = projection + count, *work = bias + bits;
    if (!projection)
        return false;
    memcpy(projection, weights->projection, count * sizeof *projection);
    memcpy(bias, weights->bias, bits * sizeof *bias);
    if (model->projection == REFERENCE_BH4)
        round_bh4(model, type, weights, projection, work);
    else
        round_dense(model, type, weights, projection);
    const reference_weights exact = *weights;
    weights->projection = projection;
    *memory = projection;
    const bool done = correct_bias(model, &exact, *weights, bias, work);
    weights->bias = bias;
    return done;
}
