/* oneDNN in C: primitives with everything that they take. */
#include "harness/baseline/onednn.h"

#include "harness/baseline/ffn.h"
#include "harness/baseline/memory.h"

#include <dnnl_debug.h>
#include <stdio.h>
#include <string.h>

/* oneDNN runs on the OpenMP threads of libgomp, which has no header that every compiler finds. */
void omp_set_num_threads(int threads);

static dnnl_engine_t cpu;

void onednn_note(onednn_work *work, dnnl_status_t status)
{
    work->status = work->status == dnnl_success ? status : work->status;
}

onednn_work onednn_begin(size_t threads)
{
    onednn_work work = {NULL, dnnl_success, ""};
    omp_set_num_threads((int)threads);
    if (!cpu) {
        onednn_note(&work, dnnl_engine_create(&cpu, dnnl_cpu, 0));
    }
    onednn_note(&work, dnnl_stream_create(&work.stream, cpu, dnnl_stream_default_flags));
    return work;
}

bool onednn_made(const onednn_work *work, const char *type, size_t tokens, char *error, size_t error_size)
{
    *error = '\0';
    if (work->status != dnnl_success && work->status != dnnl_unimplemented) {
        snprintf(error, error_size, "onednn: %s, %zu tokens: %s", type, tokens, dnnl_status2str(work->status));
    }
    return work->status == dnnl_success;
}

static void *noted(onednn_work *work, void *memory)
{
    onednn_note(work, memory ? dnnl_success : dnnl_out_of_memory);
    return memory;
}

void *onednn_room(onednn_work *work, size_t bytes)
{
    return noted(work, baseline_memory(bytes, false));
}

static dnnl_memory_desc_t describe(onednn_work *work, dnnl_data_type_t type, dnnl_format_tag_t tag, size_t rows, size_t columns)
{
    dnnl_memory_desc_t of;
    onednn_note(work, dnnl_memory_desc_init_by_tag(&of, 2, (dnnl_dims_t){(dnnl_dim_t)rows, (dnnl_dim_t)columns}, type, tag));
    return of;
}

/* oneDNN only reads what a primitive only reads. */
static dnnl_memory_t memory_of(onednn_work *work, const dnnl_memory_desc_t *of, const void *data)
{
    dnnl_memory_t memory = NULL;
    data = data == DNNL_MEMORY_ALLOCATE ? onednn_room(work, dnnl_memory_desc_get_size(of)) : data;
    onednn_note(work, dnnl_memory_create(&memory, of, cpu, (void *)data));
    return memory;
}

dnnl_memory_t onednn_matrix(onednn_work *work, dnnl_data_type_t type, size_t rows, size_t columns, const void *data)
{
    const dnnl_memory_desc_t of = describe(work, type, dnnl_ab, rows, columns);
    return memory_of(work, &of, data);
}

const dnnl_memory_desc_t *onednn_layout(dnnl_memory_t memory)
{
    const dnnl_memory_desc_t *of = NULL;
    dnnl_memory_get_memory_desc(memory, &of);
    return of;
}

/* The primitive that `chosen` describes, with its arguments. */
static onednn_primitive bind(onednn_work *work, dnnl_primitive_desc_t chosen)
{
    static const int bound[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    onednn_primitive made = {.count = 0};
    if (work->status == dnnl_success) {
        onednn_note(work, dnnl_primitive_create(&made.primitive, chosen));
    }
    for (size_t i = 0; work->status == dnnl_success && i < sizeof(bound) / sizeof(*bound); ++i) {
        const dnnl_memory_desc_t *of = dnnl_primitive_desc_query_md(chosen, dnnl_query_exec_arg_md, bound[i]);
        if (of && of->ndims > 0) { /* else it has no such argument */
            onednn_put(&made, bound[i], memory_of(work, of, bound[i] == DNNL_ARG_SCRATCHPAD ? DNNL_MEMORY_ALLOCATE : DNNL_MEMORY_NONE));
        }
    }
    dnnl_primitive_desc_destroy(chosen);
    return made;
}

/* Attributes of a primitive whose scratchpad is one of its arguments. */
static dnnl_primitive_attr_t make_attributes(onednn_work *work)
{
    dnnl_primitive_attr_t attributes = NULL;
    onednn_note(work, dnnl_primitive_attr_create(&attributes));
    onednn_note(work, dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user));
    return attributes;
}

