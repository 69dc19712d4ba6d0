/* The Lua module `store`: SQLite databases, and locks by which processes share one or keep it to themselves. */
#include "gen/host/host.h"
#include "harness/base/clock.h"
#include "harness/base/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATABASE "store.database"
#define LOCK "store.lock"

enum { PATIENCE_SECONDS = 30 };

typedef struct {
    sqlite3 *handle; /* NULL when closed */
} database;

/* Whether the last error says that the file is damaged: its pages are, or SQL that is right fails on its tables, or its header forbids what
   the file system allows. */
static bool is_damaged(sqlite3 *handle, const char *path)
{
    switch (sqlite3_errcode(handle) & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR: return true;
    case SQLITE_READONLY: return access(path, W_OK) == 0;
    default: return false;
    }
}

/* Pushes nil, "path: reason", and "damaged" if the file is. The path is the user value 1 of the database at index 1. */
static int fail(lua_State *L, sqlite3 *handle)
{
    const bool busy = (sqlite3_errcode(handle) & 0xff) == SQLITE_BUSY;
    lua_getiuservalue(L, 1, 1);
    const char *path = lua_tostring(L, -1);
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", path, busy ? "is in use by another process" : sqlite3_errmsg(handle));
    if (is_damaged(handle, path))
        lua_pushliteral(L, "damaged");
    else
        lua_pushnil(L);
    return 3;
}

static database *check_open(lua_State *L)
{
    database *db = luaL_checkudata(L, 1, DATABASE);
    luaL_argcheck(L, db->handle != NULL, 1, "is closed");
    return db;
}

/* database:close(). Closing twice is allowed. */
static int database_close(lua_State *L)
{
    database *db = luaL_checkudata(L, 1, DATABASE);
    if (db->handle != NULL) {
        for (sqlite3_stmt *statement; (statement = sqlite3_next_stmt(db->handle, NULL)) != NULL;)
            sqlite3_finalize(statement);
        sqlite3_close(db->handle);
        db->handle = NULL;
    }
    return 0;
}

/* How a file is locked: `flags` open it, and others are waited for so long. */
typedef struct {
    int kind, flags;
    double patience;
} way_to_lock;

static const char *const names_of_ways[] = {"shared", "exclusive", "read", "alone", NULL};
static const way_to_lock ways[] = {{LOCK_SH, O_RDWR | O_CREAT, PATIENCE_SECONDS},
                                   {LOCK_EX, O_RDWR | O_CREAT, PATIENCE_SECONDS},
                                   {LOCK_SH, O_RDONLY, PATIENCE_SECONDS},
                                   {LOCK_EX, O_RDWR | O_CREAT, 0}};

