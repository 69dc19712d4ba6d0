/* Ends a process together with the one that started it. */
#ifndef LOOKUPC_HARNESS_BASE_PARENT_H
#define LOOKUPC_HARNESS_BASE_PARENT_H

#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on SIGKILL ends this process as soon as its parent has ended. `parent` is the process that started this one: where that has
   ended already, so does this one, at once. */
void end_with_parent(pid_t parent);

#ifdef __cplusplus
}
#endif

#endif
