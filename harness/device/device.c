/* The program that a device runs: it only counts. Its arguments say which slices of which calls it times and which outputs it compares with
   those of the float64 reference; what follows from the figures is decided by who sent it.

   Each argument is a list of words with commas between them:
     CALL:N     time N calls of that number, one after the other; w behind it: one untimed call before; p: a pause before
     =CHECK     compare the outputs of that check
     @CHECK     print these outputs, too
   Output, a line each: "lookupc-device 1", "cpu NAME VALUE" for each fact, then in the order of the words
     slice CPU WALL WHOLE                seconds of one call, and of the slice with all that belongs to it
     check RELATIVE ABSOLUTE ALL         squares of the largest error of a row and of a value, and of that of all rows together
     y HEXADECIMAL
   and "end" once all is done. What goes wrong is "error TEXT" and exit status 1. */
#include "harness/device/device.h"

#include "harness/base/clock.h"
#include "harness/base/cpu_facts.h"
#include "harness/base/timed_inputs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TAIL = 64, TAIL_BYTE = 0xA5, ALIGNMENT = 64, LARGE = 4 << 20, HUGE_PAGE = 2 << 20, LONGEST_RUN = 3600 /* seconds */ };

static _Noreturn void fail(const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    fputs("error ", stdout);
    vprintf(form, arguments);
    putchar('\n');
    va_end(arguments);
    exit(1);
}

/* Memory with a tail behind it that nobody may write to. Large memory asks for large pages. */
static unsigned char *room(size_t bytes)
{
    const size_t alignment = bytes >= LARGE ? HUGE_PAGE : ALIGNMENT;
    const size_t whole = (bytes + TAIL + alignment - 1) / alignment * alignment;
    unsigned char *memory = aligned_alloc(alignment, whole);
    if (!memory) {
        fail("out of memory for %zu bytes", bytes);
    }
#ifdef MADV_HUGEPAGE
    if (bytes >= LARGE) {
        madvise(memory, whole, MADV_HUGEPAGE); /* advice: without huge pages the memory is as good as any */
    }
#endif
    memset(memory, 0, bytes);
    memset(memory + bytes, TAIL_BYTE, TAIL);
    return memory;
}

static void check_tails(const char *after)
{
    for (const device_memory *m = device.memories; m < device.memories + device.memory_count; ++m) {
        for (size_t i = 0; m->fill != DEVICE_LINKED && i < TAIL; ++i) {
            if (m->memory[m->bytes + i] != TAIL_BYTE) {
                fail("%s: wrote beyond the end of %s", after, m->name);
            }
        }
    }
}

static void fill_skewed(float *numbers, size_t count, size_t width, random_state random)
{
    float *kinds = (float *)(void *)room(INPUTS_KINDS * width * sizeof(*kinds));
    inputs_skewed(numbers, count, width, random, kinds);
    free(kinds);
}

static void make_memories(void)
{
    for (size_t i = 0; i < device.memory_count; ++i) {
        device_memory *m = &device.memories[i];
        const random_state random = random_seed(device.seed + i);
        if (m->fill == DEVICE_LINKED) {
            m->memory = (unsigned char *)(uintptr_t)m->from; /* nobody writes there */
            continue;
        }
        m->memory = room(m->bytes);
        float *const numbers = (float *)(void *)m->memory;
        switch (m->fill) {
        case DEVICE_NORMAL: inputs_normal(numbers, m->bytes / sizeof(float), random, 1.0); break;
        case DEVICE_SKEWED: fill_skewed(numbers, m->bytes / sizeof(float), m->number, random); break;
        case DEVICE_UNITS: inputs_units((int16_t *)(void *)m->memory, m->bytes / sizeof(int16_t), random); break;
        case DEVICE_IDS: inputs_ids((int32_t *)(void *)m->memory, m->bytes / sizeof(int32_t), random, m->number); break;
        case DEVICE_SIZES: memcpy(m->memory, m->from, m->bytes); break;
        default: break;
        }
    }
}

/* A blob where library number `i` finds it: large ones in large pages, once for all. */
static const unsigned char *blob_of(size_t i)
{
    const device_library *own = &device.libraries[i];
    const size_t bytes = (size_t)(own->blob_end - own->blob);
    for (const device_library *other = device.libraries; other < own; ++other) {
        if (other->blob == own->blob && other->bound) {
            return other->bound;
        }
    }
    return bytes < LARGE ? own->blob : memcpy(room(bytes), own->blob, bytes);
}

static void bind_libraries(void)
{
    for (size_t i = 0; i < device.library_count; ++i) {
        device_library *own = &device.libraries[i];
        own->bound = blob_of(i);
        if (own->weights_of != i) {
            own->weights = device.libraries[own->weights_of].weights;
            continue;
        }
        own->weights = room(own->weights_bytes);
        const int code = own->bind(own->bound, (size_t)(own->blob_end - own->blob), own->weights);
        if (code != 0) {
            fail("%s: bind refuses the blob with code %d", own->name, code);
        }
    }
}

