/* LookupFFN in float64, straight from its definitions: what every emitted kernel is compared with. Nothing is folded, and no code is
   shared with the generator.

   The vertices of a table are the 2^tau corners S of the cube of +1 and -1; the code of a vertex has a bit for every coordinate, the first
   the most significant, set where it is +1. A token takes of every table the rows of its `neighbours` best vertices.

   N is d padded to a power of two, R = ceil(h tau / N) repeats; both are derived here. */
#ifndef LOOKUPC_HARNESS_REFERENCE_H
#define LOOKUPC_HARNESS_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { REFERENCE_BH4, REFERENCE_DENSE } reference_projection;
typedef enum { REFERENCE_GELU, REFERENCE_SOFTMAX, REFERENCE_ONE, REFERENCE_SCORES } reference_score_kind;

/* What a score is, a row for each kind: its name in model files, and which factors it has: the vertex's share of the softmax, and beside
   it <z, S>. Without factors it is 1: each of the rows that a token takes counts once. */
typedef struct {
    const char *name;
    bool share, along;
} reference_score_row;

extern const reference_score_row reference_scores[REFERENCE_SCORES];

typedef struct {
    size_t d, d_out;   /* widths of input and output */
    size_t h, tau;     /* tables, and bits of a code */
    size_t neighbours; /* rows that a token takes of a table: 1 to 2^tau */
    reference_projection projection;
    size_t block; /* BH4: the block size b, a power of two, at most N */
    double decay; /* BH4: share of the projection in z */
    double rest;  /* dense: share of the input in z, once for each N of z; 0 unless it is BH4 multiplied out */
    reference_score_kind score;
    double scale; /* factor of the sum over the tables: 1 or 1/h */
    bool norm;    /* LayerNorm before the projection */
    double norm_eps;
} reference_model;

/* Reads row `code` of table `table` into row[d_out]; false when it cannot. */
typedef bool reference_row(void *source, size_t table, size_t code, double *row);

/* The factor that a kernel's score for that row has beside its own; NaN when it cannot be told. */
typedef double reference_row_scale(void *source, size_t table, size_t code);

typedef struct {
    const double *projection;  /* BH4 [R][4][N/b][b out][b in], dense [h tau][d] */
    const double *bias;        /* [h tau] */
    const double *output_bias; /* [d_out] */
    const double *norm_weight; /* [d], NULL without norm */
    const double *norm_bias;   /* [d], NULL without norm */
    reference_row *row;        /* the tables [h][2^tau][d_out], read a row at a time */
    void *row_source;
    reference_row_scale *row_scale; /* of the same source; NULL: scores have no factor */
    double score_levels;            /* kernels may round scores, scales included, to so many multiples of a unit, or 0: error_bounds.h */
    double input_levels;            /* kernels round the inputs of the projection's products, too, to so many multiples of a unit; or 0 */
    bool rounds_inputs;             /* reference_project rounds them, too, the norm's output before its gain and without its offset */
    bool bf16_inputs;               /* they are rounded to bf16 then, each by itself */
    bool unit_of_block;             /* then each block of BH4 has a unit of its own, not each token */
} reference_weights;

size_t reference_padded(const reference_model *model);           /* N */
size_t reference_repeats(const reference_model *model);          /* R */
size_t reference_projection_count(const reference_model *model); /* elements of the projection's weights */

/* Mean and variance of x[d]. */
void reference_moments(const reference_model *model, const double *x, double *mean, double *variance);

/* The projection's input: (x - mean) / sqrt(variance + eps) * weight + bias, or x itself without norm.  x, normalised [d]. */
void reference_norm(const reference_model *model, const reference_weights *weights, const double *x, double *normalised);

/* y <- H_N y: the unnormalised Walsh-Hadamard transform in natural order, H[i][j] = (-1)^popcount(i & j).  n is a power of two. */
void reference_hadamard(double *y, size_t n);

/* One of the four steps of BH4: y <- H_N blockdiag(blocks) y.  blocks [N/b][b out][b in], y [N], temporary [N]. */
void reference_bh4_step(const reference_model *model, const double *blocks, double *y, double *temporary);

/* The hashed vector from the projection's input.  normalised [d], z [h tau]. Fails only when memory is short. */
bool reference_project(const reference_model *model, const reference_weights *weights, const double *normalised, double *z);

/* The input of which a share is added to z[j]; 0: none is.  x [d] */
double reference_passed(const reference_model *model, const double *x, size_t j);

/* The best vertex of one table from its group of z.  z [tau]. A bit is z > 0: zero and NaN give 0. */
size_t reference_code(const reference_model *model, const double *z);

/* What a vertex lacks of the best one: half of the difference of their <z, S>, the sum of |z| over the bits that differ.  z [tau] */
double reference_cost(const reference_model *model, const double *z, size_t code);

/* All 2^tau vertices, the best first; of two with equal costs the one with the lower code.  z [tau], code [2^tau]. False when memory is
   short. */
bool reference_vertices(const reference_model *model, const double *z, size_t *code);

/* A vertex's part of the softmax over all of them, exp<z, S> / prod_j (exp z_j + exp -z_j), and <z, S>.  z [tau] */
double reference_share(const reference_model *model, const double *z, size_t code);
double reference_along(const reference_model *model, const double *z, size_t code);

/* Whether scores have a factor: else they are 1. */
bool reference_is_scored(const reference_model *model);

/* The score of a vertex, without model->scale, its factor of the softmax (1: none), and the largest magnitude that its other factor has
   for any vertex (1: none).  z [tau] */
double reference_score(const reference_model *model, const double *z, size_t code);
double reference_score_share(const reference_model *model, const double *z, size_t code);
double reference_score_terms(const reference_model *model, const double *z);

/* y = output bias + scale * sum_k sum_n score[k][n] * table_k[code[k][n]].  code, score [h][neighbours], y [d_out]. False when a row cannot
   be read or memory is short. */
bool reference_gather(const reference_model *model, const reference_weights *weights, const size_t *code, const double *score, double *y);

#endif
