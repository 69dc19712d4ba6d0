/* Functions of Lua in processes of their own, which may crash or hang.

   process.begin(function, seconds, patience) -> running | nil, message: starts it; it may take so many seconds, and so many without a new
   stage; absent: as many as it takes

   running:result() -> what the function has said, and then returned, as one text | nil, message, what it has said: it crashed, or took too
   long and was ended. Raises what the function raises.

   process.isolated(function, seconds) -> the same of both together

   In such a function, process.say(text): the text is known whatever happens; process.stage(words): what it is about to call, for the
   message. */
#include "gen/host/host.h"
#include "harness/base/clock.h"
#include "harness/base/parent.h"
#include "harness/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <malloc.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNNING "process.running"

enum { STAGE_SIZE = 256, MALLOC_KEEPS = 32 << 20 };

/* What a child shares with its parent. */
typedef struct {
    atomic_size_t stages;                     /* until now: one more tells that it goes on */
    size_t said;                              /* bytes */
    enum { NOT_ENDED, RETURNED, RAISED } how; /* what follows them is a result, or an error; else the function has not ended */
    char words[STAGE_SIZE];
} shared;

typedef struct {
    pid_t parent, child; /* child 0: it has ended */
    int pipe;
    shared *with, last;                      /* last: what it was when the child ended */
    size_t stages;                           /* of the child when `deadline` was set */
    double patience, deadline, seconds, end; /* of a stage; when it is up for that one; of all; when it is up for all */
} running;

/* Of this process, if it is such a child. */
static shared *own;
static int out = -1;

static bool tell(const char *text, size_t size)
{
    while (size > 0) {
        const ssize_t wrote = write(out, text, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        text += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

static int say(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    if (own && tell(text, size))
        own->said += size;
    return 0;
}

static int stage(lua_State *L)
{
    const char *words = luaL_checkstring(L, 1);
    if (own) {
        snprintf(own->words, sizeof own->words, "%s", words);
        atomic_fetch_add(&own->stages, 1);
    }
    return 0;
}

/* The child: runs the function on the stack. */
static _Noreturn void answer(lua_State *L, pid_t parent)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i)
        signal(signals[i], SIG_DFL);
    end_with_parent(parent);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    /* pages once got stay: the system's zeroing them again and again would take longer than the calls they are for */
    mallopt(M_MMAP_THRESHOLD, MALLOC_KEEPS);
    mallopt(M_TRIM_THRESHOLD, MALLOC_KEEPS);
    lua_pushvalue(L, 1);
    const bool good = lua_pcall(L, 0, 1, 0) == LUA_OK;
    size_t size;
    const char *text = luaL_tolstring(L, -1, &size);
    own->how = good ? RETURNED : RAISED;
    _exit(tell(text, size) ? 0 : 1);
}

/* Ends what is left of the child. Returns its status. */
static int finish(running *r)
{
    int status = 0;
    close(r->pipe);
    while (waitpid(r->child, &status, 0) < 0 && errno == EINTR)
        ;
    r->child = 0;
    memcpy(&r->last, r->with, sizeof r->last);
    munmap(r->with, sizeof *r->with);
    r->with = NULL;
    return status;
}

static int running_free(lua_State *L)
{
    running *r = luaL_checkudata(L, 1, RUNNING);
    if (r->child > 0 && r->parent == getpid()) {
        kill(r->child, SIGKILL);
        finish(r);
    }
    return 0;
}

/* Whether the child is to be given up: it has begun nothing new for too long, or its time is up. */
static bool is_late(running *r, double now)
{
    const size_t stages = atomic_load(&r->with->stages);
    if (now >= r->deadline && stages != r->stages) {
        r->stages = stages;
        r->deadline = now + r->patience;
    }
    return now >= r->deadline || now >= r->end;
}

/* Adds what the child writes until its end to the buffer; it is killed if it is late. Returns whether it was. */
static bool read_until_end(running *r, luaL_Buffer *text)
{
    for (;;) {
        const double left = fmin(fmin(r->deadline, r->end) - seconds_now(), 1000.0);
        struct pollfd event = {.fd = r->pipe, .events = POLLIN};
        if (poll(&event, 1, (int)(1000.0 * fmax(left, 0.0)) + 1) <= 0) {
            if (!is_late(r, seconds_now()))
                continue;
            kill(r->child, SIGKILL);
            return true;
        }
        char piece[16384];
        const ssize_t got = read(r->pipe, piece, sizeof piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        luaL_addlstring(text, piece, (size_t)got);
    }
}

static int running_result(lua_State *L)
{
    running *r = luaL_checkudata(L, 1, RUNNING);
    luaL_argcheck(L, r->child > 0, 1, "has ended");
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    const bool late = read_until_end(r, &buffer);
    const int status = finish(r);
    luaL_pushresult(&buffer);
    size_t size;
    const char *text = lua_tolstring(L, -1, &size), *words = r->last.words;
    const size_t said = r->last.said < size ? r->last.said : size;
    const bool ended = !late && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended && r->last.how == RETURNED)
        return 1;
    if (ended && r->last.how == RAISED) {
        lua_pushlstring(L, text + said, size - said);
        return lua_error(L);
    }
    lua_pushnil(L);
    if (late)
        lua_pushfstring(L, "took more than %d seconds", (int)(seconds_now() >= r->end ? r->seconds : r->patience));
    else if (WIFSIGNALED(status))
        lua_pushfstring(L, "crashed: signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        lua_pushfstring(L, "crashed: ended with status %d", WEXITSTATUS(status));
    lua_pushfstring(L, words[0] ? " in %s" : "", words);
    lua_concat(L, 2);
    lua_pushlstring(L, text, said);
    return 3;
}

static int begin(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    const double seconds = luaL_optnumber(L, 2, 1e8), patience = luaL_optnumber(L, 3, 1e8), now = seconds_now();
    running *r = lua_newuserdatauv(L, sizeof *r, 0);
    *r = (running){.seconds = seconds, .end = now + seconds, .patience = patience, .deadline = now + patience};
    luaL_setmetatable(L, RUNNING);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return process_fail(L, "pipe", errno);
    void *memory = mmap(NULL, sizeof *r->with, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    r->with = memory == MAP_FAILED ? NULL : memory;
    const pid_t parent = getpid(), child = r->with ? fork() : -1;
    const int reason = errno;
    if (child == 0) {
        own = r->with;
        out = ends[1];
        answer(L, parent);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        if (r->with)
            munmap(r->with, sizeof *r->with);
        return process_fail(L, "fork", reason);
    }
    r->parent = parent;
    r->child = child;
    r->pipe = ends[0];
    return 1;
}

static int isolated(lua_State *L)
{
    lua_settop(L, 2);
    if (begin(L) != 1)
        return 2;
    lua_replace(L, 1);
    return running_result(L);
}

void process_add_isolated(lua_State *L)
{
    static const luaL_Reg functions[] = {{"begin", begin}, {"isolated", isolated}, {"say", say}, {"stage", stage}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"result", running_result}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
    host_class(L, RUNNING, running_free, methods);
}
