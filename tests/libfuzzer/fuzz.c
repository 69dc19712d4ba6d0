/* What the fuzz targets share: see fuzz.h. */
#include "tests/libfuzzer/fuzz.h"

#include "commands/harness_modules.h"
#include "gen/host/program.h"
#include "gen/weights/blob_header.h"

#include <fcntl.h>
#include <lauxlib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the input as a file ---- */

enum { PATH_SIZE = 200 };

static char folder[PATH_SIZE];

/* Removes the scratch folder and its files; a process that a finding ends leaves them to build.sh. */
static void remove_folder(void)
{
    char command[PATH_SIZE + 20];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        fprintf(stderr, "%s: cannot be removed\n", folder);
}

/* In memory where the system has such a place: the disk would be what takes the time. */
static void make_folder(void)
{
    const char *place = getenv("FUZZ_SCRATCH");
    snprintf(folder, sizeof folder, "%s/lookupc-fuzz-XXXXXX", place != NULL ? place : "/tmp");
    if (mkdtemp(folder) == NULL) {
        perror(folder);
        exit(EXIT_FAILURE);
    }
    atexit(remove_folder);
}

const char *fuzz_file(const char *name, const uint8_t *data, size_t size)
{
    static char path[PATH_SIZE + 100];
    if (*folder == '\0')
        make_folder();
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0 || write(file, data, size) != (ssize_t)size || close(file) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    return path;
}

/* ---- findings ---- */

void fuzz_finding(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("FINDING: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

void fuzz_check_message(const char *message, const char *path)
{
    const size_t start = strlen(path);
    if (strncmp(message, path, start) != 0 || message[start] != ':' || strlen(message + start) < 4)
        fuzz_finding("does not say which file and what is wrong with it: %s", message);
    for (const char *c = message; *c != '\0'; ++c) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            fuzz_finding("is more than one line: %s", message);
    }
}

/* ---- blobs ---- */

void *fuzz_memory(size_t size)
{
    void *memory;
    if (posix_memalign(&memory, 64, size) != 0)
        abort();
    return memset(memory, 0xff, size);
}

unsigned char *fuzz_blob(const uint8_t *data, size_t size)
{
    unsigned char *blob = fuzz_memory(size);
    return size == 0 ? blob : memcpy(blob, data, size);
}

unsigned char *fuzz_mended_blob(const char *fresh, size_t blob_bytes, const uint8_t *data, size_t size)
{
    enum { HEADER_BYTES = 64, DIGEST_AT = 16, DIGEST_BYTES = 16 };
    static unsigned char header_bytes[HEADER_BYTES];
    static char digest[2 * DIGEST_BYTES + 1];
    if (*digest == '\0') {
        char path[PATH_SIZE * 4];
        snprintf(path, sizeof path, "%s/%s", LOOKUPC_BUNDLES, fresh);
        FILE *file = fopen(path, "rb");
        if (file == NULL || fread(header_bytes, 1, HEADER_BYTES, file) != HEADER_BYTES) {
            perror(path);
            exit(EXIT_FAILURE);
        }
        fclose(file);
        for (size_t i = 0; i < DIGEST_BYTES; ++i)
            snprintf(digest + 2 * i, 3, "%02x", header_bytes[DIGEST_AT + i]);
    }
    unsigned char *blob = memset(fuzz_memory(blob_bytes), 0, blob_bytes);
    const size_t copied = size < blob_bytes ? size : blob_bytes;
    if (copied > HEADER_BYTES)
        memcpy(blob + HEADER_BYTES, data + HEADER_BYTES, copied - HEADER_BYTES);
    uint32_t format;
    memcpy(&format, header_bytes + 8, sizeof format);
    const blob_header header = {.magic = (const char *)header_bytes, .digest = digest, .format = format, .bytes = HEADER_BYTES};
    blob_header_write(&header, blob, blob_bytes);
    return blob;
}

/* ---- Lua ---- */

/* libFuzzer takes what is in this section for counters of code that it did not compile: here, of steps from one line of Lua to the next. */
enum { COUNTERS = 1 << 15 };
__attribute__((section("__libfuzzer_extra_counters"), used)) static uint8_t counters[COUNTERS];

static uint32_t last_place;

/* Asking for the file of every line is what would take the time: it is asked for when a function is called, and kept by its place on
   Lua's call stack. */
static void count_line(lua_State *L, lua_Debug *debug)
{
    static struct {
        const void *call;
        uint32_t file;
    } calls[256];
    const size_t at = ((uintptr_t)debug->i_ci >> 5) % (sizeof calls / sizeof *calls);
    if (debug->event != LUA_HOOKLINE || calls[at].call != debug->i_ci) {
        lua_getinfo(L, "S", debug);
        calls[at].call = debug->i_ci;
        calls[at].file = (uint32_t)(debug->srclen * 31 + (size_t)debug->linedefined) * 0x9e3779b1u;
    }
    if (debug->event != LUA_HOOKLINE)
        return;
    const uint32_t place = calls[at].file + (uint32_t)debug->currentline * 0x85ebca6bu;
    ++counters[(last_place >> 1 ^ place) >> 8 & (COUNTERS - 1)];
    last_place = place;
}

static int start_lua(lua_State *L)
{
    program_open(L, ".", harness_modules);
    lua_getglobal(L, "require");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

/* The state, with the module's function at index 1. */
static lua_State *state_of(const char *module)
{
    static lua_State *state;
    if (state != NULL)
        return state;
    /* what the commands print goes nowhere */
    if (freopen("/dev/null", "w", stdout) == NULL)
        exit(EXIT_FAILURE);
    state = luaL_newstate();
    lua_pushcfunction(state, start_lua);
    lua_pushstring(state, module);
    if (lua_pcall(state, 1, 1, 0) != LUA_OK) {
        fprintf(stderr, "%s: %s\n", module, lua_tostring(state, -1));
        exit(EXIT_FAILURE);
    }
    lua_sethook(state, count_line, LUA_MASKCALL | LUA_MASKLINE, 0);
    return state;
}

static int traceback(lua_State *L)
{
    luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
    return 1;
}

int fuzz_lua(const char *module, const uint8_t *data, size_t size)
{
    lua_State *L = state_of(module);
    last_place = 0;
    lua_pushcfunction(L, traceback);
    lua_pushvalue(L, 1);
    lua_pushstring(L, fuzz_file("input", data, size));
    if (lua_pcall(L, 1, 0, -3) != LUA_OK)
        fuzz_finding("%s", lua_tostring(L, -1));
    lua_settop(L, 1);
    return 0;
}
