//$ takes norm, integer, x_scale, y_scale, align, scratch_bytes, packed_bytes, input, output
#ifndef $(names.macro("H_INCLUDED"))
#define $(names.macro("H_INCLUDED"))

/* $(names.model): the dense FFN $(shape.d) -> $(shape.hidden) -> $(shape.d_out) with GELU that a LookupFFN replaces, to be counted and timed beside it.
   y = W2 gelu(W1 $(norm and "LayerNorm(x)" or "x") + b1) + b2. */

#include <stddef.h>
#include <stdint.h>

#define $(names.macro("D")) $(shape.d) /* input width */
#define $(names.macro("D_OUT")) $(shape.d_out) /* output width */
//$ if integer then
#define $(names.macro("X_SCALE")) $(x_scale) /* x[i] stands for x[i] times this */
#define $(names.macro("Y_SCALE")) $(y_scale) /* y[i] stands for y[i] times this */
//$ end
#define $(names.macro("ALIGN")) $(align) /* of blob and scratch, in bytes */
#define $(names.macro("SCRATCH_BYTES")) $(scratch_bytes)u /* that $(names.ffn) works in */
#define $(names.macro("WEIGHTS_BYTES")) $(packed_bytes)u /* of a blob */

$(include("templates/bundle/binding.h"))

/* x [tokens][$(shape.d)], y [tokens][$(shape.d_out)]; nothing may overlap. Cannot fail, and checks nothing: weights that
   $(names.bind) did not fill, or scratch that is not aligned (malloc's may not be), crash. */
$(api)void $(names.ffn)(const $(names.weights) *weights, const $(input) *x, $(output) *y, size_t tokens, void *scratch);

$(include("templates/bundle/closing.h"))

#endif
