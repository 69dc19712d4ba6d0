/* The Lua module `whole`: an emitted whole model in a shared library, bound to its blob.

   whole.open(job) -> model | nil, message. job = { library, blob, bind, encode, encode_batch, start, prefill, prefill_all, step, position
   (names of functions), tokenize, text_of (the same, "" without a tokenizer), causal, pooled, d_out, vocab, context, weights_struct_bytes,
   state_bytes, scratch_bytes, step_scratch_bytes, scratch_factor, scratch_more, around (of the tokenizer, whose codes room and scratch
   are), flush_denormals (a function's name, "" or absent: calls in this process leave denormal numbers as they are) }. Rows are strings
   of float32, ids lists of integers.
     model:encode_batch({ ids, … }) -> rows | nil, message: one row a sequence, or one a token
     model:state() -> an empty state of a decoder; state:copy() -> another
     state:prefill(ids), state:prefill_all(ids), state:step(id) -> rows | nil, message; state:position() -> tokens so far
     model:ids(text) -> ids | nil, message; model:text_of(id) -> text | nil
   whole.run(job, calls) -> { rows, … }, seen | nil, message: the same in a process of its own, with forbidden pages around all memory;
   calls = { { what = "encode" | "encode_batch" | "start" | "prefill" | "prefill_all" | "step", sequences = { ids, … } }, … }. Every call is
   made with a wrong id and with too many ids, too, which it must refuse. seen: what lookup FFNs were given and looked up, if the job asks
   for it (harness/verify/seen.h). whole.doubles(rows) -> the same as a string of doubles; whole.floats(rows)
   -> list of numbers */
#include "harness/base/blob_memory.h"
#include "harness/base/child.h"
#include "harness/base/guard.h"
#include "harness/base/memory.h"
#include "harness/base/modules.h"
#include "harness/base/symbol.h"
#include "harness/tokenizer/text.h"
#include "harness/verify/seen.h"

#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/host/host.h"

#include <lauxlib.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MODEL "whole.model"
#define STATE "whole.state"

static const char where[] = "whole: ";

enum { ERROR_SIZE = 4096 + 256, CHILD_SECONDS = 600, POSITION_REFUSED = 9, ID_REFUSED = 10, ROOM_REFUSED = 11, SCRATCH_REFUSED = 12 };

typedef int bind_function(const void *blob, size_t bytes, void *weights);
typedef int encode_function(const void *weights, const int32_t *ids, const size_t *offsets, size_t sequences, float *y, void *scratch);
typedef int one_function(const void *weights, const int32_t *ids, size_t n, float *y, void *scratch);
typedef void start_function(void *state);
typedef int append_function(const void *weights, void *state, const int32_t *ids, size_t n, float *logits, void *scratch);
typedef int step_function(const void *weights, void *state, int32_t id, float *logits, void *scratch);
typedef size_t position_function(const void *state);
typedef int flush_function(int state);

typedef struct {
    const char *path; /* of the library, for messages; a table keeps it */
    void *library, *weights;
    files_mapping blob;
    bind_function *bind;
    one_function *encode;
    encode_function *encode_batch;
    start_function *start;
    append_function *prefill, *prefill_all;
    step_function *step;
    position_function *position;
    flush_function *flush_denormals;
    text_functions text;
    bool causal, pooled;
    size_t d_out, vocab, context, weights_struct_bytes, state_bytes, scratch_bytes, step_scratch_bytes;
    void *scratch; /* of calls in this process */
} whole_model;

typedef enum { ENCODE, ENCODE_BATCH, START, PREFILL, PREFILL_ALL, STEP } call_kind;

static const char *const call_names[] = {"encode", "encode_batch", "start", "prefill", "prefill_all", "step", NULL};

typedef struct {
    call_kind kind;
    int32_t *ids;
    size_t *offsets; /* [sequences + 1] */
    size_t count, sequences, rows;
} call;

static void close_model(whole_model *m)
{
    files_unmap(&m->blob);
    free(m->weights);
    free(m->scratch);
    if (m->library)
        dlclose(m->library);
    *m = (whole_model){0};
}

