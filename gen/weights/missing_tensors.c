/* Whether a checkpoint has the tensors of a model, and which ones may be meant where it does not. */
#include "gen/host/fields.h"
#include "gen/host/files.h"
#include "gen/weights/nearest.h"
#include "gen/weights/packing.h"

#include <lauxlib.h>
#include <string.h>

static const char where[] = "weights: ";

enum { LONGEST_NAME = 1024 };

/* Pushes the name that the field `name` of a table has in the checkpoint. */
static const char *push_full_name(packing *p, int table)
{
    return lua_pushfstring(p->L, "%s%s", p->prefix, field_text(p->L, table, where, "name", NULL));
}

/* Appends to the message which tensors of the job are missing beside `first`. */
static void add_missing(packing *p, int job, const char *first)
{
    enum { MOST_NAMED = 4, LONGEST_SHOWN = 200 };
    lua_State *L = p->L;
    const int top = lua_gettop(L);
    const char *named[MOST_NAMED];
    size_t count = 0;
    lua_getfield(L, job, "tensors");
    lua_newtable(L); /* keeps the names */
    for (lua_Integer i = 1; lua_rawgeti(L, top + 1, i) == LUA_TTABLE; ++i) {
        const char *full = push_full_name(p, top + 3);
        if (strcmp(full, first) != 0 && !shards_have(p->checkpoint, full)) {
            if (count < MOST_NAMED)
                named[count] = full;
            ++count;
        }
        lua_rawseti(L, top + 2, i);
        lua_settop(L, top + 2);
    }
    for (size_t i = 0; i < count && i < MOST_NAMED; ++i) {
        const size_t length = strlen(p->error);
        snprintf(p->error + length, sizeof p->error - length, "%s%.*s",
                 i > 0        ? ", "
                 : count == 1 ? "; so is "
                              : "; so are ",
                 LONGEST_SHOWN, named[i]);
    }
    if (count > MOST_NAMED) {
        const size_t length = strlen(p->error);
        snprintf(p->error + length, sizeof p->error - length, " and %zu more", count - MOST_NAMED);
    }
    lua_settop(L, top);
}

/* Says that the tensor `full`, whose `name` stands behind the prefix, is missing, and which one may be meant: none of those whose names are
   keys of the table `used`. */
static bool fail_missing(packing *p, int job, int used, const char *full, const char *name)
{
    lua_State *L = p->L;
    nearest search = {.wanted = full};
    for (size_t i = 0; i < shards_count(p->checkpoint); ++i) {
        const safetensors *file = shards_at(p->checkpoint, i);
        for (size_t k = 0; k < safetensors_count(file); ++k) {
            const char *offered = safetensors_at(file, k)->name;
            if (lua_getfield(L, used, offered) == LUA_TNIL)
                nearest_offer(&search, offered);
            lua_pop(L, 1);
        }
    }
    const size_t found = search.name == NULL ? 0 : strlen(search.name), tail = strlen(name);
    if (found > tail && search.name[found - tail - 1] == '.' && strcmp(search.name + found - tail, name) == 0 &&
        field_flag(L, job, "takes_prefix"))
        return files_error(p->error, sizeof p->error, "%s: tensor %s is missing; give --prefix %.*s", shards_path(p->checkpoint), full,
                           (int)(found - tail), search.name);
    nearest_missing(&search, shards_path(p->checkpoint), p->error, sizeof p->error);
    add_missing(p, job, full);
    return false;
}

/* Checks the tensor that the table at `tensor` describes. */
static bool check_tensor(packing *p, int job, int used, int tensor)
{
    lua_State *L = p->L;
    const char *full = push_full_name(p, tensor);
    const bool there = shards_have(p->checkpoint, full);
    if (!there && strlen(full) < LONGEST_NAME)
        return fail_missing(p, job, used, full, field_text(L, tensor, where, "name", NULL));
    if (packing_tensor(p, tensor, "name") != NULL)
        return true;
    const char *dims = field_text(L, tensor, where, "dims", "");
    const size_t length = strlen(p->error);
    if (there && *dims != '\0') /* it has another shape */
        snprintf(p->error + length, sizeof p->error - length, ", that is %s", dims);
    return false;
}

bool packing_expect_tensors(packing *p, int job)
{
    lua_State *L = p->L;
    lua_getfield(L, job, "tensors");
    const int tensors = lua_gettop(L);
    lua_newtable(L);
    const int used = lua_gettop(L);
    for (lua_Integer i = 1; lua_rawgeti(L, tensors, i) == LUA_TTABLE; ++i) {
        push_full_name(p, used + 1);
        lua_pushboolean(L, true);
        lua_rawset(L, used);
        lua_settop(L, used);
    }
    lua_settop(L, used);
    bool ok = true;
    for (lua_Integer i = 1; ok && lua_rawgeti(L, tensors, i) == LUA_TTABLE; ++i) {
        ok = check_tensor(p, job, used, lua_gettop(L));
        lua_settop(L, used);
    }
    lua_settop(L, tensors - 1);
    return ok;
}
