/* Reads what all jobs of the measuring process say about how it measures. */
#include "harness/measure/timing_job.h"

#include <stdio.h>
#include <stdlib.h>

static bool read_row_kind(const measure_reader *in, const json_t *object, void *to, size_t index)
{
    limits_rows *rows = &((measure_timing_job *)to)->rows[index];
    return measure_read_word(in, object, "name", &rows->name) && measure_read_integer(in, object, "row", 1, 1 << 24, &rows->row) &&
           measure_read_integer(in, object, "table", rows->row, (size_t)1 << 44, &rows->table);
}

static bool read_sizes(measure_reader *in, const json_t *root, measure_timing_job *job)
{
    limits_sizes *sizes = &job->sizes;
    const json_t *object = json_object_get(root, "sizes"), *rows;
    if (!json_is_object(object)) {
        return measure_refuse(in, "sizes", object, "must be an object");
    }
    snprintf(in->where, sizeof(in->where), "sizes.");
    if (!measure_read_integer(in, object, "l1d", 1 << 12, 1 << 26, &sizes->l1d) ||
        !measure_read_integer(in, object, "l2", 1 << 12, 1 << 26, &sizes->l2) ||
        !measure_read_integer(in, object, "l3", 1 << 12, (size_t)1 << 36, &sizes->l3) ||
        !measure_read_array(in, object, "rows", 0, &rows)) {
        return false;
    }
    sizes->row_kinds = json_array_size(rows);
    sizes->rows = job->rows = calloc(sizes->row_kinds + 1, sizeof(*job->rows));
    if (!job->rows) {
        return measure_refuse(in, "rows", rows, "out of memory");
    }
    return measure_read_objects(in, rows, "sizes.rows", job, read_row_kind);
}

bool measure_timing_job_read(measure_reader *in, const json_t *root, measure_timing_job *job)
{
    size_t seed, order_seed;
    const json_t *min_time = json_object_get(root, "min_time");
    if (!measure_read_word(in, root, "model", &job->model) || !measure_read_integer(in, root, "threads", 1, 1024, &job->threads) ||
        !measure_read_integer(in, root, "seed", 0, INT64_MAX, &seed) ||
        !measure_read_integer(in, root, "repetitions", 1, 1000, &job->repetitions) ||
        !measure_read_integer(in, root, "slices", 0, 64, &job->slices) || !measure_read_flag(in, root, "limits", &job->limits) ||
        (job->limits && !read_sizes(in, root, job)) || !measure_read_flag(in, root, "draw_order", &job->draw_order) ||
        !measure_read_integer(in, root, "order_seed", 0, INT64_MAX, &order_seed) || !measure_read_flag(in, root, "alike", &job->alike) ||
        !measure_read_integer(in, root, "sweep_bytes", 0, (size_t)1 << 36, &job->sweep_bytes)) {
        return false;
    }
    job->seed = seed;
    job->order_seed = order_seed;
    job->min_time = json_number_value(min_time);
    if (!json_is_number(min_time) || !(job->min_time >= 0.001 && job->min_time <= 60.0)) {
        return measure_refuse(in, "min_time", min_time, "must be a number of seconds from 0.001 to 60");
    }
    return true;
}
