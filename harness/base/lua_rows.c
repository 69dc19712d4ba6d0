/* The Lua module `rows`: what commands ask of rows of float32, in float64.

   Rows are strings of float32, one row of `columns` behind the other; rows and columns are counted from 1.
   rows.doubles(rows) -> the same as a string of doubles; rows.singles(string of doubles) -> rows; rows.floats(rows) -> list of numbers
   rows.cosines(rows, columns, query) -> { cosine of each row and the row `query` }; NaN for a row of zeros
   rows.surprisal(rows, columns, ids) -> sum of -log softmax(row i)[ids[i]] over all rows, ids counted from 0; of how many rows that is the
   largest value, of equal ones the first
   rows.divergence(rows, columns, others) -> sum of the divergences of softmax(other i) from softmax(row i), in nats
   rows.draw(row, temperature, top_k, top_p, u) -> an id | nil where a logit is no number. temperature 0: the largest logit, of equal ones
   the first. Else from softmax(logits / temperature), of the top_k likeliest (0: all), of the fewest likeliest ones whose probabilities
   sum to top_p at least; u from 0 up to 1 decides. */
#include "harness/base/modules.h"

#include <lauxlib.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* The rows in the string at `index`, all of so many columns. */
static const float *rows_at(lua_State *L, int index, size_t columns, size_t *rows)
{
    size_t bytes;
    const float *values = (const float *)(const void *)luaL_checklstring(L, index, &bytes);
    luaL_argcheck(L, columns > 0 && bytes % (columns * sizeof *values) == 0, index, "must be whole rows");
    *rows = bytes / (columns * sizeof *values);
    return values;
}

static int doubles(lua_State *L)
{
    size_t count;
    const float *from = rows_at(L, 1, 1, &count);
    luaL_Buffer buffer;
    double *to = (double *)(void *)luaL_buffinitsize(L, &buffer, count * sizeof *to + 1);
    for (size_t i = 0; i < count; ++i)
        to[i] = (double)from[i];
    luaL_pushresultsize(&buffer, count * sizeof *to);
    return 1;
}

static int singles(lua_State *L)
{
    size_t bytes;
    const double *from = (const double *)(const void *)luaL_checklstring(L, 1, &bytes);
    const size_t count = bytes / sizeof *from;
    luaL_Buffer buffer;
    float *to = (float *)(void *)luaL_buffinitsize(L, &buffer, count * sizeof *to + 1);
    for (size_t i = 0; i < count; ++i)
        to[i] = (float)from[i];
    luaL_pushresultsize(&buffer, count * sizeof *to);
    return 1;
}