/* Locks a file. Returns its descriptor, or -1 and errno. */
static int lock_file(const char *path, const way_to_lock *way)
{
    const int descriptor = open(path, way->flags | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return -1;
    const double end = seconds_now() + way->patience;
    while (flock(descriptor, way->kind | LOCK_NB) != 0) {
        const int reason = errno;
        if ((reason != EWOULDBLOCK && reason != EINTR) || seconds_now() > end) {
            close(descriptor);
            errno = reason;
            return -1;
        }
        usleep(10000);
    }
    struct stat status;
    if (fstat(descriptor, &status) == 0 && status.st_nlink > 0)
        return descriptor;
    close(descriptor); /* who had it removed it meanwhile */
    return lock_file(path, way);
}

/* lock:close(). Closing twice is allowed. */
static int lock_close(lua_State *L)
{
    int *descriptor = luaL_checkudata(L, 1, LOCK);
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
    return 0;
}

/* store.lock(path, "shared" | "exclusive" | "read" | "alone") -> lock | nil, message
   Many may hold a file shared, or one exclusive: a lock on path.lock, kept until it is closed; "read": shared, of a file that is there and
   is not written. Waits for others, but not forever; "alone", which is exclusive, not at all. */
static int store_lock(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    const way_to_lock *way = &ways[luaL_checkoption(L, 2, NULL, names_of_ways)];
    const char *lock_path = lua_pushfstring(L, "%s.lock", path);
    int *descriptor = lua_newuserdatauv(L, sizeof *descriptor, 0);
    *descriptor = lock_file(lock_path, way);
    if (*descriptor >= 0) {
        luaL_setmetatable(L, LOCK);
        return 1;
    }
    const bool busy = errno == EWOULDBLOCK;
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", busy ? path : lock_path, busy ? "is in use by another process" : strerror(errno));
    return 2;
}

/* store.writable(path) -> whether this user may change what is there */
static int store_writable(lua_State *L)
{
    lua_pushboolean(L, faccessat(AT_FDCWD, luaL_checkstring(L, 1), W_OK, AT_EACCESS) == 0);
    return 1;
}

/* store.open(path [, uri]) -> database | nil, message, "damaged" or nil. By SQLite's URI of it it is only read. */
static int store_open(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1), *uri = luaL_optstring(L, 2, NULL);
    const int flags = uri ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    database *db = lua_newuserdatauv(L, sizeof *db, 2);
    *db = (database){.handle = NULL};
    luaL_setmetatable(L, DATABASE);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    lua_newtable(L); /* SQL text -> prepared statement */
    lua_setiuservalue(L, -2, 2);
    lua_replace(L, 1); /* its user value keeps the path */
    if (sqlite3_open_v2(uri ? uri : path, &db->handle, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return db->handle == NULL ? luaL_error(L, "not enough memory") : fail(L, db->handle);
    sqlite3_busy_timeout(db->handle, PATIENCE_SECONDS * 1000);
    lua_settop(L, 1);
    return 1;
}

/* The prepared statement of an SQL text; NULL if it cannot be prepared. Statements live as long as their database. */
static sqlite3_stmt *prepared(lua_State *L, database *db)
{
    lua_getiuservalue(L, 1, 2);
    lua_pushvalue(L, 2);
    lua_rawget(L, -2);
    sqlite3_stmt *statement = lua_touserdata(L, -1);
    lua_pop(L, 1);
    size_t size;
    const char *sql = lua_tolstring(L, 2, &size);
    if (statement == NULL && sqlite3_prepare_v3(db->handle, sql, (int)size + 1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) == SQLITE_OK) {
        lua_pushvalue(L, 2);
        lua_pushlightuserdata(L, statement);
        lua_rawset(L, -3);
    }
    lua_pop(L, 1);
    return statement;
}

static int bind(lua_State *L, sqlite3_stmt *statement, int parameter, int argument)
{
    if (lua_isinteger(L, argument))
        return sqlite3_bind_int64(statement, parameter, lua_tointeger(L, argument));
    size_t size;
    const char *text = luaL_checklstring(L, argument, &size);
    return sqlite3_bind_text64(statement, parameter, text, size, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static void push_row(lua_State *L, sqlite3_stmt *statement)
{
    const int columns = sqlite3_column_count(statement);
    lua_createtable(L, 0, columns);
    for (int i = 0; i < columns; ++i) {
        switch (sqlite3_column_type(statement, i)) {
        case SQLITE_NULL: continue;
        case SQLITE_INTEGER: lua_pushinteger(L, sqlite3_column_int64(statement, i)); break;
        default: {
            const char *text = (const char *)sqlite3_column_text(statement, i);
            lua_pushlstring(L, text != NULL ? text : "", (size_t)sqlite3_column_bytes(statement, i));
        }
        }
        lua_setfield(L, -2, sqlite3_column_name(statement, i));
    }
}

/* database:query(sql, ...) -> array of rows { column = integer or text } | nil, message, "damaged" or nil
   One statement; its ? are the further arguments, integers or texts. */
static int database_query(lua_State *L)
{
    database *db = check_open(L);
    luaL_checkstring(L, 2);
    const int arguments = lua_gettop(L) - 2;
    sqlite3_stmt *statement = prepared(L, db);
    if (statement == NULL)
        return fail(L, db->handle);
    luaL_argcheck(L, arguments == sqlite3_bind_parameter_count(statement), 2, "has another number of parameters");
    for (int i = 1; i <= arguments; ++i)
        if (bind(L, statement, i, i + 2) != SQLITE_OK)
            return fail(L, db->handle);

    lua_newtable(L);
    int code;
    for (lua_Integer count = 0; (code = sqlite3_step(statement)) == SQLITE_ROW;) {
        push_row(L, statement);
        lua_rawseti(L, -2, ++count);
    }
    const int results = code == SQLITE_DONE ? 1 : fail(L, db->handle);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return results;
}

/* database:changes() -> rows that the last INSERT, UPDATE or DELETE changed */
static int database_changes(lua_State *L)
{
    lua_pushinteger(L, sqlite3_changes64(check_open(L)->handle));
    return 1;
}

int luaopen_store(lua_State *L)
{
    static const luaL_Reg database_methods[] = {
        {"query", database_query}, {"changes", database_changes}, {"close", database_close}, {NULL, NULL}};
    static const luaL_Reg lock_methods[] = {{"close", lock_close}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"open", store_open}, {"lock", store_lock}, {"writable", store_writable}, {NULL, NULL}};
    host_class(L, DATABASE, database_close, database_methods);
    host_class(L, LOCK, lock_close, lock_methods);
    luaL_newlib(L, functions);
    return 1;
}
