/* See distil.h. The loss enters the emitted step as its criterion, token by token. */
#include "harness/convert/distil.h"

#include "harness/base/memory.h"
#include "harness/train/optimiser.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float beta1 = 0.9f, beta2 = 0.98f, epsilon = 1e-8f, table_epsilon = 1e-16f;

struct distil {
    distil_job job;
    train_call call;
    float *first, *second; /* averages of Adam */
    float *lost;           /* laid out as the parameters: what rounding takes from them (rounding_take); NULL: no tensor is rounded */
    double *work;          /* of a piece that is rounded */
    float *scales;
    /* of a step */
    size_t sequences, length, tokens_room, sequences_room;
    const uint32_t *lengths;
    const float *rows;
    size_t *begin; /* [sequences] first row of each */
    float *pooled; /* [sequences][width] errors of their pools */
    float *pulled; /* [sequences][width] slopes of the errors of their vectors by their pools */
    double *off;   /* [sequences] these errors */
    float *pools;  /* [2][width] of a sequence: its own, and the wanted one */
    vector_error *vector;
    int32_t *ids, *targets;
    void *workspace;
    size_t workspace_bytes;
};

void distil_free(distil *d)
{
    if (!d)
        return;
    void *all[] = {d->call.parameters, d->call.gradients, d->call.table_state, d->first, d->second, d->lost, d->work,    d->scales,
                   d->begin,           d->pooled,         d->pulled,           d->off,   d->pools,  d->ids,  d->targets, d->workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
        free(all[i]);
    vector_error_free(d->vector);
    free(d->job.tensors);
    free(d);
}

/* Elements of `t` that are rounded together. */
static size_t piece_of(const distil_tensor *t)
{
    return t->tables ? t->columns : t->rows * t->columns;
}

/* Memory for rounding, if a tensor is rounded. False: it is short. */
static bool prepare_rounding(distil *d)
{
    size_t most = 0;
    for (size_t i = 0; i < d->job.tensor_count; ++i) {
        const distil_tensor *t = d->job.tensors + i;
        if (t->rounds)
            most = piece_of(t) > most ? piece_of(t) : most;
    }
    if (most == 0)
        return true;
    d->lost = aligned_memory(d->job.parameters * sizeof *d->lost);
    d->work = aligned_memory(most * sizeof *d->work);
    d->scales = aligned_memory(most * sizeof *d->scales);
    return d->lost && d->work && d->scales;
}

/* Rounds what is rounded for passes forward; or gives the weights back what that took. */
static void round_weights(distil *d, bool back)
{
    for (size_t i = 0; i < d->job.tensor_count; ++i) {
        const distil_tensor *t = d->job.tensors + i;
        const size_t piece = piece_of(t);
        for (size_t row = 0; t->rounds && row < t->rows; row += piece / t->columns) {
            float *values = d->call.parameters + t->at + row * t->pitch, *lost = d->lost + t->at + row * t->pitch;
            if (!back)
                rounding_take(&t->rounding, values, piece, lost, d->work, d->scales);
            for (size_t k = 0; back && k < piece; ++k)
                values[k] += lost[k];
        }
    }
}

distil *distil_create(const distil_job *job, const float *constants)
{
    distil *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->job = *job;
    d->job.tensors = malloc((job->tensor_count + 1) * sizeof *job->tensors);
    d->call.parameters = aligned_memory(job->parameters * 4);
    d->call.gradients = aligned_memory(job->gradients * 4);
    d->call.table_state = aligned_memory(job->table_rows * 4);
    d->first = aligned_memory(job->gradients * 4);
    d->second = aligned_memory(job->gradients * 4);
    if (!d->job.tensors || !d->call.parameters || !d->call.gradients || !d->call.table_state || !d->first || !d->second) {
        distil_free(d);
        return NULL;
    }
    memcpy(d->job.tensors, job->tensors, job->tensor_count * sizeof *job->tensors);
    d->pools = aligned_memory(2 * job->width * sizeof *d->pools);
    d->vector = job->vectors > 0 ? vector_error_create(&job->vector) : NULL;
    if (!prepare_rounding(d) || !d->pools || (job->vectors > 0 && !d->vector)) {
        distil_free(d);
        return NULL;
    }
    d->call.constants = constants;
    d->call.table_epsilon = table_epsilon;
    d->call.parts = 1;
    d->call.signs = TRAIN_OWN_SIGNS;
    d->call.criterion_context = d;
    return d;
}

float *distil_parameters(distil *d)
{
    return d->call.parameters;
}

/* How much of a sequence's vector token `at` of `length` is. */
static double share_of(distil_pool pool, size_t at, size_t length)
{
    switch (pool) {
    case DISTIL_MEAN: return 1 / (double)length;
    case DISTIL_FIRST: return at == 0;
    case DISTIL_LAST: return at + 1 == length;
    default: return 0;
    }
}

/* Before the criterion: errors of the sequences' pools and vectors. */
static void observe(void *context, const float *features)
{
    const distil *d = context;
    const size_t width = d->job.width;
    float *own_pool = d->pools, *wanted_pool = own_pool + width;
    for (size_t s = 0; s < d->sequences; ++s) {
        float *to = d->pooled + s * width;
        memset(d->pools, 0, 2 * width * sizeof *d->pools);
        for (size_t i = 0; i < d->lengths[s]; ++i) {
            const float share = (float)share_of(d->job.pool, i, d->lengths[s]);
            const float *own = features + (s * d->length + i) * d->job.pitch, *wanted = d->rows + (d->begin[s] + i) * width;
            for (size_t k = 0; share > 0 && k < width; ++k) {
                own_pool[k] += share * own[k];
                wanted_pool[k] += share * wanted[k];
            }
        }
        for (size_t k = 0; k < width; ++k)
            to[k] = own_pool[k] - wanted_pool[k];
        if (d->job.vectors > 0)
            d->off[s] = vector_error_of(d->vector, own_pool, wanted_pool, d->pulled + s * width);
    }
}

static float squared_error(void *context, size_t token, float *row, float scale, int back)
{
    const distil *d = context;
    const size_t s = token / d->length, at = token % d->length, width = d->job.width;
    const float *wanted = d->rows + (d->begin[s] + at) * width, *pooled = d->pooled + s * width;
    const bool pulls = d->job.vectors > 0;
    const float *pulled = d->pulled + s * width;
    const double share = d->lengths[s] * share_of(d->job.pool, at, d->lengths[s]);
    const float weight = (float)(d->job.pooled * share), pull = (float)(d->job.vectors * share);
    double sum = pulls ? d->job.vectors * d->off[s] : 0;
    for (size_t k = 0; k < width; ++k) {
        const float error = row[k] - wanted[k];
        sum += (double)error * (double)error + d->job.pooled * (double)pooled[k] * (double)pooled[k];
        if (back)
            row[k] = scale * (error + weight * pooled[k] + (pulls ? pull * pulled[k] : 0.0f));
    }
    return (float)(sum / 2);
}

static double total_of(const float *row, size_t width, double *high)
{
    double total = 0;
    *high = (double)row[0];
    for (size_t k = 1; k < width; ++k)
        *high = (double)row[k] > *high ? (double)row[k] : *high;
    for (size_t k = 0; k < width; ++k)
        total += (double)expf(row[k] - (float)*high);
    return total;
}

/* The divergence of softmax(row) from that of the dense model's logits. */
static float divergence(void *context, size_t token, float *row, float scale, int back)
{
    const distil *d = context;
    const size_t width = d->job.width;
    const float *wanted = d->rows + (d->begin[token / d->length] + token % d->length) * width;
    const float cap = (float)d->job.soft_cap;
    for (size_t k = 0; cap > 0 && k < width; ++k)
        row[k] = cap * tanhf(row[k] / cap);
    double own_high, high, sum = 0;
    const double own_total = total_of(row, width, &own_high), total = total_of(wanted, width, &high);
    const double less = own_high + log(own_total) - high - log(total);
    for (size_t k = 0; k < width; ++k) {
        const float p = expf(wanted[k] - (float)high) / (float)total, q = expf(row[k] - (float)own_high) / (float)own_total;
        const float slope = cap > 0 ? 1 - row[k] * row[k] / (cap * cap) : 1;
        sum += (double)p * ((double)wanted[k] - (double)row[k] + less);
        if (back)
            row[k] = scale * (q - p) * slope;
    }
    return (float)sum;
}

/* Memory for a step. */
static bool take(distil *d, size_t sequences, size_t length)
{
    const size_t bytes = d->job.workspace(sequences, length, 1);
    if (bytes > d->workspace_bytes) {
        free(d->workspace);
        d->workspace = aligned_memory(bytes);
        d->workspace_bytes = d->workspace ? bytes : 0;
    }
    if (sequences * length > d->tokens_room) {
        free(d->ids);
        free(d->targets);
        d->ids = aligned_memory(sequences * length * sizeof *d->ids);
        d->targets = aligned_memory(sequences * length * sizeof *d->targets);
        d->tokens_room = d->ids && d->targets ? sequences * length : 0;
    }
    if (sequences > d->sequences_room) {
        free(d->begin);
        free(d->pooled);
        free(d->pulled);
        free(d->off);
        d->begin = aligned_memory(sequences * sizeof *d->begin);
        d->pooled = aligned_memory(sequences * d->job.width * sizeof *d->pooled);
        d->pulled = aligned_memory(sequences * d->job.width * sizeof *d->pulled);
        d->off = aligned_memory(sequences * sizeof *d->off);
        d->sequences_room = d->begin && d->pooled && d->pulled && d->off ? sequences : 0;
    }
    return d->workspace && d->tokens_room && d->sequences_room;
}

double distil_step(distil *d, const distil_batch *batch, size_t n, double rate, double table_rate)
{
    const uint32_t *lengths = batch->lengths;
    const size_t sequences = batch->sequences;
    size_t length = 1, tokens = 0;
    for (size_t s = 0; s < sequences; ++s)
        length = lengths[s] > length ? lengths[s] : length;
    if (!take(d, sequences, length))
        return -1;
    for (size_t s = 0; s < sequences; ++s) {
        d->begin[s] = tokens;
        for (size_t i = 0; i < length; ++i) {
            d->ids[s * length + i] = i < lengths[s] ? batch->ids[tokens + i] : 0;
            d->targets[s * length + i] = i < lengths[s] ? 0 : -1;
        }
        tokens += lengths[s];
    }
    d->sequences = sequences;
    d->length = length;
    d->lengths = lengths;
    d->rows = batch->rows;
    memset(d->call.gradients, 0, d->job.gradients * sizeof(float));
    d->call.lengths = lengths;
    d->call.table_rate = (float)table_rate;
    d->call.gradient_scale = 1.0f / (float)tokens;
    d->call.step = n;
    d->call.criterion = d->job.logits ? divergence : squared_error;
    d->call.observe = d->job.logits ? NULL : observe;
    round_weights(d, false);
    const double loss = d->job.step(&d->call, d->ids, d->targets, sequences, length, d->workspace);
    round_weights(d, true);
    for (size_t i = 0; i < d->job.tensor_count; ++i) {
        const distil_tensor *t = d->job.tensors + i;
        if (t->rate <= 0 || t->tables)
            continue;
        const adam_step step = adam_at(n, (float)(rate * t->rate), 0, beta1, beta2, epsilon);
        for (size_t row = 0; row < t->rows; ++row) {
            const size_t at = t->at + row * t->pitch;
            adam_update(&step, 1, d->call.parameters + at, d->call.gradients + at, d->first + at, d->second + at, t->columns);
        }
    }
    return loss / (double)tokens;
}
