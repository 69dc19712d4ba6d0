/* Calls in a process of their own, which may crash. */
#ifndef LOOKUPC_HARNESS_BASE_CHILD_H
#define LOOKUPC_HARNESS_BASE_CHILD_H

#include <stddef.h>
#include <sys/types.h>

/* Forks. In the child, where this returns 0, interrupts end the process as they would any, and it ends with its parent and after that many
   seconds; it leaves with _exit. Negative: there is no child. */
pid_t child_start(unsigned seconds);

/* Waits for the child that child_start returned. Where there is none, or a signal ended it, `error` says so of `name`. */
void child_wait(pid_t child, const char *name, char *error, size_t error_size);

#endif
