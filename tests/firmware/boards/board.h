/* What start-up code gives to a program: a stack whose bounds are known, output, an end; on Cortex-M also input and a clock. */
#ifndef BOARD_H_INCLUDED
#define BOARD_H_INCLUDED

enum { BOARD_STACK_BYTES = 16384 };
extern unsigned char board_stack[BOARD_STACK_BYTES]; /* the stack pointer starts at its end */

void board_write(const char *text); /* ends with NUL */
void board_exit(int status);

/* text[bytes] <- the next of standard input, or fewer; returns how many, 0 at its end. Cortex-M only. */
unsigned board_read(char *text, unsigned bytes);

/* Clocks of the CPU, modulo 2^24. Cortex-M only. */
unsigned board_clocks(void);

void run(void); /* what start-up code calls */

#endif
