/* The program of a board without an operating system: what device.c does, but the words that say what are linked in with it, and it counts
   clocks. Memory is there from the beginning.

   Output, a line each, numbers in hexadecimal: "lookupc-device 1", then in the order of the words
     clocks N             clocks of all calls of a slice
     check A B C          as of device.c, the bits of doubles
     y WORDS
   and "end" once all is done. What goes wrong is "error TEXT" and exit status 1. */
#include "harness/device/board.h"

#include "gen/weights/random.h"
#include "harness/device/device.h"

static const uint32_t clock_mask = 0xFFFFFF;

static _Noreturn void fail(const char *what, const char *why)
{
    board_write("error ");
    board_write(what);
    board_write(why);
    board_write("\n");
    board_exit(1);
    for (;;) {
    }
}

static void write_bits(uint64_t bits, unsigned digits)
{
    char text[17];
    for (unsigned i = digits; i > 0; --i) {
        text[i - 1] = "0123456789abcdef"[bits & 15];
        bits >>= 4;
    }
    text[digits] = '\0';
    board_write(text);
}

static void write_double(double value)
{
    union {
        double value;
        uint64_t bits;
    } both = {value};
    board_write(" ");
    write_bits(both.bits, 16);
}

/* Bytes one by one: there may be no library that has memset. */
static void fill(unsigned char *memory, size_t bytes, unsigned char value)
{
    for (volatile unsigned char *at = memory; at < memory + bytes; ++at) {
        *at = value;
    }
}

static void make_memories(void)
{
    for (size_t i = 0; i < device.memory_count; ++i) {
        device_memory *m = &device.memories[i];
        if (m->fill == DEVICE_NORMAL) {
            random_state random = random_seed(device.seed + i);
            random_fill(&random, (float *)(void *)m->memory, m->bytes / sizeof(float), 0.0, 1.0);
        }
    }
}

static void bind_libraries(void)
{
    for (size_t i = 0; i < device.library_count; ++i) {
        device_library *own = &device.libraries[i];
        own->bound = own->blob;
        if (own->weights_of != i) {
            own->weights = device.libraries[own->weights_of].weights;
        } else if (own->bind(own->blob, (size_t)(own->blob_end - own->blob), own->weights) != 0) {
            fail(own->name, ": bind refuses the blob");
        }
    }
}

static void time_slice(device_call *call, size_t calls, bool warm)
{
    uint64_t sum = 0;
    bool good = !warm || device_run(call);
    for (size_t i = 0; i < calls; ++i) {
        const uint32_t start = board_clocks();
        good &= device_run(call);
        sum += (board_clocks() - start) & clock_mask;
    }
    if (!good) {
        fail(call->name, ": the library reports an error");
    }
    board_write("clocks ");
    write_bits(sum, 16);
    board_write("\n");
}

static void compare(device_check *check, bool show)
{
    for (device_memory *m = device.memories; m < device.memories + device.memory_count; ++m) {
        if (m->fill == DEVICE_FRESH) {
            fill(m->memory, m->bytes, 0xFF);
        }
    }
    if (!device_run(&check->call)) {
        fail(check->call.name, ": the library reports an error");
    }
    const device_errors off = device_compare(check);
    board_write("check");
    write_double(off.relative);
    write_double(off.absolute);
    write_double(off.all);
    board_write("\n");
    if (show) {
        const uint32_t *y = (const uint32_t *)(const void *)device.memories[check->y].memory;
        board_write("y ");
        for (size_t i = 0; i < check->tokens * check->width; ++i) {
            write_bits(y[i], 8);
        }
        board_write("\n");
    }
}

void board_run(void)
{
    board_write("lookupc-device 1\n");
    make_memories();
    bind_libraries();
    if (!device_prepare()) {
        fail("the first calls", ": the library reports an error");
    }
    for (const device_word *word = device_words; word < device_words + device_word_count; ++word) {
        if (word->calls > 0) {
            time_slice(&device.calls[word->number], word->calls, word->warm);
        } else {
            compare(&device.checks[word->number], word->show);
        }
    }
    board_write("end\n");
    board_exit(0);
}
