/* The memory of a job, made, touched and filled before anything is timed. */
#include "harness/measure/buffers.h"

#include "gen/weights/random.h"
#include "harness/base/blob_memory.h"
#include "harness/base/memory.h"

#include <math.h>
#include <string.h>

#define MOST_BYTES ((size_t)1 << 44)

typedef struct buffer {
    const char *name;
    size_t bytes, count;
    void **copies; /* [count] */
} buffer;

struct buffers {
    buffer *list; /* [count] */
    size_t count;
};

void buffers_random(float *numbers, size_t count, uint64_t seed, double deviation)
{
    const size_t period = (1 << 20) - 7;
    random_state random = random_seed(seed);
    random_fill(&random, numbers, smaller(count, period), 0.0, deviation);
    for (size_t done = period; done < count; done += period) {
        memcpy(numbers + done, numbers, smaller(period, count - done) * sizeof(float));
    }
}

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
        buffers_random(memory, bytes / sizeof(float), seed, 1.0);
    } else if (strcmp(word, "skewed") == 0) {
        fill_skewed(memory, bytes / sizeof(float), job_integer(row, "width", 1, MOST_BYTES), random);
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
    const size_t bytes = job_integer(row, "bytes", 0, MOST_BYTES), count = job_integer_or(row, "copies", 1, 1, 1024);
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

const buffers *buffers_make(const job_object *job, uint64_t seed)
{
    buffers *made = job_room(1, sizeof(*made));
    made->list = job_room(job_count(job, "memory"), sizeof(*made->list));
    for (job_object row = {0}; job_next(job, "memory", &row); ++made->count) {
        made->list[row.place] = make_buffer(&row, seed + row.place);
    }
    return made;
}

static const buffer *find_buffer(const buffers *of, const char *name)
{
    for (size_t i = 0; i < of->count; ++i) {
        if (strcmp(of->list[i].name, name) == 0) {
            return &of->list[i];
        }
    }
    job_fail("%s: there is no such memory", name);
}

void *buffers_copy(const buffers *of, const char *name, size_t caller)
{
    const buffer *found = find_buffer(of, name);
    return found->copies[caller % found->count];
}

size_t buffers_bytes(const buffers *of, const char *name)
{
    return find_buffer(of, name)->bytes;
}
