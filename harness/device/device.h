/* What a program of a device holds: tables that harness/device/program.lua prints from a job of measure.run
   (harness/measure/prepare.lua), with the steps, memories and libraries by their numbers. */
#ifndef LOOKUPC_HARNESS_DEVICE_H
#define LOOKUPC_HARNESS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEVICE_WORDS = 8 };

/* What a step calls. A function that does not take so many words gets some that it does not look at. */
typedef uintptr_t device_function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

/* FRESH memory belongs to calls: zeros, and 0xFF before each check. LINKED: `from` is the memory. */
typedef struct {
    const char *name;
    size_t bytes;
    enum { DEVICE_FRESH, DEVICE_NORMAL, DEVICE_SKEWED, DEVICE_UNITS, DEVICE_IDS, DEVICE_SIZES, DEVICE_LINKED } fill;
    size_t number; /* of values of tokens that are skewed, or of ids that there are */
    const void *from;
    unsigned char *memory; /* while it runs */
} device_memory;

/* A candidate: its blob from `blob` to `blob_end`. */
typedef struct {
    const char *name;
    int (*bind)(const void *, size_t, void *);
    const unsigned char *blob, *blob_end;
    size_t weights_bytes;
    size_t weights_of;          /* the number of the library whose weights it has, its own: its own */
    const unsigned char *bound; /* while it runs: the blob where it was bound */
    void *weights;              /* likewise */
} device_library;

typedef struct {
    enum { DEVICE_NUMBER, DEVICE_MEMORY, DEVICE_WEIGHTS, DEVICE_BLOB } kind;
    size_t of;    /* the number, or that of the memory */
    size_t at;    /* bytes behind the beginning of the memory */
    size_t place; /* bytes from place to place */
    bool value;   /* the int32 there, instead of its address */
} device_argument;

typedef struct {
    device_function *called;
    size_t library;
    bool status; /* whether it returns one, 0 for success */
    size_t count;
    device_argument arguments[DEVICE_WORDS];
    uintptr_t words[DEVICE_WORDS]; /* while it runs */
} device_step;

typedef struct {
    const char *name;
    size_t places;
    bool cold; /* called with nothing of what it reads in the caches */
    device_step *steps;
    size_t count;
    size_t place; /* while it runs */
} device_call;

/* A call whose outputs y, float32 [tokens][width], are compared with float64 `expected` [period][width], over and over; period 0: with
   nothing, and they may be any words. A row of what is expected that begins with NaN says nothing. */
typedef struct {
    device_call call;
    size_t y, expected; /* memories */
    size_t tokens, width, period;
} device_check;

typedef struct {
    uint64_t seed;
    size_t sweep_bytes; /* to be read to empty the caches */
    device_memory *memories;
    device_library *libraries;
    device_call *setups; /* called once, before all others */
    device_call *calls;
    device_check *checks;
    size_t memory_count, library_count, setup_count, call_count, check_count;
} device_job;

extern device_job device; /* the printed one */

/* What a board does, in order: so many calls of call `number`, or, where they are 0, check `number`. */
typedef struct {
    size_t number, calls;
    bool warm, show;
} device_word;

extern const device_word device_words[];
extern const size_t device_word_count;

/* Finds what the arguments of all calls stand for, once memories and libraries are there, and makes the first ones; false: a function
   reports an error. */
bool device_prepare(void);

/* One call, at the next of its places; false: a function reports an error. */
bool device_run(device_call *call);

/* A function for steps: copies `bytes` from one memory to another. */
uintptr_t device_copy(uintptr_t to, uintptr_t from, uintptr_t bytes);

/* Squares of the largest relative error of a row, of the largest one of a value, of the relative one of all rows together. */
typedef struct {
    double relative, absolute, all;
} device_errors;

/* Of a check whose call has run. */
device_errors device_compare(const device_check *check);

#endif
