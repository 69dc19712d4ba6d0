/* A packing in progress: what the files that fill the parts of a blob share. */
#ifndef LOOKUPC_WEIGHTS_PACKING_H
#define LOOKUPC_WEIGHTS_PACKING_H

#include "gen/weights/quantise.h"
#include "gen/weights/shards.h"
#include "gen/weights/view.h"

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

enum { PACKING_ERROR_SIZE = 4096 + 256 };

/* All that it holds; freed in one place. */
typedef struct {
    lua_State *L;
    shards *checkpoint;
    const safetensors *file; /* that holds the section's tensor */
    const char *path, *prefix;
    bool blocks_in_out;
    unsigned char *blob;
    size_t blob_bytes;
    bool changed; /* the file is another one than before */
    view from;    /* that the section's last slice was read from */
    double *data, *vector, *raw;
    quantise_tally tally; /* of the section */
    char error[PACKING_ERROR_SIZE];
} packing;

/* Functions that return a truth value fail with p->error. `errors`: a table of relative errors that rounding made, by names of sections. */

/* Whether every tensor that the model needs, also those that only steps read, is there with its shape. */
bool packing_expect_tensors(packing *p, int job);

/* Packs a section (gen/plan/blob.lua). */
bool packing_section(packing *p, int section, int errors);

/* The kind of section whose rows are a projection of other rows; its description is on top of the stack. */
bool packing_projected(packing *p, int section, int errors);

/* The kind of section that is sines and cosines of positions. */
bool packing_sinusoids(packing *p, int section, int errors);

/* Packs the projection and the tables of integer kernels, as gen/families/lookup/integer/plan.lua describes them. */
bool packing_integer(packing *p, int job, int errors);

/* Packs the projection that the table at `job` describes (gen/families/lookup/sections.lua) once more, calibrated, and appends what came of
   it to the table at `list`. All other sections are packed. */
bool packing_calibrated(packing *p, int job, int errors, int list);

/* The tensor that the field `name` of a table names, with the shape in its field `shape`; NULL: it failed. */
const safetensors_tensor *packing_tensor(packing *p, int table, const char *name);

/* Reads the tensor that the field `name` of a job describes { from, shape, blocks, steps }, of `slices` slices number `slice`, and folds
   it: p->data[*count]. */
bool packing_folded(packing *p, int job, const char *name, size_t slices, size_t slice, size_t *count);

/* Lays slice number `slice`, p->data[count], out as the boxes of the section say, as elements of the type in its place. */
void packing_boxes(packing *p, int section, size_t count, quantise_type type, size_t slice);

/* Notes under the name of a section the relative error that rounding made in it. */
void packing_note_error(packing *p, int errors, const char *name, const quantise_tally *tally);

#endif
