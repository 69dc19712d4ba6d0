//$ takes promise, eliminated_text, context, tile, align, cache_bytes, scratch_bytes, decode_scratch_bytes, packed_bytes
#ifndef $(names.macro("H_INCLUDED"))
#define $(names.macro("H_INCLUDED"))
//$ -- Where y is wider than x, or narrower, it cannot be x.
//$ local in_place = shape.input == shape.d or shape.delivered
//$ local both = shape.input == shape.d and "x and y are [tokens][" .. shape.d .. "],"
//$     or "x is [tokens][" .. shape.input .. "], y [tokens][" .. shape.d .. "];"
//$ local of_decode = shape.causal and " A scratch of " .. names.macro("DECODE_SCRATCH_BYTES") .. " bytes is enough where "
//$     .. names.decode .. " alone is called." or ""
//$ local with_qkv = shape.delivered and ", its q, k and v" or ""
//$ local overlap = in_place and "may be x itself, otherwise no overlap" or "no overlap with x"

/* $(model): the $(shape.layers) $(shape.parallel and "parallel" or "serial") blocks of a transformer
   ($(eliminated_text)"KV-weights are all you need for skipless
   transformers", arXiv 2404.12362) with their shapes compiled in. From what makes a block's input, such as an embedding's row,
   to the output of the last block; embeddings and what follows the last block are the caller's.

   $(promise)
   All are reentrant for different caches and scratch.

   Read the weights file into `blob`, or map it: mmap aligns, too. Each thread needs a scratch
   $(shape.sequences and "and a cache " or "")of its
   own$(shape.sequences and "" or ", each sequence a cache").$(of_decode)

     static _Alignas($(names.macro("ALIGN"))) unsigned char blob[$(names.macro("WEIGHTS_BYTES"))];
     static _Alignas($(names.macro("ALIGN"))) unsigned char cache[$(names.macro("CACHE_BYTES"))];
     static _Alignas($(names.macro("ALIGN"))) unsigned char scratch[$(names.macro("SCRATCH_BYTES"))];
     $(names.weights) weights;

     int status = $(names.bind)(blob, sizeof blob, &weights);
     if (status == $(names.macro("OK")))
//$ if shape.causal then
         status = $(names.decode)(&weights, cache, x, y, position, scratch);
//$ elseif shape.sequences then
         status = $(names.encode_batch)(&weights, cache, x, y, offsets, sequences, scratch);
//$ else
         status = $(names.encode)(&weights, cache, x, y, tokens, scratch);
//$ end

   In C++ write alignas($(names.macro("ALIGN"))) instead of _Alignas($(names.macro("ALIGN"))). */

#include <stddef.h>
#include <stdint.h>

#define $(names.macro("D")) $(shape.d) /* width of a token */
//$ if shape.input ~= shape.d then
#define $(names.macro("D_IN")) $(shape.input) /* width of a token's input$(shape.delivered and ": q, k and v of the first block" or "") */
//$ end
#define $(names.macro("LAYERS")) $(shape.layers) /* blocks */
#define $(names.macro("HEADS")) $(shape.heads) /* heads of q */
#define $(names.macro("KV_HEADS")) $(shape.kv_heads) /* heads of k and v */
#define $(names.macro("CONTEXT")) $(context) /* positions of a sequence$((shape.endless or shape.lsh) and "" or ", all in the cache") */
//$ if shape.sequences then
#define $(names.macro("POSITIONS")) $(shape.cache.positions) /* of the sequences of a call, each filled up to a multiple of $(tile) */
//$ end
//$ if shape.endless then
//$ local doc = "the last positions that a token attends to: the cache is a ring of " .. shape.cache.positions
#define $(names.macro("WINDOW")) $(shape.window) /* $(doc) */
//$ elseif shape.full_layers and shape.causal then
#define $(names.macro("WINDOW")) $(shape.window) /* the last positions that a token attends to, in some layers */
//$ elseif shape.window then
#define $(names.macro("WINDOW")) $(shape.window) /* a token attends to positions nearer than this, before and behind it */
//$ end
#define $(names.macro("ALIGN")) $(align) /* of blob, cache and scratch, in bytes */
//$ if shape.lsh and shape.causal then
//$ local tables = shape.cache.limit and ", sums in 16 bits of values rounded to 8," or ""
/* Tables of the values of one sequence$(tables), and its last tokens: $(shape.cache.held.doc). */
//$ else
/* Keys$(shape.from_keys and "" or " and values") of $(shape.sequences and "the sequences of a call, one layer at a time" or "one sequence"): $(shape.cache.held.doc). */
//$ end
#define $(names.macro("CACHE_BYTES")) $(cache_bytes)u
#define $(names.macro("SCRATCH_BYTES")) $(scratch_bytes)u /* that a call works in */
//$ if shape.causal then
#define $(names.macro("DECODE_SCRATCH_BYTES")) $(decode_scratch_bytes)u /* that $(names.decode) works in */
//$ end
#define $(names.macro("WEIGHTS_BYTES")) $(packed_bytes)u /* of a blob */