/* The function that the field `name` of the job names; a job without that field has none. */
static bool find(lua_State *L, int job, whole_model *m, const char *name, void *function)
{
    const char *symbol = field_text(L, job, where, name, "");
    return *symbol == '\0' || symbol_find(m->library, symbol, function);
}

/* Opens and binds; on failure one line. */
static bool open_model(lua_State *L, int job, whole_model *m, char *error)
{
    *m = (whole_model){
        .path = field_text(L, job, where, "library", NULL),
        .causal = field_flag(L, job, "causal"),
        .pooled = field_flag(L, job, "pooled"),
        .d_out = field_size(L, job, where, "d_out"),
        .vocab = field_size(L, job, where, "vocab"),
        .context = field_size(L, job, where, "context"),
        .weights_struct_bytes = field_size(L, job, where, "weights_struct_bytes"),
        .state_bytes = field_size(L, job, where, "state_bytes"),
        .scratch_bytes = field_size(L, job, where, "scratch_bytes"),
        .step_scratch_bytes = field_size(L, job, where, "step_scratch_bytes"),
    };
    text_read(L, job, where, &m->text);
    m->text.room_refused = ROOM_REFUSED;
    m->text.scratch_refused = SCRATCH_REFUSED;
    const char *blob = field_text(L, job, where, "blob", NULL);
    /* Of an OpenMP build, threads wait in the code of libgomp: it must not go away under them. */
    m->library = dlopen(m->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!m->library)
        return files_error(error, ERROR_SIZE, "%s: %s", m->path, dlerror());
    if (!find(L, job, m, "bind", &m->bind) || !find(L, job, m, "encode", &m->encode) ||
        !find(L, job, m, "encode_batch", &m->encode_batch) || !find(L, job, m, "start", &m->start) ||
        !find(L, job, m, "prefill", &m->prefill) || !find(L, job, m, "prefill_all", &m->prefill_all) ||
        !find(L, job, m, "step", &m->step) || !find(L, job, m, "position", &m->position) ||
        !find(L, job, m, "flush_denormals", &m->flush_denormals) || !find(L, job, m, "tokenize", &m->text.tokenize) ||
        !find(L, job, m, "text_of", &m->text.text_of) || !m->bind)
        return files_error(error, ERROR_SIZE, "%s: lacks a function of the model", m->path);
    m->weights = aligned_memory(m->weights_struct_bytes);
    if (!m->weights)
        return files_error(error, ERROR_SIZE, "%s: not enough memory", m->path);
    if (!blob_map(blob, &m->blob, error, ERROR_SIZE))
        return false;
    const int status = m->bind(m->blob.data, m->blob.bytes, m->weights);
    if (status != 0)
        return files_error(error, ERROR_SIZE, "%s: bind returned %d", blob, status);
    return true;
}

/* Appends the ids of the list at `index` to ids[at …]; a Lua error for what is no id of 32 bits. */
static void read_ids(lua_State *L, int index, int32_t *ids, size_t at)
{
    const lua_Integer count = luaL_len(L, index);
    for (lua_Integer i = 1; i <= count; ++i) {
        int is_integer = 0;
        lua_rawgeti(L, index, i);
        const lua_Integer id = lua_tointegerx(L, -1, &is_integer);
        luaL_argcheck(L, is_integer && id >= INT32_MIN && id <= INT32_MAX, index, "ids must be integers of 32 bits");
        ids[at + (size_t)i - 1] = (int32_t)id;
        lua_pop(L, 1);
    }
}

