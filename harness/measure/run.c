/* Times calls: those of the same kind in slices of a few milliseconds that take turns, so that whatever else goes on meets all of them
   alike.

   A repetition of a call is one slice or several; then its time is their lower quartile. Slices of all calls of a kind rotate: forward,
   backward, forward … One of several in which the core was taken by other work, so that its CPU time is short of the wall time, is timed
   again, once. */
#include "gen/weights/random.h"
#include "harness/base/clock.h"
#include "harness/measure/quartile.h"
#include "harness/measure/timing.h"

#include <stdio.h>
#include <string.h>

static const double own_share = 0.97; /* of wall time: less, and other work had the core */
static const double long_call = 0.5;  /* seconds: such a call meets all that others do by itself */
enum { LONG_REPETITIONS = 3 };
enum { MANY_CALLS = 16 }; /* in a slice of so many, of several, an untimed call before them costs little */

typedef struct times {
    double cpu, wall; /* seconds of a call */
} times;

/* A call, and what each slice of a repetition took. */
typedef struct member {
    const timed_call *call;
    double cpu[TIMING_SLICES], wall[TIMING_SLICES];
} member;

/* The calls of one kind that a repetition times, and how. */
typedef struct kind {
    const char *name;
    member *members; /* [count] */
    size_t *order;   /* [count], of the members */
    size_t count, slices, calls_of_slice;
    size_t repetitions; /* that are left */
} kind;

typedef struct slicer {
    const timing *of;
    random_state random;
    uint64_t *sweep; /* memory that is larger than all caches: reading it leaves nothing else in them */
    const char *failed;
} slicer;

static void sweep_caches(const slicer *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->of->sweep_bytes / sizeof(*s->sweep); i += 64 / sizeof(*s->sweep)) {
        sum += s->sweep[i];
    }
    __asm__ volatile("" : : "r"(sum)); /* so that it has to be read */
}

