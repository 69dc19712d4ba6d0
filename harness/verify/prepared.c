/* What the variants of one model have in common when they are verified. */
#include "harness/verify/prepared.h"

#include <stdlib.h>

static bool extend(sample *s, float *x, size_t tokens, char *error, size_t error_size)
{
    return sample_extend(s, x, tokens) ||
           files_error(error, error_size, "verify: not enough memory, or a table with a value that is not finite");
}

bool verify_reference_open(verify_reference *reference, const reference_model *model, uint64_t seed, const verify_sources *sources,
                           char *error, size_t error_size)
{
    verify_reference *r = reference;
    *r = (verify_reference){.model = *model, .seed = seed};
    r->file = checkpoint_open(&r->model, sources->weights, sources->prefix, sources->blocks_in_out, error, error_size);
    if (!r->file || !files_map(sources->blob, &r->blob, error, error_size))
        return false;
    r->tables = (reference_tables){
        .model = &r->model, .exact = checkpoint_weights(r->file), .type = sources->tables, .byte_scores = sources->byte_scores};
    r->weights = reference_tables_rounded(&r->tables);
    r->exact_weights = *checkpoint_weights(r->file);
    if (!reference_take_form(sources->form, &r->model, &r->weights, &r->multiplied))
        return files_error(error, error_size, "verify: not enough memory");
    r->exact_weights.projection = r->weights.projection;
    if (!row_cache_open(&r->rows, &r->model, &r->weights) || !row_cache_open(&r->exact_rows, &r->model, &r->exact_weights) ||
        !reference_round_projection(&r->model, sources->projection, &r->weights, &r->projection))
        return files_error(error, error_size, "verify: not enough memory");
    r->random = (sample){.model = &r->model, .weights = &r->weights, .share = SAMPLE_RANDOM_SHARE};
    r->exact = (sample){.model = &r->model, .share = SAMPLE_RANDOM_SHARE};
    if (!reference_type_is_exact(sources->tables) || !reference_type_is_exact(sources->projection))
        r->exact.weights = &r->exact_weights;
    r->special = (sample){.model = &r->model, .weights = &r->weights, .share = SAMPLE_SPECIAL_SHARE};
    float *x = malloc(SAMPLE_SPECIAL * model->d * sizeof *x);
    if (x)
        sample_special(&r->model, seed, x);
    return extend(&r->special, x, SAMPLE_SPECIAL, error, error_size);
}

/* A sample with the first so many random tokens. */
static bool extend_random(const verify_reference *reference, sample *s, size_t tokens, char *error, size_t error_size)
{
    if (s->tokens >= tokens)
        return true;
    float *x = malloc(tokens * reference->model.d * sizeof *x);
    if (x)
        sample_random(&reference->model, reference->seed, tokens, x);
    return extend(s, x, tokens, error, error_size);
}

bool verify_reference_extend(verify_reference *reference, size_t tokens, char *error, size_t error_size)
{
    return extend_random(reference, &reference->random, tokens, error, error_size) &&
           (!reference->exact.weights || extend_random(reference, &reference->exact, tokens, error, error_size));
}

const sample *verify_reference_exact(const verify_reference *reference)
{
    return reference->exact.weights ? &reference->exact : &reference->random;
}

void verify_reference_close(verify_reference *reference)
{
    sample_free(&reference->random);
    sample_free(&reference->special);
    sample_free(&reference->exact);
    row_cache_close(&reference->rows);
    row_cache_close(&reference->exact_rows);
    free(reference->projection);
    free(reference->multiplied);
    files_unmap(&reference->blob);
    checkpoint_close(reference->file);
    *reference = (verify_reference){.seed = 0};
}
