/* What a board's start-up code gives to the program of a device, beside a stack: output, an end, a clock. It calls board_run. */
#ifndef LOOKUPC_HARNESS_BOARD_H
#define LOOKUPC_HARNESS_BOARD_H

#include <stdint.h>

void board_write(const char *text); /* ends with NUL */
void board_exit(int status);

/* Clocks of the CPU, modulo 2^24. A call may take no more. */
uint32_t board_clocks(void);

void board_run(void);

#endif
