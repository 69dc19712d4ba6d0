/* Memory, libraries and calls of compiled code, as a job of the measuring process describes them. */
#include "harness/measure/rows.h"

#include "gen/weights/random.h"
#include "harness/base/blob_memory.h"
#include "harness/base/library.h"
#include "harness/base/memory.h"
#include "harness/measure/limits.h"

#include <math.h>
#include <string.h>

#define MOST ((size_t)1 << 44)
enum { MOST_WORDS = 8, MOST_COPIES = 1024, MOST_TURNS = 1000 };

/* What a step calls. A function that does not take so many words gets some that it does not look at. */
typedef uintptr_t function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

typedef struct buffer {
    const char *name;
    size_t bytes, count;
    void **copies; /* [count] */
} buffer;

typedef struct loaded {
    const char *name, *blob_path;
    loaded_library functions;
    files_mapping blob;
    void *weights;
} loaded;

struct rows_parts {
    buffer *buffers;
    loaded *libraries;
    size_t buffer_count, library_count;
};

/* What one caller does again and again: the calls of a row, whose arguments are those of its place. */
typedef struct row_caller {
    struct made_call {
        function *called;
        bool status;
        uintptr_t words[MOST_WORDS];
    } * calls;
    struct moving_word {
        uintptr_t *word, first, step; /* first + the number of the place * step */
        bool value;                   /* the int32 there */
    } * moving;
    size_t call_count, moving_count, places, place, step;
} row_caller;

/* Inputs such as text has: frequent tokens, each `width` numbers, come again and again, each time a little different. */
static void fill_skewed(float *numbers, size_t count, size_t width, random_state random)
{
    enum { KINDS = 1024 }; /* the k-th most frequent one is k times rarer than the first: Zipf's law */
    const double difference = 0.1;
    float *kinds = job_room(KINDS * width, sizeof(*kinds));
    random_fill(&random, kinds, KINDS * width, 0.0, 1.0);
    random_fill(&random, numbers, count, 0.0, difference);
    for (size_t at = 0; at + width <= count; at += width) {
        const size_t place = (size_t)exp(random_uniform(&random) * log((double)KINDS));
        const float *from = kinds + (smaller(place, KINDS) - 1) * width;
        for (size_t i = 0; i < width; ++i) {
            numbers[at + i] += from[i];
        }
    }
}

/* Fills memory as its row says. */
static void fill(const job_object *row, void *memory, size_t bytes, uint64_t seed)
{
    const char *word = job_has(row, "fill") ? job_text(row, "fill") : "";
    random_state random = random_seed(seed);
    if (strcmp(word, "normal") == 0) {
        rows_random(memory, bytes / sizeof(float), seed, 1.0);
    } else if (strcmp(word, "skewed") == 0) {
        fill_skewed(memory, bytes / sizeof(float), job_integer(row, "width", 1, MOST), random);
    } else if (strcmp(word, "units") == 0) {
        for (int16_t *to = memory, *end = to + bytes / sizeof(*to); to < end; ++to) {
            *to = (int16_t)fmin(fmax(4096.0 * random_normal(&random), -32768.0), 32767.0);
        }
    } else if (strcmp(word, "ids") == 0) {
        const size_t below = job_integer(row, "below", 1, INT32_MAX);
        for (int32_t *to = memory, *end = to + bytes / sizeof(*to); to < end; ++to) {
            *to = (int32_t)(random_bits(&random) % below);
        }
    } else if (strcmp(word, "sizes") == 0) {
        size_t *to = memory;
        for (size_t i = 0; i < smaller(job_count(row, "sizes"), bytes / sizeof(*to)); ++i) {
            to[i] = (size_t)json_integer_value(job_value(row, "sizes", i));
        }
    } else {
        memset(memory, 0, bytes); /* touches large pages */
    }
}

static buffer make_buffer(const job_object *row, uint64_t seed)
{
    const size_t bytes = job_integer(row, "bytes", 0, MOST), count = job_integer_or(row, "copies", 1, 1, MOST_COPIES);
    const buffer made = {job_text(row, "name"), bytes, count, job_room(count, sizeof(*made.copies))};
    for (size_t i = 0; i < count; ++i) {
        made.copies[i] = job_flag(row, "large") ? memory_of_large_pages(bytes) : aligned_memory(bytes);
        if (!made.copies[i]) {
            job_fail("out of memory for %zu bytes", bytes);
        }
        fill(row, made.copies[i], bytes, seed);
    }
    return made;
}

static const buffer *find_buffer(const rows_parts *parts, const char *name)
{
    for (size_t i = 0; i < parts->buffer_count; ++i) {
        if (strcmp(parts->buffers[i].name, name) == 0) {
            return &parts->buffers[i];
        }
    }
    job_fail("%s: there is no such memory", name);
}

void *rows_memory(const rows_parts *parts, const char *name, size_t caller)
{
    const buffer *found = find_buffer(parts, name);
    return found->copies[caller % found->count];
}

size_t rows_bytes(const rows_parts *parts, const char *name)
{
    return find_buffer(parts, name)->bytes;
}