onednn_primitive onednn_primitive_of(onednn_work *work, const void *operation, dnnl_primitive_attr_t attributes)
{
    dnnl_primitive_desc_t chosen = NULL;
    attributes = attributes ? attributes : make_attributes(work);
    if (work->status == dnnl_success) {
        onednn_note(work, dnnl_primitive_desc_create(&chosen, operation, attributes, cpu, NULL));
    }
    dnnl_primitive_attr_destroy(attributes);
    const char *name = NULL;
    if (chosen && dnnl_primitive_desc_query(chosen, dnnl_query_impl_info_str, 0, &name) == dnnl_success) {
        baseline_add_name(work->implementation, sizeof(work->implementation), name);
    }
    return bind(work, chosen);
}

/* The numbers of `from` with the type and in the layout of `to`. */
static onednn_primitive reorder(onednn_work *work, dnnl_memory_t from, dnnl_memory_t to)
{
    dnnl_primitive_desc_t chosen = NULL;
    if (work->status == dnnl_success) {
        onednn_note(work, dnnl_reorder_primitive_desc_create(&chosen, onednn_layout(from), cpu, onednn_layout(to), cpu, NULL));
    }
    onednn_primitive made = bind(work, chosen);
    onednn_put(&made, DNNL_ARG_FROM, from);
    onednn_put(&made, DNNL_ARG_TO, to);
    return made;
}

onednn_primitive onednn_rounding(onednn_work *work, const onednn_product *of, const float *x)
{
    return reorder(work, onednn_matrix(work, dnnl_f32, of->tokens, of->inputs, x),
                   onednn_matrix(work, onednn_type_of_x(of->type), of->tokens, of->inputs, DNNL_MEMORY_ALLOCATE));
}

dnnl_data_type_t onednn_type_of_x(const char *type)
{
    return strcmp(type, "i8") == 0 ? dnnl_u8 : strcmp(type, "bf16") == 0 ? dnnl_bf16 : dnnl_f32;
}

static dnnl_primitive_attr_t attributes_of(onednn_work *work, const onednn_product *of)
{
    dnnl_primitive_attr_t attributes = make_attributes(work);
    dnnl_post_ops_t behind = NULL;
    onednn_note(work, dnnl_post_ops_create(&behind));
    if (of->scale || of->by_output) {
        const float of_call = DNNL_RUNTIME_F32_VAL;
        const size_t count = of->scale && of->by_output ? of->outputs : 1;
        onednn_note(work, dnnl_primitive_attr_set_output_scales(attributes, (dnnl_dim_t)count, of->by_output ? 1 << 1 : 0,
                                                                of->scale ? of->scale : &of_call));
    }
    if (of->gelu) {
        onednn_note(work, dnnl_post_ops_append_eltwise(behind, 1.0f, dnnl_eltwise_gelu_tanh, 0.0f, 0.0f));
    }
    if (of->result == dnnl_u8) {
        onednn_note(work, dnnl_post_ops_append_eltwise(behind, 1.0f, dnnl_eltwise_linear, 1.0f / of->unit, of->zero));
    }
    onednn_note(work, dnnl_primitive_attr_set_post_ops(attributes, behind));
    dnnl_post_ops_destroy(behind);
    return attributes;
}

