/* Steps and validations of a run, on threads. */
#include "harness/train/optimiser.h"
#include "harness/train/run_state.h"

#include "harness/base/memory.h"

#include <lauxlib.h>

#include <math.h>
#include <string.h>

void run_wait_for_others(void *context)
{
    pthread_barrier_wait(context);
}

/* What the threads of a step or a validation share. */
typedef struct {
    run_state *r;
    size_t sequences, parts;
    size_t step; /* 0: of a validation */
    float rate;
    double nats, norm;    /* results */
    pthread_mutex_t gate; /* held until all threads are there */
    bool given_up;        /* they are not, and nobody begins */
} task;

typedef struct {
    task *of;
    size_t part;
} worker;

/* Sums over all ranks what step or loss gave, and of a step gradients and rows. */
static void sum_over_ranks(task *t)
{
    run_state *r = t->r;
    r->ranks->sum_doubles(&t->nats, 1);
    if (t->step == 0)
        return;
    r->ranks->sum(r->call.gradients, r->gradient_count);
    if (!ranks_merge(r->ranks, r->tables, r->table_count, r->call.rows, r->call.row_counts, r->call.row_gradients))
        r->ranks->give_up();
}

/* Updates every parts-th chunk, with gradients clipped. */
static void update(task *t, size_t part)
{
    run_state *r = t->r;
    double sum = 0;
    for (size_t i = 0; i < r->chunk_count; ++i)
        sum += r->squares[i];
    const double norm = sqrt(sum);
    if (part == 0)
        t->norm = norm;
    if (!isfinite(norm))
        return;
    const float scale = r->clip > 0 && norm > (double)r->clip ? (float)((double)r->clip / norm) : 1.0f;
    for (size_t i = part; i < r->chunk_count; i += t->parts) {
        const chunk *c = &r->chunks[i];
        const tensor *of = &r->tensors[c->tensor];
        const adam_step s = adam_at(t->step, t->rate * of->rate, of->decays ? r->decay : 0, r->beta1, r->beta2, r->epsilon);
        adam_update(&s, scale, weights_of(r) + c->at, r->call.gradients + c->at, r->first + c->at, r->second + c->at, c->count);
    }
}

/* Part number `part` of the task. */
static void do_part(task *t, size_t part)
{
    run_state *r = t->r;
    train_call call = r->call;
    call.part = part;
    call.parts = t->parts;
    if (t->step == 0)
        call.gradients = NULL;
    for (size_t i = part; t->step && i < r->chunk_count; i += t->parts)
        memset(call.gradients + r->chunks[i].at, 0, r->chunks[i].count * sizeof(float));
    run_wait_for_others(&r->barrier);
    const double nats = (t->step ? r->step : r->loss)(&call, r->ids, r->targets, t->sequences, r->train.length, r->workspace);
    run_wait_for_others(&r->barrier);
    if (part == 0) {
        t->nats = nats;
        if (r->ranks)
            sum_over_ranks(t);
    }
    run_wait_for_others(&r->barrier);
    if (t->step == 0)
        return;
    if (r->apply) {
        train_call learns = call;
        learns.parameters = weights_of(r);
        r->apply(&learns);
    }
    for (size_t i = part; i < r->chunk_count; i += t->parts)
        r->squares[i] = sum_of_squares(call.gradients + r->chunks[i].at, r->chunks[i].count);
    run_wait_for_others(&r->barrier);
    update(t, part);
    if (r->masters) {
        run_wait_for_others(&r->barrier);
        run_copy_all(r, true, part, t->parts);
    }
}

static void *work(void *argument)
{
    const worker *w = argument;
    task *t = w->of;
    train_flush *flush = t->r->flush_denormals;
    pthread_mutex_lock(&t->gate);
    const bool begins = !t->given_up;
    pthread_mutex_unlock(&t->gate);
    if (!begins)
        return NULL;
    const int before = flush ? flush(1) : 0; /* moments of gradients that vanish become denormal */
    do_part(t, w->part);
    if (flush)
        flush(before);
    return NULL;
}

