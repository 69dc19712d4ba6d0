/* Times compiled blocks of transformers in turns, beside reading their weights and the dense products through OpenBLAS. */
#include "blocks_time.h"

#include "clock.h"
#include "limits.h"
#include "memory.h"

#include "gen/fields.h"
#include "gen/files.h"
#include "gen/host.h"
#include "gen/weights/blob_header.h"
#include "gen/weights/quantise.h"
#include "gen/weights/random.h"

#include <lauxlib.h>

#include <dlfcn.h>
#include <sys/mman.h>

static const char where[] = "blocks.time: ";

enum { MOST = 8, MAPS = 16, ERROR_SIZE = 1024, HUGE = 2 << 20 };

typedef int bind_function(const void *blob, size_t bytes, void *weights);
typedef int prefill_function(const void *weights, void *cache, const float *x, float *y, size_t first, size_t tokens, void *scratch);
typedef void gemm_function(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                           const float *b, int ldb, float beta, float *c, int ldc);
typedef void gemv_function(int order, int transpose, int m, int n, float alpha, const float *a, int lda, const float *x, int incx,
                           float beta, float *y, int incy);
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 }; /* of CBLAS */

/* One plan's blocks; all of it lives until the end. */
typedef struct {
    prefill_function *prefill;
    unsigned char *blob;
    void *weights, *cache, *scratch;
    size_t blob_bytes;
} blocks;

typedef struct {
    size_t inputs, outputs;
    const float *weights;
} dense_map;

/* What is timed, and what it works on. */
typedef struct {
    blocks list[MOST];
    size_t count, position, tokens, d;
    float *x, *y, *hidden;
    gemm_function *gemm; /* NULL: none */
    gemv_function *gemv;
    dense_map maps[MAPS];
    size_t map_count;
} timing;

static size_t size_field(lua_State *L, int index, const char *name)
{
    return (size_t)field_integer(L, index, where, name, 0, 0);
}

/* Memory of large pages, if there are any; zero. */
static void *large_memory(size_t bytes)
{
    bytes = round_up(bytes + 1, HUGE);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

/* Random weights of size 1/64 in every section of a blob, of its own type. */
static bool fill_sections(lua_State *L, int job, unsigned char *blob)
{
    float values[4096];
    random_state random = random_seed(1);
    random_fill(&random, values, 4096, 0.0, 1.0 / 64);
    lua_getfield(L, job, "sections");
    const int sections = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, sections, i) == LUA_TTABLE; ++i, lua_settop(L, sections)) {
        quantise_type type;
        const size_t elements = size_field(L, -1, "elements"), at = size_field(L, -1, "at");
        if (!quantise_type_named(field_text(L, lua_gettop(L), where, "type", NULL), &type))
            return false;
        double data[4096];
        float scale = 0.0f;
        quantise_tally tally = {0};
        for (size_t k = 0; k < 4096; ++k)
            data[k] = (double)values[k];
        if (!quantise_round(type, data, 1, 4096, &scale, &tally))
            return false;
        for (size_t k = 0; k < smaller(elements, 4096); ++k)
            quantise_store(type, data[k], blob + at, k);
        for (size_t done = 4096; done < elements; done += smaller(4096, elements - done))
            memcpy(blob + at + done * quantise_bytes(type), blob + at, smaller(4096, elements - done) * quantise_bytes(type));
    }
    lua_settop(L, sections - 1);
    return true;
}

/* Loads the blocks of the table at the top of the stack. */
static bool load(lua_State *L, blocks *b, char *error)
{
    const int job = lua_gettop(L);
    const char *path = field_text(L, job, where, "library", NULL);
    const size_t cache_bytes = size_field(L, job, "cache_bytes");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    bind_function *bind = NULL;
    if (library) {
        *(void **)&bind = dlsym(library, field_text(L, job, where, "bind", NULL));
        *(void **)&b->prefill = dlsym(library, field_text(L, job, where, "prefill", NULL));
    }
    b->blob_bytes = size_field(L, job, "blob_bytes");
    b->blob = large_memory(b->blob_bytes);
    b->weights = aligned_memory(size_field(L, job, "weights_struct_bytes"));
    b->cache = large_memory(cache_bytes);
    b->scratch = large_memory(size_field(L, job, "scratch_bytes"));
    if (!bind || !b->prefill)
        return files_error(error, ERROR_SIZE, "%s: cannot be loaded", path);
    if (!b->blob || !b->weights || !b->cache || !b->scratch || !fill_sections(L, job, b->blob))
        return files_error(error, ERROR_SIZE, "%s: not enough memory", path);
    random_state random = random_seed(2);
    float values[4096];
    random_fill(&random, values, 4096, 0.0, 1.0);
    for (size_t at = 0; at < cache_bytes; at += sizeof values)
        memcpy((unsigned char *)b->cache + at, values, smaller(sizeof values, cache_bytes - at));
    const blob_header header = {.magic = field_text(L, job, where, "magic", NULL),
                                .digest = field_text(L, job, where, "digest", NULL),
                                .format = size_field(L, job, "format"),
                                .bytes = size_field(L, job, "header_bytes")};
    blob_header_write(&header, b->blob, b->blob_bytes);
    const int status = bind(b->blob, b->blob_bytes, b->weights);
    return status == 0 || files_error(error, ERROR_SIZE, "%s: bind returned %d", path, status);
}

