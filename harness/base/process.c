/* The Lua module `process`: other programs, and what has to be cleaned up when this program ends. */
#include "harness/base/process.h"
#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/host/host.h"
#include "harness/base/clock.h"
#include "harness/base/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_LIMIT = 65536, MOST_AT_ONCE = 64 };

/* What is left behind if nobody cleans up. Only the process that made it does: a forked one inherits this and must not. */
static struct {
    pid_t owner;
    volatile pid_t children[MOST_AT_ONCE]; /* running programs and leaders of their process groups, 0 for none */
    char *folder;                          /* the folder that holds all temporary ones */
    int folders;                           /* how many of those were given out */
    char last_words[256];                  /* printed when a signal ends this program */
    volatile sig_atomic_t ends;            /* a signal ends this program */
} ours;

/* Ends the running programs and removes the temporary folders. Safe in a signal handler. */
static void clean_up(void)
{
    if (getpid() != ours.owner)
        return;
    for (size_t i = 0; i < MOST_AT_ONCE; ++i) {
        if (ours.children[i] <= 0)
            continue;
        kill(-ours.children[i], SIGKILL);
        waitpid(ours.children[i], NULL, 0);
        ours.children[i] = 0;
    }
    if (ours.folder != NULL)
        temporary_remove(ours.folder);
}

