/* Libraries and calls of compiled code, as a job of the measuring process describes them. */
#include "harness/measure/rows.h"

#include "harness/base/blob_memory.h"
#include "harness/base/library.h"
#include "harness/base/memory.h"
#include "harness/measure/limits.h"

#include <string.h>

#define MOST ((size_t)1 << 44)
enum { MOST_WORDS = 8, MOST_COPIES = 1024, MOST_TURNS = 1000 };

/* What a step calls. A function that does not take so many words gets some that it does not look at. */
typedef uintptr_t function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

typedef struct loaded {
    const char *name, *blob_path;
    loaded_library functions;
    files_mapping blob;
    void *weights;
} loaded;

struct rows_parts {
    const buffers *memory;
    loaded *libraries;
    size_t count;
};

typedef struct made_call {
    function *called;
    bool status; /* whether it returns one */
    uintptr_t words[MOST_WORDS];
} made_call;

/* A word of a call that is another one at each place: first + the number of the place * step, or the int32 there. */
typedef struct moving_word {
    size_t call, word;
    uintptr_t first, step;
    bool value;
} moving_word;

/* What one caller does again and again. */
typedef struct row_caller {
    made_call *calls;
    moving_word *moving;
    size_t call_count, moving_count, places, place, step;
} row_caller;

static const loaded *find_library(const rows_parts *parts, const char *name)
{
    for (size_t i = 0; i < parts->count; ++i) {
        if (strcmp(parts->libraries[i].name, name) == 0) {
            return &parts->libraries[i];
        }
    }
    job_fail("%s: there is no such library", name);
}

/* The blob of a library that is loaded, or a new one. */
static files_mapping blob_of(const rows_parts *parts, const char *path)
{
    char error[512];
    files_mapping blob;
    for (size_t i = 0; i < parts->count; ++i) {
        if (strcmp(parts->libraries[i].blob_path, path) == 0) {
            return parts->libraries[i].blob;
        }
    }
    if (!blob_map(path, &blob, error, sizeof(error))) {
        job_fail("%s", error);
    }
    return blob;
}

static loaded load(const rows_parts *parts, const job_object *row)
{
    char error[512];
    const char *path = job_path(row, "blob");
    loaded own = {.name = job_text(row, "name"), .blob_path = path, .blob = blob_of(parts, path)};
    if (!library_open(&own.functions, job_path(row, "library"), LIBRARY_STAYS, error, sizeof(error))) {
        job_fail("%s", error);
    }
    if (job_has(row, "weights_of")) {
        own.weights = find_library(parts, job_text(row, "weights_of"))->weights;
        return own;
    }
    own.weights = aligned_memory(job_integer(row, "weights_struct_bytes", 1, 1 << 24));
    if (!own.weights || !library_bind(&own.functions, job_word(row, "bind"), path, &own.blob, own.weights, error, sizeof(error))) {
        job_fail("%s", own.weights ? error : "out of memory");
    }
    return own;
}

static bool run_caller(void *self, size_t number)
{
    row_caller *c = (row_caller *)self + number;
    for (const moving_word *m = c->moving, *end = m + c->moving_count; m < end; ++m) {
        const uintptr_t at = m->first + c->place * m->step;
        const int32_t *value = (const int32_t *)at;
        c->calls[m->call].words[m->word] = m->value ? (uintptr_t)*value : at;
    }
    c->place += c->step;
    c->place -= c->place < c->places ? 0 : c->places;
    bool good = true;
    for (const made_call *made = c->calls, *end = made + c->call_count; made < end; ++made) {
        const uintptr_t *w = made->words, status = made->called(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]);
        good &= !made->status || (int)status == 0;
    }
    return good;
}

/* Functions of steps without a library. */

static uintptr_t copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

static uintptr_t read_memory(const void *memory, size_t bytes)
{
    limits_read(memory, bytes);
    return 0;
}

/* Lays codes and scores [tokens][slots] out as a tile [slots][width]: warm in cache, as a projection leaves them. About 0.6 ns a token and
   slot; to read them from a tile kept for each call would cost more, for it would be cold. */
static uintptr_t tile(uint16_t *to_code, float *to_score, const uint16_t *from_code, const float *from_score, size_t tokens, size_t slots,
                      size_t width)
{
    for (size_t lane = 0; lane < tokens; ++lane) {
        for (size_t slot = 0; slot < slots; ++slot) {
            to_code[slot * width + lane] = from_code[lane * slots + slot];
            to_score[slot * width + lane] = from_score[lane * slots + slot];
        }
    }
    return 0;
}

/* The other way round, of tiles one behind the other. */
static uintptr_t by_token(uint16_t *to_code, float *to_score, const uint16_t *from_code, const float *from_score, size_t tokens,
                          size_t slots, size_t width)
{
    for (size_t token = 0; token < tokens; ++token) {
        for (size_t slot = 0; slot < slots; ++slot) {
            const size_t from = (token / width * slots + slot) * width + token % width;
            to_code[token * slots + slot] = from_code[from];
            to_score[token * slots + slot] = from_score[from];
        }
    }
    return 0;
}

/* Called as those of a library are, whose types nobody knows either. */
static const struct {
    const char *name;
    void (*called)(void);
} own_functions[] = {{"copy", (void (*)(void))copy},
                     {"read", (void (*)(void))read_memory},
                     {"tile", (void (*)(void))tile},
                     {"by_token", (void (*)(void))by_token}};

