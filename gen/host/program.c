/* Runs a Lua module as a program: one state, one error handler, one line for every failure. */
#include "gen/host/program.h"

#include "gen/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const luaL_Reg libraries[] = {
    {LUA_GNAME, luaopen_base},       {LUA_TABLIBNAME, luaopen_table}, {LUA_STRLIBNAME, luaopen_string},
    {LUA_MATHLIBNAME, luaopen_math}, {LUA_UTF8LIBNAME, luaopen_utf8}, {LUA_LOADLIBNAME, luaopen_package},
};

/* What these libraries have and a deterministic generator must not. */
static const struct {
    const char *library, *function;
} removed[] = {
    {LUA_GNAME, "dofile"},       {LUA_GNAME, "loadfile"},         {LUA_GNAME, "print"},         {LUA_GNAME, "warn"},
    {LUA_MATHLIBNAME, "random"}, {LUA_MATHLIBNAME, "randomseed"}, {LUA_LOADLIBNAME, "loadlib"}, {LUA_LOADLIBNAME, "searchpath"},
    {LUA_LOADLIBNAME, "path"},   {LUA_LOADLIBNAME, "cpath"},
};

static const luaL_Reg generator_modules[] = {
    {"host", luaopen_host}, {"sandbox", luaopen_sandbox}, {"json", luaopen_json}, {"weights", luaopen_weights},
    {"fuse", luaopen_fuse}, {"unicode", luaopen_unicode}, {NULL, NULL},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Finds "gen.isa.avx2" in gen/isa/avx2.lua. */
static int search_module(lua_State *L)
{
    const char *path = lua_pushfstring(L, "%s.lua", luaL_gsub(L, luaL_checkstring(L, 1), ".", "/"));
    const char *mode = host_push_module(L, path);
    if (mode == NULL)
        return 1;
    size_t size;
    const char *chunk = lua_tolstring(L, -1, &size);
    if (luaL_loadbufferx(L, chunk, size, lua_pushfstring(L, "@%s", path), mode) != LUA_OK)
        return lua_error(L);
    lua_pushstring(L, path);
    return 2;
}

/* assert(value, message) raises the message as it is: it is the line for the user, who does not care for a place in Lua. */
static int assert_value(lua_State *L)
{
    luaL_checkany(L, 1);
    if (lua_toboolean(L, 1))
        return lua_gettop(L);
    if (lua_isnoneornil(L, 2))
        return luaL_error(L, "assertion failed!");
    lua_settop(L, 2);
    return lua_error(L);
}

/* The table of preloaded modules is on top of the stack. */
static void preload(lua_State *L, const luaL_Reg *modules)
{
    for (; modules->name != NULL; ++modules) {
        lua_pushcfunction(L, modules->func);
        lua_setfield(L, -2, modules->name);
    }
}

void program_open(lua_State *L, const char *tree, const luaL_Reg *modules)
{
    if (tree != NULL) {
        lua_pushstring(L, tree);
        lua_setfield(L, LUA_REGISTRYINDEX, HOST_TREE);
    }
    for (size_t i = 0; i < COUNT(libraries); ++i) {
        luaL_requiref(L, libraries[i].name, libraries[i].func, 1);
        lua_pop(L, 1);
    }
    for (size_t i = 0; i < COUNT(removed); ++i) {
        lua_getglobal(L, removed[i].library);
        lua_pushnil(L);
        lua_setfield(L, -2, removed[i].function);
        lua_pop(L, 1);
    }
    lua_register(L, "assert", assert_value);
    lua_getglobal(L, LUA_LOADLIBNAME);
    lua_getfield(L, -1, "preload");
    preload(L, generator_modules);
    preload(L, modules);
    lua_pop(L, 1);

    /* searchers: preloaded modules, then ours; none that reads folders of the system */
    lua_getfield(L, -1, "searchers");
    lua_pushcfunction(L, search_module);
    lua_rawseti(L, -2, 2);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i > 2; --i) {
        lua_pushnil(L);
        lua_rawseti(L, -2, i);
    }
    lua_pop(L, 2);
}

static bool wants_traceback(void)
{
    const char *wanted = getenv("LOOKUPC_TRACEBACK");
    return wanted != NULL && strcmp(wanted, "1") == 0;
}

typedef struct {
    const char *tree, *entry;
    char **arguments;
    const luaL_Reg *modules;
    int status;
} program;

/* Turns an error into text: one line, or that line and the Lua stack. Some errors say the program's status (gen/schema/misuse.lua). */
static int handle_error(lua_State *L)
{
    program *p = lua_touserdata(L, lua_upvalueindex(1));
    if (luaL_getmetafield(L, 1, "__status") == LUA_TNUMBER)
        p->status = (int)lua_tointeger(L, -1);
    const char *message = luaL_tolstring(L, 1, NULL);
    if (wants_traceback())
        luaL_traceback(L, L, message, 1);
    return 1;
}

/* All that can raise an error; returns nothing, or a message. */
static int run(lua_State *L)
{
    program *p = lua_touserdata(L, 1);
    program_open(L, p->tree, p->modules);
    lua_getglobal(L, "require");
    lua_pushstring(L, p->entry);
    lua_call(L, 1, 1);
    lua_newtable(L);
    for (lua_Integer i = 0; p->arguments[i] != NULL; ++i) {
        lua_pushstring(L, p->arguments[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_call(L, 1, 2);
    int is_integer;
    const lua_Integer status = lua_tointegerx(L, -2, &is_integer);
    if (is_integer && status >= 0 && status <= 255) {
        p->status = (int)status;
        return 0;
    }
    if (lua_isnil(L, -2) && lua_isstring(L, -1))
        return 1;
    return luaL_error(L, "%s: returned neither an exit status nor nil and a message", p->entry);
}

static void print_error(const char *message)
{
    const bool one_line = !wants_traceback();
    fputs("lookupc: ", stderr);
    for (; *message != '\0'; ++message)
        fputc(one_line && (unsigned char)*message < ' ' ? ' ' : *message, stderr);
    fputc('\n', stderr);
}

/* Standard streams that the caller closed must not become the files that are opened next; writing to them fails all the same. */
static void open_missing_streams(void)
{
    int handle;
    do
        handle = open("/dev/null", O_RDONLY);
    while (handle >= 0 && handle <= STDERR_FILENO);
    if (handle >= 0)
        close(handle);
}

int program_run(const char *tree, const char *entry, char **arguments, const luaL_Reg *modules)
{
    open_missing_streams();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);

    lua_State *L = luaL_newstate();
    if (L == NULL) {
        print_error("out of memory");
        return EXIT_FAILURE;
    }
    program p = {.tree = tree, .entry = entry, .arguments = arguments, .modules = modules, .status = EXIT_FAILURE};
    lua_pushlightuserdata(L, &p);
    lua_pushcclosure(L, handle_error, 1);
    lua_pushcfunction(L, run);
    lua_pushlightuserdata(L, &p);
    lua_pcall(L, 1, 1, -3);
    if (lua_isstring(L, -1))
        print_error(lua_tostring(L, -1));
    lua_close(L);

    if (fflush(stdout) != 0 && errno != EPIPE) {
        fprintf(stderr, "lookupc: standard output: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    return p.status;
}
