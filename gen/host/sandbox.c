/* The Lua module `sandbox`: runs a file of data (a model or a tuned file) in a state of its own that has limits and no libraries. */
#include "gen/host/files.h"
#include "gen/host/host.h"

#include <lauxlib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SOURCE_LIMIT = 1 << 20,  /* bytes of a source file */
    MEMORY_LIMIT = 16 << 20, /* bytes in use while it runs, and bytes of its result */
    INSTRUCTION_LIMIT = 10000000,
    INSTRUCTION_STEP = 1000, /* limits are looked at this often */
    SECONDS_LIMIT = 2,       /* of CPU time: only for few instructions that each copy megabytes */
    DEPTH_LIMIT = 64,        /* tables in tables */
    INCLUDE_LIMIT = 16,      /* files that a file and those it includes may include */
    MESSAGE_SIZE = 1024,
};

/* The chunk's name inside the state: short, since Lua shortens long ones; the path takes its place in messages. An included file has its
   number behind it. */
#define CHUNK "data"

typedef struct {
    char *path, *bytes; /* malloc'ed */
    size_t size;
} included_file;

/* A state and what it has used. Kept as a Lua value, so that an error closes the state too. */
typedef struct {
    lua_State *state;
    size_t memory; /* bytes in use */
    int instructions;
    clock_t start;
    const char *path; /* of the file */
    included_file included[INCLUDE_LIMIT];
    int included_count;
} sandbox;

static void *allocate(void *context, void *block, size_t old_size, size_t new_size)
{
    sandbox *used = context;
    const size_t had = block == NULL ? 0 : old_size;
    if (new_size == 0) {
        free(block);
        used->memory -= had;
        return NULL;
    }
    if (new_size > had && new_size - had > MEMORY_LIMIT - used->memory)
        return NULL;
    void *moved = realloc(block, new_size);
    if (moved != NULL)
        used->memory += new_size - had;
    return moved;
}

/* Raises an error at the line that is running; a hook has no level of its own. */
static void stop(lua_State *S, int limit, const char *unit)
{
    luaL_where(S, 0);
    lua_pushfstring(S, "took more than %d %s", limit, unit);
    lua_concat(S, 2);
    lua_error(S);
}

static void count_instructions(lua_State *S, lua_Debug *debug)
{
    (void)debug;
    void *context;
    lua_getallocf(S, &context);
    sandbox *used = context;
    used->instructions += INSTRUCTION_STEP;
    if (used->instructions >= INSTRUCTION_LIMIT)
        stop(S, INSTRUCTION_LIMIT, "instructions");
    if (clock() - used->start > SECONDS_LIMIT * CLOCKS_PER_SEC)
        stop(S, SECONDS_LIMIT, "seconds");
}

/* A name that nobody has set is a misspelling, not nil. */
static int unknown_name(lua_State *S)
{
    return luaL_error(S, "unknown name '%s'", luaL_tolstring(S, 2, NULL));
}

typedef struct {
    const char *bytes;
    size_t size;
} source_text;

static bool is_text(const source_text *source);
static int include(lua_State *S);

