/* What surrounds the times: how a job wants them, progress, and the limits of this core. */
#include "harness/measure/timing.h"

#include "harness/base/clock.h"
#include "harness/measure/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void timing_show(const char *format, ...)
{
    if (isatty(STDERR_FILENO)) {
        va_list arguments;
        va_start(arguments, format);
        fputc('\r', stderr);
        vfprintf(stderr, format, arguments);
        fputs("\033[K", stderr);
        va_end(arguments);
    }
}

void timing_note(timing *to, const char *key, const char *value)
{
    json_object_set_new(to->notes, key, json_string(value));
}

void timing_note_number(timing *to, const char *key, double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.9g", value);
    timing_note(to, key, text);
}

void timing_note_implementation(timing *to, const char *name, const char *value)
{
    char key[128];
    snprintf(key, sizeof(key), "implementation/%s", name);
    timing_note(to, key, value);
}

static void add_limits(timing *to)
{
    const job_object object = job_inner(to->job, "sizes");
    const size_t kinds = job_count(&object, "rows"), count = LIMITS_OF_CORE + kinds;
    limits_rows *rows = job_room(kinds, sizeof(*rows));
    limit *found = job_room(count, sizeof(*found));
    for (job_object row = {0}; job_next(&object, "rows", &row);) {
        const size_t bytes = job_integer(&row, "row", 1, 1 << 24);
        rows[row.place] = (limits_rows){job_word(&row, "name"), bytes, job_integer(&row, "table", bytes, (size_t)1 << 44)};
    }
    const limits_sizes sizes = {job_integer(&object, "l1d", 1 << 12, 1 << 26), job_integer(&object, "l2", 1 << 12, 1 << 26),
                                job_integer(&object, "l3", 1 << 12, (size_t)1 << 36), rows, kinds};
    timing_show("measuring the limits of this core");
    if (!limits_measure(&sizes, to->repetitions, found)) {
        job_fail("out of memory for measuring the limits of this core");
    }
    for (size_t i = 0; i < count; ++i) {
        timing_note_number(to, found[i].name, found[i].rate);
    }
}

timing timing_of(const job_object *job)
{
    job_word(job, "model");
    timing made = {.job = job,
                   .start = seconds_now(),
                   .seed = job_integer(job, "seed", 0, INT64_MAX),
                   .threads = job_integer(job, "threads", 1, 1024),
                   .repetitions = job_integer(job, "repetitions", 1, 1000),
                   .min_time = job_number(job, "min_time", 0.001, 60.0),
                   .slices = job_integer(job, "slices", 0, TIMING_SLICES),
                   .draw_order = job_flag(job, "draw_order"),
                   .order_seed = job_integer(job, "order_seed", 0, INT64_MAX),
                   .sweep_bytes = job_integer(job, "sweep_bytes", 0, (size_t)1 << 36),
                   .notes = json_object()};
    if (job_flag(job, "limits")) {
        add_limits(&made);
    }
    return made;
}

void timing_add(timing *to, timed_call call)
{
    for (size_t i = 0; i < to->count; ++i) {
        if (strcmp(to->calls[i].name, call.name) == 0) {
            job_refuse(to->job, "calls", json_string(call.name), "must not repeat a name");
        }
    }
    to->calls = job_more(to->calls, to->count, sizeof(call));
    to->calls[to->count++] = call;
}
