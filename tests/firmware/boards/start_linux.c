/* Start of a program without a C library on Linux: a stack of its own, output and end by system calls. */
#include "tests/firmware/boards/board.h"

#if defined(__aarch64__)
__asm__(".global _start\n_start: adrp x0, board_stack\nadd x0, x0, :lo12:board_stack\nadd x0, x0, 4, lsl 12\nmov sp, x0\nb run");
enum { SYSTEM_WRITE = 64, SYSTEM_EXIT = 93 };
static long system_call(long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}
#elif defined(__riscv)
__asm__(".global _start\n_start: .option push\n.option norelax\nla gp, __global_pointer$\n.option pop\nla sp, board_stack\nli t0, "
        "16384\nadd sp, sp, t0\nj run");
enum { SYSTEM_WRITE = 64, SYSTEM_EXIT = 93 };
static long system_call(long number, long a, long b, long c)
{
    register long a7 __asm__("a7") = number, a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
    return a0;
}
#elif defined(__x86_64__)
__asm__(".global _start\n_start: lea board_stack+16384(%rip), %rsp\ncall run");
enum { SYSTEM_WRITE = 1, SYSTEM_EXIT = 60 };
static long system_call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
#endif

_Static_assert(BOARD_STACK_BYTES == 16384, "is written in the start of each CPU");

void board_write(const char *text)
{
    long bytes = 0;
    while (text[bytes])
        ++bytes;
    system_call(SYSTEM_WRITE, 1, (long)text, bytes);
}

void board_exit(int status)
{
    for (;;)
        system_call(SYSTEM_EXIT, status, 0, 0);
}
