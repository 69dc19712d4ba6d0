/* For a "did you mean": the name that is most like a missing one. */
#ifndef LOOKUPC_WEIGHTS_NEAREST_H
#define LOOKUPC_WEIGHTS_NEAREST_H

#include <stddef.h>

/* A search; starts with `wanted` alone. */
typedef struct {
    const char *wanted;
    const char *name; /* the best one so far, NULL for none; lives as long as whoever offered it */
    size_t distance;
} nearest;

/* Keeps `name` if it is nearer than all before it. Near are, in this order, a name that differs by a prefix that ends in a dot; one of the
   same parts between dots, some of which one of the two leaves out; one with very few other letters, and last other numbers. */
void nearest_offer(nearest *search, const char *name);

/* Writes "path: tensor WANTED is missing", and what may have been meant, into error. */
void nearest_missing(const nearest *search, const char *path, char *error, size_t error_size);

#endif
