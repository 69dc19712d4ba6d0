//$ takes
#ifndef $(names.macro("TRAIN_H_INCLUDED"))
#define $(names.macro("TRAIN_H_INCLUDED"))

/* Training of $(model), a LookupFFN: kernels of forward, backward and update, in C without heap, libraries and globals.
   One step, with arrays of the sizes below; threads may share each call's tokens or tables, with a scratch each:

     prepare     once, after parameters changed
     forward     ranges of tokens: y, and z, code, score of each token for the backward
     rows        ranges of tables, all tokens: from dy the slopes of the scores; moves the rows of the tables
     project     ranges of tokens: dx, and sums of gradients, cleared before the step
     finish      adds the sums to the gradients

   z [tokens][$(names.constant("TRAIN_Z"))], code, score and slope [tokens][$(names.constant("TRAIN_SLOTS"))] are of all
   tokens, their number rounded up to
   $(names.constant("TRAIN_TILE")), and 64-byte aligned; so are prepared, sums and scratch. Inside they lie tile by tile. A range has
   `count` tokens from token number `first` on, a multiple of $(names.constant("TRAIN_TILE")).
   uses counts how often each row was taken, [$(shape.h)][$(shape.rows)], or is NULL. A row is listed once, as table * $(shape.rows) + code,
   with a gradient of $(plural(shape.d_out, "float")), $(names.constant("TRAIN_ROW")) apart; at most $(shape.rows) of a table.
   Gradients are added to; dx is written. No arguments may overlap. None can fail. The same bits for the same arguments. */

#include <stddef.h>
#include <stdint.h>

#include "$(names.header)"

#ifdef __cplusplus
extern "C" {
#endif

$(include("templates/lookup/training/declarations.h"))

#ifdef __cplusplus
}
#endif

#endif
