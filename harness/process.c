/* The Lua module `process`: other programs, temporary folders, what has to be cleaned up when this program ends, environment and time. */
#include "clock.h"
#include "gen/host.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_LIMIT = 65536 };

/* What is left behind if nobody cleans up. Only the process that made it does: a forked one inherits this and must not. */
static struct {
    pid_t owner;
    volatile pid_t child; /* running program and leader of its process group, 0 for none */
    char *folder;         /* the folder that holds all temporary ones */
    int folders;          /* how many of those were given out */
} ours;

/* Ends the running program and removes the temporary folders. Safe in a signal handler. */
static void clean_up(void)
{
    if (getpid() != ours.owner)
        return;
    if (ours.child > 0) {
        kill(-ours.child, SIGKILL);
        waitpid(ours.child, NULL, 0);
        ours.child = 0;
    }
    if (ours.folder == NULL)
        return;
    const pid_t remover = _Fork();
    if (remover == 0) {
        execl("/bin/rm", "rm", "-rf", "--", ours.folder, (char *)NULL);
        _exit(127);
    }
    if (remover > 0)
        waitpid(remover, NULL, 0);
}

static void end_by_signal(int number)
{
    clean_up();
    raise(number); /* with its default action: SA_RESETHAND */
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static sigset_t signal_set(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i)
        sigaddset(&set, signals[i]);
    return set;
}

static void clean_up_at_end(void)
{
    ours.owner = getpid();
    atexit(clean_up);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) {
        struct sigaction action;
        sigaction(signals[i], NULL, &action);
        if (action.sa_handler != SIG_DFL)
            continue;
        action = (struct sigaction){.sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND, .sa_mask = signal_set()};
        sigaction(signals[i], &action, NULL);
    }
}

static int fail(lua_State *L, const char *subject, int reason)
{
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", subject, strerror(reason));
    return 2;
}

/* The last OUTPUT_LIMIT bytes of what a program printed. */
typedef struct {
    char bytes[2 * OUTPUT_LIMIT];
    size_t size;
} tail;

/* Reads what is there; false at the end of the file. */
static bool read_some(int pipe_end, tail *output)
{
    for (;;) {
        if (output->size == sizeof output->bytes) {
            memmove(output->bytes, output->bytes + OUTPUT_LIMIT, OUTPUT_LIMIT);
            output->size = OUTPUT_LIMIT;
        }
        const ssize_t got = read(pipe_end, output->bytes + output->size, sizeof output->bytes - output->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 && errno == EAGAIN;
        output->size += (size_t)got;
    }
}

/* Waits for the running program, collects its output and ends what it may have left running. Returns its wait status. */
static int wait_for_child(int pipe_end, double timeout, tail *output, bool *timed_out)
{
    const double end = seconds_now() + timeout;
    const int child = pidfd_open(ours.child, 0);
    struct pollfd events[2] = {{.fd = child, .events = POLLIN}, {.fd = pipe_end, .events = POLLIN}};
    *timed_out = false;
    while (events[0].revents == 0) {
        const double left = end - seconds_now();
        if (left <= 0) {
            *timed_out = true;
            break;
        }
        poll(events, 2, left < 1000 ? (int)(left * 1000) + 1 : 1000000);
        if (events[1].revents != 0 && !read_some(pipe_end, output))
            events[1].fd = -1;
    }
    kill(-ours.child, SIGKILL);
    int status;
    while (waitpid(ours.child, &status, 0) < 0 && errno == EINTR)
        ;
    ours.child = 0;
    if (events[1].fd >= 0)
        read_some(pipe_end, output);
    close(child);
    return status;
}

/* Pushes an array of strings that ends with NULL, for execve, from the table at index. */
static char **push_strings(lua_State *L, int index)
{
    const lua_Integer count = (lua_Integer)lua_rawlen(L, index);
    char **strings = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *strings, 0);
    for (lua_Integer i = 0; i < count; ++i) {
        if (lua_rawgeti(L, index, i + 1) != LUA_TSTRING)
            luaL_error(L, "process.run: arguments must be strings");
        strings[i] = (char *)(uintptr_t)lua_tostring(L, -1); /* kept alive by the table */
        lua_pop(L, 1);
    }
    strings[count] = NULL;
    return strings;
}

/* Pushes our environment with the changes of the table `env` in the options at index. */
static char **push_environment(lua_State *L, int index)
{
    lua_newtable(L); /* "NAME=value" in its array part, name -> true for the changed ones */
    const int list = lua_gettop(L);
    lua_Integer count = 0;
    if (lua_getfield(L, index, "env") == LUA_TTABLE) {
        for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
            if (lua_type(L, -2) != LUA_TSTRING || lua_type(L, -1) != LUA_TSTRING)
                luaL_error(L, "process.run: env must map names to strings");
            lua_pushfstring(L, "%s=%s", lua_tostring(L, -2), lua_tostring(L, -1));
            lua_rawseti(L, list, ++count);
            lua_pushvalue(L, -2);
            lua_pushboolean(L, 1);
            lua_rawset(L, list);
        }
    }
    for (char **entry = environ; *entry != NULL; ++entry) {
        lua_pushlstring(L, *entry, strcspn(*entry, "="));
        const bool changed = lua_rawget(L, list) != LUA_TNIL;
        lua_pop(L, 1);
        if (!changed) {
            lua_pushstring(L, *entry);
            lua_rawseti(L, list, ++count);
        }
    }
    return push_strings(L, list);
}

