/* Start of a program on Cortex-M: vectors, FPU, zeroed memory; output and end through semihosting. */
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
        *at = 0;
    run();
    board_exit(0);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    board_stack + BOARD_STACK_BYTES,
    (const void *)reset,
    (const void *)fault,
    (const void *)fault,
    (const void *)fault,
    (const void *)fault,
    (const void *)fault,
};