/* CPU time of all threads that the call has. */
static double cpu_now(const timed_call *call)
{
    if (call->threads == 1) {
        return thread_seconds_now();
    }
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Lets all callers call at a time; whether all calls went well. */
static bool run_call(const timed_call *call)
{
    if (call->callers == 1) {
        return call->run(call->self, 0);
    }
    bool good = true;
#pragma omp parallel for num_threads((int)call->callers) schedule(static, 1) reduction(&& : good)
    for (size_t caller = 0; caller < call->callers; ++caller) {
        good = call->run(call->self, caller) && good;
    }
    return good;
}

static times timed(slicer *s, const timed_call *call, size_t calls)
{
    bool good = true;
    times sum = {0.0, 0.0};
    if (!call->cold && calls >= (s->of->slices > 0 ? MANY_CALLS : 2)) {
        good &= run_call(call); /* brings weights and code into the caches that others used meanwhile */
    }
    const size_t together = call->cold ? 1 : calls;
    for (size_t done = 0; done < calls; done += together) {
        if (call->cold) {
            sweep_caches(s);
        }
        const double cpu = cpu_now(call), wall = seconds_now();
        for (size_t i = 0; i < together; ++i) {
            good &= run_call(call);
        }
        sum.wall += seconds_now() - wall;
        sum.cpu += cpu_now(call) - cpu;
    }
    if (!good && !s->failed) {
        s->failed = call->name;
    }
    return (times){sum.cpu / (double)calls, sum.wall / (double)calls};
}

/* One slice; if the core was taken, once more: after a pause other work lets us run at once. */
static times calm(slicer *s, const timed_call *call, size_t calls)
{
    const times first = timed(s, call, calls);
    if (call->threads > 1 || first.cpu >= own_share * first.wall) {
        return first;
    }
    nanosleep(&(struct timespec){0, 500000}, NULL);
    const times second = timed(s, call, calls);
    return second.cpu * first.wall >= first.cpu * second.wall ? second : first;
}

/* An integer from `least` to `most` near a number that is not negative. */
static size_t rounded(double number, size_t least, size_t most)
{
    const size_t near = (size_t)(number + 0.5);
    return near < least ? least : near > most ? most : near;
}

/* Slices of about the seconds that the job says: fewer where a call takes longer, and few repetitions of very long ones. */
static void plan(slicer *s, kind *one)
{
    const timed_call *first = one->members->call;
    const double least = s->of->min_time;
    double start = seconds_now();
    timed(s, first, 1);
    const double alone = seconds_now() - start;
    one->slices = one->calls_of_slice = 1;
    one->repetitions = s->of->slices == 0 && alone >= long_call ? LONG_REPETITIONS : SIZE_MAX;
    if (alone >= least) {
        return;
    }
    start = seconds_now();
    size_t made = 0;
    for (size_t more = 1; seconds_now() - start < least / 8; more *= 2) {
        timed(s, first, more);
        made += more;
    }
    const double calls = least / (seconds_now() - start) * (double)made;
    one->slices = rounded(calls, 1, s->of->slices > 1 ? s->of->slices : 1);
    one->calls_of_slice = rounded(calls / (double)one->slices, 1, SIZE_MAX);
}

/* Draws an order if the job wants it. */
static void shuffle(slicer *s, size_t *order, size_t count)
{
    for (size_t left = count; s->of->draw_order && left > 1; --left) {
        const size_t other = random_bits(&s->random) % left, last = order[left - 1];
        order[left - 1] = order[other];
        order[other] = last;
    }
}

/* Adds the times of one repetition of a kind to the samples. */
static void repeat(slicer *s, const kind *one, json_t *samples)
{
    for (size_t i = 0; i < one->count; ++i) {
        one->order[i] = i;
    }
    shuffle(s, one->order, one->count);
    for (size_t slice = 0; slice < one->slices; ++slice) {
        for (size_t place = 0; place < one->count; ++place) {
            member *m = &one->members[one->order[slice % 2 == 0 ? place : one->count - 1 - place]];
            const times found = one->slices > 1 ? calm(s, m->call, one->calls_of_slice) : timed(s, m->call, one->calls_of_slice);
            m->cpu[slice] = found.cpu;
            m->wall[slice] = found.wall;
        }
    }
    for (member *m = one->members; m < one->members + one->count; ++m) {
        const double cpu = measure_lower_quartile(m->cpu, one->slices), wall = measure_lower_quartile(m->wall, one->slices);
        json_array_append_new(samples, json_pack("{s:s, s:f, s:f}", "name", m->call->name, "cpu_us", 1e6 * cpu, "wall_us", 1e6 * wall));
    }
}

/* The kinds of all calls, in the order of their first ones; how many they are becomes *count. */
static kind *sort_calls(const timing *of, size_t *count)
{
    kind *kinds = job_room(of->count, sizeof(*kinds));
    *count = 0;
    for (size_t i = 0; i < of->count; ++i) {
        const char *name = of->calls[i].alike ? of->calls[i].alike : of->calls[i].name;
        kind *one = kinds;
        while (one < kinds + *count && strcmp(one->name, name) != 0) {
            ++one;
        }
        *count += one == kinds + *count;
        one->name = name;
        one->members = job_more(one->members, one->count, sizeof(*one->members));
        one->members[one->count++].call = &of->calls[i];
    }
    for (kind *one = kinds; one < kinds + *count; ++one) {
        one->order = job_room(one->count, sizeof(*one->order));
    }
    return kinds;
}

static void write_output(timing *of, double seconds, json_t *samples, const char *out)
{
    char text[32];
    snprintf(text, sizeof(text), "%f", seconds);
    timing_note(of, "timed_seconds", text);
    snprintf(text, sizeof(text), "%f", seconds_now() - of->start);
    timing_note(of, "whole_seconds", text);
    json_t *root = json_pack("{s:o, s:o}", "context", of->notes, "samples", samples);
    if (!root || json_dump_file(root, out, JSON_COMPACT) != 0) {
        job_fail("%s: could not be written", out);
    }
}

void timing_run(timing *of, const char *out)
{
    slicer s = {.of = of, .random = random_seed(of->order_seed)};
    size_t count, done = 0;
    kind *kinds = sort_calls(of, &count);
    size_t *order = job_room(count, sizeof(*order));
    for (size_t i = 0; i < of->count; ++i) {
        if (of->calls[i].cold && !s.sweep) {
            s.sweep = job_room(of->sweep_bytes, 1);
            memset(s.sweep, 1, of->sweep_bytes); /* pages that were never written are all the same page of zeros */
        }
    }
    for (kind *one = kinds; one < kinds + count; ++one) {
        plan(&s, one);
    }
    json_t *samples = json_array();
    const double start = seconds_now();
    for (size_t repetition = 0; repetition < of->repetitions; ++repetition) {
        size_t now = 0; /* kinds of this repetition */
        for (size_t i = 0; i < count; ++i) {
            const timed_call *first = kinds[i].members->call;
            if (repetition % first->turns == first->turn && kinds[i].repetitions > 0) {
                --kinds[i].repetitions;
                order[now++] = i;
            }
        }
        shuffle(&s, order, now);
        for (size_t i = 0; i < now; ++i) {
            timing_show("measuring %zu/%zu %s", ++done, count * of->repetitions, kinds[order[i]].members->call->name);
            repeat(&s, &kinds[order[i]], samples);
        }
    }
    timing_show("%s", "");
    if (s.failed) {
        job_fail("%s: the library reports an error", s.failed);
    }
    write_output(of, seconds_now() - start, samples, out);
}
