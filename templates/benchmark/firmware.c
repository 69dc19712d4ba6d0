//$ takes calls, rows, input, output, exact, ids, memory, most, results, several, most_sequences, width, width_out
//$ local counter = names.macro("BENCHMARK")
//$ local own = model .. "_benchmark"
#include "$(names.header)"

#include <stdint.h>

/* Counts the cycles of the calls of $(model) and prints a line for each. Link it with the sources of src/, alone: it has main().

   Three functions do what differs from board to board. Each is another one where its macro names it, as in
   -D$(counter)_PRINT=uart_text: void START(void) lets a counter begin at 0, uint32_t READ(void) returns how far it is, UINT32_MAX where
   it was too small, and void PRINT(const char *text) prints a text that ends with "\n" or goes on. */

#ifdef $(counter)_PRINT
void $(counter)_PRINT(const char *text);
#else
#include <stdio.h>
#define $(counter)_PRINT $(own)_print
static void $(own)_print(const char *text)
{
    fputs(text, stdout);
}
#endif

#ifdef $(counter)_START
void $(counter)_START(void);
uint32_t $(counter)_READ(void);
#define $(counter)_UNIT "counts"
#else
#define $(counter)_START $(own)_start
#define $(counter)_READ $(own)_read

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
/* Cortex-M: CYCCNT of the DWT where the CPU has it; else SysTick, of 24 bits, which must be free. */
#define $(counter)_UNIT "cycles"
#define $(counter)_AT(address) (*(volatile uint32_t *) (uintptr_t) (address))
#define $(counter)_CYCCNT $(counter)_AT(0xe0001004u)
#define $(counter)_SYST_CSR $(counter)_AT(0xe000e010u)
#define $(counter)_SYST_CVR $(counter)_AT(0xe000e018u)
static int $(own)_counts; /* whether CYCCNT counts */

static void $(own)_start(void)
{
#if __ARM_ARCH_ISA_THUMB > 1 /* not ARMv6-M and the baseline of ARMv8-M: they have none */
    $(counter)_AT(0xe000edfcu) |= 1u << 24; /* DEMCR: TRCENA */
    $(counter)_AT(0xe0001000u) |= 1u;       /* DWT_CTRL: CYCCNTENA */
    $(own)_counts = ($(counter)_AT(0xe0001000u) & 1u) != 0;
#endif
    if ($(own)_counts) {
        $(counter)_CYCCNT = 0;
    } else {
        $(counter)_AT(0xe000e014u) = 0xffffffu; /* SYST_RVR, from which it counts down */
        $(counter)_SYST_CVR = 0;
        $(counter)_SYST_CSR = 5; /* on, by the clock of the CPU */
    }
}

static uint32_t $(own)_read(void)
{
    uint32_t left;

    if ($(own)_counts)
        return $(counter)_CYCCNT;
    left = $(counter)_SYST_CVR;
    return ($(counter)_SYST_CSR & (1u << 16)) != 0 ? UINT32_MAX : 0xffffffu - left; /* COUNTFLAG: it was at 0 */
}
#elif defined(__riscv)
/* RISC-V in machine mode: mcycle, or the lower half of it. */
#define $(counter)_UNIT "cycles"
static uint32_t $(own)_begin;

static uint32_t $(own)_cycles(void)
{
    uintptr_t cycles;

    __asm__ volatile("csrr %0, mcycle" : "=r"(cycles));
    return (uint32_t) cycles;
}

static void $(own)_start(void)
{
    $(own)_begin = $(own)_cycles();
}

static uint32_t $(own)_read(void)
{
    return $(own)_cycles() - $(own)_begin;
}
#else
/* Other CPUs: ticks of clock(). */
#include <time.h>
#define $(counter)_UNIT "ticks"
static clock_t $(own)_begin;

static void $(own)_start(void)
{
    $(own)_begin = clock();
}

static uint32_t $(own)_read(void)
{
    return (uint32_t) (clock() - $(own)_begin);
}
#endif
#endif

