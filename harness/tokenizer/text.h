/* Calls of an emitted tokenizer, alone or in a whole model, for Lua. */
#ifndef LOOKUPC_HARNESS_TOKENIZER_TEXT_H
#define LOOKUPC_HARNESS_TOKENIZER_TEXT_H

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    ptrdiff_t (*tokenize)(const void *, const char *, size_t, int32_t *, size_t, void *, size_t);
    const char *(*text_of)(const void *, int32_t, size_t *);
    size_t scratch_factor, scratch_more; /* scratch for any text: bytes for each of its bytes, and beside */
    size_t around;                       /* ids beside those of the text */
    int room_refused, scratch_refused;   /* its codes */
} text_functions;

/* Reads scratch_factor, scratch_more and around from the table at `index`; `where` begins messages. */
void text_read(lua_State *L, int index, const char *where, text_functions *text);

/* Pushes the list of ids of the text at index 2, or nil and a message. Returns how many values. */
int text_push_ids(lua_State *L, const text_functions *text, const void *weights);

/* The same as a string of int32_t, one id behind the other. */
int text_push_packed(lua_State *L, const text_functions *text, const void *weights);

/* Pushes what the id at index 2 adds to a text, or nil. Returns how many values. */
int text_push_text_of(lua_State *L, const text_functions *text, const void *weights);

#endif
