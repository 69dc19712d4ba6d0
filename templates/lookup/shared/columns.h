//$ takes helper, gather, sums_of_integers
//$ -- The struct that functions of a gather take: what does not change from one group of tables to the next, but at its ends.
//$ local adds_to_y = sums_of_integers and #gather.integers.spans > 1

/* A tile of columns of every token: what sums begin with, and where they go. Steps are from token to token. */
typedef struct {
//$ if sums_of_integers then
    const int32_t *from; /* sums of earlier tables, or zeros for all tokens */
    size_t from_step;
    int32_t *to; /* where sums wait, may be `from` */ //$ if gather.integers.waits
    const float *units; /* of the tokens' scores */
    const float *base; /* what to add to the sums: $(adds_to_y and "y itself, or " or "")one row for all tokens */
    size_t base_step; //$ if adds_to_y
    float *y;
//$ else
    const float *from; /* y itself, or one row for all tokens */
    size_t from_step;
    float *y;
    size_t y_step; //$ if gather.scratch.sums
//$ end
    int streams; /* whether whole lines of y are written past the caches */ //$ if gather.stream
} $(helper)_columns;
