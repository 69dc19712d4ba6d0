/* Lua module `verify`: checks compiled variants against the reference, each in a process of its own that may crash or hang.

   verify.reference{
        model = { d, d_out, h, tau, neighbours, projection = "bh4"|"dense", block, decay, score = "gelu"|…, scale = number,
                  norm_eps = number or nil },
        weights = path of safetensors, prefix = "", blocks_in_out = false, blob = path,
        tables, projection = names of types that the reference knows (harness/reference/type.c), seed = 1,
    } -> what all variants of the model with these weights are compared with | nil, message

   verify.check{
        variant = <variant>, reference = what verify.reference gave, tokens = how many of the reference's to use,
        counts = { numbers of tokens at which any_ffn is compared with ffn }, patience = 60 seconds for a call,
        timeout = seconds for all of them, without end if absent,
        least, most = the numbers of tokens at which the public function takes this variant, most 0: at none; 1, any number,
        work = multiplications that are worth their time in one call, or in some that repeat it; 1e10,
        bind_known = true when the same bind was tried with damaged blobs before,
        quick = true for the codes and outputs of `tokens` tokens only,
    } -> { ok, rel_err, max_abs_err and code_flips (against the checkpoint's own weights; flips: not among its best codes), kernel_rel_err
           (against those weights rounded as the blob has them), codes, codes_within_bound (tables where rounding may take another), tokens,
           checks = { { name, ok, detail }, ... } } | nil, message

   verify.check_all({ jobs of verify.check }, at_once) -> { what verify.check gives for each }, up to so many at the same time
   | nil, message

   verify.vectors(reference, count) -> { { x = { numbers }, y = { numbers } }, ... } | nil, message: the first random tokens whose codes
   rounding cannot change, and what the reference makes of them with the weights as the blob has them.

   Numbers are those of the checks that were reached: a crash adds the check "crashed" with what was being called. */
#include "harness/base/modules.h"
#include "harness/verify/checks.h"

#include "gen/host/fields.h"
#include "harness/base/clock.h"
#include "harness/base/parent.h"
#include "harness/reference/fields.h"

#include "gen/host/host.h"

#include <lauxlib.h>

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char where[] = "verify: ", reference_type_name[] = "verify.reference";

/* By default. */
#define WORK 1e10

enum { ERROR_SIZE = 1024, LINES_SIZE = 1 << 16, PATIENCE = 60, LEAST_TOKENS = 33, MOST_AT_ONCE = 64, MALLOC_KEEPS = 32 << 20 };

/* What a child shares with its parent: what it is calling, and what it has to say, a line each. */
typedef struct {
    verify_stage stage;
    char lines[LINES_SIZE];
} shared;

typedef struct {
    pid_t child;
    int process; /* its pidfd */
    shared *with;
    size_t calls;                   /* of the child when `deadline` was set */
    double patience, deadline, end; /* of a call; when it is up for that one; when it is up for all */
} conversation;

static size_t variant_size(lua_State *L, int index, const char *name)
{
    return (size_t)field_integer(L, index, "variant.", name, 0, -1);
}

static const char *variant_text(lua_State *L, int index, const char *name)
{
    return field_text(L, index, "variant.", name, NULL);
}

/* The variant in the table at `index`. */
static variant_description variant_at(lua_State *L, int index)
{
    luaL_checktype(L, index, LUA_TTABLE);
    const variant_description variant = {
        .library = variant_text(L, index, "library"),
        .bind = variant_text(L, index, "bind"),
        .ffn = variant_text(L, index, "ffn"),
        .any_ffn = variant_text(L, index, "any_ffn"),
        .project = variant_text(L, index, "project"),
        .gather = variant_text(L, index, "gather"),
        .public_ffn = variant_text(L, index, "public_ffn"),
        .tile = variant_size(L, index, "tile"),
        .chunk = variant_size(L, index, "chunk"),
        .whole = variant_size(L, index, "whole"),
        .scratch_bytes = variant_size(L, index, "scratch_bytes"),
        .scratch_bytes_one = variant_size(L, index, "scratch_bytes_one"),
        .weights_struct_bytes = variant_size(L, index, "weights_struct_bytes"),
        .d = variant_size(L, index, "d"),
        .d_out = variant_size(L, index, "d_out"),
        .h = variant_size(L, index, "h"),
        .tau = variant_size(L, index, "tau"),
        .neighbours = variant_size(L, index, "neighbours"),
    };
    if (variant.tile == 0 || variant.chunk < variant.tile)
        luaL_error(L, "variant: tile must be at least 1 and chunk at least tile");
    return variant;
}

