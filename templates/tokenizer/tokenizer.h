//$ takes facts
/* Working memory of $(names.tokenize) that is enough for any text of `bytes` bytes. Most texts take far less. */
#define $(names.macro("TOKENIZE_SCRATCH"))(bytes) ((size_t) (bytes) * $(facts.scratch.factor)u + $(facts.scratch.more)u)
#define $(names.macro("PIECES")) $(facts.pieces) /* ids are 0 to this less 1 */
