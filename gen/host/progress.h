/* The progress of a long job: a bar on a terminal, and whether somebody wants it to end. */
#ifndef LOOKUPC_GEN_PROGRESS_H
#define LOOKUPC_GEN_PROGRESS_H

#include <stdbool.h>

typedef struct {
    double total, done; /* in any unit of work */
    const char *label;  /* what is being done, such as "layer 3 of 32"; may change at any time */
    int percent;        /* last shown, -1 for none */
} progress;

/* Starts a job of `total` work. */
progress progress_start(double total);

/* Adds work that is done. Returns false if SIGINT, SIGTERM or SIGHUP waits, blocked as by files_create and not ignored: the caller gives
   up, discards its files, and the signal then takes its effect. NULL is allowed. */
bool progress_add(progress *p, double work);

/* Removes the bar. */
void progress_end(progress *p);

/* Whether a signal waits that nobody ignores, such as nohup's SIGHUP: somebody wants the program to end. */
bool progress_interrupted(void);

#endif
