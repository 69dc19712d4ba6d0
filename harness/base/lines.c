/* The Lua module `lines`: the lines of standard input or of a file one after the other, in memory no larger than the longest.

   lines.open([path]) -> reader | nil, message: of the file `path`; absent: of standard input
   reader:next() -> line | nil at the end | nil, message. A line feed ends a line, with the carriage return before it if there is one; the
   last line may lack it. Also while it waits for input it ends with a message once somebody wants the program to end. */
#include "gen/host/files.h"
#include "gen/host/host.h"
#include "gen/host/progress.h"
#include "harness/base/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READER "lines.reader"

enum { ERROR_SIZE = 4096 + 256, PIECE = 65536, LONGEST = 1 << 26, WAIT_MILLISECONDS = 100 };

typedef struct {
    char *path; /* for messages */
    int descriptor;
    char *bytes; /* [room]; those from `first` up to `last` are read and not given out */
    size_t room, first, last, searched;
    bool ended;
    size_t number; /* of the line */
} line_reader;

static int reader_close(lua_State *L)
{
    line_reader *r = luaL_checkudata(L, 1, READER);
    if (r->descriptor > STDIN_FILENO)
        close(r->descriptor);
    free(r->path);
    free(r->bytes);
    *r = (line_reader){.descriptor = -1};
    return 0;
}

static int lines_open(lua_State *L)
{
    const char *path = luaL_optstring(L, 1, NULL);
    line_reader *r = lua_newuserdatauv(L, sizeof *r, 0);
    *r = (line_reader){.descriptor = STDIN_FILENO};
    luaL_setmetatable(L, READER);
    r->path = strdup(path ? path : "standard input");
    if (path)
        r->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (r->descriptor >= 0 && r->path && fstat(r->descriptor, &status) == 0) {
        if (!S_ISDIR(status.st_mode))
            return 1;
        errno = EISDIR;
    }
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", r->path ? r->path : "lines", strerror(errno));
    return 2;
}

/* Waits until there is input, or somebody wants the end. */
static bool wait_for_input(const line_reader *r, char *error)
{
    for (;;) {
        struct pollfd input = {.fd = r->descriptor, .events = POLLIN};
        const int ready = poll(&input, 1, WAIT_MILLISECONDS);
        if (progress_interrupted())
            return files_error(error, ERROR_SIZE, "interrupted");
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return files_error(error, ERROR_SIZE, "%s: %s", r->path, strerror(errno));
    }
}

/* Reads more behind what is there. */
static bool read_more(line_reader *r, char *error)
{
    if (r->first > 0) {
        memmove(r->bytes, r->bytes + r->first, r->last - r->first);
        r->last -= r->first;
        r->searched -= r->first;
        r->first = 0;
    }
    if (r->last > LONGEST)
        return files_error(error, ERROR_SIZE, "%s: line %zu: is longer than %d MiB", r->path, r->number + 1, LONGEST >> 20);
    if (r->room - r->last < PIECE) {
        const size_t room = 2 * r->room + PIECE;
        char *bytes = realloc(r->bytes, room);
        if (!bytes)
            return files_error(error, ERROR_SIZE, "%s: out of memory", r->path);
        r->bytes = bytes;
        r->room = room;
    }
    if (!wait_for_input(r, error))
        return false;
    const ssize_t got = read(r->descriptor, r->bytes + r->last, r->room - r->last);
    if (got < 0 && errno != EINTR && errno != EAGAIN)
        return files_error(error, ERROR_SIZE, "%s: %s", r->path, strerror(errno));
    r->ended = got == 0;
    r->last += got > 0 ? (size_t)got : 0;
    return true;
}

static int reader_next(lua_State *L)
{
    char error[ERROR_SIZE];
    line_reader *r = luaL_checkudata(L, 1, READER);
    const char *end;
    while (!(end = memchr(r->bytes ? r->bytes + r->searched : "", '\n', r->last - r->searched))) {
        r->searched = r->last;
        if (r->ended)
            break;
        if (!read_more(r, error))
            return host_fail(L, error);
    }
    if (!end && r->first == r->last)
        return 0;
    const char *line = r->bytes + r->first;
    size_t length = end ? (size_t)(end - line) : r->last - r->first;
    r->first = r->searched = end ? (size_t)(end - r->bytes) + 1 : r->last;
    r->number++;
    if (end && length > 0 && line[length - 1] == '\r')
        --length;
    lua_pushlstring(L, line, length);
    return 1;
}

int luaopen_lines(lua_State *L)
{
    static const luaL_Reg functions[] = {{"open", lines_open}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"next", reader_next}, {NULL, NULL}};
    host_class(L, READER, reader_close, methods);
    luaL_newlib(L, functions);
    return 1;
}
