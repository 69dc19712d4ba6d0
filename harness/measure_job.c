/* Reads and checks the job of the measuring process. */
#include "measure_job.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *path;
    char *error;
    size_t error_size;
    char where[64]; /* "" or "variants[1]." */
} reader;

__attribute__((format(printf, 4, 5))) static bool refuse(const reader *in, const char *name, const json_t *value, const char *format, ...)
{
    char rule[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(rule, sizeof(rule), format, arguments);
    va_end(arguments);
    if (!value) {
        snprintf(in->error, in->error_size, "%s: %s%s: missing: %s", in->path, in->where, name, rule);
        return false;
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    snprintf(in->error, in->error_size, "%s: %s%s: %.60s: %s", in->path, in->where, name, text ? text : "?", rule);
    free(text);
    return false;
}

static bool check_integer(const reader *in, const char *name, const json_t *value, size_t least, size_t most, size_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < (json_int_t)least || json_integer_value(value) > (json_int_t)most) {
        return refuse(in, name, value, "must be an integer from %zu to %zu", least, most);
    }
    *out = (size_t)json_integer_value(value);
    return true;
}

static bool read_integer(const reader *in, const json_t *object, const char *name, size_t least, size_t most, size_t *out)
{
    return check_integer(in, name, json_object_get(object, name), least, most, out);
}

static bool read_text(const reader *in, const json_t *object, const char *name, const char **out)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value) || json_string_length(value) == 0) {
        return refuse(in, name, value, "must be text that is not empty");
    }
    *out = json_string_value(value);
    return true;
}

/* A name that becomes a part of a benchmark's name or a symbol. */
static bool read_word(const reader *in, const json_t *object, const char *name, const char **out)
{
    if (!read_text(in, object, name, out)) {
        return false;
    }
    if (strspn(*out, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != strlen(*out)) {
        return refuse(in, name, json_object_get(object, name), "must consist of letters, digits and underscores");
    }
    return true;
}

static bool read_array(const reader *in, const json_t *object, const char *name, size_t least, const json_t **out)
{
    *out = json_object_get(object, name);
    if (!json_is_array(*out) || json_array_size(*out) < least) {
        return refuse(in, name, *out, least ? "must be an array with at least one entry" : "must be an array");
    }
    return true;
}

static bool read_batches(const reader *in, const json_t *root, measure_job *job)
{
    const json_t *batches;
    if (!read_array(in, root, "batches", 1, &batches)) {
        return false;
    }
    job->batches = calloc(json_array_size(batches), sizeof(*job->batches));
    for (size_t i = 0; job->batches && i < json_array_size(batches); ++i) {
        if (!check_integer(in, "batches", json_array_get(batches, i), 1, 1 << 20, &job->batches[i])) {
            return false;
        }
        for (size_t j = 0; j < i; ++j) {
            if (job->batches[j] == job->batches[i]) {
                return refuse(in, "batches", batches, "must not repeat a number");
            }
        }
        if (job->batches[i] > job->largest_batch) {
            job->largest_batch = job->batches[i];
        }
        ++job->batch_count;
    }
    return true;
}

static bool read_dense(const reader *in, const json_t *root, measure_job *job)
{
    const json_t *names;
    if (!read_array(in, root, "dense", 0, &names)) {
        return false;
    }
    job->dense = calloc(json_array_size(names) + 1, sizeof(*job->dense));
    for (size_t i = 0; job->dense && i < json_array_size(names); ++i) {
        job->dense[i] = json_string_value(json_array_get(names, i));
        if (!job->dense[i]) {
            return refuse(in, "dense", names, "must be an array of library names");
        }
        for (size_t j = 0; j < i; ++j) {
            if (strcmp(job->dense[j], job->dense[i]) == 0) {
                return refuse(in, "dense", names, "must not repeat a name");
            }
        }
        ++job->dense_count;
    }
    return true;
}

/* A size that the variant repeats must be the model's. */
static bool read_same(const reader *in, const json_t *object, const char *name, size_t expected, size_t *out)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value) || json_integer_value(value) != (json_int_t)expected) {
        return refuse(in, name, value, "must be the job's %s, %zu", name, expected);
    }
    *out = expected;
    return true;
}