/* A call of kind `kind` with the list of lists at `index`, in memory that the stack keeps alive. */
static call read_call(lua_State *L, const whole_model *m, call_kind kind, int index)
{
    call c = {.kind = kind, .sequences = lua_istable(L, index) ? (size_t)luaL_len(L, index) : 0};
    c.offsets = lua_newuserdatauv(L, (c.sequences + 1) * sizeof *c.offsets, 0);
    c.offsets[0] = 0;
    for (size_t s = 0; s < c.sequences; ++s) {
        lua_rawgeti(L, index, (lua_Integer)s + 1);
        luaL_checktype(L, -1, LUA_TTABLE);
        c.offsets[s + 1] = c.offsets[s] + (size_t)luaL_len(L, -1);
        lua_pop(L, 1);
    }
    c.count = c.offsets[c.sequences];
    c.ids = lua_newuserdatauv(L, (c.count + 1) * sizeof *c.ids, 0);
    for (size_t s = 0; s < c.sequences; ++s) {
        lua_rawgeti(L, index, (lua_Integer)s + 1);
        read_ids(L, lua_gettop(L), c.ids, c.offsets[s]);
        lua_pop(L, 1);
    }
    const size_t encoded = m->pooled ? c.sequences : c.count, rows[] = {encoded, encoded, 0, c.count ? 1 : 0, c.count, 1};
    c.rows = rows[kind];
    return c;
}

static int make_call(const whole_model *m, const call *c, void *state, const int32_t *ids, const size_t *offsets, float *y, void *scratch)
{
    switch (c->kind) {
    case ENCODE: return m->encode(m->weights, ids, c->count, y, scratch);
    case ENCODE_BATCH: return m->encode_batch(m->weights, ids, offsets, c->sequences, y, scratch);
    case START: m->start(state); return 0;
    case PREFILL: return m->prefill(m->weights, state, ids, c->count, y, scratch);
    case PREFILL_ALL: return m->prefill_all(m->weights, state, ids, c->count, y, scratch);
    default: return m->step(m->weights, state, ids[0], y, scratch);
    }
}

/* What the child and its parent share. */
typedef struct {
    char error[ERROR_SIZE]; /* "" when all went well */
    float y[];              /* rows of all calls */
} shared_result;

/* What a call that refuses something must leave as it is. */
typedef struct {
    const guarded *y, *state;
    unsigned char *state_before;
    float before;
} untouched;

static bool is_untouched(const untouched *u, int status, int wanted)
{
    return status == wanted && (u->y->bytes == 0 || memcmp(u->y->data, &u->before, sizeof u->before) == 0) &&
           (!u->state_before || memcmp(u->state->data, u->state_before, u->state->bytes) == 0);
}

/* The call with an id that is none, and with more tokens than the context holds. */
static bool refuses(const whole_model *m, const call *c, void *state, float *y, void *scratch, const untouched *u)
{
    if (c->kind == START || c->count == 0)
        return true;
    const size_t many = m->context + 1;
    bool good = true;
    int32_t *ids = malloc(c->count * sizeof *ids);
    if (!ids)
        return false;
    const int32_t wrong[] = {-1, (int32_t)m->vocab, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        memcpy(ids, c->ids, c->count * sizeof *ids);
        ids[i % 2 ? c->count - 1 : 0] = wrong[i];
        good = good && is_untouched(u, make_call(m, c, state, ids, c->offsets, y, scratch), ID_REFUSED);
    }
    free(ids);
    if (c->kind == ENCODE_BATCH) {
        const size_t offsets[] = {0, many}, falling[] = {0, 2, 1};
        good = good && is_untouched(u, m->encode_batch(m->weights, c->ids, offsets, 1, y, scratch), POSITION_REFUSED);
        good = good && is_untouched(u, m->encode_batch(m->weights, c->ids, falling, 2, y, scratch), POSITION_REFUSED);
    } else if (c->kind == ENCODE) {
        good = good && is_untouched(u, m->encode(m->weights, c->ids, many, y, scratch), POSITION_REFUSED);
        if (m->pooled)
            good = good && is_untouched(u, m->encode(m->weights, c->ids, 0, y, scratch), POSITION_REFUSED);
    } else {
        append_function *append = c->kind == PREFILL_ALL ? m->prefill_all : m->prefill;
        good = good && is_untouched(u, append(m->weights, state, c->ids, many - m->position(state), y, scratch), POSITION_REFUSED);
    }
    return good;
}