/* The dense maps of the unfused block, if OpenBLAS is here; it is no part of lookupc itself. */
static bool load_dense(lua_State *L, timing *t, char *error)
{
    lua_getfield(L, 1, "dense");
    const int list = lua_gettop(L);
    void *library = lua_istable(L, list) ? dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL) : NULL;
    void (*threads)(int) = NULL;
    if (library) {
        *(void **)&t->gemm = dlsym(library, "cblas_sgemm");
        *(void **)&t->gemv = dlsym(library, "cblas_sgemv");
        *(void **)&threads = dlsym(library, "openblas_set_num_threads");
    }
    size_t widest = 1;
    if (t->gemm && t->gemv && threads) {
        threads(1);
        for (lua_Integer i = 1; t->map_count < MAPS && lua_rawgeti(L, list, i) == LUA_TTABLE; ++i, lua_settop(L, list)) {
            dense_map *map = &t->maps[t->map_count++];
            map->inputs = size_field(L, -1, "inputs");
            map->outputs = size_field(L, -1, "outputs");
            float *weights = large_memory(map->inputs * map->outputs * sizeof *weights);
            if (!weights)
                return files_error(error, ERROR_SIZE, "openblas: not enough memory");
            random_state random = random_seed((uint64_t)i);
            random_fill(&random, weights, map->inputs * map->outputs, 0.0, 1.0 / 64);
            map->weights = weights;
            widest = map->inputs > widest ? map->inputs : widest;
            widest = map->outputs > widest ? map->outputs : widest;
        }
    } else {
        t->gemm = NULL;
    }
    lua_settop(L, list - 1);
    t->hidden = large_memory(2 * widest * t->tokens * sizeof *t->hidden);
    return t->hidden || files_error(error, ERROR_SIZE, "blocks.time: not enough memory");
}

static void run_dense(const timing *t)
{
    for (size_t i = 0; i < t->map_count; ++i) {
        const dense_map *map = &t->maps[i];
        const int inputs = (int)map->inputs, outputs = (int)map->outputs, tokens = (int)t->tokens;
        float *y = t->hidden + map->inputs * t->tokens;
        if (tokens == 1)
            t->gemv(ROW_MAJOR, PLAIN, outputs, inputs, 1.0f, map->weights, inputs, t->hidden, 1, 0.0f, y, 1);
        else
            t->gemm(ROW_MAJOR, PLAIN, TRANSPOSED, tokens, outputs, inputs, 1.0f, t->hidden, inputs, map->weights, inputs, 0.0f, y, outputs);
    }
}

/* Work number `which`: reading the first blob, then blocks, then the dense products. Returns its CPU seconds. */
static double once(const timing *t, size_t which)
{
    const double start = thread_seconds_now();
    if (which == 0) {
        limits_read(t->list[0].blob, t->list[0].blob_bytes);
    } else if (which <= t->count) {
        const blocks *b = &t->list[which - 1];
        b->prefill(b->weights, b->cache, t->x, t->y, t->position, t->tokens, b->scratch);
    } else {
        run_dense(t);
    }
    return thread_seconds_now() - start;
}

int blocks_time(lua_State *L)
{
    char error[ERROR_SIZE];
    timing t = {.position = size_field(L, 1, "position"), .tokens = size_field(L, 1, "tokens"), .d = size_field(L, 1, "d")};
    const size_t repetitions = size_field(L, 1, "repetitions");
    lua_settop(L, 1);
    lua_getfield(L, 1, "blocks");
    for (lua_Integer i = 1; t.count < MOST && lua_rawgeti(L, 2, i) == LUA_TTABLE; ++i, lua_settop(L, 2))
        if (!load(L, &t.list[t.count++], error))
            return host_fail(L, error);
    if (!load_dense(L, &t, error))
        return host_fail(L, error);
    t.x = large_memory(t.tokens * t.d * sizeof *t.x);
    t.y = large_memory(t.tokens * t.d * sizeof *t.y);
    if (!t.x || !t.y)
        return host_fail(L, "blocks.time: not enough memory");
    random_state random = random_seed(3);
    random_fill(&random, t.x, t.tokens * t.d, 0.0, 1.0);
    const size_t works = 1 + t.count + (t.gemm ? 1 : 0);
    lua_createtable(L, (int)works, 0);
    for (size_t i = 0; i < works; ++i) {
        lua_createtable(L, (int)repetitions, 0);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
        once(&t, i);
    }
    for (size_t round = 0; round < repetitions; ++round)
        for (size_t i = 0; i < works; ++i) {
            const size_t which = (i + round) % works;
            lua_rawgeti(L, -1, (lua_Integer)which + 1);
            lua_pushnumber(L, once(&t, which));
            lua_rawseti(L, -2, (lua_Integer)round + 1);
            lua_pop(L, 1);
        }
    return 1;
}