static void end_by_signal(int number)
{
    ours.ends = 1;
    if (getpid() == ours.owner && write(STDERR_FILENO, ours.last_words, strlen(ours.last_words)) < 0)
        ours.last_words[0] = '\0'; /* nobody listens */
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

/* What is said when the time of process.deadline is up. */
static char deadline_words[512];

static void end_by_deadline(int number)
{
    if (getpid() != ours.owner) {
        raise(number); /* a forked process that set an alarm of its own: SA_RESETHAND */
        return;
    }
    const ssize_t wrote = write(STDERR_FILENO, deadline_words, strlen(deadline_words));
    clean_up();
    _exit(wrote < 0 ? 2 : 1);
}

int process_fail(lua_State *L, const char *subject, int reason)
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

/* How programs are started and how long they may take. */
typedef struct {
    char **environment;
    const char *directory; /* NULL: ours */
    const char *path;      /* of a file for their output; NULL: it is collected */
    double timeout;
    bool show_stderr;
} manner;

/* A running program and what it has printed. */
typedef struct {
    size_t place;      /* in ours.children */
    int process, pipe; /* pidfd, and the end to read from; -1: closed, or output goes to a file */
    double end;        /* when its time is up */
    bool active, timed_out;
    int status; /* for waitpid */
    tail output;
} running;

/* Waits until one of those that are active has ended or used up its time, and collects their output meanwhile. */
static running *wait_for_one(running *list, size_t count)
{
    for (;;) {
        struct pollfd events[2 * MOST_AT_ONCE];
        double first = 1e9;
        for (size_t i = 0; i < count; ++i) {
            const double left = list[i].end - seconds_now();
            if (list[i].active && left <= 0) {
                list[i].timed_out = true;
                return &list[i];
            }
            if (list[i].active && left < first)
                first = left;
            events[2 * i] = (struct pollfd){.fd = list[i].active ? list[i].process : -1, .events = POLLIN};
            events[2 * i + 1] = (struct pollfd){.fd = list[i].active ? list[i].pipe : -1, .events = POLLIN};
        }
        poll(events, 2 * count, first < 1000 ? (int)(first * 1000) + 1 : 1000000);
        for (size_t i = 0; i < count; ++i) {
            if (events[2 * i + 1].revents != 0 && !read_some(list[i].pipe, &list[i].output)) {
                close(list[i].pipe);
                list[i].pipe = -1;
            }
        }
        for (size_t i = 0; i < count; ++i)
            if (events[2 * i].fd >= 0 && events[2 * i].revents != 0)
                return &list[i];
    }
}

/* A signal that another thread handles ends the running programs first: this thread must not take that for their own end. */
static void wait_for_the_end(void)
{
    while (ours.ends)
        pause();
}

/* Ends what a program may have left running, or itself, and takes the rest of its output. */
static void finish(running *program)
{
    wait_for_the_end();
    const pid_t child = ours.children[program->place];
    kill(-child, SIGKILL);
    while (waitpid(child, &program->status, 0) < 0 && errno == EINTR)
        ;
    wait_for_the_end();
    ours.children[program->place] = 0;
    close(program->process);
    if (program->pipe >= 0) {
        read_some(program->pipe, &program->output);
        close(program->pipe);
    }
    program->active = false;
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

/* Starts a program in a process group of its own, which prints to `output`; its place in ours.children is given. Returns an errno. */
static int spawn(char **argv, const manner *how, int output, size_t place)
{
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    if (!how->show_stderr)
        posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    if (how->directory != NULL)
        posix_spawn_file_actions_addchdir_np(&files, how->directory);

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
    const int reason = posix_spawnp(&child, argv[0], &files, &attributes, argv, how->environment);
    if (reason == 0)
        ours.children[place] = child;
    sigprocmask(SIG_SETMASK, &before, NULL);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return reason;
}

/* Starts a program. Returns an errno, and then what it is about in *subject. */
static int start(running *program, char **argv, const manner *how, const char **subject)
{
    size_t place = 0;
    while (place < MOST_AT_ONCE && ours.children[place] != 0)
        ++place;
    *subject = argv[0];
    if (place == MOST_AT_ONCE)
        return EAGAIN;
    struct stat status_of_directory;
    if (how->directory != NULL && stat(how->directory, &status_of_directory) != 0) {
        *subject = how->directory;
        return errno;
    }
    int ends[2] = {-1, -1};
    if (how->path == NULL ? pipe2(ends, O_CLOEXEC) != 0 : (ends[1] = open(how->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) < 0) {
        *subject = how->path == NULL ? argv[0] : how->path;
        return errno;
    }
    if (how->path == NULL)
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const int reason = spawn(argv, how, ends[1], place);
    close(ends[1]);
    if (reason != 0) {
        if (ends[0] >= 0)
            close(ends[0]);
        return reason;
    }
    program->place = place;
    program->process = pidfd_open(ours.children[place], 0);
    program->pipe = ends[0];
    program->end = seconds_now() + how->timeout;
    program->active = true;
    program->timed_out = false;
    program->output.size = 0;
    return 0;
}

static const char *string_option(lua_State *L, const char *name)
{
    const int type = lua_getfield(L, 2, name);
    if (type != LUA_TSTRING && type != LUA_TNIL)
        luaL_error(L, "process.run: %s must be a string", name);
    return lua_tostring(L, -1); /* kept alive by the stack */
}

/* The options at index 2, which may be absent. Leaves what they refer to on the stack. */
static manner read_manner(lua_State *L)
{
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        lua_newtable(L);
        lua_replace(L, 2);
    }
    luaL_checktype(L, 2, LUA_TTABLE);
    manner how = {.environment = push_environment(L, 2), .directory = string_option(L, "directory"), .path = string_option(L, "output")};
    how.timeout = lua_getfield(L, 2, "timeout") == LUA_TNIL ? 1e9 : luaL_checknumber(L, -1);
    lua_getfield(L, 2, "show_stderr");
    how.show_stderr = lua_toboolean(L, -1);
    return how;
}

static char **check_argv(lua_State *L, int index)
{
    luaL_argcheck(L, lua_istable(L, index) && lua_rawlen(L, index) > 0, 1, "must name a program");
    return push_strings(L, index);
}

static void push_result(lua_State *L, const running *program)
{
    const int status = program->status;
    lua_newtable(L);
    field_set_size(L, "status", (size_t)(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)));
    if (WIFSIGNALED(status)) {
        field_set_size(L, "signal", (size_t)WTERMSIG(status));
    }
    field_set_flag(L, "timed_out", program->timed_out);
    const size_t kept = program->output.size < OUTPUT_LIMIT ? program->output.size : OUTPUT_LIMIT;
    lua_pushlstring(L, program->output.bytes + program->output.size - kept, kept);
    lua_setfield(L, -2, "output");
}

/* process.run(argv [, { timeout = seconds, env = { NAME = "value" }, output = path, directory = path, show_stderr = true }])
     -> { status = exit code, signal = number | nil, timed_out = boolean, output = text } | nil, message when it cannot start
   argv[1] is looked up in PATH. Its standard input is empty. status is 128 + signal when a signal ended it. output is the last 64 KiB of
   standard output and error together; with the option output they go to that file instead, with show_stderr the errors go to ours. */
static int process_run(lua_State *L)
{
    const manner how = read_manner(L);
    char **argv = check_argv(L, 1);
    running *program = lua_newuserdatauv(L, sizeof *program, 0);
    const char *subject;
    const int reason = start(program, argv, &how, &subject);
    if (reason != 0)
        return process_fail(L, subject, reason);
    finish(wait_for_one(program, 1));
    push_result(L, program);
    return 1;
}

/* process.run_all({ argv, ... } [, options as of run, and at_once = number])
     -> { result as of run, ... } in the same order | nil, message when one cannot start
   Runs at most `at_once` programs at a time (one, if absent; at most 64), each with a time limit of its own. */
static int process_run_all(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    const manner how = read_manner(L);
    lua_getfield(L, 2, "at_once");
    const lua_Integer at_once = luaL_optinteger(L, -1, 1), count = (lua_Integer)lua_rawlen(L, 1);
    luaL_argcheck(L, at_once >= 1 && at_once <= MOST_AT_ONCE, 2, "at_once: must be from 1 to 64");
    luaL_argcheck(L, how.path == NULL, 2, "output: programs at a time cannot share a file");
    const size_t places = (size_t)at_once;
    running *list = lua_newuserdatauv(L, places * sizeof *list, 0);
    lua_Integer numbers[MOST_AT_ONCE], next = 1;
    for (size_t i = 0; i < places; ++i)
        list[i].active = false;
    lua_newtable(L);
    const int results = lua_gettop(L);
    for (size_t active = 0; next <= count || active > 0;) {
        if (next <= count && active < places) {
            size_t i = 0;
            while (list[i].active)
                ++i;
            lua_rawgeti(L, 1, next);
            const char *subject;
            const int reason = start(&list[i], check_argv(L, lua_gettop(L)), &how, &subject);
            if (reason != 0) {
                for (size_t j = 0; j < places; ++j)
                    if (list[j].active)
                        finish(&list[j]);
                return process_fail(L, subject, reason);
            }
            lua_settop(L, results);
            numbers[i] = next++;
            ++active;
            continue;
        }
        running *ended = wait_for_one(list, places);
        finish(ended);
        --active;
        push_result(L, ended);
        lua_rawseti(L, results, numbers[ended - list]);
    }
    return 1;
}

/* process.temporary_directory() -> path of a new empty folder, removed with all it holds when this program ends, also by a signal; after
   SIGKILL the next program that makes one removes it. Raises one line if none can be made. */
static int process_temporary_directory(lua_State *L)
{
    char kept[PATH_MAX];
    const char *base = temporary_base(kept);
    if (ours.folder == NULL)
        ours.folder = temporary_make(base);
    const char *path = ours.folder == NULL ? base : lua_pushfstring(L, "%s/%d", ours.folder, ++ours.folders);
    if (ours.folder == NULL || mkdir(path, 0700) != 0) {
        char error[512];
        const int reason = errno;
        const bool ends = strlen(path) < 300;
        files_error(error, sizeof error, "TMPDIR: %.300s%s: no temporary folder can be made there: %s", path, ends ? "" : "...",
                    strerror(reason));
        lua_pushstring(L, error);
        return lua_error(L);
    }
    lua_pushstring(L, path);
    return 1;
}

/* process.last_words(text): what to print to standard error if SIGINT, SIGTERM or SIGHUP ends this program; "" for nothing. */
static int process_last_words(lua_State *L)
{
    snprintf(ours.last_words, sizeof ours.last_words, "%s", luaL_checkstring(L, 1));
    return 0;
}

/* process.deadline(seconds, text): in so many seconds this program ends, whatever it does: it prints the text to standard error, cleans up
   as for a signal, and its exit status is 1. process.deadline(): it does not. */
static int process_deadline(lua_State *L)
{
    struct itimerval timer;
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    signal(SIGALRM, SIG_DFL);
    if (lua_isnoneornil(L, 1))
        return 0;
    const double seconds = luaL_checknumber(L, 1);
    snprintf(deadline_words, sizeof deadline_words, "%s", luaL_checkstring(L, 2));
    const struct sigaction action = {.sa_handler = end_by_deadline, .sa_flags = (int)SA_RESETHAND, .sa_mask = signal_set()};
    sigaction(SIGALRM, &action, NULL);
    const double left = seconds < 1e-3 ? 1e-3 : seconds < 1e8 ? seconds : 1e8;
    timer.it_value.tv_sec = (time_t)left;
    timer.it_value.tv_usec = (suseconds_t)((left - (double)timer.it_value.tv_sec) * 1e6);
    setitimer(ITIMER_REAL, &timer, NULL);
    return 0;
}

int luaopen_process(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"run", process_run},
        {"run_all", process_run_all},
        {"last_words", process_last_words},
        {"deadline", process_deadline},
        {"temporary_directory", process_temporary_directory},
        {NULL, NULL},
    };
    clean_up_at_end();
    luaL_newlib(L, functions);
    process_add_isolated(L);
    process_add_facts(L);
    return 1;
}
