/* The dense FFN through oneDNN in float32 and bfloat16: two inner products, GELU fused into the first. */
#include "harness/baseline/ffn.h"
#include "harness/baseline/onednn.h"

#include <stdio.h>

typedef struct onednn_ffn {
    onednn_work work;
    bool round;                               /* x becomes bfloat16 first */
    onednn_primitive rounding, first, second; /* source of the first of them: x */
} onednn_ffn;

static void make(onednn_work *work, const char *type, const baseline_weights *weights, size_t tokens, onednn_ffn *ffn)
{
    const dnnl_data_type_t factors = onednn_type_of_x(type);
    const onednn_product first = {type, tokens, weights->d, weights->hidden, factors, .bias = weights->b1, .gelu = true},
                         second = {type, tokens, weights->hidden, weights->d_out, dnnl_f32, .bias = weights->b2};
    ffn->first = onednn_inner_product(work, &first);
    ffn->second = onednn_inner_product(work, &second);
    onednn_pack(work, &first, weights->w1, &ffn->first);
    onednn_pack(work, &second, weights->w2, &ffn->second);
    onednn_join(work, &ffn->first, &ffn->second, DNNL_MEMORY_ALLOCATE);
    ffn->round = factors != dnnl_f32;
    if (ffn->round) {
        ffn->rounding = onednn_rounding(work, &first, NULL);
        onednn_put(&ffn->first, DNNL_ARG_SRC, onednn_argument(&ffn->rounding, DNNL_ARG_TO));
    }
}

static void *create(const char *type, const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size)
{
    onednn_work work = onednn_begin(threads);
    onednn_ffn *ffn = onednn_room(&work, sizeof(*ffn));
    if (ffn) {
        make(&work, type, weights, tokens, ffn);
        ffn->work = work;
    }
    return onednn_made(&work, type, tokens, error, error_size) ? ffn : NULL;
}

static void *create_f32(const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size)
{
    return create("f32", weights, tokens, threads, error, error_size);
}

static void *create_bf16(const baseline_weights *weights, size_t tokens, size_t threads, char *error, size_t error_size)
{
    return create("bf16", weights, tokens, threads, error, error_size);
}

static bool run(void *self, const float *x, float *y)
{
    onednn_ffn *ffn = self;
    onednn_point(&ffn->work, ffn->round ? &ffn->rounding : &ffn->first, DNNL_ARG_SRC, x);
    onednn_point(&ffn->work, &ffn->second, DNNL_ARG_DST, y);
    return (!ffn->round || onednn_run(&ffn->work, &ffn->rounding)) && onednn_run(&ffn->work, &ffn->first) &&
           onednn_run(&ffn->work, &ffn->second);
}

static void describe(char *text, size_t size)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, size, "%d.%d.%d", version->major, version->minor, version->patch);
}

static void describe_bf16(char *text, size_t size)
{
    const char *how = onednn_has(dnnl_cpu_isa_avx512_core_amx) ? "amx" : onednn_has(dnnl_cpu_isa_avx512_core_bf16) ? "native" : "emulated";
    snprintf(text, size, "%s", how);
}

const baseline_library baseline_onednn = {.name = "onednn",
                                          .type = "f32",
                                          .description = "onednn_version",
                                          .create = create_f32,
                                          .run = run,
                                          .describe = describe,
                                          .implementation = onednn_implementation};
const baseline_library baseline_onednn_bf16 = {.name = "onednn",
                                               .type = "bf16",
                                               .description = "onednn_bf16",
                                               .create = create_bf16,
                                               .run = run,
                                               .describe = describe_bf16,
                                               .implementation = onednn_implementation};