/* The child: runs the calls, each with memory of exactly its size. */
static bool run_calls(lua_State *L, int job, const call *calls, size_t count, seen *notes, float *y, char *error)
{
    whole_model m;
    guarded state = {0}, scratch = {0}, step_scratch = {0};
    if (!seen_before(notes, error, ERROR_SIZE) || !open_model(L, job, &m, error) || !seen_behind(notes, m.library, error, ERROR_SIZE))
        return false;
    unsigned char *before = m.causal ? malloc(m.state_bytes + 1) : NULL;
    bool made = guard_create(&scratch, m.scratch_bytes, MEMORY_ALIGNMENT, GUARD_END);
    if (m.causal)
        made = made && before && guard_create(&state, m.state_bytes, MEMORY_ALIGNMENT, GUARD_END) &&
               guard_create(&step_scratch, m.step_scratch_bytes, MEMORY_ALIGNMENT, GUARD_END);
    if (!made)
        return files_error(error, ERROR_SIZE, "%s: not enough memory", m.path);
    for (size_t i = 0; i < count; ++i) {
        const call *c = &calls[i];
        const size_t values = c->rows * m.d_out;
        guarded ids, offsets, out;
        if (!guard_create(&ids, c->count * sizeof(int32_t), sizeof(int32_t), GUARD_END) ||
            !guard_create(&offsets, (c->sequences + 1) * sizeof(size_t), sizeof(size_t), GUARD_END) ||
            !guard_create(&out, values * sizeof(float), sizeof(float), i % 2 ? GUARD_UNALIGNED : GUARD_END))
            return files_error(error, ERROR_SIZE, "%s: not enough memory", m.path);
        memcpy(ids.data, c->ids, c->count * sizeof(int32_t));
        memcpy(offsets.data, c->offsets, (c->sequences + 1) * sizeof(size_t));
        guard_read_only(&ids);
        guard_read_only(&offsets);
        float *to = (float *)(void *)out.data;
        guarded *work = c->kind == STEP ? &step_scratch : &scratch;
        untouched u = {&out, &state, NULL, 0.0f};
        if (values)
            memcpy(&u.before, to, sizeof u.before);
        if (m.causal && c->kind != START) {
            memcpy(before, state.data, m.state_bytes);
            u.state_before = before;
        }
        if (!refuses(&m, c, state.data, to, work->data, &u))
            return files_error(error, ERROR_SIZE, "%s: %s does not refuse a wrong id or too many tokens", m.path, call_names[c->kind]);
        const int status = make_call(&m, c, state.data, (const int32_t *)(const void *)ids.data, (const size_t *)(const void *)offsets.data,
                                     to, work->data);
        if (status != 0)
            return files_error(error, ERROR_SIZE, "%s: %s returned %d", m.path, call_names[c->kind], status);
        if (!guard_intact(&out) || !guard_intact(work) || (m.causal && !guard_intact(&state)))
            return files_error(error, ERROR_SIZE, "%s: %s wrote beyond its memory", m.path, call_names[c->kind]);
        if (values)
            memcpy(y, to, values * sizeof *to);
        y += values;
        guard_free(&ids);
        guard_free(&offsets);
        guard_free(&out);
    }
    return true;
}

static int run(lua_State *L)
{
    lua_settop(L, 2);
    luaL_checktype(L, 2, LUA_TTABLE);
    const whole_model shape = {.pooled = field_flag(L, 1, "pooled"), .d_out = field_size(L, 1, where, "d_out")};
    const char *library = field_text(L, 1, where, "library", NULL);
    const size_t count = (size_t)luaL_len(L, 2);
    call *calls = lua_newuserdatauv(L, (count + 1) * sizeof *calls, 0);
    lua_newtable(L); /* keeps the memory of the calls */
    const int kept = lua_gettop(L);
    size_t rows = 0;
    for (size_t i = 0; i < count; ++i) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        const int entry = lua_gettop(L);
        lua_getfield(L, entry, "what");
        const call_kind kind = (call_kind)luaL_checkoption(L, -1, NULL, call_names);
        lua_getfield(L, entry, "sequences");
        calls[i] = read_call(L, &shape, kind, lua_gettop(L));
        lua_rawseti(L, kept, 2 * (lua_Integer)i + 1);
        lua_rawseti(L, kept, 2 * (lua_Integer)i + 2);
        lua_settop(L, kept);
        rows += calls[i].rows;
    }
    const size_t bytes = sizeof(shared_result) + rows * shape.d_out * sizeof(float);
    bool short_of_memory;
    seen *notes = seen_at(L, 1, &short_of_memory);
    shared_result *result = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (short_of_memory || result == MAP_FAILED) {
        seen_free(notes);
        return host_fail(L, "whole: not enough memory");
    }
    const pid_t child = child_start(CHILD_SECONDS);
    if (child == 0)
        _exit(run_calls(L, 1, calls, count, notes, result->y, result->error) ? 0 : 1);
    child_wait(child, library, result->error, sizeof result->error);
    if (result->error[0]) {
        const int results = host_fail(L, result->error);
        munmap(result, bytes);
        seen_free(notes);
        return results;
    }
    lua_createtable(L, (int)count, 0);
    const float *y = result->y;
    for (size_t i = 0; i < count; ++i) {
        lua_pushlstring(L, (const char *)y, calls[i].rows * shape.d_out * sizeof *y);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
        y += calls[i].rows * shape.d_out;
    }
    munmap(result, bytes);
    seen_push(L, notes);
    seen_free(notes);
    return 2;
}

