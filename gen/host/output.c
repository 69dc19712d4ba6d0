/* The functions of the Lua module `host` that print: lines on standard output and standard error, and how far a long command is. */
#include "gen/host/host.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Writes a text and the newline that it may lack; false: errno says why not. A long text reaches the system before fflush, which then
   knows nothing of what failed. */
static bool put_line(FILE *file, const char *text, size_t length)
{
    const bool ends = length > 0 && text[length - 1] == '\n';
    return fwrite(text, 1, length, file) == length && (ends || fputc('\n', file) != EOF) && fflush(file) == 0;
}

/* Whether the last line on the terminal is one of host.status. */
static bool status_shown;

static void clear_status(void)
{
    if (status_shown)
        fputs("\r\033[K", stderr);
    status_shown = false;
}

bool host_show_status(const char *text)
{
    const bool terminal = isatty(STDERR_FILENO) != 0;
    clear_status();
    if (terminal && *text != '\0') {
        fputs(text, stderr);
        fflush(stderr);
        status_shown = true;
    }
    return terminal;
}

/* Pushes whether somebody still reads standard output; raises an error if it cannot be written for another reason. */
static int written(lua_State *L, bool good)
{
    if (!good && errno != EPIPE) {
        lua_pushfstring(L, "standard output: %s", strerror(errno));
        return lua_error(L);
    }
    lua_pushboolean(L, good);
    return 1;
}

/* host.print(text) -> whether somebody still reads them: one or more lines on standard output. Raises an error if they cannot be written;
   a reader that has gone is none. */
static int host_print(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    clear_status();
    return written(L, put_line(stdout, text, length));
}

/* host.write(text) -> as host.print: a piece of text on standard output, at once and as it is. */
static int host_write(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    clear_status();
    return written(L, fwrite(text, 1, length, stdout) == length && fflush(stdout) == 0);
}

/* host.note(text): one or more lines on standard error. */
static int host_note(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    clear_status();
    put_line(stderr, text, length);
    return 0;
}

/* host.status(text): how far a long command is, in place of the last status, if standard error is a terminal; "" removes it.
   -> whether it is one */
static int host_status(lua_State *L)
{
    lua_pushboolean(L, host_show_status(luaL_checkstring(L, 1)));
    return 1;
}

void host_add_output(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"print", host_print}, {"write", host_write}, {"note", host_note}, {"status", host_status}, {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
