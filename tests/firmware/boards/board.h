/* What start-up code gives to run.c: a stack whose bounds are known, output, an end. */
#ifndef BOARD_H_INCLUDED
#define BOARD_H_INCLUDED

enum { BOARD_STACK_BYTES = 16384 };
extern unsigned char board_stack[BOARD_STACK_BYTES]; /* the stack pointer starts at its end */

void board_write(const char *text); /* ends with NUL */
void board_exit(int status);

void run(void); /* what start-up code calls */

#endif
