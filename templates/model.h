#ifndef $(names.macro("H_INCLUDED"))
#define $(names.macro("H_INCLUDED"))

/* $(model): one LookupFFN layer (LookupFFN, ICML 2023, arXiv 2403.07221) with its shape compiled in.
//$ if shape.neighbours == 1 then
   y = bias + sum over $(shape.h) tables of s_k T_k[c_k]: code c_k and score s_k of a token come from the signs and sizes of
//$ else
   y = bias + sum over $(rows_text) of $(shape.h) tables of s T_k[c]: codes c and scores s of a token come from the signs and sizes of
//$ end
   $(shape.tau) projected values. $(formula)

   No function allocates memory, keeps state or calls a library. All are reentrant. Where all that includes this header is compiled with
   -fopenmp -D$(names.macro("OPENMP"))=N, $(names.ffn) shares large calls among up to N threads, with the same results, bit for bit.

     static unsigned char blob[...];                    the weights file, $(names.macro("ALIGN"))-byte aligned, for example mmap-ed
     static unsigned char scratch[$(names.macro("SCRATCH_BYTES"))]; $(names.macro("ALIGN"))-byte aligned, one for each thread
     $(names.weights) weights;
     if ($(names.bind)(blob, sizeof blob, &weights) == $(names.macro("OK")))
         $(names.ffn)(&weights, x, y, tokens, scratch); */

#include <stddef.h>
//$ if integers then
#include <stdint.h>
//$ end

#define $(names.macro("D")) $(shape.d) /* input width */
#define $(names.macro("D_OUT")) $(shape.d_out) /* output width */
#define $(names.macro("TABLES")) $(shape.h) /* hash tables, h */
#define $(names.macro("TAU")) $(shape.tau) /* bits of a code */
//$ if shape.neighbours > 1 then
#define $(names.macro("NEIGHBOURS")) $(shape.neighbours) /* rows that a token takes of a table */
//$ end
#define $(names.macro("ALIGN")) $(align) /* of blob and scratch, in bytes */
#ifdef $(names.macro("OPENMP"))
#if $(names.macro("OPENMP")) < 1 || $(names.macro("OPENMP")) > $(most_threads)
#error "$(names.macro("OPENMP")): must be the largest number of threads, from 1 to $(most_threads)"
#endif
#define $(names.macro("SCRATCH_BYTES")) ((size_t) $(names.macro("OPENMP")) * $(scratch_bytes)u) /* that $(names.ffn) works in, for all threads */
#define $(names.ffn) $(names.ffn_openmp) /* so that files compiled with and without $(names.macro("OPENMP")) do not link */
#else
#define $(names.macro("SCRATCH_BYTES")) $(scratch_bytes)u /* that $(names.ffn) works in */
#endif
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
//$ if #isas > 1 then
    int isa; /* the instruction set chosen for this CPU: $(isa_list) */
//$ end
} $(names.weights);

/* Checks a blob made by `lookupc pack` and fills `weights`. Copies nothing.
   blob     $(names.macro("WEIGHTS_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned, little-endian
   bytes    size of the blob
   weights  not written unless the result is $(names.macro("OK"))
   Returns $(names.macro("OK")) or one of the codes above. Reads the whole blob once, for its checksum. */
int $(names.bind)(const void *blob, size_t bytes, $(names.weights) *weights);

/* y = LookupFFN(x) for any number of tokens, 0 included. Cannot fail.
   weights  filled by $(names.bind)
   x        [tokens][$(shape.d)] floats, any float alignment
   y        [tokens][$(shape.d_out)] floats, any float alignment; $(alias_text)
   scratch  $(names.macro("SCRATCH_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned, overlapping nothing; contents do not matter
//$ if norm then
   The squares of x - mean must not overflow float: keep |x| below 1e18.
//$ end
   A NaN or an infinity in x makes that token's y what IEEE arithmetic gives, mostly NaN; other tokens are not touched. */
void $(names.ffn)(const $(names.weights) *weights, const float *x, float *y, size_t tokens, void *scratch);

#ifdef __cplusplus
}
#endif

#endif