static int model_close(lua_State *L)
{
    close_model(lua_touserdata(L, 1));
    return 0;
}

static int open_(lua_State *L)
{
    char error[ERROR_SIZE];
    lua_settop(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    whole_model *m = lua_newuserdatauv(L, sizeof *m, 1);
    *m = (whole_model){0};
    luaL_setmetatable(L, MODEL);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 2, 1); /* keeps the path */
    if (!open_model(L, 1, m, error))
        return host_fail(L, error);
    m->scratch = aligned_memory(m->scratch_bytes);
    if (!m->scratch)
        return host_fail(L, "not enough memory");
    return 1;
}

/* Makes a call in this process and pushes its rows, or nil and a message. */
static int rows_of(lua_State *L, whole_model *m, const call *c, void *state)
{
    luaL_Buffer buffer;
    const size_t bytes = c->rows * m->d_out * sizeof(float);
    float *y = (float *)(void *)luaL_buffinitsize(L, &buffer, bytes + 1);
    const int before = m->flush_denormals ? m->flush_denormals(1) : 0;
    const int status = make_call(m, c, state, c->ids, c->offsets, y, m->scratch);
    if (m->flush_denormals)
        m->flush_denormals(before);
    if (status == 0) {
        luaL_pushresultsize(&buffer, bytes);
        return 1;
    }
    luaL_pushresultsize(&buffer, 0);
    lua_pushnil(L);
    if (status == POSITION_REFUSED && m->pooled && c->count == 0)
        lua_pushliteral(L, "a text without ids has no vector");
    else if (status == POSITION_REFUSED)
        lua_pushfstring(L, "a sequence is longer than the %d tokens of the model's context", (int)m->context);
    else if (status == ID_REFUSED)
        lua_pushfstring(L, "an id is not below vocab = %d", (int)m->vocab);
    else
        lua_pushfstring(L, "%s returned %d", call_names[c->kind], status);
    return 2;
}

static int model_encode_batch(lua_State *L)
{
    whole_model *m = luaL_checkudata(L, 1, MODEL);
    luaL_argcheck(L, m->encode_batch != NULL, 1, "is a decoder");
    luaL_checktype(L, 2, LUA_TTABLE);
    const call c = read_call(L, m, ENCODE_BATCH, 2);
    return rows_of(L, m, &c, NULL);
}

/* A state's userdata: memory with room to align it; user value 1 is the model. */
static void *state_at(lua_State *L, int index, whole_model **m)
{
    unsigned char *memory = luaL_checkudata(L, index, STATE);
    lua_getiuservalue(L, index, 1);
    *m = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return memory + (MEMORY_ALIGNMENT - (uintptr_t)memory % MEMORY_ALIGNMENT) % MEMORY_ALIGNMENT;
}

/* Pushes a state of the model at `index`; its bytes are not set. */
static void *push_state(lua_State *L, int index)
{
    whole_model *m = luaL_checkudata(L, index, MODEL);
    lua_newuserdatauv(L, m->state_bytes + MEMORY_ALIGNMENT, 1);
    luaL_setmetatable(L, STATE);
    lua_pushvalue(L, index);
    lua_setiuservalue(L, -2, 1);
    return state_at(L, lua_gettop(L), &m);
}