static double number_or(lua_State *L, int index, const char *name, double otherwise)
{
    const bool given = lua_getfield(L, index, name) != LUA_TNIL;
    lua_pop(L, 1);
    return given ? field_number(L, index, where, name) : otherwise;
}

/* The numbers in the list `counts`, if there is one. */
static void read_counts(lua_State *L, int index, verify_job *job)
{
    if (lua_getfield(L, index, "counts") == LUA_TTABLE) {
        const lua_Unsigned count = lua_rawlen(L, -1);
        if (count > VERIFY_COUNTS)
            luaL_error(L, "verify: counts: must be at most %d", VERIFY_COUNTS);
        for (lua_Unsigned i = 0; i < count; ++i, lua_pop(L, 1)) {
            lua_rawgeti(L, -1, (lua_Integer)i + 1);
            if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < 1)
                luaL_error(L, "verify: counts: must be integers from 1");
            job->counts[job->count++] = (size_t)lua_tointeger(L, -1);
        }
    }
    lua_pop(L, 1);
}

static verify_job job_at(lua_State *L, int index, verify_reference **reference)
{
    verify_job job = {0};
    luaL_checktype(L, index, LUA_TTABLE);
    lua_getfield(L, index, "variant");
    job.variant = variant_at(L, lua_gettop(L));
    lua_getfield(L, index, "reference");
    *reference = luaL_checkudata(L, -1, reference_type_name);
    job.reference = *reference;
    lua_pop(L, 2);
    const reference_model *model = &job.reference->model;
    if (job.variant.d != model->d || job.variant.d_out != model->d_out || job.variant.h != model->h || job.variant.tau != model->tau ||
        job.variant.neighbours != model->neighbours)
        luaL_error(L, "verify: the variant is not one of the model");
    const lua_Integer several = 2 * (lua_Integer)job.variant.tile + 3;
    job.tokens = (size_t)field_integer(L, index, where, "tokens", 1, several > LEAST_TOKENS ? several : LEAST_TOKENS);
    if (job.tokens <= job.variant.tile)
        job.tokens = job.variant.tile + 1;
    job.least = (size_t)field_integer(L, index, where, "least", 1, 1);
    job.most = (size_t)field_integer(L, index, where, "most", 0, LUA_MAXINTEGER);
    job.work = number_or(L, index, "work", WORK);
    lua_getfield(L, index, "bind_known");
    job.bind_known = lua_toboolean(L, -1);
    lua_getfield(L, index, "quick");
    job.quick = lua_toboolean(L, -1);
    lua_pop(L, 2);
    read_counts(L, index, &job);
    return job;
}

/* The child: everything that may crash. */
static _Noreturn void check_and_exit(const verify_job *job, shared *with, pid_t parent)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i)
        signal(signals[i], SIG_DFL);
    end_with_parent(parent);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    /* pages once got stay: the system's zeroing them again and again would take longer than the calls they are for */
    mallopt(M_MMAP_THRESHOLD, MALLOC_KEEPS);
    mallopt(M_TRIM_THRESHOLD, MALLOC_KEEPS);
    FILE *stream = fmemopen(with->lines, sizeof with->lines, "w");
    if (stream)
        verify_run(job, &(verify_report){.stream = stream, .stage = &with->stage});
    _exit(stream ? 0 : 1);
}

/* Whether the child is to be given up: it has called nothing new for too long, or its time is up. */
static bool is_late(conversation *talk, double now)
{
    const size_t calls = atomic_load(&talk->with->stage.count);
    if (now >= talk->deadline && calls != talk->calls) {
        talk->calls = calls;
        talk->deadline = now + talk->patience;
    }
    return now >= talk->deadline || now >= talk->end;
}

/* Waits for the end of the child, which is killed if it is late. Returns whether it was. */
static bool wait_for_end(conversation *talk, int *status)
{
    bool late = false, ended = false;
    while (!late && !ended) {
        const double now = seconds_now(), left = fmin(fmin(talk->deadline, talk->end) - now, 3600.0);
        struct pollfd wait = {.fd = talk->process, .events = POLLIN};
        late = is_late(talk, now);
        ended = !late && poll(&wait, 1, (int)(1000.0 * fmax(left, 0.0)) + 1) > 0;
    }
    if (late)
        kill(talk->child, SIGKILL);
    close(talk->process);
    while (waitpid(talk->child, status, 0) < 0 && errno == EINTR)
        ;
    return late;
}

