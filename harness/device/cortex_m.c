/* Start of a program on a Cortex-M in QEMU: vectors, FPU, memory; output and end through semihosting; SysTick as a clock. */
#include "harness/device/board.h"

extern unsigned char data_start[], data_end[], bss_start[], bss_end[], stack_end[];
extern const unsigned char data_from[]; /* cortex_m.ld says where all that is */

static void semihosting(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void board_write(const char *text)
{
    semihosting(0x04, text); /* SYS_WRITE0 */
}

void board_exit(int status)
{
    const uint32_t reason[2] = {0x20026, (uint32_t)status}; /* ADP_Stopped_ApplicationExit */
    semihosting(0x20, reason);                              /* SYS_EXIT_EXTENDED */
    for (;;) {
    }
}

uint32_t board_clocks(void)
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
    board_write("error fault: a wrong address or instruction, or the stack is too small\n");
    board_exit(2);
}

static void reset(void)
{
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20; /* CPACR: coprocessors 10 and 11, FPU and MVE */
    __asm__ volatile("dsb\nisb");
    const volatile unsigned char *from = data_from;
    for (volatile unsigned char *at = data_start; at < data_end; ++at) {
        *at = *from++;
    }
    for (volatile unsigned char *at = bss_start; at < bss_end; ++at) {
        *at = 0;
    }
    board_run();
    board_exit(0);
}

extern const void *const vectors[16];
__attribute__((section(".vectors"), used)) const void *const vectors[16] = {
    stack_end, (const void *)reset, (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault,
};
