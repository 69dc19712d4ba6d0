/* The Lua module `unicode`: what utf8proc knows of every character, as whole tables. */
#include "gen/host/host.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <utf8proc.h>

enum { CHARACTERS = 0x110000, HANGUL_FIRST = 0xac00, HANGUL_LAST = 0xd7a3, MOST_PARTS = 64 };

static bool is_surrogate(int character)
{
    return character >= 0xd800 && character <= 0xdfff;
}

/* A string with a byte for each character. */
static int push_property(lua_State *L, unsigned char (*property)(int))
{
    luaL_Buffer buffer;
    char *to = luaL_buffinitsize(L, &buffer, CHARACTERS);
    for (int c = 0; c < CHARACTERS; ++c)
        to[c] = (char)property(c);
    luaL_pushresultsize(&buffer, CHARACTERS);
    return 1;
}

static unsigned char category_of(int character)
{
    return (unsigned char)utf8proc_category(character);
}

static unsigned char combining_class_of(int character)
{
    return (unsigned char)utf8proc_get_property(character)->combining_class;
}

/* unicode.categories() -> a byte for each character: its place in unicode.category_names, from 0 */
static int unicode_categories(lua_State *L)
{
    return push_property(L, category_of);
}

/* unicode.combining_classes() -> a byte for each character */
static int unicode_combining_classes(lua_State *L)
{
    return push_property(L, combining_class_of);
}

/* Appends { character, UTF-8 of parts[count] } to the list on top of the stack. */
static void append_row(lua_State *L, int character, const utf8proc_int32_t *parts, utf8proc_ssize_t count)
{
    luaL_Buffer text;
    lua_createtable(L, 2, 0);
    lua_pushinteger(L, character);
    lua_rawseti(L, -2, 1);
    luaL_buffinit(L, &text);
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
        utf8proc_uint8_t bytes[4];
        luaL_addlstring(&text, (const char *)bytes, (size_t)utf8proc_encode_char(parts[i], bytes));
    }
    luaL_pushresult(&text);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* unicode.decompositions(compatible) -> { { character, UTF-8 } }: what NFD, or NFKD, makes of single characters, in their order, without
   Hangul syllables, which follow a formula */
static int unicode_decompositions(lua_State *L)
{
    const int options = UTF8PROC_DECOMPOSE | (lua_toboolean(L, 1) ? UTF8PROC_COMPAT : 0);
    lua_newtable(L);
    for (int c = 0; c < CHARACTERS; ++c) {
        utf8proc_int32_t parts[MOST_PARTS];
        int boundary = UTF8PROC_BOUNDCLASS_START;
        if (is_surrogate(c) || (c >= HANGUL_FIRST && c <= HANGUL_LAST))
            continue;
        const utf8proc_ssize_t count = utf8proc_decompose_char(c, parts, MOST_PARTS, (utf8proc_option_t)options, &boundary);
        if (count < 1 || count > MOST_PARTS)
            return luaL_error(L, "utf8proc: character %d: decomposes into %d", c, (int)count);
        if (count > 1 || parts[0] != c)
            append_row(L, c, parts, count);
    }
    return 1;
}

/* unicode.lower_case() -> { { character, UTF-8 } }: those that have a lower case, in their order. Only one has a lower case of two
   characters, which utf8proc does not say. */
static int unicode_lower_case(lua_State *L)
{
    static const utf8proc_int32_t dotted[2] = {'i', 0x307};
    lua_newtable(L);
    for (int c = 0; c < CHARACTERS; ++c) {
        const utf8proc_int32_t lower = utf8proc_tolower(c);
        if (c == 0x130)
            append_row(L, c, dotted, 2);
        else if (!is_surrogate(c) && lower != c)
            append_row(L, c, &lower, 1);
    }
    return 1;
}

/* unicode.composed(text) -> the text, valid UTF-8, in NFC */
static int unicode_composed(lua_State *L)
{
    size_t bytes;
    const char *text = luaL_checklstring(L, 1, &bytes);
    utf8proc_uint8_t *composed = NULL;
    const utf8proc_ssize_t size = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)bytes, &composed,
                                               (utf8proc_option_t)(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    if (size < 0)
        return luaL_error(L, "utf8proc: %s", utf8proc_errmsg(size));
    lua_pushlstring(L, (const char *)composed, (size_t)size);
    free(composed);
    return 1;
}

int luaopen_unicode(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"categories", unicode_categories},
        {"combining_classes", unicode_combining_classes},
        {"decompositions", unicode_decompositions},
        {"lower_case", unicode_lower_case},
        {"composed", unicode_composed},
        {NULL, NULL},
    };
    static const char *const names[] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
                                        "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
    luaL_newlib(L, functions);
    lua_newtable(L);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        lua_pushstring(L, names[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "category_names");
    return 1;
}