onednn_primitive onednn_inner_product(onednn_work *work, const onednn_product *of)
{
    const dnnl_data_type_t type = onednn_type_of_x(of->type);
    const dnnl_memory_desc_t x = describe(work, type, dnnl_ab, of->tokens, of->inputs),
                             w = describe(work, type == dnnl_u8 ? dnnl_s8 : type, dnnl_format_tag_any, of->outputs, of->inputs),
                             y = describe(work, of->result, dnnl_ab, of->tokens, of->outputs);
    dnnl_memory_desc_t by_output;
    onednn_note(work, dnnl_memory_desc_init_by_tag(&by_output, 1, (dnnl_dims_t){(dnnl_dim_t)of->outputs}, dnnl_f32, dnnl_a));
    dnnl_inner_product_desc_t operation;
    onednn_note(work, dnnl_inner_product_forward_desc_init(&operation, dnnl_forward_inference, &x, &w, of->bias ? &by_output : NULL, &y));
    onednn_primitive made = onednn_primitive_of(work, &operation, attributes_of(work, of));
    if (of->bias) {
        onednn_put(&made, DNNL_ARG_BIAS, memory_of(work, &by_output, of->bias));
    }
    if (of->by_output && !of->scale) {
        onednn_put(&made, DNNL_ARG_ATTR_OUTPUT_SCALES, memory_of(work, &by_output, NULL));
    }
    return made;
}

void onednn_pack(onednn_work *work, const onednn_product *of, const void *weights, onednn_primitive *to)
{
    if (work->status != dnnl_success) {
        return;
    }
    const dnnl_memory_desc_t *wanted = onednn_layout(onednn_argument(to, DNNL_ARG_WEIGHTS));
    void *room = noted(work, baseline_memory(dnnl_memory_desc_get_size(wanted), true));
    const dnnl_memory_t packed = memory_of(work, wanted, room);
    const dnnl_data_type_t plain = onednn_type_of_x(of->type) == dnnl_u8 ? dnnl_s8 : dnnl_f32;
    const onednn_primitive packing = reorder(work, onednn_matrix(work, plain, of->outputs, of->inputs, weights), packed);
    onednn_run(work, &packing);
    onednn_put(to, DNNL_ARG_WEIGHTS, packed);
}

void onednn_join(onednn_work *work, onednn_primitive *first, onednn_primitive *second, void *data)
{
    if (work->status == dnnl_success) {
        const dnnl_memory_t between = memory_of(work, onednn_layout(onednn_argument(first, DNNL_ARG_DST)), data);
        onednn_put(first, DNNL_ARG_DST, between);
        onednn_put(second, DNNL_ARG_SRC, between);
    }
}

dnnl_memory_t onednn_argument(const onednn_primitive *of, int argument)
{
    for (int i = 0; i < of->count; ++i) {
        if (of->arguments[i].arg == argument) {
            return of->arguments[i].memory;
        }
    }
    return NULL;
}

void onednn_put(onednn_primitive *of, int argument, dnnl_memory_t memory)
{
    int i = 0;
    while (i < of->count && of->arguments[i].arg != argument) {
        ++i;
    }
    of->arguments[i] = (dnnl_exec_arg_t){argument, memory};
    of->count += i == of->count;
}

void onednn_point(onednn_work *work, const onednn_primitive *of, int argument, const void *data)
{
    onednn_note(work, dnnl_memory_set_data_handle(onednn_argument(of, argument), (void *)data));
}

bool onednn_run(onednn_work *work, const onednn_primitive *of)
{
    if (work->status == dnnl_success) {
        onednn_note(work, dnnl_primitive_execute(of->primitive, work->stream, of->count, of->arguments));
        onednn_note(work, dnnl_stream_wait(work->stream));
    }
    return work->status == dnnl_success;
}

bool onednn_has(dnnl_cpu_isa_t isa)
{
    return ((unsigned)dnnl_get_effective_cpu_isa() & (unsigned)isa) == (unsigned)isa; /* bits, each of an extension */
}

int onednn_largest_weight(void)
{
    return onednn_has(dnnl_cpu_isa_avx512_core_vnni) || onednn_has(dnnl_cpu_isa_avx2_vnni) ? 127 : 63;
}

const char *onednn_implementation(const void *made)
{
    const onednn_work *work = made;
    return work->implementation;
}
