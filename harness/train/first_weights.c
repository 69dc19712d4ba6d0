/* The weights that a run begins with: random ones, then boxes of others. */
#include "harness/train/run_state.h"

#include "gen/host/fields.h"
#include "gen/weights/random.h"

#include <lauxlib.h>

#include <string.h>

static const char where[] = "train: ";

/* Elements of the parameters: [row][column] lies at + row * step[0] + column * step[1]. */
typedef struct {
    size_t at, step[2];
} elements;

/* The elements that the box at `index` of the stack names by these fields, all of them among the parameters. */
static elements elements_of(lua_State *L, const run_state *r, int index, const char *at, const char *row, const char *column)
{
    const elements e = {field_size(L, index, where, at), {field_size(L, index, where, row), field_size(L, index, where, column)}};
    const size_t rows = field_size(L, index, where, "rows"), columns = field_size(L, index, where, "columns");
    if (rows == 0 || columns == 0 || e.at + (rows - 1) * e.step[0] + (columns - 1) * e.step[1] >= r->parameter_count)
        luaL_error(L, "%sfirst weights lie outside of the parameters", where);
    return e;
}

/* Writes the box at `index` of the stack: a value, or other elements times a factor. */
static void write_box(lua_State *L, run_state *r, int index)
{
    const size_t rows = field_size(L, index, where, "rows"), columns = field_size(L, index, where, "columns");
    const elements to = elements_of(L, r, index, "at", "row", "column");
    const bool copies = field_integer(L, index, where, "from", -1, -1) >= 0;
    const elements from = copies ? elements_of(L, r, index, "from", "from_row", "from_column") : to;
    const float value = (float)field_number(L, index, where, copies ? "factor" : "value");
    float *weights = weights_of(r);
    for (size_t row = 0; row < rows; ++row)
        for (size_t column = 0; column < columns; ++column)
            weights[to.at + row * to.step[0] + column * to.step[1]] =
                copies ? value * weights[from.at + row * from.step[0] + column * from.step[1]] : value;
}

int run_initialise(lua_State *L)
{
    run_state *r = run_at(L);
    for (size_t i = 0; i < r->tensor_count; ++i) {
        const tensor *t = &r->tensors[i];
        random_state random = random_seed(r->train.seed + 0x51ed270b * ((uint64_t)i + 1));
        for (size_t row = 0; row < t->rows; ++row) {
            float *first = weights_of(r) + t->at + row * t->pitch;
            const size_t together = t->mean_count == 1 ? t->columns : 1;
            for (size_t column = 0; column < t->columns; column += together)
                random_fill(&random, first + column, together, t->means[column % t->mean_count], t->deviation);
        }
    }
    lua_settop(L, 2);
    const lua_Integer boxes = lua_isnoneornil(L, 2) ? 0 : luaL_len(L, 2);
    for (lua_Integer i = 1; i <= boxes; ++i) {
        lua_geti(L, 2, i);
        write_box(L, r, 3);
        lua_pop(L, 1);
    }
    run_copy_all(r, false, 0, 1);
    memset(r->first, 0, r->gradient_count * sizeof(float));
    memset(r->second, 0, r->gradient_count * sizeof(float));
    memset(r->call.table_state, 0, r->state_count * sizeof(float));
    memset(r->call.row_uses, 0, r->row_count * sizeof(uint32_t));
    return 0;
}
