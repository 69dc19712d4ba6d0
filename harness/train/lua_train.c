/* The Lua module `train`: an emitted training library with its parameters, its optimiser and its text, on threads.

   train.open(job) -> run | nil, message. job = { library; step, loss, workspace (names of functions); parameters, gradients, table_rows
   (how many); constants (bytes, "" for none); context, batch, threads, seed; train, valid (ids, bytes of int32); mask, vocab, masked
   (id, ids and share, of a masked model; 0: the next token is predicted); decay, beta1, beta2, epsilon, clip, dropout, table_epsilon;
   adam (of tables: whether their optimiser is lazy Adam; else Adagrad); flush_denormals (a function's name, "" or absent: none is called);
   tensors = { { name, shape, at, rows, columns, pitch, tables (rows of a table, 0: no tables), state_at, first_table, rate (factor),
   decays, means, deviation, rounding (harness/train/rounding_at.h; nil: the forward pass reads it as it is) } } }. Methods:

     initialise([boxes])       random weights, then those of boxes of the parameters (gen/families/model/training/first_weights.lua);
                               everything else as before the first step
     step(n, rate, table_rate, [signs]) -> cross-entropy a token in nats, length of the gradient; step n = 1, 2, ...; signs: of
                               train_signs, default 0
     windows()                 -> windows of the text, and of the text for validation
     validate(most, [signs])   -> cross-entropy a token of at most so many windows, as far apart as can be, and tokens
     uses()                    -> by tensor, nil: no tables: { { rows used, entropy in bits }, ... by table } since the last call: on the
                                  first rank by the tokens of all, on the others none
     gather_uses()             gives the first rank what uses has to tell of all, before it saves
     not_finite()              -> name of a tensor with a value that is no number, or nil
     save(path, text)          -> true | nil, message: all that the next steps depend on, a text, and a digest of both
     load(path)                -> true | nil, message
     export(path)              -> true | nil, message: the weights, as a checkpoint of the model

   train.text(path) -> the text that save wrote | nil, message, also where any value is not what save wrote. train.hold(): SIGINT, SIGTERM
   and SIGHUP wait. train.interrupted() -> whether one does. train.release(): they take their effect. train.end_interrupted(): so does that
   of any rank, which ends all. */
#include "harness/train/run_state.h"

#include "gen/host/fields.h"
#include "gen/host/host.h"
#include "harness/base/memory.h"
#include "harness/base/modules.h"
#include "harness/train/rounding_at.h"

#include <lauxlib.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define METATABLE "train.run"

static const char where[] = "train: ";

enum { CHUNK = 16384 }; /* elements that a thread updates at a time */

/* Memory of a run, all zero, as aligned_memory; large ones ask for pages of 2 MiB, as rows of tables are far apart. Where there is none,
   the run is short of memory. */
static void *take(run_state *r, size_t bytes)
{
    const size_t page = (size_t)2 << 20, rounded = round_up(bytes + 1, page);
    void *memory = bytes < page ? aligned_memory(bytes) : aligned_alloc(page, rounded);
    if (memory && bytes >= page) {
        madvise(memory, rounded, MADV_HUGEPAGE); /* where there are none, it is slower */
        memset(memory, 0, rounded);
    }
    r->short_of_memory = r->short_of_memory || !memory;
    r->owned[r->owned_count++] = memory;
    return memory;
}

run_state *run_at(lua_State *L)
{
    return luaL_checkudata(L, 1, METATABLE);
}

static int run_close(lua_State *L)
{
    run_state *r = run_at(L);
    for (size_t i = 0; i < r->owned_count; ++i)
        free(r->owned[i]);
    library_close(&r->library);
    *r = (run_state){0};
    return 0;
}

/* The function that the field `name` of the job names, or a Lua error. */
static void find(lua_State *L, const loaded_library *of, const char *name, void *function)
{
    char error[ERROR_SIZE];
    if (!library_find(of, field_text(L, 1, where, name, NULL), function, error, sizeof error))
        luaL_error(L, "%s", error);
}

/* Elements of `t` that are rounded together. */
static size_t tensor_piece(const tensor *t)
{
    return t->table_rows ? t->columns : t->rows * t->columns;
}

