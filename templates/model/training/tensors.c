//$ takes helper, tapes, uses

/* A linear map: a row of weights for each output or, if they lie across, for each input. Places are in floats behind those of a layer,
   among parameters and gradients alike. */
typedef struct $(helper)_map {
    size_t at, step; /* of the first weight, and from row to row */
    int across;
    size_t inputs, outputs;
    size_t bias;     /* 0: none */ //$ if uses.bias
} $(helper)_map;
//$ if uses.norms then

/* A norm of rows of `width`. */
typedef struct $(helper)_norm {
    size_t width, gain;
    size_t offset; /* 0: none */ //$ if uses.offsets
} $(helper)_norm;
//$ end
//$ for _, tape in ipairs(tapes) do
//$ for i, one in ipairs(tape.tables) do
$(i == 1 and "\n" or "")static const $(helper)_$(one.type) $(one.name) = { $(one.fields) };
//$ end
//$ end
