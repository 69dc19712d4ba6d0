/* Notices that another rank of this machine has died, and says so: MPI would let the others wait until mpirun kills them. */
#ifndef LOOKUPC_TRAIN_MPI_WATCH_H
#define LOOKUPC_TRAIN_MPI_WATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Begins to watch, in a thread; all ranks call it together. SIGTERM stays blocked in that thread. */
bool watch_start(size_t number);

/* What a line that ends the run says last: where to go on from. */
void watch_words(const char *words);

/* This rank is about to end as it should, so the others need not say that it died, and it watches no longer. */
void watch_stop(void);

/* Prints one line, "lookupc: ", `what` and the words, and ends this process, without its temporary files. */
_Noreturn void watch_end(const char *what);

/* Ends what watch_start began; all ranks call it together, after watch_stop. */
void watch_free(void);

#endif
