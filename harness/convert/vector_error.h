/* How far the vector that a model makes of a sequence is from another one, and how that changes with what it is made of. */
#ifndef LOOKUPC_CONVERT_VECTOR_ERROR_H
#define LOOKUPC_CONVERT_VECTOR_ERROR_H

#include <stdbool.h>
#include <stddef.h>

/* What becomes of a pool of `width` values: activation(weight pool + bias), and all that divided by its length. */
typedef struct {
    size_t width, out;          /* values of the pool, and of the vector; equal without a map */
    const float *weight, *bias; /* [out][width], [out]; NULL: there is no map, or no bias */
    enum { VECTOR_LINEAR, VECTOR_TANH, VECTOR_RELU } activation;
    bool unit;
} vector_map;

typedef struct vector_error vector_error;

/* A copy of the map, and memory to work in; NULL: memory is short. */
vector_error *vector_error_create(const vector_map *map);
void vector_error_free(vector_error *e);

/* |own's vector - wanted's vector|^2 c, c = (|wanted| / |wanted's vector|)^2, so that it compares with an error of the pools; slopes[width]
   of half of that by `own`. own, wanted: [width]. */
double vector_error_of(vector_error *e, const float *own, const float *wanted, float *slopes);

#endif