static const loaded *find_library(const rows_parts *parts, const char *name)
{
    for (size_t i = 0; i < parts->library_count; ++i) {
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
    for (size_t i = 0; i < parts->library_count; ++i) {
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
    for (const struct moving_word *m = c->moving, *end = m + c->moving_count; m < end; ++m) {
        const uintptr_t at = m->first + c->place * m->step;
        *m->word = m->value ? (uintptr_t) * (const int32_t *)at : at;
    }
    c->place += c->step;
    c->place -= c->place < c->places ? 0 : c->places;
    bool good = true;
    for (const struct made_call *made = c->calls, *end = made + c->call_count; made < end; ++made) {
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

/* Reads memory in four streams side by side, to which it gives more than to one. */
static uintptr_t read_memory(const unsigned char *memory, size_t bytes)
{
    enum { STREAMS = 4, PIECE = 512 };
    const size_t each = bytes / STREAMS / PIECE * PIECE;
    for (size_t at = 0; at < each; at += PIECE) {
        for (size_t stream = 0; stream < STREAMS; ++stream) {
            limits_read(memory + stream * each + at, PIECE);
        }
    }
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
    return (uintptr_t)rows_memory(of->parts, name, of->number) + bytes_of(argument, "at") + of->first * bytes_of(argument, "token");
}

/* Adds one call of a step. */
static void add_call(const scope *of, const job_object *step, row_caller *to)
{
    struct made_call *made = &to->calls[to->call_count++];
    made->called = find_function(step, of->own);
    made->status = job_flag(step, "status");
    for (size_t i = 0; i < job_count(step, "arguments"); ++i) {
        const json_t *argument = job_value(step, "arguments", i);
        const size_t place = bytes_of(argument, "place");
        const bool value = json_is_true(json_object_get(argument, "value"));
        if (i == MOST_WORDS) {
            job_refuse(step, "arguments", argument, "must be at most %d", MOST_WORDS);
        }
        made->words[i] = word_of(of, step, argument);
        if (place > 0 || value) {
            to->moving[to->moving_count++] = (struct moving_word){&made->words[i], made->words[i], place, value};
        }
    }
}

/* How many tokens a step is for, and at a time; how many calls that are. */
static size_t chunks_of(const job_object *step, size_t *tokens, size_t *chunk)
{
    *tokens = job_integer_or(step, "tokens", 1, 1, MOST);
    *chunk = job_integer_or(step, "chunk", *tokens, 1, MOST);
    return (*tokens + *chunk - 1) / *chunk;
}

static void make_caller(const rows_parts *parts, const job_object *row, size_t number, row_caller *to)
{
    size_t calls = 0, tokens, chunk;
    for (size_t i = 0; i < job_count(row, "steps"); ++i) {
        const job_object step = job_element(row, "steps", i);
        calls += chunks_of(&step, &tokens, &chunk);
    }
    to->calls = job_room(calls, sizeof(*to->calls));
    to->moving = job_room(calls * MOST_WORDS, sizeof(*to->moving));
    for (size_t i = 0; i < job_count(row, "steps"); ++i) {
        const job_object step = job_element(row, "steps", i);
        scope of = {.parts = parts, .number = number};
        of.own = job_has(&step, "library") ? find_library(parts, job_text(&step, "library")) : NULL;
        chunks_of(&step, &tokens, &chunk);
        for (of.first = 0; of.first < tokens; of.first += chunk) {
            of.tokens = smaller(chunk, tokens - of.first);
            add_call(&of, &step, to);
        }
    }
}

static row_caller *make_callers(const rows_parts *parts, const job_object *row, size_t *count)
{
    const size_t places = job_integer_or(row, "places", 1, 1, MOST);
    *count = job_integer_or(row, "callers", 1, 1, MOST_COPIES);
    row_caller *made = job_room(*count, sizeof(*made));
    for (size_t number = 0; number < *count; ++number) {
        made[number] = (row_caller){.places = places, .place = number % places, .step = *count % places};
        make_caller(parts, row, number, &made[number]);
    }
    return made;
}

const rows_parts *rows_prepare(const timing *of)
{
    const job_object *job = of->job;
    rows_parts *parts = job_room(1, sizeof(*parts));
    parts->buffers = job_room(job_count(job, "memory"), sizeof(*parts->buffers));
    parts->libraries = job_room(job_count(job, "libraries"), sizeof(*parts->libraries));
    for (size_t i = 0; i < job_count(job, "memory"); ++i) {
        const job_object row = job_element(job, "memory", i);
        parts->buffers[i] = make_buffer(&row, of->seed + i);
        ++parts->buffer_count;
    }
    for (size_t i = 0; i < job_count(job, "libraries"); ++i) {
        const job_object row = job_element(job, "libraries", i);
        parts->libraries[i] = load(parts, &row);
        ++parts->library_count;
    }
    for (size_t i = 0; i < job_count(job, "setup"); ++i) {
        const job_object row = job_element(job, "setup", i);
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

void rows_random(float *numbers, size_t count, uint64_t seed, double deviation)
{
    const size_t period = (1 << 20) - 7;
    random_state random = random_seed(seed);
    random_fill(&random, numbers, smaller(count, period), 0.0, deviation);
    for (size_t done = period; done < count; done += period) {
        memcpy(numbers + done, numbers, smaller(period, count - done) * sizeof(float));
    }
}