$(include("templates/bundle/binding.h"))

//$ local some_layers = shape.full_layers and ", in some layers" or ""
//$ local nearer = shape.window and (shape.full_layers and ", in some layers only if" or " that are") .. " nearer than " .. names.macro("WINDOW") or ""
//$ if shape.causal then
//$ local going_back = shape.mixed and "There is no way back: some layers hold the last positions only."
//$     or shape.lsh and "There is no way back: tables hold sums."
//$     or shape.ring and "Positions go on beyond the ring; there is no way back."
//$     or "To go back, call again with an earlier position."
/* The blocks for one token, which attends to the tokens before
   it$(shape.window and (some_layers ~= "" and some_layers or ",") .. " the last " .. names.macro("WINDOW") .. " of them," or "") and itself.
   weights   filled by $(names.bind)
   cache     $(names.macro("CACHE_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned: filled for
             $(shape.endless and "the positions that it attends to" or "positions 0 … position - 1") by earlier calls;
             need not be cleared before the first one.
             $(going_back)
   x         [$(shape.input)] floats, any float alignment: the input of the first block$(with_qkv)
   y         [$(shape.d)] floats: the output of the last block$(in_place and "; may be x" or ", elsewhere than x")
   position  of the token in its sequence, below $(names.macro("CONTEXT"))
   scratch   $(names.macro("DECODE_SCRATCH_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned; contents do not matter
   Returns $(names.macro("OK")), or $(names.macro("ERROR_POSITION")) and writes nothing. */
$(api)int $(names.decode)(const $(names.weights) *weights, void *cache, const float *x, float *y, size_t position, void *scratch);

/* The same for tokens first … first + tokens - 1 at once: $(both)
   $(in_place and "y may be x itself, otherwise no overlap" or "no overlap"); scratch has
   $(names.macro("SCRATCH_BYTES")). Any number of tokens$(shape.endless and ", also more than the ring holds" or "").
   Returns $(names.macro("OK")), or $(names.macro("ERROR_POSITION")) and writes nothing if first + tokens is beyond
   $(names.macro("CONTEXT")). */
$(api)int $(names.prefill)(const $(names.weights) *weights, void *cache, const float *x, float *y, size_t first,
    size_t tokens, void *scratch);
//$ elseif shape.sequences then
/* The blocks for several sequences, in each of which all tokens attend to each
   other$(nearer).
   weights    filled by $(names.bind)
   cache      $(names.macro("CACHE_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned: room for keys and values; contents do not matter
   x          [tokens][$(shape.input)] floats, any float alignment: the input of the first block$(with_qkv)
   y          [tokens][$(shape.d)] floats: the output of the last block; $(overlap)
   offsets    [sequences + 1]: sequence s is tokens offsets[s] - offsets[0] … offsets[s + 1] - offsets[0] - 1 of x and y
   sequences  each of at most $(names.macro("CONTEXT")) tokens, together of $(names.macro("POSITIONS")) positions
   scratch    $(names.macro("SCRATCH_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned; contents do not matter
   Returns $(names.macro("OK")), or $(names.macro("ERROR_POSITION")) and writes nothing. */
$(api)int $(names.encode_batch)(const $(names.weights) *weights, void *cache, const float *x, float *y,
    const size_t *offsets, size_t sequences, void *scratch);
//$ else
/* The blocks for a sequence whose tokens all attend to each
   other$(nearer).
   weights   filled by $(names.bind)
   cache     $(names.macro("CACHE_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned: room for keys and values; contents do not matter
   x         [tokens][$(shape.input)] floats, any float alignment: the input of the first block$(with_qkv)
   y         [tokens][$(shape.d)] floats: the output of the last block; $(overlap)
   tokens    at most $(names.macro("CONTEXT")); of a padded sequence give those that count
   scratch   $(names.macro("SCRATCH_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned; contents do not matter
   Returns $(names.macro("OK")), or $(names.macro("ERROR_POSITION")) and writes nothing. */
$(api)int $(names.encode)(const $(names.weights) *weights, void *cache, const float *x, float *y, size_t tokens, void *scratch);
//$ end

$(include("templates/bundle/closing.h"))

#endif
