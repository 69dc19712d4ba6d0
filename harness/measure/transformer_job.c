/* Reads and checks the job of timing blocks of transformers. */
#include "harness/measure/transformer_job.h"

#include <stdlib.h>
#include <string.h>

static const size_t most_tokens = 1 << 24;

static bool read_transformer(const measure_reader *in, const json_t *object, void *to, size_t index)
{
    measure_transformer *one = &((measure_transformer_job *)to)->transformers[index];
    return measure_read_word(in, object, "name", &one->name) && measure_read_path(in, object, "library", &one->library) &&
           measure_read_word(in, object, "bind", &one->bind) && measure_read_word(in, object, "call", &one->call) &&
           measure_read_path(in, object, "blob", &one->blob) &&
           measure_read_integer(in, object, "scratch_bytes", 0, (size_t)1 << 40, &one->scratch_bytes) &&
           measure_read_integer(in, object, "weights_struct_bytes", 1, 1 << 24, &one->weights_struct_bytes);
}

/* The index of the transformer that the field names. */
static bool read_which(const measure_reader *in, const json_t *object, const measure_transformer_job *job, const char *field, size_t *which)
{
    const char *name;
    if (!measure_read_word(in, object, field, &name)) {
        return false;
    }
    for (size_t i = 0; i < job->transformer_count; ++i) {
        if (strcmp(job->transformers[i].name, name) == 0) {
            *which = i;
            return true;
        }
    }
    return measure_refuse(in, field, json_object_get(object, field), "must be the name of a transformer");
}

static bool read_call(const measure_reader *in, const json_t *object, void *to, size_t index)
{
    const measure_transformer_job *job = to;
    measure_transformer_call *call = &job->calls[index];
    return measure_read_text(in, object, "name", &call->name) && read_which(in, object, job, "transformer", &call->transformer) &&
           measure_read_integer(in, object, "tokens", 1, most_tokens, &call->tokens) &&
           measure_read_integer(in, object, "position", 0, most_tokens, &call->position);
}

static bool read_read(const measure_reader *in, const json_t *object, void *to, size_t index)
{
    const measure_transformer_job *job = to;
    measure_read *read = &job->reads[index];
    return measure_read_text(in, object, "name", &read->name) && measure_read_flag(in, object, "cache", &read->cache) &&
           read_which(in, object, job, "transformer", &read->transformer) &&
           measure_read_integer(in, object, "bytes", 1, read->cache ? job->cache_bytes : (size_t)1 << 40, &read->bytes);
}

static bool read_product(const measure_reader *in, const json_t *object, void *to, size_t index)
{
    measure_product *product = &((measure_transformer_job *)to)->products[index];
    return measure_read_integer(in, object, "inputs", 1, 1 << 24, &product->inputs) &&
           measure_read_integer(in, object, "outputs", 1, 1 << 24, &product->outputs);
}

static bool read_product_call(const measure_reader *in, const json_t *object, void *to, size_t index)
{
    measure_products_call *call = &((measure_transformer_job *)to)->product_calls[index];
    return measure_read_text(in, object, "name", &call->name) && measure_read_word(in, object, "library", &call->library) &&
           measure_read_word(in, object, "type", &call->type) && measure_read_integer(in, object, "tokens", 1, most_tokens, &call->tokens);
}

static bool read_attention_call(const measure_reader *in, const json_t *object, void *to, size_t index)
{
    measure_attention_call *call = &((measure_transformer_job *)to)->attention_calls[index];
    return measure_read_text(in, object, "name", &call->name) && measure_read_word(in, object, "library", &call->library) &&
           measure_read_integer(in, object, "tokens", 1, most_tokens, &call->tokens) &&
           measure_read_integer(in, object, "position", 0, most_tokens, &call->position);
}

/* Reads the array `name` of objects of `size` bytes into new memory at *list. */
static bool read_list(measure_reader *in, const json_t *root, const char *name, size_t least, size_t size, measure_transformer_job *job,
                      void *list, size_t *count, measure_read_entry *read)
{
    const json_t *array;
    if (!measure_read_array(in, root, name, least, &array)) {
        return false;
    }
    *count = json_array_size(array);
    void *memory = calloc(*count + 1, size);
    if (!memory) {
        return measure_refuse(in, name, array, "out of memory");
    }
    memcpy(list, &memory, sizeof(memory));
    return measure_read_objects(in, array, name, job, read);
}

bool measure_transformer_job_read(measure_reader *in, const json_t *root, measure_transformer_job *job)
{
    *job = (measure_transformer_job){0};
    return measure_timing_job_read(in, root, &job->timing) && measure_read_integer(in, root, "d", 1, 1 << 24, &job->d) &&
           measure_read_integer(in, root, "cache_bytes", 1, (size_t)1 << 40, &job->cache_bytes) &&
           measure_read_integer(in, root, "filled", 0, most_tokens, &job->filled) &&
           measure_read_integer(in, root, "heads", 1, 1 << 24, &job->heads) &&
           measure_read_integer(in, root, "kv_heads", 1, job->heads, &job->kv_heads) &&
           measure_read_integer(in, root, "width", 1, 1 << 24, &job->width) &&
           measure_read_integer(in, root, "layers", 1, 1 << 24, &job->layers) && measure_read_flag(in, root, "causal", &job->causal) &&
           measure_read_integer(in, root, "sequence", 0, job->causal ? 0 : most_tokens, &job->sequence) &&
           read_list(in, root, "transformers", 1, sizeof(*job->transformers), job, &job->transformers, &job->transformer_count,
                     read_transformer) &&
           read_which(in, root, job, "fill", &job->fill) &&
           read_list(in, root, "calls", 1, sizeof(*job->calls), job, &job->calls, &job->call_count, read_call) &&
           read_list(in, root, "reads", 0, sizeof(*job->reads), job, &job->reads, &job->read_count, read_read) &&
           read_list(in, root, "products", 0, sizeof(*job->products), job, &job->products, &job->product_count, read_product) &&
           read_list(in, root, "product_calls", 0, sizeof(*job->product_calls), job, &job->product_calls, &job->product_call_count,
                     read_product_call) &&
           read_list(in, root, "attention_calls", 0, sizeof(*job->attention_calls), job, &job->attention_calls, &job->attention_call_count,
                     read_attention_call);
}
