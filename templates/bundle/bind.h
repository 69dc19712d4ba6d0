//$ takes pack_options
/* Checks a blob made by `lookupc pack$(pack_options)` and fills `weights`. Copies nothing.
   blob     $(names.macro("WEIGHTS_BYTES")) bytes, $(names.macro("ALIGN"))-byte aligned, little-endian
   bytes    size of the blob
   weights  not written unless the result is $(names.macro("OK"))
   Returns $(names.macro("OK")) or one of the codes above. Reads the whole blob once, for its checksum. */
$(api)int $(names.bind)(const void *blob, size_t bytes, $(names.weights) *weights);