/* How the tensor `t`, in the table at the top of the stack, is rounded. */
static void read_rounding(lua_State *L, tensor *t)
{
    t->rounds = rounding_at(L, lua_gettop(L), "rounding", tensor_piece(t), &t->rounding);
    luaL_argcheck(L, !t->rounds || t->table_rows || t->pitch == t->columns, 1, "row");
}

static void read_means(lua_State *L, tensor *t)
{
    lua_getfield(L, -1, "means");
    luaL_checktype(L, -1, LUA_TTABLE);
    t->mean_count = (size_t)luaL_len(L, -1);
    if (t->mean_count < 1 || t->mean_count > MOST_MEANS)
        luaL_error(L, "%s: means: must be 1 to %d numbers", where, MOST_MEANS);
    for (size_t i = 0; i < t->mean_count; ++i) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        t->means[i] = luaL_checknumber(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* The tensor in the table at the top of the stack, which stays there. */
static tensor read_tensor(lua_State *L)
{
    const int top = lua_gettop(L);
    tensor t = {
        .at = field_size(L, top, where, "at"),
        .rows = field_size(L, top, where, "rows"),
        .columns = field_size(L, top, where, "columns"),
        .pitch = field_size(L, top, where, "pitch"),
        .table_rows = field_size(L, top, where, "tables"),
        .state_at = field_size(L, top, where, "state_at"),
        .first_table = field_size(L, top, where, "first_table"),
        .rate = (float)field_number(L, top, where, "rate"),
        .decays = field_flag(L, top, "decays"),
        .deviation = field_number(L, top, where, "deviation"),
    };
    t.as = (safetensors_description){.name = field_text(L, top, where, "name", NULL), .dtype = DTYPE_F32};
    t.as.rank = field_dimensions(L, top, "shape", t.as.shape, SAFETENSORS_MAX_RANK);
    read_means(L, &t);
    read_rounding(L, &t);
    return t;
}

/* The tensors of the job, and the chunks of those with gradients. The table keeps their names. */
static void read_tensors(lua_State *L, run_state *r)
{
    lua_getfield(L, 1, "tensors");
    luaL_checktype(L, -1, LUA_TTABLE);
    r->tensor_count = (size_t)luaL_len(L, -1);
    const size_t most_chunks = r->gradient_count / CHUNK + r->tensor_count;
    r->tensors = take(r, r->tensor_count * sizeof *r->tensors);
    r->chunks = take(r, most_chunks * sizeof *r->chunks);
    r->squares = take(r, most_chunks * sizeof *r->squares);
    if (r->short_of_memory)
        return;
    for (size_t i = 0; i < r->tensor_count; ++i) {
        lua_rawgeti(L, -1, (lua_Integer)i + 1);
        tensor *t = &r->tensors[i];
        *t = read_tensor(L);
        lua_pop(L, 1);
        const size_t size = t->rows ? (t->rows - 1) * t->pitch + t->columns : 0;
        if (t->pitch < t->columns || t->at + size > r->parameter_count || (t->table_rows == 0 && t->at + size > r->gradient_count) ||
            (t->table_rows && (t->state_at + t->rows > r->row_count || t->first_table != r->table_count || t->at < r->gradient_count)))
            luaL_error(L, "%s%s: lies outside of its memory", where, t->as.name);
        r->table_count += tables_of(t);
        for (size_t at = 0; t->table_rows == 0 && at < size; at += CHUNK)
            r->chunks[r->chunk_count++] = (chunk){i, t->at + at, smaller(CHUNK, size - at)};
    }
    lua_setiuservalue(L, 2, 1);
}

/* The ids in the string of the job's field, which the user value number `keep` keeps. */
static batches read_ids(lua_State *L, const char *name, int keep)
{
    size_t bytes;
    lua_getfield(L, 1, name);
    const char *data = luaL_checklstring(L, -1, &bytes);
    batches b = {.ids = (const int32_t *)(const void *)data, .count = bytes / sizeof(int32_t)};
    b.length = field_size(L, 1, where, "context");
    lua_setiuservalue(L, 2, keep);
    return b;
}

/* Memory for the lists of rows that steps meet. */
static void prepare_lists(run_state *r)
{
    r->tables = take(r, r->table_count * sizeof *r->tables);
    r->call.rows = take(r, r->row_count * sizeof(uint32_t));
    r->call.row_counts = take(r, r->table_count * sizeof(uint32_t));
    r->call.row_gradients = take(r, (r->parameter_count - r->gradient_count) * sizeof(float));
    if (r->short_of_memory)
        return;
    for (size_t i = 0; i < r->tensor_count; ++i) {
        const tensor *t = &r->tensors[i];
        for (size_t k = 0; k < tables_of(t); ++k) {
            const size_t row = k * t->table_rows, gradient_at = t->at - r->gradient_count + row * t->pitch;
            r->tables[t->first_table + k] = (ranks_table){t->table_rows, t->columns, t->pitch, t->state_at + row, gradient_at};
        }
    }
}

/* Memory for copies of the weights, if a tensor is rounded. */
static void prepare_rounding(run_state *r)
{
    size_t most = 0;
    for (size_t i = 0; i < r->tensor_count; ++i) {
        const tensor *t = &r->tensors[i];
        if (t->rounds)
            most = tensor_piece(t) > most ? tensor_piece(t) : most;
    }
    if (most == 0)
        return;
    r->rounding_count = most;
    r->masters = take(r, r->parameter_count * sizeof(float));
    r->rounding_work = take(r, r->threads * most * sizeof(double));
    r->rounding_scales = take(r, r->threads * most * sizeof(float));
}

/* Copies row number `row` of a tensor of tables, or the whole of another one, for the forward pass; `part`: of the thread. */
static void copy_weights(run_state *r, const tensor *t, size_t row, size_t part)
{
    const size_t at = t->at + row * t->pitch, count = t->table_rows ? t->columns : (t->rows - 1) * t->pitch + t->columns;
    if (t->rounds)
        rounding_apply(&t->rounding, r->masters + at, tensor_piece(t), r->call.parameters + at, r->rounding_work + part * r->rounding_count,
                       r->rounding_scales + part * r->rounding_count);
    else
        memcpy(r->call.parameters + at, r->masters + at, count * sizeof(float));
}

void run_copy_all(run_state *r, bool listed, size_t part, size_t parts)
{
    size_t piece = 0;
    for (size_t i = 0; r->masters && i < r->tensor_count; ++i) {
        const tensor *t = &r->tensors[i];
        if (t->rows == 0)
            continue;
        if (t->table_rows == 0) {
            if ((t->rounds ? piece++ : i) % parts == part)
                copy_weights(r, t, 0, part);
            continue;
        }
        for (size_t table = 0; table < tables_of(t); ++table) {
            const size_t first = table * t->table_rows;
            const uint32_t *rows = listed ? r->call.rows + t->state_at + first : NULL;
            const size_t count = listed ? r->call.row_counts[t->first_table + table] : t->table_rows;
            for (size_t k = 0; (t->first_table + table) % parts == part && k < count; ++k)
                copy_weights(r, t, rows ? rows[k] : first + k, part);
        }
    }
}

/* The memory of the run, all zero. */
static void take_memory(run_state *r, size_t workspace_bytes)
{
    const size_t tokens = r->batch * r->train.length;
    r->call.parameters = take(r, r->parameter_count * sizeof(float));
    r->call.gradients = take(r, r->gradient_count * sizeof(float));
    r->state_count = r->call.adam ? 2 * (r->parameter_count - r->gradient_count) : r->row_count;
    r->call.table_state = take(r, r->state_count * sizeof(float));
    r->call.row_uses = take(r, r->row_count * sizeof(uint32_t));
    r->first = take(r, r->gradient_count * sizeof(float));
    r->second = take(r, r->gradient_count * sizeof(float));
    r->ids = take(r, tokens * sizeof *r->ids);
    r->targets = take(r, tokens * sizeof *r->targets);
    r->workspace = take(r, workspace_bytes);
}

/* The array that the library reads beside the parameters. */
static void copy_constants(lua_State *L, run_state *r)
{
    size_t bytes;
    lua_getfield(L, 1, "constants");
    const char *constants = luaL_checklstring(L, -1, &bytes);
    r->constants = take(r, bytes);
    if (r->constants)
        memcpy(r->constants, constants, bytes);
    r->call.constants = bytes ? r->constants : NULL;
}

static int run_open(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    run_state *r = lua_newuserdatauv(L, sizeof *r, 3);
    *r = (run_state){
        .parameter_count = field_size(L, 1, where, "parameters"),
        .gradient_count = field_size(L, 1, where, "gradients"),
        .row_count = field_size(L, 1, where, "table_rows"),
        .batch = field_size(L, 1, where, "batch"),
        .threads = field_size(L, 1, where, "threads"),
        .ranks = train_ranks(),
        .decay = (float)field_number(L, 1, where, "decay"),
        .beta1 = (float)field_number(L, 1, where, "beta1"),
        .beta2 = (float)field_number(L, 1, where, "beta2"),
        .epsilon = (float)field_number(L, 1, where, "epsilon"),
        .clip = (float)field_number(L, 1, where, "clip"),
        .masks = {.mask = (int32_t)field_size(L, 1, where, "mask"),
                  .vocab = (uint32_t)field_size(L, 1, where, "vocab"),
                  .share = field_number(L, 1, where, "masked")},
        .call = {.table_epsilon = (float)field_number(L, 1, where, "table_epsilon"),
                 .adam = field_flag(L, 1, "adam"),
                 .beta1 = (float)field_number(L, 1, where, "beta1"),
                 .beta2 = (float)field_number(L, 1, where, "beta2"),
                 .dropout = (float)field_number(L, 1, where, "dropout"),
                 .seed = field_size(L, 1, where, "seed"),
                 .barrier = run_wait_for_others},
    };
    luaL_setmetatable(L, METATABLE);
    luaL_argcheck(L, r->threads >= 1 && r->threads <= MOST_THREADS && r->batch >= 1, 1, "threads, batch");
    char error[ERROR_SIZE];
    if (!library_open(&r->library, field_text(L, 1, where, "library", NULL), LIBRARY_ALONE, error, sizeof error))
        return host_fail(L, error);
    train_workspace *workspace;
    if (*field_text(L, 1, where, "flush_denormals", ""))
        find(L, &r->library, "flush_denormals", &r->flush_denormals);
    find(L, &r->library, "step", &r->step);
    find(L, &r->library, "loss", &r->loss);
    find(L, &r->library, "workspace", &workspace);
    r->train = read_ids(L, "train", 2);
    r->valid = read_ids(L, "valid", 3);
    r->train.seed = r->call.seed;
    r->valid.seed = UINT64_MAX;
    r->call.context = &r->barrier;
    r->call.first_sequence = r->ranks ? r->ranks->number * r->batch : 0;
    take_memory(r, workspace(r->batch, r->train.length, r->threads));
    copy_constants(L, r);
    read_tensors(L, r);
    if (!r->short_of_memory)
        prepare_rounding(r);
    if (!r->short_of_memory && (r->ranks || r->masters))
        prepare_lists(r);
    if (r->short_of_memory)
        return host_fail(L, "not enough memory to train this model: a smaller --batch or --context takes less");
    if (r->call.rows && r->row_count)
        find(L, &r->library, "apply", &r->apply);
    lua_settop(L, 2);
    return 1;
}

int luaopen_train(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"open", run_open},         {"text", train_text},           {"join", train_join}, {"together", train_together},
        {"words", train_words},     {"leave", train_leave},         {"hold", train_hold}, {"interrupted", train_interrupted},
        {"release", train_release}, {"end_interrupted", train_end}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"initialise", run_initialise}, {"step", run_step}, {"windows", run_windows},
                                       {"validate", run_validate},     {"uses", run_uses}, {"gather_uses", run_gather_uses},
                                       {"not_finite", run_not_finite}, {"save", run_save}, {"load", run_load},
                                       {"export", run_export},         {NULL, NULL}};
    host_class(L, METATABLE, run_close, methods);
    luaL_newlib(L, functions);
    return 1;
}
