/* What a run tells of its weights: which rows of tables were used, and whether all are numbers. */
#include "harness/train/run_state.h"

#include <lauxlib.h>

#include <math.h>
#include <stdlib.h>

/* Gives the first rank the uses that all have counted since they were asked for, and the others none. */
static void gather_uses(run_state *r)
{
    if (!r->ranks || r->row_count == 0)
        return;
    double *const sums = malloc(r->row_count * sizeof *sums);
    if (!sums)
        r->ranks->give_up();
    for (size_t i = 0; sums && i < r->row_count; ++i)
        sums[i] = r->call.row_uses[i];
    r->ranks->sum_doubles(sums, r->row_count);
    for (size_t i = 0; sums && i < r->row_count; ++i)
        r->call.row_uses[i] = r->ranks->number > 0 ? 0 : (uint32_t)fmin(sums[i], UINT32_MAX);
    free(sums);
}

int run_gather_uses(lua_State *L)
{
    gather_uses(run_at(L));
    return 0;
}

/* Pushes { rows used, entropy in bits } of uses[count], which become 0. */
static void push_uses(lua_State *L, uint32_t *uses, size_t count)
{
    double total = 0, entropy = 0;
    lua_Integer used = 0;
    for (size_t i = 0; i < count; ++i)
        total += uses[i];
    for (size_t i = 0; i < count; ++i) {
        used += uses[i] > 0;
        if (uses[i])
            entropy -= uses[i] / total * log2(uses[i] / total);
        uses[i] = 0;
    }
    lua_createtable(L, 2, 0);
    lua_pushinteger(L, used);
    lua_rawseti(L, -2, 1);
    lua_pushnumber(L, entropy);
    lua_rawseti(L, -2, 2);
}

int run_uses(lua_State *L)
{
    run_state *r = run_at(L);
    gather_uses(r);
    lua_createtable(L, (int)r->tensor_count, 0);
    for (size_t i = 0; i < r->tensor_count; ++i) {
        const tensor *t = &r->tensors[i];
        if (t->table_rows == 0)
            continue;
        lua_newtable(L);
        for (size_t k = 0; k < tables_of(t); ++k) {
            push_uses(L, r->call.row_uses + t->state_at + k * t->table_rows, t->table_rows);
            lua_rawseti(L, -2, (lua_Integer)k + 1);
        }
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

int run_not_finite(lua_State *L)
{
    const run_state *r = run_at(L);
    for (size_t i = 0; i < r->tensor_count; ++i) {
        const tensor *t = &r->tensors[i];
        float sum = 0; /* of what is 0 for numbers only */
        for (size_t row = 0; row < t->rows; ++row)
            for (size_t k = 0; k < t->columns; ++k)
                sum += weights_of(r)[t->at + row * t->pitch + k] * 0.0f;
        if (sum != 0.0f || sum != sum) {
            lua_pushstring(L, t->as.name);
            return 1;
        }
    }
    return 0;
}
