/* The Lua module `npy`: matrices of float32 in .npy files, written row by row and compared.

   npy.create(path, columns) -> writer | nil, message: an interrupt waits until the file is finished or discarded
   writer:append(rows) -> true | nil, message: rows are a string of float32
   writer:finish() -> true | nil, message: the file takes its place; writer:discard(): there is none. One that nobody finished is discarded
   when the program ends.
   npy.tokens(path, columns) -> how many rows, whether they are converted from float64 | nil, message; npy.read(path, columns) -> rows |
   nil, message; npy.write(path, columns, rows) -> true | nil, message npy.check(path, rows, columns) -> true | nil, message: whether the
   file is a matrix of that shape npy.compare(path, expected) -> { rows, columns, relative, row, difference, difference_row,
   difference_column, value, expected } | nil, message: `relative` is the length of a row's difference over that of the expected row, of the
   worst row, number `row`; `difference` the largest one of an element, where it is and its two values. A value that is no number in one of
   the files makes both infinite. */
#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/host/host.h"
#include "gen/host/progress.h"
#include "gen/weights/npy.h"
#include "harness/base/modules.h"

#include <lauxlib.h>
#include <math.h>
#include <stdlib.h>

#define WRITER "npy.writer"

enum { ERROR_SIZE = 4096 + 256 };

static int writer_discard(lua_State *L)
{
    npy_discard(luaL_checkudata(L, 1, WRITER));
    return 0;
}

static int tokens(lua_State *L)
{
    char error[ERROR_SIZE];
    size_t count;
    bool wide;
    if (!npy_check_tokens(luaL_checkstring(L, 1), (size_t)luaL_checkinteger(L, 2), &count, &wide, error, sizeof error))
        return host_fail(L, error);
    lua_pushinteger(L, (lua_Integer)count);
    lua_pushboolean(L, wide);
    return 2;
}

static int read_(lua_State *L)
{
    char error[ERROR_SIZE];
    size_t count, columns = (size_t)luaL_checkinteger(L, 2);
    float *rows = npy_read_tokens(luaL_checkstring(L, 1), columns, &count, error, sizeof error);
    if (!rows)
        return host_fail(L, error);
    lua_pushlstring(L, (const char *)rows, count * columns * sizeof *rows);
    free(rows);
    return 1;
}

static int write_(lua_State *L)
{
    char error[ERROR_SIZE];
    size_t bytes, columns = (size_t)luaL_checkinteger(L, 2);
    const char *path = luaL_checkstring(L, 1), *rows = luaL_checklstring(L, 3, &bytes);
    if (!npy_write_f32(path, bytes / sizeof(float) / columns, columns, (const float *)(const void *)rows, error, sizeof error))
        return host_fail(L, error);
    lua_pushboolean(L, true);
    return 1;
}

static int create(lua_State *L)
{
    char error[ERROR_SIZE];
    const char *path = luaL_checkstring(L, 1);
    const size_t columns = (size_t)luaL_checkinteger(L, 2);
    npy_writer *writer = lua_newuserdatauv(L, sizeof *writer, 0);
    *writer = (npy_writer){.rows = 0};
    luaL_setmetatable(L, WRITER);
    return npy_create(writer, path, columns, error, sizeof error) ? 1 : host_fail(L, error);
}

static int writer_append(lua_State *L)
{
    char error[ERROR_SIZE];
    size_t bytes;
    npy_writer *writer = luaL_checkudata(L, 1, WRITER);
    const float *rows = (const float *)(const void *)luaL_checklstring(L, 2, &bytes);
    const size_t row_bytes = writer->columns * sizeof *rows;
    luaL_argcheck(L, writer->file.stream != NULL, 1, "has ended");
    luaL_argcheck(L, bytes % row_bytes == 0, 2, "must be whole rows");
    if (progress_interrupted())
        return host_fail(L, "interrupted");
    if (!npy_append(writer, rows, bytes / row_bytes, error, sizeof error))
        return host_fail(L, error);
    lua_pushboolean(L, true);
    return 1;
}

