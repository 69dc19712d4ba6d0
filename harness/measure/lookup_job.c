/* Reads and checks the job of timing LookupFFNs. */
#include "harness/measure/lookup_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_batches(const measure_reader *in, const json_t *root, measure_ffn_job *job)
{
    const json_t *batches;
    if (!measure_read_array(in, root, "batches", 1, &batches)) {
        return false;
    }
    job->batches = calloc(json_array_size(batches), sizeof(*job->batches));
    for (size_t i = 0; job->batches && i < json_array_size(batches); ++i) {
        if (!measure_check_integer(in, "batches", json_array_get(batches, i), 1, 1 << 20, &job->batches[i])) {
            return false;
        }
        for (size_t j = 0; j < i; ++j) {
            if (job->batches[j] == job->batches[i]) {
                return measure_refuse(in, "batches", batches, "must not repeat a number");
            }
        }
        if (job->batches[i] > job->largest_batch) {
            job->largest_batch = job->batches[i];
        }
        ++job->batch_count;
    }
    return true;
}

static bool read_dense(const measure_reader *in, const json_t *root, measure_ffn_job *job)
{
    const json_t *names;
    if (!measure_read_array(in, root, "dense", 0, &names)) {
        return false;
    }
    job->dense = calloc(json_array_size(names) + 1, sizeof(*job->dense));
    for (size_t i = 0; job->dense && i < json_array_size(names); ++i) {
        job->dense[i] = json_string_value(json_array_get(names, i));
        if (!job->dense[i]) {
            return measure_refuse(in, "dense", names, "must be an array of library names");
        }
        for (size_t j = 0; j < i; ++j) {
            if (strcmp(job->dense[j], job->dense[i]) == 0) {
                return measure_refuse(in, "dense", names, "must not repeat a name");
            }
        }
        ++job->baseline_count;
    }
    return true;
}

/* A size that the variant repeats must be the model's. */
static bool read_same(const measure_reader *in, const json_t *object, const char *name, size_t expected, size_t *out)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value) || json_integer_value(value) != (json_int_t)expected) {
        return measure_refuse(in, name, value, "must be the job's %s, %zu", name, expected);
    }
    *out = expected;
    return true;
}

static bool read_description(const measure_reader *in, const json_t *object, const measure_ffn_job *job, variant_description *variant)
{
    if (!measure_read_path(in, object, "library", &variant->library) || !measure_read_word(in, object, "bind", &variant->bind) ||
        !measure_read_word(in, object, "ffn", &variant->ffn) || !measure_read_word(in, object, "project", &variant->project) ||
        !measure_read_word(in, object, "gather", &variant->gather) || !measure_read_word(in, object, "any_ffn", &variant->any_ffn) ||
        !measure_read_word(in, object, "public_ffn", &variant->public_ffn) ||
        !measure_read_integer(in, object, "tile", 1, 1 << 16, &variant->tile) ||
        !measure_read_integer(in, object, "chunk", 1, 1 << 24, &variant->chunk) ||
        !measure_read_integer(in, object, "scratch_bytes", 0, (size_t)1 << 40, &variant->scratch_bytes) ||
        !measure_read_integer(in, object, "weights_struct_bytes", 1, 1 << 24, &variant->weights_struct_bytes) ||
        !read_same(in, object, "d", job->d, &variant->d) || !read_same(in, object, "d_out", job->d_out, &variant->d_out) ||
        !read_same(in, object, "h", job->h, &variant->h) || !read_same(in, object, "tau", job->tau, &variant->tau) ||
        !read_same(in, object, "neighbours", job->neighbours, &variant->neighbours)) {
        return false;
    }
    if (variant->chunk % variant->tile != 0) {
        return measure_refuse(in, "chunk", json_object_get(object, "chunk"), "must be a multiple of tile, %zu", variant->tile);
    }
    return true;
}

static bool read_variant(const measure_reader *in, const json_t *object, void *to, size_t index)
{
    measure_ffn_job *job = to;
    measure_variant_job *variant = &job->variants[index];
    if (!measure_read_word(in, object, "name", &variant->name) || !measure_read_text(in, object, "blob", &variant->blob) ||
        !measure_read_integer(in, object, "least_batch", 1, 1 << 20, &variant->least_batch) ||
        !measure_read_integer(in, object, "most_batch", variant->least_batch, 1 << 20, &variant->most_batch) ||
        !read_description(in, object, job, &variant->variant)) {
        return false;
    }
    for (const measure_variant_job *earlier = job->variants; earlier < variant; ++earlier) {
        if (strcmp(earlier->name, variant->name) == 0) {
            return measure_refuse(in, "name", json_object_get(object, "name"), "must not repeat");
        }
    }
    return true;
}

static bool read_variants(measure_reader *in, const json_t *root, measure_ffn_job *job)
{
    const json_t *variants;
    if (!measure_read_array(in, root, "variants", 0, &variants)) {
        return false;
    }
    job->variant_count = json_array_size(variants);
    job->variants = calloc(job->variant_count + 1, sizeof(*job->variants));
    return !job->variants || measure_read_objects(in, variants, "variants", job, read_variant);
}

static const char *const condition_suffixes[] = {"/uniform_warm", "/skewed_warm", "/uniform_cold", "/skewed_cold"};

const char *measure_condition_suffix(const measure_condition *condition)
{
    return condition_suffixes[condition->skewed + 2 * condition->cold];
}

static bool read_conditions(const measure_reader *in, const json_t *root, measure_ffn_job *job)
{
    const json_t *names;
    if (!measure_read_array(in, root, "conditions", 1, &names)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(names); ++i) {
        const char *name = json_string_value(json_array_get(names, i));
        size_t which = 0;
        while (which < 4 && (!name || strcmp(name, condition_suffixes[which] + 1) != 0)) {
            ++which;
        }
        if (which == 4 || i == 4) {
            return measure_refuse(in, "conditions", names, "must be some of uniform_warm, skewed_warm, uniform_cold, skewed_cold");
        }
        job->conditions[job->condition_count++] = (measure_condition){.skewed = which & 1, .cold = which & 2};
    }
    return true;
}

static bool read_sizes(measure_reader *in, const json_t *root, measure_ffn_job *job)
{
    return measure_read_integer(in, root, "d", 1, 1 << 20, &job->d) && measure_read_integer(in, root, "d_out", 1, 1 << 20, &job->d_out) &&
           measure_read_integer(in, root, "h", 1, 1 << 20, &job->h) && measure_read_integer(in, root, "tau", 1, 16, &job->tau) &&
           measure_read_integer(in, root, "neighbours", 1, 1 << 16, &job->neighbours) &&
           measure_read_integer(in, root, "baseline_hidden", 1, 1 << 24, &job->baseline_hidden);
}

bool measure_ffn_job_read(measure_reader *in, const json_t *root, measure_ffn_job *job)
{
    *job = (measure_ffn_job){0};
    if (!measure_timing_job_read(in, root, &job->timing) || !read_sizes(in, root, job) || !read_batches(in, root, job) ||
        !read_dense(in, root, job) || !measure_read_flag(in, root, "stages", &job->stages) || !read_conditions(in, root, job) ||
        !measure_read_flag(in, root, "take_turns", &job->take_turns) || !read_variants(in, root, job)) {
        return false;
    }
    if (!job->batches || !job->dense || !job->variants) {
        snprintf(in->error, in->error_size, "%s: out of memory", in->path);
        return false;
    }
    if (job->baseline_count + job->variant_count == 0) {
        return measure_refuse(in, "variants", json_object_get(root, "variants"), "must not be empty when dense is empty too");
    }
    return true;
}
