//$ takes facts
/* Turns a text into ids.
   weights  filled by $(names.bind)
   text     [bytes], any bytes$(facts.broken == "keep" and "" or "; what is not UTF-8 counts as U+FFFD"); may be null if there are none
   ids      [most], written up to `most`; may be null if `most` is 0
   scratch  [scratch_bytes], aligned to 8; $(names.macro("TOKENIZE_SCRATCH"))(bytes) are always enough
   Nothing may overlap. Returns the number of ids, or, negated, $(names.macro("ERROR_NULL")), $(names.macro("ERROR_ALIGNMENT")),
   $(names.macro("ERROR_ROOM")) or $(names.macro("ERROR_SCRATCH")); what `ids` holds then is undefined. Reads nothing but its
   arguments and the blob; takes time in proportion to the text$(facts.kind == "bpe" and ", and the logarithm of its longest word" or "").
//$ if #facts.first + #facts.last > 0 then
   The ids that belong before and behind every text, $(#facts.first) and $(#facts.last), are among them.
//$ end
*/
$(api)ptrdiff_t $(names.tokenize)(const $(names.weights) *weights, const char *text, size_t bytes, int32_t *ids,
    size_t most, void *scratch, size_t scratch_bytes);

/* What an id adds to a text: *bytes bytes in the blob, without a zero behind them; none for ids that only steer. Null for what is no id.
   The texts of a sequence one behind the other are its text$(facts.leading_space and "; its first space is to be dropped" or ""). */
$(api)const char *$(names.text_of)(const $(names.weights) *weights, int32_t id, size_t *bytes);