static int writer_finish(lua_State *L)
{
    char error[ERROR_SIZE];
    npy_writer *writer = luaL_checkudata(L, 1, WRITER);
    luaL_argcheck(L, writer->file.stream != NULL, 1, "has ended");
    if (!npy_finish(writer, error, sizeof error))
        return host_fail(L, error);
    lua_pushboolean(L, true);
    return 1;
}

/* The place of the largest difference, and of the worst row. */
typedef struct {
    double relative, difference, value, expected;
    size_t row, difference_row, difference_column;
} differences;

static differences difference_of(const double *y, const double *expected, size_t rows, size_t columns)
{
    differences worst = {.relative = -1.0, .difference = -1.0};
    for (size_t r = 0; r < rows; ++r, y += columns, expected += columns) {
        double off = 0.0, power = 0.0;
        for (size_t c = 0; c < columns; ++c) {
            const bool same = y[c] == expected[c] || (isnan(y[c]) && isnan(expected[c]));
            double difference = same ? 0.0 : fabs(y[c] - expected[c]);
            difference = isnan(difference) ? HUGE_VAL : difference;
            off += difference * difference;
            power += isfinite(expected[c]) ? expected[c] * expected[c] : 0.0;
            if (difference > worst.difference) {
                worst.difference = difference;
                worst.difference_row = r;
                worst.difference_column = c;
                worst.value = y[c];
                worst.expected = expected[c];
            }
        }
        const double relative = off == 0.0 ? 0.0 : sqrt(off / power);
        if (relative > worst.relative) {
            worst.relative = relative;
            worst.row = r;
        }
    }
    return worst;
}

/* Reads the matrix `path`, which must be rows × columns. NULL with a message in error. */
static double *read_shape(const char *path, size_t rows, size_t columns, char *error, size_t size)
{
    size_t found_rows = 0, found_columns = 0;
    double *values = npy_read_any(path, &found_rows, &found_columns, error, size);
    if (values && found_rows == rows && found_columns == columns && rows > 0)
        return values;
    if (values)
        files_error(error, size, "%s: has rows × columns %zu × %zu: must be %zu × %zu%s", path, found_rows, found_columns, rows, columns,
                    rows == 0 ? ", and there is nothing to compare" : "");
    free(values);
    return NULL;
}

static int check(lua_State *L)
{
    char error[ERROR_SIZE];
    double *values =
        read_shape(luaL_checkstring(L, 1), (size_t)luaL_checkinteger(L, 2), (size_t)luaL_checkinteger(L, 3), error, sizeof error);
    if (!values)
        return host_fail(L, error);
    free(values);
    lua_pushboolean(L, true);
    return 1;
}

static int compare(lua_State *L)
{
    char error[ERROR_SIZE];
    const char *path = luaL_checkstring(L, 1), *wanted = luaL_checkstring(L, 2);
    size_t rows = 0, columns = 0;
    double *y = npy_read_any(path, &rows, &columns, error, sizeof error);
    if (!y)
        return host_fail(L, error);
    double *expected = read_shape(wanted, rows, columns, error, sizeof error);
    if (expected) {
        const differences worst = difference_of(y, expected, rows, columns);
        lua_createtable(L, 0, 9);
        field_set_number(L, "relative", worst.relative);
        field_set_number(L, "difference", worst.difference);
        field_set_number(L, "value", worst.value);
        field_set_number(L, "expected", worst.expected);
        field_set_size(L, "rows", rows);
        field_set_size(L, "columns", columns);
        field_set_size(L, "row", worst.row);
        field_set_size(L, "difference_row", worst.difference_row);
        field_set_size(L, "difference_column", worst.difference_column);
    }
    free(y);
    free(expected);
    return expected ? 1 : host_fail(L, error);
}

int luaopen_npy(lua_State *L)
{
    static const luaL_Reg functions[] = {{"tokens", tokens}, {"read", read_},      {"write", write_}, {"create", create},
                                         {"check", check},   {"compare", compare}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"append", writer_append}, {"finish", writer_finish}, {"discard", writer_discard}, {NULL, NULL}};
    host_class(L, WRITER, writer_discard, methods);
    luaL_newlib(L, functions);
    return 1;
}
