/* The Lua module `host`: files, digests and embedded files; nothing here depends on time or machine. */
#include "gen/host/host.h"
#include "gen/host/fields.h"

#include "gen/host/files.h"
#include "gen/host/resources.h"

#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <lauxlib.h>
#include <nettle/sha2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ERROR_SIZE = 4096 + 256 };

/* A path, that is a Lua string without NUL. */
static const char *check_path(lua_State *L, int argument)
{
    size_t length;
    const char *path = luaL_checklstring(L, argument, &length);
    luaL_argcheck(L, length > 0 && strlen(path) == length, argument, "must be a path");
    return path;
}

int host_fail(lua_State *L, const char *message)
{
    lua_pushnil(L);
    lua_pushstring(L, message);
    return 2;
}

void host_class(lua_State *L, const char *name, lua_CFunction end, const luaL_Reg *methods)
{
    luaL_newmetatable(L, name);
    lua_pushcfunction(L, end);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, end);
    lua_setfield(L, -2, "__close");
    lua_newtable(L);
    luaL_setfuncs(L, methods, 0);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

typedef bool file_reader(const char *path, size_t max_bytes, char **bytes, size_t *size, char *error, size_t error_size);

static bool push_file(lua_State *L, const char *path, size_t max_bytes, file_reader *reader)
{
    char error[ERROR_SIZE];
    char *bytes;
    size_t size;
    if (!reader(path, max_bytes, &bytes, &size, error, sizeof error)) {
        host_fail(L, error);
        return false;
    }
    lua_pushlstring(L, bytes, size);
    free(bytes);
    return true;
}

/* The bytes of the file that the arguments name | nil, message */
static int push_argument(lua_State *L, file_reader *reader)
{
    const char *path = check_path(L, 1);
    const lua_Integer max_bytes = luaL_optinteger(L, 2, LUA_MAXINTEGER - 1);
    luaL_argcheck(L, max_bytes >= 0, 2, "must not be negative");
    return push_file(L, path, (size_t)max_bytes, reader) ? 1 : 2;
}

/* host.read(path [, max_bytes]) -> bytes | nil, message */
static int host_read(lua_State *L)
{
    return push_argument(L, files_read);
}

/* host.read_regular(path [, max_bytes]) -> the same of a regular file only: of one that lookupc finds by its name */
static int host_read_regular(lua_State *L)
{
    return push_argument(L, files_read_regular);
}

