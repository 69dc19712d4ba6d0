//$ takes rounded, matrices, causal
//$ -- What functions of all runs of blocks take.
$(include("templates/bundle/rows.h"))
//$ if rounded then

/* Rows of the rounded inputs of a product, likewise, in words. */
typedef struct $(names.rounded_rows) {
    $(rounded.storage) *at;
    size_t step;
} $(names.rounded_rows);
//$ end
//$ for _, one in ipairs(matrices) do

/* A linear map, y = W x + bias, of panels of 32 outputs. */
typedef struct $(one.name) {
    const $(one.storage) *weights; /* as $(one.product) says */
    const float *scales; /* [panels * 32] of the rows of W */ //$ if one.scaled
    const float *bias; /* [panels * 32] */
    float *strip; /* room for a strip of weights in floats, for several tokens; or null */ //$ if one.converts
    size_t inputs, panels;
} $(one.name);
//$ end

/* Tokens that follow each other in one sequence. */
typedef struct $(names.span) {
    size_t token;  /* the number of the first one among the rows at hand */
    size_t count;  /* of these tokens */
    size_t first;  /* the position of the first one in the sequence */
    size_t tokens; /* of the sequence so far, or of all of it where tokens attend to all */
//$ if not causal then
    size_t sequence; /* its number in a call */
    size_t base;     /* the position of the cache at which it starts */
//$ end
} $(names.span);