static int floats(lua_State *L)
{
    size_t count;
    const float *values = rows_at(L, 1, 1, &count);
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; ++i) {
        lua_pushnumber(L, (lua_Number)values[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static double dot(const float *a, const float *b, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; ++i)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static int cosines(lua_State *L)
{
    size_t count, one;
    const size_t columns = (size_t)luaL_checkinteger(L, 2);
    const float *rows = rows_at(L, 1, columns, &count), *query = rows_at(L, 3, columns, &one);
    luaL_argcheck(L, one == 1, 3, "must be one row");
    const double length = sqrt(dot(query, query, columns));
    lua_createtable(L, (int)count, 0);
    for (size_t r = 0; r < count; ++r, rows += columns) {
        const double cosine = dot(rows, query, columns) / (sqrt(dot(rows, rows, columns)) * length);
        lua_pushnumber(L, cosine > 1.0 ? 1.0 : cosine < -1.0 ? -1.0 : cosine);
        lua_rawseti(L, -2, (lua_Integer)r + 1);
    }
    return 1;
}

/* Where the largest value is, of equal ones the first. */
static size_t largest(const float *row, size_t columns)
{
    size_t best = 0;
    for (size_t c = 1; c < columns; ++c)
        best = row[c] > row[best] ? c : best;
    return best;
}

/* log of the sum of exp(row). */
static double log_total(const float *row, size_t columns)
{
    const double high = (double)row[largest(row, columns)];
    double sum = 0.0;
    for (size_t c = 0; c < columns; ++c)
        sum += exp((double)row[c] - high);
    return high + log(sum);
}

static int surprisal(lua_State *L)
{
    size_t count;
    const size_t columns = (size_t)luaL_checkinteger(L, 2);
    const float *rows = rows_at(L, 1, columns, &count);
    luaL_argcheck(L, luaL_len(L, 3) == (lua_Integer)count, 3, "must be an id a row");
    double nats = 0.0;
    lua_Integer hits = 0;
    for (size_t r = 0; r < count; ++r) {
        const float *row = rows + r * columns;
        lua_rawgeti(L, 3, (lua_Integer)r + 1);
        const lua_Integer id = lua_tointeger(L, -1);
        lua_pop(L, 1);
        luaL_argcheck(L, id >= 0 && id < (lua_Integer)columns, 3, "must be ids");
        nats += log_total(row, columns) - (double)row[id];
        hits += largest(row, columns) == (size_t)id;
    }
    lua_pushnumber(L, nats);
    lua_pushinteger(L, hits);
    return 2;
}

static int divergence(lua_State *L)
{
    size_t count, others;
    const size_t columns = (size_t)luaL_checkinteger(L, 2);
    const float *row = rows_at(L, 1, columns, &count), *other = rows_at(L, 3, columns, &others);
    luaL_argcheck(L, count == others, 3, "must be as many rows");
    double sum = 0.0;
    for (size_t r = 0; r < count; ++r, row += columns, other += columns) {
        const double total = log_total(row, columns), other_total = log_total(other, columns);
        for (size_t c = 0; c < columns; ++c) {
            const double own = (double)row[c] - total;
            sum += exp(own) * (own - (double)other[c] + other_total);
        }
    }
    lua_pushnumber(L, sum);
    return 1;
}

typedef struct {
    double weight; /* exp((logit - largest) / temperature) */
    size_t id;
} candidate;

/* The likeliest first, of equal ones the first. */
static int by_weight(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

/* How many of `list`[count], the likeliest first, hold the share `top_p` of their weights. */
static size_t share_of(const candidate *list, size_t count, double top_p)
{
    double all = 0.0, sum = 0.0;
    for (size_t i = 0; i < count; ++i)
        all += list[i].weight;
    for (size_t i = 0; i < count; ++i) {
        sum += list[i].weight;
        if (sum >= top_p * all)
            return i + 1;
    }
    return count;
}

static size_t drawn(const candidate *list, size_t count, double u)
{
    double all = 0.0, sum = 0.0;
    for (size_t i = 0; i < count; ++i)
        all += list[i].weight;
    for (size_t i = 0; i + 1 < count; ++i) {
        sum += list[i].weight;
        if (u * all < sum)
            return list[i].id;
    }
    while (count > 1 && list[count - 1].weight == 0.0)
        --count;
    return list[count - 1].id;
}

static int draw(lua_State *L)
{
    size_t columns, rows;
    luaL_checklstring(L, 1, &columns);
    columns /= sizeof(float);
    const float *row = rows_at(L, 1, columns, &rows);
    const double temperature = luaL_checknumber(L, 2), top_p = luaL_checknumber(L, 4), u = luaL_checknumber(L, 5);
    const size_t top_k = (size_t)luaL_checkinteger(L, 3);
    for (size_t c = 0; c < columns; ++c) {
        if (isnan(row[c]))
            return 0;
    }
    const size_t best = largest(row, columns);
    if (temperature == 0.0 || isinf(row[best])) {
        lua_pushinteger(L, (lua_Integer)best);
        return 1;
    }
    candidate *list = lua_newuserdatauv(L, columns * sizeof *list, 0);
    for (size_t c = 0; c < columns; ++c)
        list[c] = (candidate){exp(((double)row[c] - (double)row[best]) / temperature), c};
    size_t count = columns;
    if ((top_k > 0 && top_k < columns) || top_p < 1.0) {
        qsort(list, columns, sizeof *list, by_weight);
        count = top_k > 0 && top_k < columns ? top_k : columns;
        if (top_p < 1.0)
            count = share_of(list, count, top_p);
    }
    lua_pushinteger(L, (lua_Integer)drawn(list, count, u));
    return 1;
}

int luaopen_rows(lua_State *L)
{
    static const luaL_Reg functions[] = {{"doubles", doubles},     {"singles", singles},       {"floats", floats}, {"cosines", cosines},
                                         {"surprisal", surprisal}, {"divergence", divergence}, {"draw", draw},     {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
