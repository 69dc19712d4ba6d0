/* Start of a program on Cortex-M: vectors, FPU, zeroed memory; input, output and end through semihosting; SysTick as a clock. */
#include "tests/firmware/boards/board.h"

#include <stdint.h>

extern unsigned char bss_start[], bss_end[];

static int semihosting(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_write(const char *text)
{
    semihosting(0x04, text); /* SYS_WRITE0 */
}

void board_exit(int status)
{
    const uint32_t reason[2] = {0x20026, (uint32_t)status}; /* ADP_Stopped_ApplicationExit */
    semihosting(0x20, reason);                              /* SYS_EXIT_EXTENDED */
    for (;;)
        ;
}

unsigned board_read(char *text, unsigned bytes)
{
    static const char console[] = ":tt";
    static int handle = 0; /* none is 0 */
    if (handle == 0) {
        const uint32_t open[3] = {(uint32_t)console, 0, sizeof console - 1}; /* for reading */
        handle = semihosting(0x01, open);                                    /* SYS_OPEN */
    }
    const uint32_t read[3] = {(uint32_t)handle, (uint32_t)text, bytes};
    const unsigned missing = handle > 0 ? (unsigned)semihosting(0x06, read) : bytes; /* SYS_READ */
    return missing <= bytes ? bytes - missing : 0;
}

unsigned board_clocks(void)
{
    volatile uint32_t *const systick = (volatile uint32_t *)0xe000e010u; /* control, reload, current: counts down */
    if (!(systick[0] & 1)) {
        systick[1] = 0xffffff;
        systick[2] = 0;
        systick[0] = 5; /* on, the CPU's clock, no interrupt */
    }
    return 0xffffff - systick[2];
}

static void fault(void)
{
    board_write("fault\n");
    board_exit(2);
}

static void reset(void)
{
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20; /* CPACR: coprocessors 10 and 11, FPU and MVE */
    __asm__ volatile("dsb\nisb");
    for (volatile unsigned char *at = bss_start; at < bss_end; ++at)
        if (at < board_stack || at >= board_stack + BOARD_STACK_BYTES) /* in use: `at` may lie there */
            *at = 0;
    run();
    board_exit(0);
}

extern const void *const vectors[16]; /* which the linker script names */
__attribute__((section(".vectors"), used)) const void *const vectors[16] = {
    board_stack + BOARD_STACK_BYTES,
    (const void *)reset,
    (const void *)fault,
    (const void *)fault,
    (const void *)fault,
    (const void *)fault,
    (const void *)fault,
};