//$ if memory then
static unsigned char $(memory)[$(names.macro(memory:upper() .. "_BYTES"))] __attribute__((aligned($(names.macro("ALIGN")))));
//$ end
static unsigned char scratch[$(names.macro("SCRATCH_BYTES"))] __attribute__((aligned($(names.macro("ALIGN")))));
static $(names.weights) weights;
static int32_t ids[$(most)]; //$ if ids
static $(input) x[$(times(most, width))]; //$ if not ids
static $(output) y[$(times(results, width_out))];
static size_t offsets[$(most_sequences) + 1]; //$ if several

/* Draws inputs. */
static void $(own)_draw(uint32_t seed)
{
//$ local list = ids and "ids" or "x"
    for (size_t i = 0; i < sizeof $(list) / sizeof $(list)[0]; ++i) {
        seed = seed * 1664525u + 1013904223u;
//$ if ids then
        ids[i] = (int32_t) ((seed >> 8) % $(names.macro("VOCAB")));
//$ elseif exact then
        x[i] = ($(input)) ((int32_t) (seed >> 16) - 32768);
//$ else
        x[i] = (float) ((int32_t) (seed >> 16) - 32768) / 16384.0f;
//$ end
    }
}
//$ local function runs(call) return own .. call.name:sub(#model + 1) end
//$ for _, call in ipairs(calls) do
//$ local several_here = call.sequences ~= nil

static int $(runs(call))(size_t tokens$(several_here and ", size_t sequences" or ""))
{
//$ if several_here then
    for (size_t i = 0; i <= sequences; ++i)
        offsets[i] = tokens * i / sequences;
//$ end
    $(call.start)($(memory)); //$ if call.start
//$ if call.one_by_one then
    for (size_t i = 0; i < tokens; ++i) {
        const int status = $(call.name)($(call.firmware));
        if (status != $(names.macro("OK")))
            return status;
    }
    return $(names.macro("OK"));
//$ elseif call.status then
    return $(call.name)($(call.firmware));
//$ else
    $(call.name)($(call.firmware));
    return $(names.macro("OK"));
//$ end
}
//$ end

static void $(own)_print_number(uint32_t number)
{
    char text[11];
    unsigned at = sizeof text;

    text[--at] = '\0';
    do {
        text[--at] = (char) ('0' + number % 10u);
        number /= 10u;
    } while (number != 0);
    $(counter)_PRINT(text + at);
}

/* Prints what the fastest and the slowest of four calls took. */
static void $(own)_print_row(const char *name, uint32_t tokens, uint32_t least, uint32_t most)
{
    $(counter)_PRINT(name);
    $(counter)_PRINT(" ");
    $(own)_print_number(tokens);
    $(counter)_PRINT(" ");
    $(own)_print_number(least);
    $(counter)_PRINT(" ");
    $(own)_print_number(most);
    $(counter)_PRINT("\n");
}

int main(void)
{
    uint32_t least, most, cycles;
    int status = $(names.bind_linked)(&weights);

    if (status != $(names.macro("OK"))) {
        $(counter)_PRINT("$(own): the weights are damaged\n");
        return 1;
    }
    $(counter)_PRINT("call tokens least most, in " $(counter)_UNIT "\n");
//$ for _, row in ipairs(rows) do

    least = UINT32_MAX;
    most = 0;
    for (uint32_t turn = 0; turn < 4; ++turn) {
        $(own)_draw(turn);
        $(counter)_START();
        status |= $(runs(row.call))($(row.tokens)$(row.call.sequences and ", " .. row.sequences or ""));
        cycles = $(counter)_READ();
        least = cycles < least ? cycles : least;
        most = cycles > most ? cycles : most;
    }
    $(own)_print_row("$(row.call.name)", $(row.tokens), least, most);
//$ end
    if (status != $(names.macro("OK")))
        $(counter)_PRINT("$(own): a call fails\n");
    return status == $(names.macro("OK")) ? 0 : 1;
}
