/* See vector_error.h. */
#include "harness/convert/vector_error.h"

#include "harness/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct vector_error {
    vector_map map;
    float *weight, *bias;               /* of the map */
    float *across;                      /* the same weights, [width][out] */
    float *made, *aim, *slopes, *other; /* [out] each; slopes: of the activation for `made` */
};

void vector_error_free(vector_error *e)
{
    if (!e)
        return;
    free(e->weight);
    free(e->across);
    free(e->made);
    free(e);
}

vector_error *vector_error_create(const vector_map *map)
{
    vector_error *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    const size_t count = map->weight ? map->width * map->out : 0;
    e->map = *map;
    e->weight = aligned_memory((count + map->out) * sizeof(float));
    e->across = aligned_memory((count + 1) * sizeof(float));
    e->made = aligned_memory(4 * map->out * sizeof(float));
    if (!e->weight || !e->across || !e->made) {
        vector_error_free(e);
        return NULL;
    }
    e->bias = e->weight + count;
    e->aim = e->made + map->out;
    e->slopes = e->aim + map->out;
    e->other = e->slopes + map->out;
    for (size_t i = 0; i < count; ++i) {
        e->weight[i] = map->weight[i];
        e->across[i % map->width * map->out + i / map->width] = map->weight[i];
    }
    for (size_t o = 0; o < map->out; ++o)
        e->bias[o] = map->bias ? map->bias[o] : 0.0f;
    return e;
}

/* to[out] = the vector of a pool; slopes[out]: of the activation. Returns by what it was divided. */
static double vector_of(const vector_error *e, const float *pool, float *to, float *slopes)
{
    const vector_map *map = &e->map;
    double square = 0;
    memcpy(to, map->weight ? e->bias : pool, map->out * sizeof *to);
    for (size_t k = 0; map->weight && k < map->width; ++k)
        for (size_t o = 0; o < map->out; ++o)
            to[o] += pool[k] * e->across[k * map->out + o];
    for (size_t o = 0; o < map->out; ++o) {
        slopes[o] = 1.0f;
        if (map->activation == VECTOR_TANH) {
            to[o] = tanhf(to[o]);
            slopes[o] = 1.0f - to[o] * to[o];
        } else if (map->activation == VECTOR_RELU && to[o] < 0.0f) {
            to[o] = slopes[o] = 0.0f;
        }
        square += (double)to[o] * (double)to[o];
    }
    const double length = map->unit && square > 0 ? sqrt(square) : 1;
    for (size_t o = 0; o < map->out; ++o)
        to[o] /= (float)length;
    return length;
}

double vector_error_of(vector_error *e, const float *own, const float *wanted, float *slopes)
{
    const vector_map *map = &e->map;
    double pool = 0, square = 0, error = 0, along = 0;
    vector_of(e, wanted, e->aim, e->other);
    const double length = vector_of(e, own, e->made, e->slopes);
    for (size_t k = 0; k < map->width; ++k)
        pool += (double)wanted[k] * (double)wanted[k];
    for (size_t o = 0; o < map->out; ++o) {
        const double off = (double)e->made[o] - (double)e->aim[o];
        square += (double)e->aim[o] * (double)e->aim[o];
        error += off * off;
        along += off * (double)e->made[o];
    }
    const double c = square > 0 ? pool / square : 0;
    /* Of a vector of length 1 only what is off across it can change. */
    for (size_t o = 0; o < map->out; ++o) {
        const double across = (double)e->made[o] - (double)e->aim[o] - (map->unit ? along * (double)e->made[o] : 0);
        e->other[o] = (float)(c * across / length) * e->slopes[o];
    }
    if (!map->weight) {
        memcpy(slopes, e->other, map->width * sizeof *slopes);
        return c * error;
    }
    memset(slopes, 0, map->width * sizeof *slopes);
    for (size_t o = 0; o < map->out; ++o)
        for (size_t k = 0; k < map->width; ++k)
            slopes[k] += e->other[o] * e->weight[o * map->width + k];
    return c * error;
}
