/* The reference's model and types in the fields of Lua tables. */
#include "harness/reference/fields.h"

#include "gen/host/fields.h"

#include <lauxlib.h>

#include <string.h>

static const char *const projections[] = {[REFERENCE_BH4] = "bh4", [REFERENCE_DENSE] = "dense", NULL};

/* Which of `words`, which end with NULL, the field is. */
static int word_field(lua_State *L, int index, const char *where, const char *name, const char *const *words)
{
    const char *word = field_text(L, index, where, name, NULL);
    for (int i = 0; words[i]; ++i)
        if (strcmp(word, words[i]) == 0)
            return i;
    return luaL_error(L, "%s%s: %s: unknown word", where, name, word);
}

static reference_score_kind score_field(lua_State *L, int index, const char *where, const char *name)
{
    const char *word = field_text(L, index, where, name, NULL);
    for (size_t kind = 0; kind < REFERENCE_SCORES; ++kind)
        if (strcmp(word, reference_scores[kind].name) == 0)
            return (reference_score_kind)kind;
    luaL_error(L, "%s%s: %s: unknown score", where, name, word);
    return REFERENCE_SCORES;
}

reference_model reference_model_at(lua_State *L, int index, const char *where)
{
    luaL_checktype(L, index, LUA_TTABLE);
    reference_model model = {
        .d = (size_t)field_integer(L, index, where, "d", 1, 0),
        .d_out = (size_t)field_integer(L, index, where, "d_out", 1, 0),
        .h = (size_t)field_integer(L, index, where, "h", 1, 0),
        .tau = (size_t)field_integer(L, index, where, "tau", 1, 0),
        .neighbours = (size_t)field_integer(L, index, where, "neighbours", 1, 0),
        .projection = (reference_projection)word_field(L, index, where, "projection", projections),
        .score = score_field(L, index, where, "score"),
        .scale = field_number(L, index, where, "scale"),
    };
    if (model.tau > 16)
        luaL_error(L, "%stau: must be at most 16", where);
    if (model.neighbours > (size_t)1 << model.tau)
        luaL_error(L, "%sneighbours: must be at most 2^tau", where);
    if (model.projection == REFERENCE_BH4) {
        model.block = (size_t)field_integer(L, index, where, "block", 1, 0);
        model.decay = field_number(L, index, where, "decay");
        if ((model.block & (model.block - 1)) != 0 || model.block > reference_padded(&model))
            luaL_error(L, "%sblock: must be a power of two, at most d padded to one", where);
    }
    if (lua_getfield(L, index, "norm_eps") != LUA_TNIL) {
        model.norm = true;
        model.norm_eps = field_number(L, index, where, "norm_eps");
    }
    lua_pop(L, 1);
    return model;
}

reference_type reference_type_at(lua_State *L, int index, const char *where, const char *field, reference_use use)
{
    const char *name = field_text(L, index, where, field, "f32");
    reference_type type = REFERENCE_F32;
    if (!reference_type_named(name, use, &type))
        luaL_error(L, "%s%s: %s: unknown type", where, field, name);
    return type;
}

reference_form reference_form_at(lua_State *L, int index)
{
    static const char *const names[] = {"as it is", "multiplied_out", "bf16_inputs", NULL};
    lua_getfield(L, index, "form");
    const reference_form form = (reference_form)luaL_checkoption(L, -1, names[0], names);
    lua_pop(L, 1);
    return form;
}
