/* The reference of what stands before and behind a transformer's blocks: float64, from the definitions. */
#ifndef LOOKUPC_HARNESS_REFERENCE_WHOLE_H
#define LOOKUPC_HARNESS_REFERENCE_WHOLE_H

#include "harness/reference/transformer.h"

#include <stdint.h>

/* A norm behind which its kind and eps stand. */
typedef struct {
    reference_block_norm weights; /* gain NULL: there is no such norm */
    bool mean;                    /* LayerNorm, not RMSNorm */
    double eps;
} reference_outer_norm;

typedef struct {
    reference_type type;        /* that rows of words are rounded to */
    reference_type map_type;    /* that the map is */
    reference_type activations; /* that the map's inputs are rounded to */
    size_t width;               /* of a row */
    double scale;               /* of a word's row */
    reference_map words;        /* its weight: the table; no bias */
    reference_map positions;    /* weight NULL: none are learned */
    size_t first_position;      /* the row of the first token */
    reference_map token_types;  /* weight NULL: none; every token has the first */
    size_t frequencies;         /* 0: positions are no sines; else frequency i is max^(-i / frequencies) */
    bool halves;                /* all sines before all cosines, else a sine and a cosine in turn */
    double max;
    reference_outer_norm norm;
    reference_map map; /* weight NULL: none */
    /* What the first block's maps make of rows, each rounded where it is made of a word alone: */
    struct {
        reference_map map; /* weight NULL: there are no more */
        bool normed;       /* behind the norm of rows, or else `first` */
    } projected[4];
    reference_type projected_type;
    reference_outer_norm first; /* of the first block, before these maps */
    bool copied;                /* rows themselves follow them */
} reference_embedding;

/* x[count][width of the first block's input] <- a sequence of ids, from position 0 on. Fails with one line that starts with a path. */
bool reference_embed(const reference_embedding *embedding, const int32_t *ids, size_t count, double *x, char *error, size_t error_size);

typedef enum { REFERENCE_POOL_NONE, REFERENCE_POOL_MEAN, REFERENCE_POOL_FIRST, REFERENCE_POOL_LAST, REFERENCE_POOL_SQRT_N } reference_pool;

typedef struct {
    reference_type type;        /* of the maps */
    reference_type activations; /* that their inputs are rounded to */
    size_t width, out;          /* of the last block's output and of a result */
    reference_outer_norm norm;
    reference_pool pool;
    reference_map dense; /* weight NULL: none */
    reference_activation *activation;
    reference_outer_norm dense_norm;
    bool unit;
    reference_map head; /* weight NULL: none */
    double soft_cap;    /* 0: none */
} reference_output;

/* y[count][out], or with a pool y[out] <- the last block's output of a sequence, x[count][width]. Fails likewise. */
bool reference_finish(const reference_output *output, const double *x, size_t count, double *y, char *error, size_t error_size);

#endif