/* Starts the program in a process group of its own; it prints to output, its errors too unless show_stderr. Returns an errno. */
static int start(char **argv, char **environment, const char *directory, int output, bool show_stderr)
{
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    if (!show_stderr)
        posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    if (directory != NULL)
        posix_spawn_file_actions_addchdir_np(&files, directory);

    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    sigset_t defaults = signal_set(), before;
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    posix_spawnattr_setsigdefault(&attributes, &defaults);

    /* no interrupt between the start and the note of it */
    const sigset_t interrupts = signal_set();
    sigprocmask(SIG_BLOCK, &interrupts, &before);
    posix_spawnattr_setsigmask(&attributes, &before);
    pid_t child;
    const int reason = posix_spawnp(&child, argv[0], &files, &attributes, argv, environment);
    if (reason == 0)
        ours.child = child;
    sigprocmask(SIG_SETMASK, &before, NULL);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return reason;
}

static const char *string_option(lua_State *L, const char *name)
{
    const int type = lua_getfield(L, 2, name);
    if (type != LUA_TSTRING && type != LUA_TNIL)
        luaL_error(L, "process.run: %s must be a string", name);
    return lua_tostring(L, -1); /* kept alive by the stack */
}

/* process.run(argv [, { timeout = seconds, env = { NAME = "value" }, output = path, directory = path, show_stderr = true }])
     -> { status = exit code, signal = number | nil, timed_out = boolean, output = text } | nil, message when it cannot start
   argv[1] is looked up in PATH. Its standard input is empty. status is 128 + signal when a signal ended it. output is the last 64 KiB of
   standard output and error together; with the option output they go to that file instead, with show_stderr the errors go to ours. */
static int process_run(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    luaL_checktype(L, 2, LUA_TTABLE);
    char **argv = push_strings(L, 1);
    luaL_argcheck(L, argv[0] != NULL, 1, "must name a program");
    char **environment = push_environment(L, 2);
    const char *directory = string_option(L, "directory");
    const char *path = string_option(L, "output");
    const double timeout = lua_getfield(L, 2, "timeout") == LUA_TNIL ? 1e9 : luaL_checknumber(L, -1);
    lua_getfield(L, 2, "show_stderr");
    const bool show_stderr = lua_toboolean(L, -1);
    tail *output = lua_newuserdatauv(L, sizeof *output, 0);
    output->size = 0;

    struct stat status_of_directory;
    if (directory != NULL && stat(directory, &status_of_directory) != 0)
        return fail(L, directory, errno);
    int ends[2] = {-1, -1};
    if (path == NULL ? pipe2(ends, O_CLOEXEC) != 0 : (ends[1] = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) < 0)
        return fail(L, path == NULL ? argv[0] : path, errno);
    if (path == NULL)
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const int reason = start(argv, environment, directory, ends[1], show_stderr);
    close(ends[1]);
    if (reason != 0) {
        if (ends[0] >= 0)
            close(ends[0]);
        return fail(L, argv[0], reason);
    }
    bool timed_out;
    const int status = wait_for_child(ends[0], timeout, output, &timed_out);
    if (ends[0] >= 0)
        close(ends[0]);

    lua_newtable(L);
    lua_pushinteger(L, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    lua_setfield(L, -2, "status");
    if (WIFSIGNALED(status)) {
        lua_pushinteger(L, WTERMSIG(status));
        lua_setfield(L, -2, "signal");
    }
    lua_pushboolean(L, timed_out);
    lua_setfield(L, -2, "timed_out");
    const size_t kept = output->size < OUTPUT_LIMIT ? output->size : OUTPUT_LIMIT;
    lua_pushlstring(L, output->bytes + output->size - kept, kept);
    lua_setfield(L, -2, "output");
    return 1;
}

/* process.temporary_directory() -> path of a new empty folder, removed with all it holds when this program ends, also by a signal
     | nil, message */
static int process_temporary_directory(lua_State *L)
{
    const char *base = getenv("TMPDIR");
    if (ours.folder == NULL) {
        const char *pattern = lua_pushfstring(L, "%s/lookupc-XXXXXX", base == NULL || *base == '\0' ? "/tmp" : base);
        char *folder = strdup(pattern);
        if (folder == NULL || mkdtemp(folder) == NULL) {
            free(folder);
            return fail(L, pattern, errno);
        }
        ours.folder = folder;
    }
    const char *path = lua_pushfstring(L, "%s/%d", ours.folder, ++ours.folders);
    if (mkdir(path, 0700) != 0)
        return fail(L, path, errno);
    return 1;
}

/* process.executable() -> absolute path of this program | nil, message */
static int process_executable(lua_State *L)
{
    char *path = realpath("/proc/self/exe", NULL);
    if (path == NULL)
        return fail(L, "/proc/self/exe", errno);
    lua_pushstring(L, path);
    free(path);
    return 1;
}

/* process.is_terminal(file descriptor) -> boolean */
static int process_is_terminal(lua_State *L)
{
    lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
    return 1;
}

/* process.cpu_count() -> number of CPUs that this program may use */
static int process_cpu_count(lua_State *L)
{
    cpu_set_t set;
    lua_pushinteger(L, sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1);
    return 1;
}

/* process.variable(name) -> the environment variable's value | nil when it is not set */
static int process_variable(lua_State *L)
{
    lua_pushstring(L, getenv(luaL_checkstring(L, 1)));
    return 1;
}

/* process.time() -> seconds since 1970 */
static int process_time(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)time(NULL));
    return 1;
}

int luaopen_process(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"run", process_run},
        {"temporary_directory", process_temporary_directory},
        {"executable", process_executable},
        {"is_terminal", process_is_terminal},
        {"cpu_count", process_cpu_count},
        {"variable", process_variable},
        {"time", process_time},
        {NULL, NULL},
    };
    clean_up_at_end();
    luaL_newlib(L, functions);
    return 1;
}