/* Pushes the source as a function whose only name is include. `number` is that of an included file, or 0. */
static void push_chunk(lua_State *S, const source_text *source, int number)
{
    char name[16];
    snprintf(name, sizeof name, number == 0 ? "=" CHUNK : "=" CHUNK "%d", number);
    const size_t mark = source->size >= 3 && memcmp(source->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* some editors put it there */
    if (luaL_loadbufferx(S, source->bytes + mark, source->size - mark, name, "t") != LUA_OK)
        lua_error(S);
    lua_newtable(S);
    lua_pushinteger(S, number);
    lua_pushcclosure(S, include, 1);
    lua_setfield(S, -2, "include");
    lua_newtable(S);
    lua_pushcfunction(S, unknown_name);
    lua_setfield(S, -2, "__index");
    lua_setmetatable(S, -2);
    lua_setupvalue(S, -2, 1);
}

/* Whether a path stays below the folder that it starts from. */
static bool stays_below(const char *path)
{
    if (*path == '/' || *path == '\0')
        return false;
    for (; *path != '\0'; path += strcspn(path, "/"), path += *path == '/') {
        if (path[0] == '.' && path[1] == '.' && (path[2] == '/' || path[2] == '\0'))
            return false;
    }
    return true;
}

/* include "FILE.lua" -> the table that another file returns, which lies in the folder of this one or below. */
static int include(lua_State *S)
{
    void *context;
    lua_getallocf(S, &context);
    sandbox *box = context;
    const int from = (int)lua_tointeger(S, lua_upvalueindex(1));
    size_t length;
    const char *name = luaL_checklstring(S, 1, &length), *own = from == 0 ? box->path : box->included[from - 1].path;
    if (strlen(name) != length || !stays_below(name))
        return luaL_error(S, "include \"%s\": must be a relative path without ..", name);
    if (box->included_count == INCLUDE_LIMIT)
        return luaL_error(S, "include \"%s\": more than %d files are included", name, INCLUDE_LIMIT);

    const char *slash = strrchr(own, '/');
    const size_t folder = slash == NULL ? 0 : (size_t)(slash - own) + 1;
    included_file *file = &box->included[box->included_count];
    file->path = malloc(folder + length + 1);
    if (file->path == NULL)
        return luaL_error(S, "not enough memory");
    ++box->included_count;
    memcpy(file->path, own, folder);
    memcpy(file->path + folder, name, length + 1);
    char error[MESSAGE_SIZE];
    if (!files_read_regular(file->path, SOURCE_LIMIT, &file->bytes, &file->size, error, sizeof error))
        return luaL_error(S, "include: %s", error);
    const source_text source = {.bytes = file->bytes, .size = file->size};
    if ((file->size > 0 && file->bytes[0] == LUA_SIGNATURE[0]) || !is_text(&source))
        return luaL_error(S, "include: %s: is binary: must be a text that returns a Lua table", file->path);
    push_chunk(S, &source, box->included_count);
    lua_call(S, 0, 1);
    if (lua_type(S, -1) != LUA_TTABLE)
        return luaL_error(S, "include: %s: must return one table, returned %s", file->path, luaL_typename(S, -1));
    return 1;
}

/* Runs the source and leaves what it returns. */
static int run(lua_State *S)
{
    const source_text *source = lua_touserdata(S, 1);
    lua_settop(S, 0);
    push_chunk(S, source, 0);
    lua_sethook(S, count_instructions, LUA_MASKCOUNT, INSTRUCTION_STEP);
    lua_call(S, 0, LUA_MULTRET);
    return lua_gettop(S);
}

/* Where in the result a value stands: its own key and the keys around it. */
typedef struct place {
    const struct place *outer;
    const char *name; /* NULL: the integer index */
    long long index;
} place;

typedef struct {
    lua_State *from, *to;
    size_t left; /* bytes of the result that are still allowed */
    char *message;
} copying;

static size_t describe(const place *where, char *text, size_t size)
{
    size_t length = where->outer == NULL ? 0 : describe(where->outer, text, size);
    const char *dot = length == 0 ? "" : ".";
    int more;
    if (where->name != NULL)
        more = snprintf(text + length, size - length, "%s%s", dot, where->name);
    else
        more = snprintf(text + length, size - length, "[%lld]", where->index);
    length += (size_t)more;
    return length < size ? length : size - 1;
}

static bool refuse(copying *copy, const place *where, const char *rule)
{
    size_t length = where == NULL ? 0 : describe(where, copy->message, MESSAGE_SIZE / 2);
    snprintf(copy->message + length, MESSAGE_SIZE - length, "%s%s", length == 0 ? "" : ": ", rule);
    return false;
}

static bool copy_value(copying *copy, const place *where, int depth);

/* Pushes a copy of the table on top of from; where is NULL for the outermost. */
static bool copy_table(copying *copy, const place *where, int depth)
{
    lua_State *S = copy->from, *L = copy->to;
    if (depth >= DEPTH_LIMIT || !lua_checkstack(S, 8))
        return refuse(copy, NULL, "has tables nested more than 64 deep, or inside themselves");
    luaL_checkstack(L, 8, NULL);
    lua_newtable(L);
    for (lua_pushnil(S); lua_next(S, -2) != 0; lua_pop(S, 1)) {
        place here = {.outer = where};
        if (lua_type(S, -2) == LUA_TSTRING)
            here.name = lua_tostring(S, -2);
        else if (lua_isinteger(S, -2))
            here.index = lua_tointeger(S, -2);
        else
            return refuse(copy, where, "has a key that is neither a string nor an integer");

        lua_pushvalue(S, -2);
        if (!copy_value(copy, &here, depth))
            return false;
        lua_pop(S, 1);
        if (!copy_value(copy, &here, depth))
            return false;
        lua_rawset(L, -3);
    }
    return true;
}

/* Pushes a copy of the value on top of from. */
static bool copy_value(copying *copy, const place *where, int depth)
{
    lua_State *S = copy->from, *L = copy->to;
    size_t length = 0;
    const char *text = lua_type(S, -1) == LUA_TSTRING ? lua_tolstring(S, -1, &length) : NULL;
    if (copy->left < length + 16)
        return refuse(copy, NULL, "returns more than 16 MiB");
    copy->left -= length + 16;
    switch (lua_type(S, -1)) {
    case LUA_TSTRING: lua_pushlstring(L, text, length); return true;
    case LUA_TBOOLEAN: lua_pushboolean(L, lua_toboolean(S, -1)); return true;
    case LUA_TNUMBER:
        if (lua_isinteger(S, -1))
            lua_pushinteger(L, lua_tointeger(S, -1));
        else
            lua_pushnumber(L, lua_tonumber(S, -1));
        return true;
    case LUA_TTABLE: return copy_table(copy, where, depth + 1);
    default: return refuse(copy, where, "is a function: must be a table, a string, a number or a boolean");
    }
}

/* Whether there are no control characters but white space. */
static bool is_text(const source_text *source)
{
    for (size_t i = 0; i < source->size; ++i) {
        const unsigned char byte = (unsigned char)source->bytes[i];
        if (byte == 0x7f || (byte < ' ' && (byte < '\t' || byte > '\r')))
            return false;
    }
    return true;
}

/* Runs the source in the state S and pushes a copy of its table on L, or leaves a message. */
static bool load(lua_State *L, lua_State *S, source_text *source, char *message)
{
    copying copy = {.from = S, .to = L, .left = MEMORY_LIMIT, .message = message};
    if (source->size > 0 && source->bytes[0] == LUA_SIGNATURE[0])
        return refuse(&copy, NULL, "is compiled Lua: must be text");
    if (!is_text(source))
        return refuse(&copy, NULL, "is binary: must be a text that returns a Lua table");
    lua_pushcfunction(S, run);
    lua_pushlightuserdata(S, source);
    const int status = lua_pcall(S, 1, LUA_MULTRET, 0);
    if (status == LUA_ERRMEM)
        return refuse(&copy, NULL, "needs more than 16 MiB");
    if (status != LUA_OK)
        return refuse(&copy, NULL, lua_tostring(S, -1));

    const int results = lua_gettop(S);
    if (results != 1) {
        snprintf(message, MESSAGE_SIZE, "must return one table, returned %s", results == 0 ? "nothing" : "several values");
        return false;
    }
    if (lua_type(S, 1) != LUA_TTABLE) {
        snprintf(message, MESSAGE_SIZE, "must return one table, returned %s", luaL_typename(S, 1));
        return false;
    }
    return copy_table(&copy, NULL, 0);
}

static int close_sandbox(lua_State *L)
{
    sandbox *box = lua_touserdata(L, 1);
    if (box->state != NULL)
        lua_close(box->state);
    box->state = NULL;
    for (int i = 0; i < box->included_count; ++i) {
        free(box->included[i].path);
        free(box->included[i].bytes);
    }
    box->included_count = 0;
    return 0;
}

/* Pushes the list of included files: { {path, source} }. */
static void push_included(lua_State *L, const sandbox *box)
{
    lua_createtable(L, box->included_count, 0);
    for (int i = 0; i < box->included_count; ++i) {
        lua_createtable(L, 0, 2);
        lua_pushstring(L, box->included[i].path);
        lua_setfield(L, -2, "path");
        lua_pushlstring(L, box->included[i].bytes, box->included[i].size);
        lua_setfield(L, -2, "source");
        lua_rawseti(L, -2, i + 1);
    }
}

/* Pushes the message with the path of its file in place of the chunk's name: Lua's own messages start with "data:LINE:". */
static void push_message(lua_State *L, const sandbox *box, char *message)
{
    for (char *c = message; *c != '\0'; ++c) {
        if ((unsigned char)*c < ' ')
            *c = ' ';
    }
    const size_t chunk = strlen(CHUNK);
    char *end = message;
    const long number = strncmp(message, CHUNK, chunk) == 0 ? strtol(message + chunk, &end, 10) : 0;
    if (end > message + chunk && *end == ':' && number > 0 && number <= box->included_count)
        lua_pushfstring(L, "%s%s", box->included[number - 1].path, end);
    else if (strncmp(message, CHUNK ":", chunk + 1) == 0)
        lua_pushfstring(L, "%s%s", box->path, message + chunk);
    else
        lua_pushfstring(L, "%s: %s", box->path, message);
}

/* sandbox.load(path) -> the table that the file returns, text of the file, included files { {path, source} } | nil, "path:line: message" */
static int sandbox_load(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    char message[MESSAGE_SIZE], *bytes;
    source_text source;
    lua_settop(L, 1);
    if (!files_read(path, SOURCE_LIMIT, &bytes, &source.size, message, sizeof message)) {
        lua_pushnil(L);
        lua_pushstring(L, message);
        return 2;
    }
    source.bytes = lua_pushlstring(L, bytes, source.size);
    free(bytes);

    sandbox *box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = (sandbox){.start = clock(), .path = path};
    luaL_setmetatable(L, "sandbox");
    lua_toclose(L, 3);
    box->state = lua_newstate(allocate, box);
    if (box->state == NULL)
        return luaL_error(L, "not enough memory");

    if (load(L, box->state, &source, message)) {
        lua_pushvalue(L, 2);
        push_included(L, box);
        return 3;
    }
    lua_pushnil(L);
    push_message(L, box, message);
    return 2;
}

int luaopen_sandbox(lua_State *L)
{
    static const luaL_Reg functions[] = {{"load", sandbox_load}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"__gc", close_sandbox}, {"__close", close_sandbox}, {NULL, NULL}};
    luaL_newmetatable(L, "sandbox");
    luaL_setfuncs(L, methods, 0);
    luaL_newlib(L, functions);
    return 1;
}
