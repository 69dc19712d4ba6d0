/* Reads and checks the job of timing whole models. */
#include "harness/measure/whole_job.h"

#include <stdlib.h>
#include <string.h>

static const size_t most_tokens = 1 << 24, most_bytes = (size_t)1 << 40;

static bool read_model(const measure_reader *in, const json_t *object, void *to, size_t index)
{
    const measure_whole_job *job = to;
    measure_whole *one = &job->models[index];
    const bool functions = job->causal ? measure_read_word(in, object, "start", &one->start) &&
                                             measure_read_word(in, object, "prefill", &one->prefill) &&
                                             measure_read_word(in, object, "step", &one->step)
                                       : measure_read_word(in, object, "encode_batch", &one->encode_batch);
    return functions && measure_read_word(in, object, "name", &one->name) && measure_read_path(in, object, "library", &one->library) &&
           measure_read_path(in, object, "blob", &one->blob) && measure_read_word(in, object, "bind", &one->bind) &&
           measure_read_integer(in, object, "weights_struct_bytes", 1, 1 << 24, &one->weights_struct_bytes) &&
           measure_read_integer(in, object, "state_bytes", 1, most_bytes, &one->state_bytes) &&
           measure_read_integer(in, object, "state_header", 1, one->state_bytes, &one->state_header) &&
           measure_read_integer(in, object, "scratch_bytes", 0, most_bytes, &one->scratch_bytes) &&
           measure_read_integer(in, object, "d_out", 1, 1 << 24, &one->d_out) &&
           measure_read_integer(in, object, "vocab", 1, 1 << 24, &one->vocab);
}

static bool read_call(const measure_reader *in, const json_t *object, void *to, size_t index)
{
    const measure_whole_job *job = to;
    measure_whole_call *call = &job->calls[index];
    const char *model;
    if (!measure_read_text(in, object, "name", &call->name) || !measure_read_word(in, object, "model", &model) ||
        !measure_read_integer(in, object, "tokens", 1, most_tokens, &call->tokens) ||
        !measure_read_integer(in, object, "sequences", 1, most_tokens / call->tokens, &call->sequences) ||
        !measure_read_integer(in, object, "position", 0, most_tokens, &call->position) ||
        !measure_read_flag(in, object, "step", &call->step)) {
        return false;
    }
    for (size_t i = 0; i < job->model_count; ++i) {
        if (strcmp(job->models[i].name, model) == 0) {
            call->model = i;
            return true;
        }
    }
    return measure_refuse(in, "model", json_object_get(object, "model"), "must be the name of a model");
}

bool measure_whole_job_read(measure_reader *in, const json_t *root, measure_whole_job *job)
{
    const json_t *models, *calls;
    *job = (measure_whole_job){0};
    if (!measure_timing_job_read(in, root, &job->timing) || !measure_read_flag(in, root, "causal", &job->causal) ||
        !measure_read_array(in, root, "wholes", 1, &models) || !measure_read_array(in, root, "calls", 1, &calls)) {
        return false;
    }
    job->model_count = json_array_size(models);
    job->call_count = json_array_size(calls);
    job->models = calloc(job->model_count, sizeof(*job->models));
    job->calls = calloc(job->call_count, sizeof(*job->calls));
    if (!job->models || !job->calls) {
        return measure_refuse(in, "wholes", models, "out of memory");
    }
    return measure_read_objects(in, models, "wholes", job, read_model) && measure_read_objects(in, calls, "calls", job, read_call);
}
