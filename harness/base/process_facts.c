/* The Lua module `process`: facts of this process, its files, environment and time. */
#include "gen/host/fields.h"
#include "harness/base/clock.h"
#include "harness/base/library.h"
#include "harness/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
        return process_fail(L, path, errno);
    lua_pushfstring(L, "/proc/%I/fd/%d", (LUAI_UACINT)getpid(), descriptor);
    return 1;
}

/* process.executable() -> absolute path of this program | nil, message: also once its file is replaced. */
static int process_executable(lua_State *L)
{
    char *path = realpath("/proc/self/exe", NULL);
    if (path == NULL)
        return process_fail(L, "/proc/self/exe", errno);
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

/* process.affinity() -> number of CPUs that this program may run on, whatever its share of them: harness/base/cpus.lua */
static int process_affinity(lua_State *L)
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

/* process.kept_folder() -> where what is kept from run to run lies | nil: nothing says where */
static int process_kept_folder(lua_State *L)
{
    char folder[PATH_MAX];
    lua_pushstring(L, temporary_kept(folder) ? folder : NULL);
    return 1;
}

/* process.loads_from(path) -> whether libraries can be loaded from there */
static int process_loads_from(lua_State *L)
{
    lua_pushboolean(L, library_loads_from(luaL_checkstring(L, 1)));
    return 1;
}

/* process.time() -> seconds since 1970 */
static int process_time(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)time(NULL));
    return 1;
}

/* process.date() -> the day in UTC, such as "2026-11-27" */
static int process_date(lua_State *L)
{
    const time_t now = time(NULL);
    struct tm day;
    char text[32];
    strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &day));
    lua_pushstring(L, text);
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
        return process_fail(L, path, errno);
    clock_gettime(CLOCK_REALTIME, &now);
    lua_createtable(L, 0, 4);
    lua_pushfstring(L, "%I:%I:%I:%I.%I:%I.%I", (LUAI_UACINT)status.st_dev, (LUAI_UACINT)status.st_ino, (LUAI_UACINT)status.st_size,
                    (LUAI_UACINT)status.st_mtim.tv_sec, (LUAI_UACINT)status.st_mtim.tv_nsec, (LUAI_UACINT)status.st_ctim.tv_sec,
                    (LUAI_UACINT)status.st_ctim.tv_nsec);
    lua_setfield(L, -2, "identity");
    field_set_size(L, "bytes", (size_t)status.st_size);
    field_set_size(L, "modified", (size_t)status.st_mtim.tv_sec);
    field_set_number(L, "age", difftime(now.tv_sec, status.st_ctim.tv_sec) + 1e-9 * (double)(now.tv_nsec - status.st_ctim.tv_nsec));
    return 1;
}

/* process.touch(path) -> true | nil, message: the file was modified now. */
static int process_touch(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    if (utimensat(AT_FDCWD, path, NULL, 0) != 0)
        return process_fail(L, path, errno);
    lua_pushboolean(L, true);
    return 1;
}

void process_add_facts(lua_State *L)
{
    static const luaL_Reg functions[] = {{"executable", process_executable},
                                         {"beside", process_beside},
                                         {"held", process_held},
                                         {"id", process_id},
                                         {"is_terminal", process_is_terminal},
                                         {"affinity", process_affinity},
                                         {"variable", process_variable},
                                         {"file_facts", process_file_facts},
                                         {"touch", process_touch},
                                         {"kept_folder", process_kept_folder},
                                         {"loads_from", process_loads_from},
                                         {"time", process_time},
                                         {"date", process_date},
                                         {"clock", process_clock},
                                         {"cpu", process_cpu},
                                         {NULL, NULL}};
    note_program_folder();
    luaL_setfuncs(L, functions, 0);
}
