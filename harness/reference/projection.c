/* The reference's projection rounded to the type of a blob's elements. */
#include "harness/reference/projection.h"

#include <stdlib.h>
#include <string.h>

/* The factor that folding gives to the weights of input i: where it is 0 they do not count. */
static double gain_of(const reference_model *model, const reference_weights *weights, size_t i)
{
    return model->norm && i < model->d ? weights->norm_weight[i] : 1.0;
}

/* H_b applied to the columns of a block [b out][b in].  column [b] */
static void transform_columns(size_t block, double *first, double *column)
{
    for (size_t i = 0; i < block; ++i) {
        for (size_t o = 0; o < block; ++o)
            column[o] = first[o * block + i];
        reference_hadamard(column, block);
        for (size_t o = 0; o < block; ++o)
            first[o * block + i] = column[o];
    }
}

/* One block: folded, rounded, unfolded. H_b is its own inverse but for the factor b; inputs of factor 0 do not count.
   factor, work [b] */
static void round_block(size_t block, reference_type type, const double *factor, double *first, double *work)
{
    transform_columns(block, first, work);
    for (size_t o = 0; o < block; ++o) {
        for (size_t i = 0; i < block; ++i)
            first[o * block + i] *= factor[i];
        reference_round_row(type, first + o * block, block);
        for (size_t i = 0; i < block; ++i)
            first[o * block + i] /= factor[i] != 0.0 ? factor[i] * (double)block : 1.0;
    }
    transform_columns(block, first, work);
}

static void round_bh4(const reference_model *model, reference_type type, const reference_weights *weights, double *projection, double *work)
{
    const size_t padded = reference_padded(model), block = model->block;
    double *factor = work + block;
    for (size_t repeat = 0; repeat < reference_repeats(model); ++repeat)
        for (int step = 0; step < 4; ++step)
            for (size_t first = 0; first < padded; first += block, projection += block * block) {
                for (size_t i = 0; i < block; ++i)
                    factor[i] = step == 0 ? gain_of(model, weights, first + i) : step == 3 ? model->decay : 1.0;
                round_block(block, type, factor, projection, work);
            }
}

static void round_dense(const reference_model *model, reference_type type, const reference_weights *weights, double *projection)
{
    for (size_t j = 0; j < model->h * model->tau; ++j, projection += model->d) {
        for (size_t i = 0; i < model->d; ++i)
            projection[i] *= gain_of(model, weights, i);
        reference_round_row(type, projection, model->d);
        for (size_t i = 0; i < model->d; ++i) {
            const double factor = gain_of(model, weights, i);
            projection[i] /= factor != 0.0 ? factor : 1.0;
        }
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
    if (reference_type_is_exact(type))
        return true;
    const size_t room = bits > 2 * model->block ? bits : 2 * model->block;
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
    weights->input_levels = reference_type_input_levels(type);
    weights->rounds_inputs = weights->input_levels > 0.0;
    weights->unit_of_block = reference_type_unit_of_block(type);
    if (weights->bf16_inputs) {
        weights->rounds_inputs = true;
        weights->input_levels = 128.0; /* at least, of the largest */
    }
    return done;
}

/* r[h tau][d] <- a BH4 projection multiplied out. */
static bool multiply_out(const reference_model *model, const reference_weights *weights, double *r)
{
    const size_t padded = reference_padded(model), count = model->h * model->tau, step_size = padded * model->block;
    double *y = malloc(2 * padded * sizeof *y);
    for (size_t i = 0; y && i < model->d; ++i)
        for (size_t repeat = 0; repeat < reference_repeats(model); ++repeat) {
            memset(y, 0, padded * sizeof *y);
            y[i] = 1.0;
            for (size_t step = 0; step < 4; ++step)
                reference_bh4_step(model, weights->projection + (repeat * 4 + step) * step_size, y, y + padded);
            for (size_t o = 0, j = repeat * padded; o < padded && j < count; ++o, ++j)
                r[j * model->d + i] = model->decay * y[o];
        }
    free(y);
    return y != NULL;
}

bool reference_take_form(reference_form form, reference_model *model, reference_weights *weights, double **memory)
{
    *memory = NULL;
    if (form == REFERENCE_AS_IT_IS)
        return true;
    *memory = malloc(model->h * model->tau * model->d * sizeof **memory);
    if (!*memory || !multiply_out(model, weights, *memory))
        return false;
    model->projection = REFERENCE_DENSE;
    model->rest = 1.0 - model->decay;
    weights->projection = *memory;
    weights->bf16_inputs = form == REFERENCE_BF16_INPUTS;
    return true;
}
