/* A run of a training library: what its files share. */
#ifndef LOOKUPC_TRAIN_RUN_STATE_H
#define LOOKUPC_TRAIN_RUN_STATE_H

#include "harness/base/library.h"
#include "harness/train/abi.h"
#include "harness/train/batches.h"
#include "harness/train/ranks.h"
#include "harness/train/rounding.h"

#include "gen/weights/safetensors.h"

#include <lua.h>
#include <pthread.h>

enum { ERROR_SIZE = 4096 + 256, MOST_THREADS = 1024, MOST_MEANS = 3, MOST_OWNED = 24 };

typedef struct {
    safetensors_description as; /* in a checkpoint; its name is the tensor's */
    size_t at, rows, columns, pitch;
    size_t table_rows, state_at, first_table; /* of tables; 0 for others. state_at, first_table: rows and tables before its own */
    float rate;
    bool decays, rounds; /* rounds: the forward pass reads a rounded copy */
    rounding rounding;
    double means[MOST_MEANS], deviation; /* of the first weights: element i of a row has means[i % mean_count] */
    size_t mean_count;
} tensor;

/* A piece of a tensor that has a gradient. */
typedef struct {
    size_t tensor, at, count;
} chunk;

typedef struct {
    loaded_library library;
    train_function *step, *loss;
    train_flush *flush_denormals; /* or NULL */
    size_t parameter_count, gradient_count, row_count;
    float *constants, *first, *second; /* the averages of AdamW */
    float *masters;                    /* what learns, where call.parameters are copies of it, some of them rounded; else NULL */
    double *rounding_work;             /* of each thread, rounding_count elements */
    float *rounding_scales;            /* likewise */
    size_t rounding_count;
    size_t state_count; /* floats of call.table_state */
    tensor *tensors;
    size_t tensor_count;
    chunk *chunks;
    double *squares; /* of each chunk's gradient */
    size_t chunk_count;
    batches train, valid;
    batches_masks masks;
    size_t batch, threads; /* batch: of this rank */
    const ranks *ranks;    /* NULL: there are no others */
    train_apply *apply;    /* of lists of rows; NULL: steps move them */
    ranks_table *tables;
    size_t table_count;
    int32_t *ids, *targets;
    void *workspace;
    float decay, beta1, beta2, epsilon, clip;
    train_call call; /* what every thread's call starts from */
    pthread_barrier_t barrier;
    void *owned[MOST_OWNED]; /* freed with it */
    size_t owned_count;
    bool short_of_memory;
} run_state;

run_state *run_at(lua_State *L);

/* What a step changes. */
static inline float *weights_of(const run_state *r)
{
    return r->masters ? r->masters : r->call.parameters;
}

/* Copies every parts-th of the tensors and tables for the forward pass: all rows, or if `listed` those of the lists. */
void run_copy_all(run_state *r, bool listed, size_t part, size_t parts);

static inline size_t tables_of(const tensor *t)
{
    return t->table_rows ? t->rows / t->table_rows : 0;
}

/* Of the threads of a step; context: the run's barrier. */
void run_wait_for_others(void *context);

/* The methods, and the function text, that lua_train.c describes. */
int run_initialise(lua_State *L);
int run_step(lua_State *L);
int run_windows(lua_State *L);
int run_validate(lua_State *L);
int run_uses(lua_State *L);
int run_gather_uses(lua_State *L);
int run_not_finite(lua_State *L);
int run_save(lua_State *L);
int run_load(lua_State *L);
int run_export(lua_State *L);
int train_text(lua_State *L);

/* The other processes that train, once they are joined; NULL: there are none. */
const ranks *train_ranks(void);

/* The functions join, together, words and leave, and those of signals. */
int train_join(lua_State *L);
int train_together(lua_State *L);
int train_words(lua_State *L);
int train_leave(lua_State *L);
int train_hold(lua_State *L);
int train_interrupted(lua_State *L);
int train_release(lua_State *L);
int train_end(lua_State *L);

#endif