static void must_run(device_call *call)
{
    if (!device_run(call)) {
        fail("%s: the library reports an error", call->name);
    }
}

/* Reads memory that is larger than all caches: that leaves nothing else in them. */
static void sweep_caches(void)
{
    static uint64_t *memory;
    uint64_t sum = 0;
    if (!memory) {
        memory = (uint64_t *)(void *)room(device.sweep_bytes);
        memset(memory, 1, device.sweep_bytes); /* pages that were never written are all the same page of zeros */
    }
    for (size_t i = 0; i < device.sweep_bytes / sizeof(*memory); i += ALIGNMENT / sizeof(*memory)) {
        sum += memory[i];
    }
    __asm__ volatile("" : : "r"(sum)); /* so that it has to be read */
}

static void time_slice(device_call *call, unsigned long calls, bool warm, bool pause)
{
    double cpu_sum = 0.0, wall_sum = 0.0;
    const double start = seconds_now();
    if (pause) {
        nanosleep(&(struct timespec){0, 500000}, NULL);
    }
    if (warm) {
        must_run(call);
    }
    const unsigned long together = call->cold ? 1 : calls;
    for (unsigned long done = 0; done < calls; done += together) {
        if (call->cold) {
            sweep_caches();
        }
        const double cpu = thread_seconds_now(), wall = seconds_now();
        for (unsigned long i = 0; i < together; ++i) {
            must_run(call);
        }
        wall_sum += seconds_now() - wall;
        cpu_sum += thread_seconds_now() - cpu;
    }
    printf("slice %.9e %.9e %.9e\n", cpu_sum / (double)calls, wall_sum / (double)calls, seconds_now() - start);
}

static void compare(device_check *check, bool show)
{
    for (device_memory *m = device.memories; m < device.memories + device.memory_count; ++m) {
        if (m->fill == DEVICE_FRESH) {
            memset(m->memory, 0xFF, m->bytes);
        }
    }
    must_run(&check->call);
    check_tails(check->call.name);
    const device_errors off = device_compare(check);
    printf("check %.17g %.17g %.17g\n", off.relative, off.absolute, off.all);
    if (show) {
        fputs("y ", stdout);
        const float *y = (const float *)(const void *)device.memories[check->y].memory;
        for (size_t i = 0; i < check->tokens * check->width; ++i) {
            uint32_t bits;
            memcpy(&bits, &y[i], sizeof(bits));
            printf("%08" PRIx32, bits);
        }
        putchar('\n');
    }
}

static void print_facts(void)
{
    const cpu_facts facts = cpu_facts_read();
    cpu_number numbers[CPU_NUMBERS];
    cpu_facts_numbers(&facts, numbers);
    printf("cpu architecture %s\ncpu model %s\ncpu vendor %s\ncpu virtual %d\n", facts.architecture, facts.model, facts.vendor,
           facts.virtual);
    for (size_t i = 0; i < CPU_NUMBERS; ++i) {
        if (numbers[i].known) {
            printf("cpu %s %" PRId64 "\n", numbers[i].name, numbers[i].number);
        }
    }
    fflush(stdout); /* known even if a call ends this program */
}

/* Does what the words of an argument say. */
static void follow(const char *at)
{
    while (*at != '\0') {
        char *end = NULL;
        const char kind = *at == '=' || *at == '@' ? *at++ : ':';
        const unsigned long number = strtoul(at, &end, 10);
        if (number >= (kind == ':' ? device.call_count : device.check_count)) {
            fail("%lu: there is no such %s", number, kind == ':' ? "call" : "check");
        }
        if (kind != ':') {
            compare(&device.checks[number], kind == '@');
        } else {
            const unsigned long calls = *end == ':' ? strtoul(end + 1, &end, 10) : 0;
            const bool warm = *end == 'w', pause = end[warm] == 'p';
            if (calls == 0) {
                fail("%s: must be CALL:N", at);
            }
            end += warm + pause;
            time_slice(&device.calls[number], calls, warm, pause);
        }
        if (*end != ',' && *end != '\0') {
            fail("%s: must be words with commas between them", end);
        }
        at = *end == ',' ? end + 1 : end;
    }
}

int main(int count, char **arguments)
{
    alarm(LONGEST_RUN); /* who waits may be gone, and what was called may hang */
    puts("lookupc-device 1");
    print_facts();
    if (count > 1) {
        make_memories();
        bind_libraries();
        if (!device_prepare()) {
            fail("the first calls: the library reports an error");
        }
    }
    for (int i = 1; i < count; ++i) {
        follow(arguments[i]);
    }
    if (count > 1) {
        check_tails("the calls");
    }
    puts("end");
    return fflush(stdout) == 0 ? 0 : 1;
}
