/* The Lua module `process`: other programs, temporary folders, what has to be cleaned up when this program ends, environment and time. */
#include "gen/host/files.h"
#include "gen/host/host.h"
#include "harness/base/clock.h"
#include "harness/base/modules.h"
#include "harness/base/parent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
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

/* Removes a folder and all it holds. Safe in a signal handler. */
static void remove_tree(const char *path)
{
    const pid_t remover = _Fork();
    if (remover == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere >= 0)
            dup2(nowhere, STDERR_FILENO);
        execl("/bin/rm", "rm", "-rf", "--", path, (char *)NULL);
        _exit(127);
    }
    if (remover > 0)
        waitpid(remover, NULL, 0);
}

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
        remove_tree(ours.folder);
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
    lua_pushinteger(L, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    lua_setfield(L, -2, "status");
    if (WIFSIGNALED(status)) {
        lua_pushinteger(L, WTERMSIG(status));
        lua_setfield(L, -2, "signal");
    }
    lua_pushboolean(L, program->timed_out);
    lua_setfield(L, -2, "timed_out");
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
        return fail(L, subject, reason);
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
                return fail(L, subject, reason);
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

/* ---- temporary folders ---- */

/* The folder of a running process holds a file that it keeps locked (flock, which ends with the process, killed or not). A folder whose
   file can be locked is nobody's. */

#define FOLDER "lookupc-"
#define LOCK ".lookupc-lock"
enum { FOLDER_LETTERS = 6, MOST_ATTEMPTS = 100 };

/* Opens and locks the file `LOCK` of a folder. Returns its descriptor, or -1; errno says why: ENOENT for a file that is gone meanwhile,
   EWOULDBLOCK if somebody holds the lock. */
static int lock_folder(const char *folder, int flags)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" LOCK, folder) >= (int)sizeof path)
        return -1;
    const int descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (descriptor < 0)
        return -1;
    struct stat opened, there;
    int reason = 0;
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 || fstat(descriptor, &opened) != 0 || lstat(path, &there) != 0)
        reason = errno;
    else if (opened.st_ino != there.st_ino || opened.st_uid != geteuid())
        reason = ENOENT;
    if (reason == 0)
        return descriptor;
    close(descriptor);
    errno = reason;
    return -1;
}

/* Gives a folder that is still there a file that nobody has locked: a program of the killed process may have written into it while it was
   being removed, and the next one that looks must find it. */
static void leave_lock(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" LOCK, folder) >= (int)sizeof path)
        return;
    const int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor >= 0)
        close(descriptor);
}

