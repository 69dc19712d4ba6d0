#ifndef $(names.macro("H_INCLUDED"))
#define $(names.macro("H_INCLUDED"))

/* $(model): one LookupFFN layer (LookupFFN, ICML 2023, arXiv 2403.07221) in integers, with its shape compiled in.
   y = bias + sum over $(shape.h) tables of s_k T_k[c_k]: code c_k and score s_k of a token come from the signs and sizes of
   $(shape.tau) projected values. $(formula)

   No function uses floating point, allocates memory, keeps state or calls a library. All are reentrant.

     static unsigned char blob[...];                    the weights file, $(names.macro("ALIGN"))-byte aligned, for example in flash
     static unsigned char scratch[$(names.macro("SCRATCH_BYTES"))]; $(names.macro("ALIGN"))-byte aligned, one for each thread
     $(names.weights) weights;
     if ($(names.bind)(blob, sizeof blob, &weights) == $(names.macro("OK")))
         $(names.ffn)(&weights, x, y, tokens, scratch); */

#include <stddef.h>
#include <stdint.h>

#define $(names.macro("D")) $(shape.d) /* input width */
#define $(names.macro("D_OUT")) $(shape.d_out) /* output width */
#define $(names.macro("TABLES")) $(shape.h) /* hash tables, h */
#define $(names.macro("TAU")) $(shape.tau) /* bits of a code */
#define $(names.macro("X_SCALE")) $(x_scale) /* x[i] stands for x[i] times this */
#define $(names.macro("Y_SCALE")) $(y_scale) /* y[i] stands for y[i] times this */
#define $(names.macro("Y_FRACTION")) $(fraction) /* binary places of y */
#define $(names.macro("ALIGN")) $(align) /* of blob and scratch, in bytes */
#define $(names.macro("SCRATCH_BYTES")) $(scratch_bytes)u /* that $(names.ffn) works in */
#define $(names.macro("WEIGHTS_BYTES")) $(packed_bytes)u /* of a blob */

/* What $(names.bind) returns. */
//$ for _, status in ipairs(statuses) do
#define $(names.macro(status.name)) $(status.code) /* $(status.doc) */
//$ end

#ifdef __cplusplus
extern "C" {
#endif

/* Where the parts of a blob lie; filled by $(names.bind), valid as long as the blob is. */
typedef struct $(names.weights) {
//$ for _, section in ipairs(sections) do
    const $(section.storage) *$(section.name); /* [$(section.count)] $(section.doc) */
//$ end
} $(names.weights);

/* Checks a blob made by `lookupc pack --arithmetic integer` and fills `weights`. Copies nothing.
   blob     $(names.macro("WEIGHTS_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned, little-endian
   bytes    size of the blob
   weights  not written unless the result is $(names.macro("OK"))
   Returns $(names.macro("OK")) or one of the codes above. Reads the whole blob once, for its checksum. */
int $(names.bind)(const void *blob, size_t bytes, $(names.weights) *weights);

/* y = LookupFFN(x) for any number of tokens, 0 included. Cannot fail and cannot overflow, whatever x is.
   weights  filled by $(names.bind)
   x        [tokens][$(shape.d)] in units of $(names.macro("X_SCALE"))
   y        [tokens][$(shape.d_out)] in units of $(names.macro("Y_SCALE")); must not overlap x
   scratch  $(names.macro("SCRATCH_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned, overlapping nothing; contents do not matter */
void $(names.ffn)(const $(names.weights) *weights, const int16_t *x, int32_t *y, size_t tokens, void *scratch);

#ifdef $(names.macro("FLOATS"))
/* For hosts that have floats: define $(names.macro("FLOATS")) before this header is included. */

/* x in units of $(names.macro("X_SCALE")), the nearest one that int16_t has; 0 for NaN. */
static inline int16_t $(model)_from_float(float x)
{
    const float units = x / $(names.macro("X_SCALE"));
    if (!(units > -32768.0f))
        return (int16_t) (units == units ? -32768 : 0);
    if (units > 32767.0f)
        return 32767;
    return (int16_t) (units < 0.0f ? units - 0.5f : units + 0.5f);
}

static inline float $(model)_to_float(int32_t y)
{
    return (float) y * $(names.macro("Y_SCALE"));
}
#endif

#ifdef __cplusplus
}
#endif

#endif