/* Appends { name, ok, detail } to the list at the top of the stack. */
static void push_check(lua_State *L, const char *name, bool ok, const char *detail)
{
    lua_newtable(L);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    lua_pushboolean(L, ok);
    lua_setfield(L, -2, "ok");
    lua_pushstring(L, detail);
    lua_setfield(L, -2, "detail");
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* Adds one line of the child to the result at an index, whose checks are at the top of the stack. */
static void take_line(lua_State *L, int index, char *line, bool *ok)
{
    char *split = strchr(line, line[0] == '=' ? ' ' : '\t');
    if (!split)
        return;
    *split = '\0';
    if (line[0] == '=') {
        const double value = strtod(split + 1, NULL);
        if (value >= 0.0 && value < 0x1p53 && value == (double)(lua_Integer)value && strstr(line, "err") == NULL)
            lua_pushinteger(L, (lua_Integer)value);
        else
            lua_pushnumber(L, value);
        lua_setfield(L, index, line + 1);
        return;
    }
    push_check(L, line + 1, line[0] == '+', split + 1);
    *ok = *ok && line[0] == '+';
}

/* Reads the child's results into the table at the top of the stack. Returns its message when it could not check anything, else NULL. */
static const char *converse(lua_State *L, conversation *talk)
{
    const int index = lua_gettop(L);
    bool ok = true, ended = false;
    int status = 0;
    const char *message = NULL;
    char *rest, *line;
    const bool late = wait_for_end(talk, &status);
    lua_newtable(L);
    for (line = strtok_r(talk->with->lines, "\n", &rest); line && !ended && !message; line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '!')
            message = lua_pushstring(L, line + 1);
        else if (line[0] == '.')
            ended = true;
        else
            take_line(L, index, line, &ok);
    }
    if (message)
        return message;
    char reason[64], detail[VERIFY_STAGE_SIZE + 128];
    if (late)
        snprintf(reason, sizeof reason, "took too long");
    else if (WIFSIGNALED(status))
        snprintf(reason, sizeof reason, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(reason, sizeof reason, "ended with status %d", WEXITSTATUS(status));
    if (!ended) {
        snprintf(detail, sizeof detail, "%s in %.*s", reason, VERIFY_STAGE_SIZE - 1, talk->with->stage.words);
        push_check(L, "crashed", false, detail);
    }
    lua_setfield(L, index, "checks");
    lua_pushboolean(L, ok && ended);
    lua_setfield(L, index, "ok");
    return NULL;
}

/* Starts the check of the job at `index` of the stack in a process of its own. */
static bool begin(lua_State *L, int index, conversation *talk, char *error, size_t error_size)
{
    verify_reference *reference;
    const verify_job job = job_at(L, index, &reference);
    const double timeout = number_or(L, index, "timeout", HUGE_VAL), patience = number_or(L, index, "patience", PATIENCE);
    if (!verify_reference_extend(reference, job.tokens, error, error_size))
        return false;
    shared *with = mmap(NULL, sizeof *with, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (with == MAP_FAILED)
        return files_error(error, error_size, "verify: not enough memory");
    const pid_t parent = getpid(), child = fork();
    if (child == 0)
        check_and_exit(&job, with, parent);
    if (child < 0) {
        munmap(with, sizeof *with);
        return files_error(error, error_size, "verify: cannot start a process: %s", strerror(errno));
    }
    *talk = (conversation){.child = child, .process = pidfd_open(child, 0), .with = with};
    talk->patience = patience;
    talk->deadline = seconds_now() + patience;
    talk->end = seconds_now() + timeout;
    return true;
}

static int check(lua_State *L)
{
    lua_settop(L, 1);
    char error[ERROR_SIZE];
    conversation talk;
    if (!begin(L, 1, &talk, error, sizeof error))
        return host_fail(L, error);
    lua_newtable(L);
    const char *message = converse(L, &talk);
    munmap(talk.with, sizeof *talk.with);
    if (message)
        return host_fail(L, message);
    lua_settop(L, 2);
    return 1;
}

static int check_all(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    const lua_Integer count = (lua_Integer)lua_rawlen(L, 1), wanted = luaL_checkinteger(L, 2);
    const lua_Integer at_once = wanted < 1 ? 1 : wanted > MOST_AT_ONCE ? MOST_AT_ONCE : wanted;
    char error[ERROR_SIZE] = "";
    lua_Integer started = 0, ended = 0;
    lua_settop(L, 1);
    conversation *talks = lua_newuserdatauv(L, (size_t)at_once * sizeof *talks, 0); /* too large for a small stack */
    lua_newtable(L);
    while (ended < count) {
        while (!error[0] && started < count && started < ended + at_once) {
            lua_rawgeti(L, 1, started + 1);
            if (begin(L, lua_gettop(L), &talks[started % at_once], error, sizeof error))
                ++started;
            lua_settop(L, 3);
        }
        if (ended == started)
            break; /* the next one could not begin */
        conversation *talk = &talks[ended++ % at_once];
        lua_newtable(L);
        const char *message = converse(L, talk);
        munmap(talk->with, sizeof *talk->with);
        if (message && !error[0])
            files_error(error, sizeof error, "%s", message);
        if (!message)
            lua_rawseti(L, 3, ended);
        lua_settop(L, 3);
    }
    return error[0] ? host_fail(L, error) : 1;
}

static int close_reference(lua_State *L)
{
    verify_reference_close(luaL_checkudata(L, 1, reference_type_name));
    return 0;
}

static int make_reference(lua_State *L)
{
    lua_settop(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_getfield(L, 1, "model");
    const reference_model model = reference_model_at(L, 2, where);
    const verify_sources sources = {
        .blob = field_text(L, 1, where, "blob", NULL),
        .weights = field_text(L, 1, where, "weights", NULL),
        .prefix = field_text(L, 1, where, "prefix", ""),
        .blocks_in_out = (lua_getfield(L, 1, "blocks_in_out"), lua_toboolean(L, -1)),
        .tables = reference_type_at(L, 1, where, "tables", REFERENCE_TABLES),
        .projection = reference_type_at(L, 1, where, "projection", REFERENCE_PROJECTION),
    };
    const uint64_t seed = (uint64_t)field_integer(L, 1, where, "seed", LUA_MININTEGER, 1);
    verify_reference *reference = lua_newuserdatauv(L, sizeof *reference, 1);
    *reference = (verify_reference){.seed = 0};
    luaL_setmetatable(L, reference_type_name);
    lua_pushvalue(L, 1); /* it keeps the prefix */
    lua_setiuservalue(L, -2, 1);
    char error[ERROR_SIZE];
    return verify_reference_open(reference, &model, seed, &sources, error, sizeof error) ? 1 : host_fail(L, error);
}

/* Whether rounding cannot change a code of the token. */
static bool is_certain(const sample *s, size_t token)
{
    for (size_t table = 0; table < s->model->h; ++table)
        if (s->near[token * s->model->h + table])
            return false;
    return true;
}

static int vectors(lua_State *L)
{
    verify_reference *reference = luaL_checkudata(L, 1, reference_type_name);
    const lua_Integer count = luaL_checkinteger(L, 2);
    luaL_argcheck(L, count >= 1 && count <= 1000, 2, "must be from 1 to 1000");
    enum { MOST_TRIED = 100 };
    char error[ERROR_SIZE];
    if (!verify_reference_extend(reference, (size_t)count * MOST_TRIED, error, sizeof error))
        return host_fail(L, error);
    const sample *s = &reference->random;
    lua_newtable(L);
    lua_Integer found = 0;
    for (size_t token = 0; found < count && token < s->tokens; ++token) {
        if (!is_certain(s, token))
            continue;
        lua_newtable(L);
        lua_newtable(L);
        for (size_t i = 0; i < s->model->d; ++i) {
            lua_pushnumber(L, (lua_Number)s->x[token * s->model->d + i]);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        lua_setfield(L, -2, "x");
        lua_newtable(L);
        for (size_t i = 0; i < s->model->d_out; ++i) {
            lua_pushnumber(L, s->y[token * s->model->d_out + i]);
            lua_rawseti(L, -2, (lua_Integer)i + 1);
        }
        lua_setfield(L, -2, "y");
        lua_rawseti(L, -2, ++found);
    }
    return found == count ? 1 : host_fail(L, "verify: rounding may change a code of nearly every token: no vectors for a self-test");
}

int luaopen_verify(lua_State *L)
{
    const luaL_Reg functions[] = {
        {"check", check}, {"check_all", check_all}, {"reference", make_reference}, {"vectors", vectors}, {NULL, NULL}};
    luaL_newmetatable(L, reference_type_name);
    lua_pushcfunction(L, close_reference);
    lua_setfield(L, -2, "__gc");
    luaL_newlib(L, functions);
    return 1;
}