static int model_state(lua_State *L)
{
    whole_model *m = luaL_checkudata(L, 1, MODEL);
    luaL_argcheck(L, m->start != NULL, 1, "is an encoder");
    m->start(push_state(L, 1));
    return 1;
}

static int state_copy(lua_State *L)
{
    whole_model *m;
    const void *from = state_at(L, 1, &m);
    lua_getiuservalue(L, 1, 1);
    memcpy(push_state(L, lua_gettop(L)), from, m->state_bytes);
    return 1;
}

static int state_position(lua_State *L)
{
    whole_model *m;
    const void *state = state_at(L, 1, &m);
    lua_pushinteger(L, (lua_Integer)m->position(state));
    return 1;
}

/* A call of a state with the ids at index 2: a list, or one id. */
static int append(lua_State *L, call_kind kind)
{
    whole_model *m;
    void *state = state_at(L, 1, &m);
    lua_settop(L, 2);
    if (kind == STEP) {
        lua_createtable(L, 1, 0);
        lua_pushinteger(L, luaL_checkinteger(L, 2));
        lua_rawseti(L, -2, 1);
        lua_replace(L, 2);
    }
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_createtable(L, 1, 0);
    lua_pushvalue(L, 2);
    lua_rawseti(L, -2, 1);
    const call c = read_call(L, m, kind, lua_gettop(L));
    return rows_of(L, m, &c, state);
}

static int state_prefill(lua_State *L)
{
    return append(L, PREFILL);
}

static int state_prefill_all(lua_State *L)
{
    return append(L, PREFILL_ALL);
}

static int state_step(lua_State *L)
{
    return append(L, STEP);
}

static int model_ids(lua_State *L)
{
    const whole_model *m = luaL_checkudata(L, 1, MODEL);
    luaL_argcheck(L, m->text.tokenize != NULL, 1, "has no tokenizer");
    return text_push_ids(L, &m->text, m->weights);
}

static int model_text_of(lua_State *L)
{
    const whole_model *m = luaL_checkudata(L, 1, MODEL);
    luaL_argcheck(L, m->text.text_of != NULL, 1, "has no tokenizer");
    return text_push_text_of(L, &m->text, m->weights);
}

/* The float32 of a string of them. */
static const float *floats_at(lua_State *L, int index, size_t *count)
{
    const float *values = (const float *)(const void *)luaL_checklstring(L, index, count);
    *count /= sizeof *values;
    return values;
}

static int doubles(lua_State *L)
{
    size_t count;
    const float *values = floats_at(L, 1, &count);
    luaL_Buffer buffer;
    double *to = (double *)(void *)luaL_buffinitsize(L, &buffer, count * sizeof *to + 1);
    for (size_t i = 0; i < count; ++i)
        to[i] = (double)values[i];
    luaL_pushresultsize(&buffer, count * sizeof *to);
    return 1;
}

static int floats(lua_State *L)
{
    size_t count;
    const float *values = floats_at(L, 1, &count);
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; ++i) {
        lua_pushnumber(L, (lua_Number)values[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

int luaopen_whole(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", open_}, {"run", run}, {"doubles", doubles}, {"floats", floats}, {NULL, NULL}};
    static const luaL_Reg of_models[] = {
        {"encode_batch", model_encode_batch}, {"state", model_state}, {"ids", model_ids}, {"text_of", model_text_of}, {NULL, NULL}};
    static const luaL_Reg of_states[] = {{"prefill", state_prefill}, {"prefill_all", state_prefill_all},
                                         {"step", state_step},       {"position", state_position},
                                         {"copy", state_copy},       {NULL, NULL}};
    luaL_newmetatable(L, MODEL);
    lua_pushcfunction(L, model_close);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, of_models);
    lua_setfield(L, -2, "__index");
    luaL_newmetatable(L, STATE);
    luaL_newlib(L, of_states);
    lua_setfield(L, -2, "__index");
    luaL_newlib(L, functions);
    return 1;
}