static bool read_description(const reader *in, const json_t *object, const measure_job *job, variant_description *variant)
{
    if (!read_text(in, object, "library", &variant->library) || !read_word(in, object, "bind", &variant->bind) ||
        !read_word(in, object, "ffn", &variant->ffn) || !read_word(in, object, "project", &variant->project) ||
        !read_word(in, object, "gather", &variant->gather) || !read_word(in, object, "any_ffn", &variant->any_ffn) ||
        !read_word(in, object, "public_ffn", &variant->public_ffn) || !read_integer(in, object, "tile", 1, 1 << 16, &variant->tile) ||
        !read_integer(in, object, "chunk", 1, 1 << 24, &variant->chunk) ||
        !read_integer(in, object, "scratch_bytes", 0, (size_t)1 << 40, &variant->scratch_bytes) ||
        !read_integer(in, object, "weights_struct_bytes", 1, 1 << 24, &variant->weights_struct_bytes) ||
        !read_same(in, object, "d", job->d, &variant->d) || !read_same(in, object, "d_out", job->d_out, &variant->d_out) ||
        !read_same(in, object, "h", job->h, &variant->h) || !read_same(in, object, "tau", job->tau, &variant->tau) ||
        !read_same(in, object, "neighbours", job->neighbours, &variant->neighbours)) {
        return false;
    }
    if (variant->library[0] != '/') {
        return refuse(in, "library", json_object_get(object, "library"), "must be an absolute path");
    }
    if (variant->chunk % variant->tile != 0) {
        return refuse(in, "chunk", json_object_get(object, "chunk"), "must be a multiple of tile, %zu", variant->tile);
    }
    return true;
}

static bool read_variant(const reader *in, const json_t *object, measure_job *job, size_t index)
{
    measure_variant_job *variant = &job->variants[index];
    if (!read_word(in, object, "name", &variant->name) || !read_text(in, object, "blob", &variant->blob) ||
        !read_integer(in, object, "least_batch", 1, 1 << 20, &variant->least_batch) ||
        !read_integer(in, object, "most_batch", variant->least_batch, 1 << 20, &variant->most_batch) ||
        !read_description(in, object, job, &variant->variant)) {
        return false;
    }
    for (const measure_variant_job *earlier = job->variants; earlier < variant; ++earlier) {
        if (strcmp(earlier->name, variant->name) == 0) {
            return refuse(in, "name", json_object_get(object, "name"), "must not repeat");
        }
    }
    return true;
}

typedef bool read_entry(const reader *in, const json_t *object, measure_job *job, size_t index);

/* Reads array[i] of objects by `read`; `where` gets "name[i].". */
static bool read_objects(reader *in, const json_t *array, const char *name, measure_job *job, read_entry *read)
{
    for (size_t i = 0; i < json_array_size(array); ++i) {
        const json_t *object = json_array_get(array, i);
        snprintf(in->where, sizeof(in->where), "%s[%zu]", name, i);
        if (!json_is_object(object)) {
            return refuse(in, "", object, "must be an object");
        }
        strcat(in->where, ".");
        if (!read(in, object, job, i)) {
            return false;
        }
    }
    in->where[0] = '\0';
    return true;
}

static bool read_variants(reader *in, const json_t *root, measure_job *job)
{
    const json_t *variants;
    if (!read_array(in, root, "variants", 0, &variants)) {
        return false;
    }
    job->variant_count = json_array_size(variants);
    job->variants = calloc(job->variant_count + 1, sizeof(*job->variants));
    return !job->variants || read_objects(in, variants, "variants", job, read_variant);
}

static bool read_row_kind(const reader *in, const json_t *object, measure_job *job, size_t index)
{
    limits_rows *rows = &job->rows[index];
    return read_word(in, object, "name", &rows->name) && read_integer(in, object, "row", 1, 1 << 24, &rows->row) &&
           read_integer(in, object, "table", rows->row, (size_t)1 << 44, &rows->table);
}

static bool read_flag(const reader *in, const json_t *object, const char *name, bool *out)
{
    const json_t *value = json_object_get(object, name);
    *out = json_is_true(value);
    return json_is_boolean(value) || refuse(in, name, value, "must be true or false");
}

static const char *const condition_suffixes[] = {"/uniform_warm", "/skewed_warm", "/uniform_cold", "/skewed_cold"};

const char *measure_condition_suffix(const measure_condition *condition)
{
    return condition_suffixes[condition->skewed + 2 * condition->cold];
}

static bool read_conditions(const reader *in, const json_t *root, measure_job *job)
{
    const json_t *names;
    if (!read_array(in, root, "conditions", 1, &names)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(names); ++i) {
        const char *name = json_string_value(json_array_get(names, i));
        size_t which = 0;
        while (which < 4 && (!name || strcmp(name, condition_suffixes[which] + 1) != 0)) {
            ++which;
        }
        if (which == 4 || i == 4) {
            return refuse(in, "conditions", names, "must be some of uniform_warm, skewed_warm, uniform_cold, skewed_cold");
        }
        job->conditions[job->condition_count++] = (measure_condition){.skewed = which & 1, .cold = which & 2};
    }
    return true;
}