/* Removes the folders in `base` that killed processes of this user left behind. */
static void remove_abandoned(const char *base)
{
    DIR *list = opendir(base);
    if (list == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char path[PATH_MAX];
        struct stat status;
        if (strncmp(entry->d_name, FOLDER, strlen(FOLDER)) != 0 || strlen(entry->d_name) != strlen(FOLDER) + FOLDER_LETTERS ||
            snprintf(path, sizeof path, "%s/%s", base, entry->d_name) >= (int)sizeof path || lstat(path, &status) != 0 ||
            !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
            continue;
        const int lock = lock_folder(path, 0);
        if (lock < 0)
            continue;
        remove_tree(path);
        leave_lock(path);
        close(lock);
    }
    closedir(list);
}

/* Makes the folder that holds all temporary ones. Returns its path, or NULL: errno says why. */
static char *make_folder(const char *base)
{
    char *absolute = realpath(base, NULL);
    if (absolute == NULL)
        return NULL;
    remove_abandoned(absolute);
    char *folder = NULL;
    int reason = 0;
    for (int attempt = 0; folder == NULL && reason == 0 && attempt < MOST_ATTEMPTS; ++attempt) {
        if (asprintf(&folder, "%s/" FOLDER "XXXXXX", strcmp(absolute, "/") == 0 ? "" : absolute) < 0) {
            folder = NULL;
            reason = ENOMEM;
        } else if (mkdtemp(folder) == NULL) {
            reason = errno;
        } else if (lock_folder(folder, O_CREAT) < 0 && (errno == ENOENT || errno == EWOULDBLOCK)) {
            /* another process found the folder before it was locked, and removes it */
            remove_tree(folder);
            free(folder);
            folder = NULL;
        } /* locked until this process ends; where locks do not work nobody removes what others left */
        if (reason != 0) {
            free(folder);
            folder = NULL;
        }
    }
    free(absolute);
    errno = reason != 0 ? reason : EAGAIN;
    return folder;
}

/* process.temporary_directory() -> path of a new empty folder, removed with all it holds when this program ends, also by a signal; after
   SIGKILL the next program that makes one removes it. Raises one line if none can be made. */
static int process_temporary_directory(lua_State *L)
{
    const char *set = getenv("TMPDIR"), *base = set == NULL || *set == '\0' ? "/tmp" : set;
    if (ours.folder == NULL)
        ours.folder = make_folder(base);
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

/* Runs the function on the stack, and writes its text, or, behind a zero byte, the error, to `out`. */
static void answer(lua_State *L, int out)
{
    lua_pushvalue(L, 1);
    const bool good = lua_pcall(L, 0, 1, 0) == LUA_OK;
    size_t size;
    const char *text = luaL_tolstring(L, -1, &size);
    bool whole = good || write(out, "", 1) == 1;
    while (whole && size > 0) {
        const ssize_t wrote = write(out, text, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        whole = wrote > 0;
        text += whole ? wrote : 0;
        size -= whole ? (size_t)wrote : 0;
    }
    _exit(whole ? 0 : 1);
}

/* process.isolated(function, seconds) -> the text that the function returns, in a process of its own | nil, message: it crashed, or took
   more seconds (absent: as many as it takes) and was ended. Raises what the function raises. */
static int process_isolated(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    const double seconds = luaL_optnumber(L, 2, 1e8), end = seconds_now() + seconds;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fail(L, "pipe", errno);
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        end_with_parent(parent);
        answer(L, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return fail(L, "fork", errno);
    }
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    bool late = false;
    for (;;) {
        const double left = end - seconds_now();
        struct pollfd event = {.fd = ends[0], .events = POLLIN};
        late = left <= 0;
        if (late)
            break;
        if (poll(&event, 1, left < 1000 ? (int)(left * 1000) + 1 : 1000000) <= 0)
            continue;
        char piece[16384];
        const ssize_t got = read(ends[0], piece, sizeof piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        luaL_addlstring(&text, piece, (size_t)got);
    }
    close(ends[0]);
    if (late)
        kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    luaL_pushresult(&text);
    if (late || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        lua_pushnil(L);
        if (late)
            lua_pushfstring(L, "took more than %d seconds", (int)seconds);
        else
            lua_pushfstring(L, "crashed: signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
        return 2;
    }
    size_t size;
    const char *bytes = lua_tolstring(L, -1, &size);
    if (size > 0 && bytes[0] == '\0') {
        lua_pushlstring(L, bytes + 1, size - 1);
        return lua_error(L);
    }
    return 1;
}

/* process.id() -> the number of this process */
static int process_id(lua_State *L)
{
    lua_pushinteger(L, getpid());
    return 1;
}

/* The folder of this program when it started, with a slash behind it; "": nobody knows. The program may be replaced while it runs. */
static char program_folder[PATH_MAX];

static void note_program_folder(void)
{
    const ssize_t length = readlink("/proc/self/exe", program_folder, sizeof program_folder - 1);
    size_t end = length > 0 ? (size_t)length : 0;
    while (end > 0 && program_folder[end - 1] != '/')
        --end;
    program_folder[end] = 0;
}

/* process.beside(name) -> path of the file `name` in the folder of this program, be it there or not; of a library that is installed, in the
   folder of lookupc's libraries */
static int process_beside(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    const char *path = lua_pushfstring(L, "%s%s", program_folder, name);
    const char *installed = lua_pushfstring(L, "%s" LOOKUPC_LIBRARIES "/%s", program_folder, name);
    lua_settop(L, access(path, F_OK) != 0 && access(installed, F_OK) == 0 ? 3 : 2);
    return 1;
}

/* process.held(path) -> a path that leads to what is at `path` now as long as this program runs, also where another file takes its place |
   nil, message */
static int process_held(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return fail(L, path, errno);
    lua_pushfstring(L, "/proc/%I/fd/%d", (LUAI_UACINT)getpid(), descriptor);
    return 1;
}

/* process.executable() -> absolute path of this program | nil, message: also once its file is replaced. */
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

/* process.clock() -> seconds of a clock that only goes forward */
static int process_clock(lua_State *L)
{
    lua_pushnumber(L, seconds_now());
    return 1;
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* process.cpu() -> seconds of a CPU that this process took, and those that it started and that have ended */
static int process_cpu(lua_State *L)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    lua_pushnumber(L, seconds_of(own.ru_utime) + seconds_of(own.ru_stime) + seconds_of(children.ru_utime) + seconds_of(children.ru_stime));
    return 1;
}

/* process.file_facts(path) -> { identity, bytes, modified, age } | nil, message. `identity` is a text that differs once the file's content
   may have changed, unless that was within the clock's grain: `age` are the seconds since the last change. `modified`: seconds since 1970.
 */
static int process_file_facts(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct stat status;
    struct timespec now;
    if (stat(path, &status) != 0)
        return fail(L, path, errno);
    clock_gettime(CLOCK_REALTIME, &now);
    lua_createtable(L, 0, 4);
    lua_pushfstring(L, "%I:%I:%I:%I.%I:%I.%I", (LUAI_UACINT)status.st_dev, (LUAI_UACINT)status.st_ino, (LUAI_UACINT)status.st_size,
                    (LUAI_UACINT)status.st_mtim.tv_sec, (LUAI_UACINT)status.st_mtim.tv_nsec, (LUAI_UACINT)status.st_ctim.tv_sec,
                    (LUAI_UACINT)status.st_ctim.tv_nsec);
    lua_setfield(L, -2, "identity");
    lua_pushinteger(L, (lua_Integer)status.st_size);
    lua_setfield(L, -2, "bytes");
    lua_pushinteger(L, (lua_Integer)status.st_mtim.tv_sec);
    lua_setfield(L, -2, "modified");
    lua_pushnumber(L, difftime(now.tv_sec, status.st_ctim.tv_sec) + 1e-9 * (double)(now.tv_nsec - status.st_ctim.tv_nsec));
    lua_setfield(L, -2, "age");
    return 1;
}

/* process.touch(path) -> true | nil, message: the file was modified now. */
static int process_touch(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    if (utimensat(AT_FDCWD, path, NULL, 0) != 0)
        return fail(L, path, errno);
    lua_pushboolean(L, true);
    return 1;
}

int luaopen_process(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"run", process_run},
        {"run_all", process_run_all},
        {"last_words", process_last_words},
        {"deadline", process_deadline},
        {"isolated", process_isolated},
        {"temporary_directory", process_temporary_directory},
        {"executable", process_executable},
        {"beside", process_beside},
        {"held", process_held},
        {"id", process_id},
        {"is_terminal", process_is_terminal},
        {"cpu_count", process_cpu_count},
        {"variable", process_variable},
        {"file_facts", process_file_facts},
        {"touch", process_touch},
        {"time", process_time},
        {"clock", process_clock},
        {"cpu", process_cpu},
        {NULL, NULL},
    };
    clean_up_at_end();
    note_program_folder();
    luaL_newlib(L, functions);
    return 1;
}
