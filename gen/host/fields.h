/* Fields of the Lua tables that jobs are made of. */
#ifndef LOOKUPC_GEN_FIELDS_H
#define LOOKUPC_GEN_FIELDS_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All raise a Lua error for a field that is absent or wrong: such a job is a mistake in the program. `where` stands before the field's name
   in the message, such as "variant.". */

/* An integer, at least `least`; `otherwise` stands for an absent one. */
lua_Integer field_integer(lua_State *L, int index, const char *where, const char *name, lua_Integer least, lua_Integer otherwise);

/* A size; 0 if it is absent. */
size_t field_size(lua_State *L, int index, const char *where, const char *name);

/* A number, which must be there. */
double field_number(lua_State *L, int index, const char *where, const char *name);

/* Whether the field is there and neither false nor nil. */
bool field_flag(lua_State *L, int index, const char *name);

/* A string, or `otherwise` for an absent one if that is not NULL. It stays valid as long as the table keeps it. */
const char *field_text(lua_State *L, int index, const char *where, const char *name, const char *otherwise);

/* The array of at most `most` integers in the field. Returns their number. */
int field_dimensions(lua_State *L, int index, const char *name, int64_t *dimensions, size_t most);

/* Set a field of the table on top of the stack. */
void field_set_size(lua_State *L, const char *name, size_t value);
void field_set_number(lua_State *L, const char *name, double value);
void field_set_flag(lua_State *L, const char *name, bool value);
void field_set_text(lua_State *L, const char *name, const char *value);

#endif
