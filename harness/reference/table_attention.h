/* The reference of attention by tables (docs/attention.md): codes of queries and keys, and what they make of values, in float64. */
#ifndef LOOKUPC_HARNESS_REFERENCE_TABLE_ATTENTION_H
#define LOOKUPC_HARNESS_REFERENCE_TABLE_ATTENTION_H

#include "harness/reference/transformer.h"

/* Where ties of codes of q and k begin among the numbers of tables of a layer: those of heads of q, then those of k, [heads][tables]. */
enum { REFERENCE_TABLE_TIES = 1 << 20 };

/* The chance E(c) = (1 - arccos(c) / pi)^tau that codes of two vectors agree, c the cosine between them. */
double reference_code_chance(double cosine, size_t tau);

/* Queries [tokens][heads][width], keys and values [tokens][kv_heads][width]: queries and keys all of length sqrt(width), turned, keys also
   shifted. */
typedef struct {
    const double *q, *k, *v;
    size_t tokens;
} reference_heads;

/* y[tokens][heads][width]. False when memory is short. */
bool reference_table_attend(const reference_transformer *model, const reference_block *block, reference_ties *ties,
                            const reference_heads *given, double *y);

#endif