/* Does the task on its threads. Returns false if there are none to be had. */
static bool do_task(task *t)
{
    pthread_t threads[MOST_THREADS];
    worker workers[MOST_THREADS];
    size_t started = 1;
    if (pthread_barrier_init(&t->r->barrier, NULL, (unsigned)t->parts) != 0)
        return false;
    for (size_t i = 0; i < t->parts; ++i)
        workers[i] = (worker){t, i};
    pthread_mutex_init(&t->gate, NULL);
    pthread_mutex_lock(&t->gate);
    while (started < t->parts && pthread_create(&threads[started], NULL, work, &workers[started]) == 0)
        ++started;
    t->given_up = started < t->parts;
    pthread_mutex_unlock(&t->gate);
    work(&workers[0]);
    for (size_t i = 1; i < started; ++i)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&t->gate);
    pthread_barrier_destroy(&t->r->barrier);
    return !t->given_up;
}

/* How many of targets[count] count. */
static size_t counted(const int32_t *targets, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; ++i)
        sum += targets[i] >= 0;
    return sum;
}

/* The sum of a number of every rank. */
static size_t over_ranks(const run_state *r, size_t number)
{
    double sum = (double)number;
    if (r->ranks)
        r->ranks->sum_doubles(&sum, 1);
    return (size_t)sum;
}

static void next_window(const run_state *r, const batches *b, uint64_t index, size_t place)
{
    int32_t *ids = r->ids + place * b->length, *targets = r->targets + place * b->length;
    if (r->masks.share > 0)
        batches_masked(b, &r->masks, index, ids, targets);
    else
        batches_next(b, index, ids, targets);
}

int run_step(lua_State *L)
{
    run_state *r = run_at(L);
    const size_t n = (size_t)luaL_checkinteger(L, 2), all = r->batch * (r->ranks ? r->ranks->count : 1);
    for (size_t i = 0; i < r->batch; ++i)
        next_window(r, &r->train, (uint64_t)(n - 1) * all + r->call.first_sequence + i, i);
    const size_t targets = over_ranks(r, counted(r->targets, r->batch * r->train.length));
    r->call.step = n;
    r->call.table_rate = (float)luaL_checknumber(L, 4);
    r->call.signs = (int)luaL_optinteger(L, 5, TRAIN_EXPECTED);
    if (r->call.adam) {
        const adam_step s = adam_at(n, r->call.table_rate, 0, r->beta1, r->beta2, r->epsilon);
        r->call.correction1 = s.first;
        r->call.correction2 = s.second;
    }
    r->call.gradient_scale = targets ? 1.0f / (float)targets : 0;
    task t = {.r = r, .sequences = r->batch, .parts = r->threads, .step = n, .rate = (float)luaL_checknumber(L, 3)};
    if (!do_task(&t))
        return luaL_error(L, "--threads: %d: this machine gives no more", (int)r->threads);
    lua_pushnumber(L, targets ? t.nats / (double)targets : 0);
    lua_pushnumber(L, t.norm);
    return 2;
}

int run_windows(lua_State *L)
{
    const run_state *r = run_at(L);
    lua_pushinteger(L, (lua_Integer)batches_windows(&r->train));
    lua_pushinteger(L, r->valid.count ? (lua_Integer)((r->valid.count - 1) / r->valid.length) : 0);
    return 2;
}

int run_validate(lua_State *L)
{
    run_state *r = run_at(L);
    const batches *b = &r->valid;
    const size_t all = b->count ? (b->count - 1) / b->length : 0, windows = smaller(all, (size_t)luaL_checkinteger(L, 2));
    const size_t number = r->ranks ? r->ranks->number : 0, count = r->ranks ? r->ranks->count : 1;
    double nats = 0;
    size_t tokens = 0;
    r->call.signs = (int)luaL_optinteger(L, 3, TRAIN_EXPECTED);
    for (size_t done = 0; done < windows; done += count * r->batch) {
        const size_t first = done + number * r->batch, sequences = first < windows ? smaller(r->batch, windows - first) : 0;
        for (size_t i = 0; i < sequences; ++i) {               /* in order, with masks that are always the same */
            const size_t window = (first + i) * all / windows; /* all over the text */
            const batches one = {b->ids + window * b->length, b->length + 1, b->length, b->seed + window};
            next_window(r, &one, 0, i);
        }
        task t = {.r = r, .sequences = sequences, .parts = smaller(r->threads, sequences)};
        if (sequences == 0) /* the others have the last ones */
            sum_over_ranks(&t);
        else if (!do_task(&t))
            return luaL_error(L, "--threads: %d: this machine gives no more", (int)r->threads);
        nats += t.nats;
        tokens += over_ranks(r, counted(r->targets, sequences * b->length));
    }
    lua_pushnumber(L, tokens ? nats / (double)tokens : 0);
    lua_pushinteger(L, (lua_Integer)tokens);
    return 2;
}