static function *find_function(const job_object *step, const loaded *own)
{
    char error[512];
    const char *name = job_word(step, "function");
    function *called = NULL;
    for (size_t i = 0; i < sizeof(own_functions) / sizeof(*own_functions); ++i) {
        if (strcmp(own_functions[i].name, name) == 0) {
            return (function *)own_functions[i].called;
        }
    }
    if (!own) {
        job_refuse(step, "function", json_string(name), "there is no such function");
    }
    if (!library_find(&own->functions, name, &called, error, sizeof(error))) {
        job_fail("%s", error);
    }
    return called;
}

/* What the arguments of a call stand for. */
typedef struct scope {
    const rows_parts *parts;
    const loaded *own; /* the step's library, if it has one */
    size_t number;     /* of the caller */
    size_t first, tokens;
} scope;

/* A number of bytes in the field of an argument, 0 without it. */
static size_t bytes_of(const json_t *argument, const char *name)
{
    return (size_t)json_integer_value(json_object_get(argument, name));
}

/* The first value of an argument: what it is for the first place. */
static uintptr_t word_of(const scope *of, const job_object *step, const json_t *argument)
{
    const char *name = json_string_value(json_is_object(argument) ? json_object_get(argument, "memory") : argument);
    if (json_is_integer(argument)) {
        return (uintptr_t)json_integer_value(argument);
    }
    if (!name) {
        job_refuse(step, "arguments", argument, "must be integers, names or objects");
    }
    if (strcmp(name, "tokens") == 0) {
        return of->tokens;
    }
    if (of->own && strcmp(name, "weights") == 0) {
        return (uintptr_t)of->own->weights;
    }
    if (of->own && strcmp(name, "blob") == 0) {
        return (uintptr_t)of->own->blob.data;
    }
    return (uintptr_t)buffers_copy(of->parts->memory, name, of->number) + bytes_of(argument, "at") +
           of->first * bytes_of(argument, "token");
}

/* Adds one call of a step. */
static void add_call(const scope *of, const job_object *step, row_caller *to)
{
    made_call made = {find_function(step, of->own), job_flag(step, "status"), {0}};
    for (size_t i = 0; i < job_count(step, "arguments"); ++i) {
        const json_t *argument = job_value(step, "arguments", i);
        const moving_word moving = {to->call_count, i, word_of(of, step, argument), bytes_of(argument, "place"),
                                    json_is_true(json_object_get(argument, "value"))};
        if (i == MOST_WORDS) {
            job_refuse(step, "arguments", argument, "must be at most %d", MOST_WORDS);
        }
        made.words[i] = moving.first;
        if (moving.step > 0 || moving.value) {
            to->moving = job_more(to->moving, to->moving_count, sizeof(moving));
            to->moving[to->moving_count++] = moving;
        }
    }
    to->calls = job_more(to->calls, to->call_count, sizeof(made));
    to->calls[to->call_count++] = made;
}

static void add_step(const rows_parts *parts, const job_object *step, size_t number, row_caller *to)
{
    const size_t tokens = job_integer_or(step, "tokens", 1, 1, MOST), chunk = job_integer_or(step, "chunk", tokens, 1, MOST);
    scope of = {.parts = parts, .number = number};
    of.own = job_has(step, "library") ? find_library(parts, job_text(step, "library")) : NULL;
    for (of.first = 0; of.first < tokens; of.first += chunk) {
        of.tokens = smaller(chunk, tokens - of.first);
        add_call(&of, step, to);
    }
}

static row_caller *make_callers(const rows_parts *parts, const job_object *row, size_t *count)
{
    const size_t places = job_integer_or(row, "places", 1, 1, MOST);
    *count = job_integer_or(row, "callers", 1, 1, MOST_COPIES);
    row_caller *made = job_room(*count, sizeof(*made));
    for (size_t number = 0; number < *count; ++number) {
        made[number] = (row_caller){.places = places, .place = number % places, .step = *count % places};
        for (job_object step = {0}; job_next(row, "steps", &step);) {
            add_step(parts, &step, number, &made[number]);
        }
    }
    return made;
}

const rows_parts *rows_prepare(const job_object *job, const buffers *memory)
{
    rows_parts *parts = job_room(1, sizeof(*parts));
    parts->memory = memory;
    parts->libraries = job_room(job_count(job, "libraries"), sizeof(*parts->libraries));
    for (job_object row = {0}; job_next(job, "libraries", &row);) {
        parts->libraries[parts->count] = load(parts, &row);
        ++parts->count; /* after others have been looked for */
    }
    for (job_object row = {0}; job_next(job, "setup", &row);) {
        size_t count;
        row_caller *made = make_callers(parts, &row, &count);
        for (size_t number = 0; number < count; ++number) {
            if (!run_caller(made, number)) {
                job_fail("%s: failed", job_text(&row, "name"));
            }
        }
    }
    return parts;
}

timed_call rows_call(const rows_parts *parts, const job_object *row)
{
    timed_call made = {.name = job_text(row, "name"), .run = run_caller, .cold = job_flag(row, "cold")};
    made.self = make_callers(parts, row, &made.callers);
    const size_t threads = job_integer_or(row, "threads", 1, 1, MOST_COPIES);
    made.threads = threads > made.callers ? threads : made.callers;
    made.turns = job_integer_or(row, "turns", 1, 1, MOST_TURNS);
    made.turn = job_integer_or(row, "turn", 0, 0, MOST_TURNS);
    made.alike = job_has(row, "alike") ? job_text(row, "alike") : NULL;
    return made;
}
