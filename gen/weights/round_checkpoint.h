/* Writes a checkpoint again with its matrices and tables in integers of 8 or 4 bits. */
#ifndef LOOKUPC_WEIGHTS_ROUNDED_H
#define LOOKUPC_WEIGHTS_ROUNDED_H

#include "gen/weights/shards.h"

/* How a tensor is written: not at all; in F32; each row, which is the last dimension, in units of the largest magnitude in it / 127
   (NAME_scale, F32); tables in half bytes, rounded as for packing (NAME_scale_i4); matrices in groups, likewise (NAME_groups_i4, _u4 or
   _q8). Those up to Q8 are in whole bytes. */
typedef enum { ROUNDED_NOT, ROUNDED_F32, ROUNDED_I8, ROUNDED_Q8, ROUNDED_TABLES_I4, ROUNDED_I4, ROUNDED_U4 } rounded_form;

/* The form of that name: "f32", "i8", "q8", "tables_i4", "i4", "u4". ROUNDED_NOT for any other. */
rounded_form rounded_form_named(const char *name);

/* Integers and scales of rows of a tensor in groups that somebody has chosen, as they are written; `known`: which rows. */
typedef struct {
    char *name;
    unsigned char *halves;
    uint16_t *scales;
    bool *known;
} rounded_given;

typedef struct {
    rounded_given *list;
    size_t count;
} rounded_given_list;

/* Frees what it points to. */
void rounded_given_free(rounded_given *given);

/* What form a tensor is to have. Rows of half bytes have an even width, those of others become I8. */
typedef struct {
    rounded_form (*form_of)(void *context, const safetensors_tensor *tensor);
    void *context;
    const rounded_given_list *given; /* of other rows the nearest ones are taken; NULL: none are given */
    const char *needs_halves; /* what has to be there in half bytes, for the line that refuses a checkpoint without any; NULL: nothing */
} rounded_forms;

/* Those of a checkpoint of which nothing else is known: tensors of two dimensions and more are in I8, the others in F32; with tables_in_i4
   tables of LookupFFNs, of three dimensions and with a name that ends with "tables", in half bytes. */
rounded_form rounded_by_shape(const safetensors_tensor *tensor, bool tables_in_i4);

/* Writes the tensors of `checkpoint` into the safetensors file `path`. *error_share, if not NULL, becomes the relative error of all that
   was rounded: norm of the difference / norm. False with one line that starts with a path; then no new file exists. The same checkpoint
   gives the same bytes. */
bool rounded_write(const shards *checkpoint, const char *path, const rounded_forms *forms, double *error_share, char *error,
                   size_t error_size);

#endif