static bool read_sizes(reader *in, const json_t *root, measure_job *job)
{
    limits_sizes *sizes = &job->sizes;
    const json_t *object = json_object_get(root, "sizes"), *rows;
    if (!json_is_object(object)) {
        return refuse(in, "sizes", object, "must be an object");
    }
    snprintf(in->where, sizeof(in->where), "sizes.");
    if (!read_integer(in, object, "l1d", 1 << 12, 1 << 26, &sizes->l1d) || !read_integer(in, object, "l2", 1 << 12, 1 << 26, &sizes->l2) ||
        !read_integer(in, object, "l3", 1 << 12, (size_t)1 << 36, &sizes->l3) || !read_array(in, object, "rows", 0, &rows)) {
        return false;
    }
    sizes->row_kinds = json_array_size(rows);
    sizes->rows = job->rows = calloc(sizes->row_kinds + 1, sizeof(*job->rows));
    return !job->rows || read_objects(in, rows, "sizes.rows", job, read_row_kind);
}

static bool read_job(reader *in, const json_t *root, measure_job *job)
{
    size_t seed, order_seed;
    if (!json_is_object(root)) {
        snprintf(in->error, in->error_size, "%s: must be an object", in->path);
        return false;
    }
    if (!read_word(in, root, "model", &job->model) || !read_integer(in, root, "threads", 1, 1024, &job->threads) ||
        !read_integer(in, root, "d", 1, 1 << 20, &job->d) || !read_integer(in, root, "d_out", 1, 1 << 20, &job->d_out) ||
        !read_integer(in, root, "h", 1, 1 << 20, &job->h) || !read_integer(in, root, "tau", 1, 16, &job->tau) ||
        !read_integer(in, root, "neighbours", 1, 1 << 16, &job->neighbours) ||
        !read_integer(in, root, "dense_hidden", 1, 1 << 24, &job->dense_hidden) || !read_integer(in, root, "seed", 0, INT64_MAX, &seed) ||
        !read_batches(in, root, job) || !read_integer(in, root, "repetitions", 1, 1000, &job->repetitions) || !read_dense(in, root, job) ||
        !read_flag(in, root, "limits", &job->limits) || (job->limits && !read_sizes(in, root, job)) ||
        !read_flag(in, root, "stages", &job->stages) || !read_flag(in, root, "draw_order", &job->draw_order) ||
        !read_integer(in, root, "order_seed", 0, INT64_MAX, &order_seed) || !read_conditions(in, root, job) ||
        !read_flag(in, root, "take_turns", &job->take_turns) || !read_flag(in, root, "alike", &job->alike) ||
        !read_integer(in, root, "sweep_bytes", 0, (size_t)1 << 36, &job->sweep_bytes) || !read_variants(in, root, job)) {
        return false;
    }
    job->seed = seed;
    job->order_seed = order_seed;
    const json_t *min_time = json_object_get(root, "min_time");
    job->min_time = json_number_value(min_time);
    if (!json_is_number(min_time) || !(job->min_time >= 0.001 && job->min_time <= 60.0)) {
        return refuse(in, "min_time", min_time, "must be a number of seconds from 0.001 to 60");
    }
    if (!job->batches || !job->dense || !job->variants || (job->limits && !job->rows)) {
        snprintf(in->error, in->error_size, "%s: out of memory", in->path);
        return false;
    }
    if (job->dense_count + job->variant_count == 0) {
        return refuse(in, "variants", json_object_get(root, "variants"), "must not be empty when dense is empty too");
    }
    return true;
}

bool measure_job_read(const char *path, measure_job *job, char *error, size_t error_size)
{
    *job = (measure_job){0};
    json_error_t mistake;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &mistake);
    if (!root) {
        if (mistake.line > 0) {
            snprintf(error, error_size, "%s:%d: %s", path, mistake.line, mistake.text);
        } else {
            snprintf(error, error_size, "%s: %s", path, mistake.text);
        }
        return false;
    }
    job->text = root;
    reader in = {.path = path, .error = error, .error_size = error_size};
    if (!read_job(&in, root, job)) {
        measure_job_release(job);
        return false;
    }
    return true;
}

void measure_job_release(measure_job *job)
{
    free(job->batches);
    free(job->dense);
    free(job->variants);
    free(job->rows);
    json_decref(job->text);
    *job = (measure_job){0};
}
