/* A function of Lua in a process of its own. */
#include "harness/base/clock.h"
#include "harness/base/parent.h"
#include "harness/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
int process_isolated(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    const double seconds = luaL_optnumber(L, 2, 1e8), end = seconds_now() + seconds;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return process_fail(L, "pipe", errno);
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        end_with_parent(parent);
        answer(L, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return process_fail(L, "fork", errno);
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