/* host.kind(path) -> "file" | "directory" | "link", a symbolic link to nothing | nil. Whatever else there is is a file. */
static int host_kind(lua_State *L)
{
    struct stat status;
    const char *path = check_path(L, 1);
    if (stat(path, &status) == 0)
        lua_pushstring(L, S_ISDIR(status.st_mode) ? "directory" : "file");
    else if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode))
        lua_pushstring(L, "link");
    else
        lua_pushnil(L);
    return 1;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_dots(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* host.list(path) -> array of names in byte order, without "." and ".." | nil, message */
static int host_list(lua_State *L)
{
    const char *path = check_path(L, 1);
    struct dirent **entries;
    const int count = scandir(path, &entries, not_dots, by_name);
    if (count < 0) {
        lua_pushnil(L);
        lua_pushfstring(L, "%s: %s", path, strerror(errno));
        return 2;
    }
    lua_createtable(L, count, 0);
    for (int i = 0; i < count; ++i) {
        lua_pushstring(L, entries[i]->d_name);
        lua_rawseti(L, -2, i + 1);
        free(entries[i]);
    }
    free(entries);
    return 1;
}

/* host.write_file(path, bytes) -> "written" | "unchanged" | nil, message */
static int host_write_file(lua_State *L)
{
    char error[ERROR_SIZE];
    files_output output = {.path = check_path(L, 1)};
    output.bytes = luaL_checklstring(L, 2, &output.size);
    if (!files_write(&output, 1, error, sizeof error))
        return host_fail(L, error);
    lua_pushstring(L, output.changed ? "written" : "unchanged");
    return 1;
}

/* host.note_input(path): nothing is written in the place of that file from now on */
static int host_note_input(lua_State *L)
{
    files_note_input(check_path(L, 1));
    return 0;
}

/* host.same_file(a, b) -> whether two paths lead to one file. */
static int host_same_file(lua_State *L)
{
    struct stat a, b;
    const bool both = stat(check_path(L, 1), &a) == 0 && stat(check_path(L, 2), &b) == 0;
    lua_pushboolean(L, both && a.st_dev == b.st_dev && a.st_ino == b.st_ino);
    return 1;
}

/* The path of an existing file or folder from the root on: without links to folders, and under the file's own name, whose ending says what
   it is: a link there may lead to a file of any name. To be freed; NULL with errno. */
static char *absolute(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return NULL;
    if (S_ISDIR(status.st_mode))
        return realpath(path, NULL);
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(name - path));
    char *real = folder == NULL ? NULL : realpath(folder, NULL), *whole = NULL;
    if (real != NULL && asprintf(&whole, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < 0)
        whole = NULL;
    free(real);
    free(folder);
    return whole;
}

/* host.absolute(path) -> that path | nil, message */
static int host_absolute(lua_State *L)
{
    const char *path = check_path(L, 1);
    char *found = absolute(path);
    if (found == NULL) {
        lua_pushnil(L);
        lua_pushfstring(L, "%s: %s", path, strerror(errno));
        return 2;
    }
    lua_pushstring(L, found);
    free(found);
    return 1;
}

/* host.remove(path) -> true | nil, message: removes a file. */
static int host_remove(lua_State *L)
{
    const char *path = check_path(L, 1);
    if (unlink(path) != 0) {
        lua_pushnil(L);
        lua_pushfstring(L, "%s: %s", path, strerror(errno));
        return 2;
    }
    lua_pushboolean(L, true);
    return 1;
}

/* host.check_output(path) -> true | nil, message: whether a file can be written there now; changes nothing */
static int host_check_output(lua_State *L)
{
    char error[ERROR_SIZE];
    files_writer file;
    if (!files_create(&file, check_path(L, 1), error, sizeof error))
        return host_fail(L, error);
    files_discard(&file);
    lua_pushboolean(L, true);
    return 1;
}

/* host.append_line(path, line) -> true | nil, message: on the disk when it returns */
static int host_append_line(lua_State *L)
{
    char error[ERROR_SIZE];
    size_t size;
    const char *path = check_path(L, 1);
    const char *line = luaL_checklstring(L, 2, &size);
    luaL_argcheck(L, memchr(line, '\n', size) == NULL, 2, "must be one line");
    if (!files_append_line(path, line, size, error, sizeof error))
        return host_fail(L, error);
    lua_pushboolean(L, true);
    return 1;
}

/* host.move(path, new_path) -> true | nil, message: gives a file another name in its file system, where none may be yet. */
static int host_move(lua_State *L)
{
    const char *path = check_path(L, 1), *new_path = check_path(L, 2);
    struct stat status;
    const bool taken = lstat(new_path, &status) == 0;
    if (taken || rename(path, new_path) != 0) {
        lua_pushnil(L);
        lua_pushfstring(L, "%s: %s: %s", path, new_path, strerror(taken ? EEXIST : errno));
        return 2;
    }
    lua_pushboolean(L, true);
    return 1;
}

static int compare_outputs(const void *a, const void *b)
{
    return strcmp(((const files_output *)a)->path, ((const files_output *)b)->path);
}

/* Whether name is a path that stays in its directory: names between single slashes, none of them . or .. */
static bool stays_inside(const char *name, size_t length)
{
    if (strlen(name) != length)
        return false;
    for (;; ++name) {
        const size_t part = strcspn(name, "/");
        if (part == 0 || (part == 1 && name[0] == '.') || (part == 2 && name[0] == '.' && name[1] == '.'))
            return false;
        name += part;
        if (*name == '\0')
            return true;
    }
}

/* host.write_directory(directory, { name = bytes } [, temporary [, first]]) -> { name = "written" | "unchanged" } | nil, message
   A name may be that of a file in a folder of the directory, such as "src/a.c".
   Temporary files need not reach the disk. The file of the name `first` takes its place before all others: what is killed between two
   files leaves at least that one. */
static int host_write_directory(lua_State *L)
{
    char error[ERROR_SIZE];
    const char *directory = check_path(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    const char *first = luaL_optstring(L, 4, "");
    size_t count = 0;
    for (lua_pushnil(L); lua_next(L, 2) != 0; lua_pop(L, 1))
        ++count;
    files_output *outputs = lua_newuserdatauv(L, (count + 1) * sizeof *outputs, 0);
    size_t i = 0;
    for (lua_pushnil(L); lua_next(L, 2) != 0; lua_pop(L, 1)) {
        luaL_argcheck(L, lua_type(L, -2) == LUA_TSTRING && lua_type(L, -1) == LUA_TSTRING, 2, "must map names to bytes");
        size_t length;
        const char *name = lua_tolstring(L, -2, &length);
        if (!stays_inside(name, length))
            return luaL_argerror(L, 2, "must have names of files inside the directory as keys");
        outputs[i] = (files_output){.path = name, .temporary = lua_toboolean(L, 3)};
        outputs[i].bytes = lua_tolstring(L, -1, &outputs[i].size);
        ++i;
    }
    qsort(outputs, count, sizeof *outputs, compare_outputs);
    for (i = 1; i < count; ++i) {
        const files_output output = outputs[i];
        if (strcmp(output.path, first) != 0)
            continue;
        memmove(outputs + 1, outputs, i * sizeof *outputs);
        outputs[0] = output;
    }
    if (!files_write_directory(directory, outputs, count, error, sizeof error))
        return host_fail(L, error);
    lua_createtable(L, 0, (int)count);
    for (i = 0; i < count; ++i) {
        lua_pushstring(L, outputs[i].changed ? "written" : "unchanged");
        lua_setfield(L, -2, outputs[i].path);
    }
    return 1;
}

/* host.sha256(bytes) -> 64 hexadecimal digits */
static int host_sha256(lua_State *L)
{
    size_t size;
    const char *bytes = luaL_checklstring(L, 1, &size);
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&context);
    sha256_update(&context, size, (const uint8_t *)bytes);
    sha256_digest(&context, sizeof digest, digest);
    char text[2 * sizeof digest + 1];
    for (size_t i = 0; i < sizeof digest; ++i)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    lua_pushstring(L, text);
    return 1;
}

/* The folder of `--tree`, on top of the stack; NULL: the embedded files are used. */
static const char *push_tree(lua_State *L)
{
    return lua_getfield(L, LUA_REGISTRYINDEX, HOST_TREE) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
}

static const resource *embedded(const char *name)
{
    for (const resource *r = resources; r < resources + resource_count; ++r) {
        if (strcmp(r->name, name) == 0)
            return r;
    }
    return NULL;
}

bool host_push_resource(lua_State *L, const char *name)
{
    const char *tree = push_tree(L);
    if (tree != NULL)
        return push_file(L, lua_pushfstring(L, "%s/%s", tree, name), SIZE_MAX - 1, files_read);
    const resource *found = embedded(name);
    if (found == NULL) {
        lua_pushnil(L);
        lua_pushfstring(L, "%s: no such embedded file", name);
        return false;
    }
    lua_pushlstring(L, found->bytes, found->size);
    return true;
}

/* Pushes nothing and returns false where the program has to compile the file. */
static bool push_bytecode(lua_State *L, const char *name)
{
    const resource *found = push_tree(L) == NULL ? embedded(name) : NULL;
    lua_pop(L, 1);
    if (found == NULL || found->bytecode == NULL)
        return false;
    lua_pushlstring(L, found->bytecode, found->bytecode_size);
    return true;
}

const char *host_push_module(lua_State *L, const char *name)
{
    if (push_bytecode(L, name))
        return "b";
    return host_push_resource(L, name) ? "t" : NULL;
}

/* host.resource(name) -> text of an embedded file | nil, message */
static int host_resource(lua_State *L)
{
    return host_push_resource(L, check_path(L, 1)) ? 1 : 2;
}

/* host.bytecode(name) -> that of an embedded file | nil, where it has to be compiled */
static int host_bytecode(lua_State *L)
{
    return push_bytecode(L, check_path(L, 1));
}

static int by_path(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Pushes the array of all files below tree/folder by their path below tree. */
static int push_tree_files(lua_State *L, const char *tree, const char *folder)
{
    const char *start = lua_pushfstring(L, "%s/%s", tree, folder);
    FTS *walk = fts_open((char *const[]){(char *)(uintptr_t)start, NULL}, FTS_LOGICAL | FTS_NOCHDIR, by_path);
    lua_newtable(L);
    lua_Integer count = 0;
    for (FTSENT *entry; walk != NULL && (entry = fts_read(walk)) != NULL;) {
        if (entry->fts_info == FTS_F) {
            lua_pushstring(L, entry->fts_path + strlen(tree) + 1);
            lua_rawseti(L, -2, ++count);
        }
    }
    if (walk != NULL)
        fts_close(walk);
    return 1;
}

/* host.files(folder) -> array of all that lies in a folder and its folders, by path, but the folders themselves: { name, kind }, kind being
   "file", "link" or "other" | nil, message. Links are not followed. */
static int host_files(lua_State *L)
{
    const char *folder = check_path(L, 1);
    FTS *walk = fts_open((char *const[]){(char *)(uintptr_t)folder, NULL}, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_path);
    const char *problem = walk == NULL ? folder : NULL;
    int reason = errno;
    lua_newtable(L);
    lua_Integer count = 0;
    for (FTSENT *entry; problem == NULL && (entry = fts_read(walk)) != NULL;) {
        const int info = entry->fts_info;
        if (info == FTS_D || info == FTS_DP)
            continue;
        if (info == FTS_DNR || info == FTS_ERR || info == FTS_NS || entry->fts_level == 0) {
            problem = lua_pushstring(L, entry->fts_path);
            reason = entry->fts_errno != 0 ? entry->fts_errno : ENOTDIR;
            continue;
        }
        lua_createtable(L, 0, 2);
        const char *start = entry->fts_path + strlen(folder);
        field_set_text(L, "name", *start == '/' ? start + 1 : start);
        field_set_text(L, "kind", info == FTS_F ? "file" : info == FTS_SL || info == FTS_SLNONE ? "link" : "other");
        lua_rawseti(L, -2, ++count);
    }
    if (walk != NULL)
        fts_close(walk);
    if (problem == NULL)
        return 1;
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", problem, strerror(reason));
    return 2;
}

/* host.resources(folder) -> sorted array of the embedded files whose names start with folder, such as "templates/" */
static int host_resources(lua_State *L)
{
    const char *folder = check_path(L, 1);
    const size_t length = strlen(folder);
    luaL_argcheck(L, folder[length - 1] == '/', 1, "must end with /");
    const char *tree = push_tree(L);
    if (tree != NULL)
        return push_tree_files(L, tree, folder);
    lua_newtable(L);
    lua_Integer count = 0;
    for (size_t i = 0; i < resource_count; ++i) {
        if (strncmp(resources[i].name, folder, length) == 0) {
            lua_pushstring(L, resources[i].name);
            lua_rawseti(L, -2, ++count);
        }
    }
    return 1;
}

int luaopen_host(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"read", host_read},
        {"read_regular", host_read_regular},
        {"kind", host_kind},
        {"list", host_list},
        {"files", host_files},
        {"write_file", host_write_file},
        {"write_directory", host_write_directory},
        {"check_output", host_check_output},
        {"append_line", host_append_line},
        {"move", host_move},
        {"note_input", host_note_input},
        {"same_file", host_same_file},
        {"absolute", host_absolute},
        {"remove", host_remove},
        {"sha256", host_sha256},
        {"resource", host_resource},
        {"bytecode", host_bytecode},
        {"resources", host_resources},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    host_add_output(L);
    field_set_text(L, "version", LOOKUPC_VERSION);
    push_tree(L);
    lua_setfield(L, -2, "tree"); /* nil: the embedded files are used */
    return 1;
}
