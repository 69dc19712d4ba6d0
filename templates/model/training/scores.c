//$ takes helper, uses
//$ local plain, turned = names.macro("TRAIN_PLAIN"), names.macro("TRAIN_ACROSS")
//$ local set, add = names.macro("TRAIN_SET"), names.macro("TRAIN_ADD")

/* Some queries of a head and the keys of their sequence: a row of weights for each query. */
typedef struct $(helper)_scores {
    size_t width;            /* floats of a head */
    size_t length, own;      /* tokens of the sequence, and how many of them count */
    size_t first, rows;      /* the queries: position of the first, and how many */
    size_t seen, columns;    /* keys that one of them may see, and these in whole strips */
    size_t step;             /* from row to row of weights and slopes */
    float *weights, *slopes; /* slopes: gradients of weights, on the way back */
    float *packed;           /* scratch of products */
    $(field.type)$(field.name); /* $(field.doc) */ //$ for _, field in ipairs(uses.scores)
} $(helper)_scores;

/* Products of a row for each query with all keys, or values, in strips. */
static void $(helper)_meet_keys(const $(helper)_scores *block, const $(names.rows) *rows, const float *strips, float *products)
{
    const $(names.rows) to = { products, block->step };
    const $(helper)_sizes sizes = { block->rows, block->columns, block->width, $(set) };
    const $(helper)_matrix queries = { rows->at, rows->step, $(plain) };

    $(helper)_times_strips(&sizes, &queries, strips, block->width, &to, block->packed);
}

/* Sums for each query of the rows of all keys, in strips, times its weights. */
static void $(helper)_sum_keys(const $(helper)_scores *block, const float *weights, const float *strips, const $(names.rows) *sums)
{
    const $(helper)_sizes sizes = { block->rows, block->width, block->seen, $(set) };
    const $(helper)_matrix factors = { weights, block->step, $(plain) };

    $(helper)_times_strips(&sizes, &factors, strips, block->length, sums, block->packed);
}

/* The way back: adds to a row for each key those of queries, in strips, times their weights. */
static void $(helper)_add_to_keys(const $(helper)_scores *block, const float *weights, const float *strips, float *sums)
{
    const $(names.rows) to = { sums, block->width };
    const $(helper)_sizes sizes = { block->seen, block->width, block->rows, $(add) };
    const $(helper)_matrix factors = { weights, block->step, $(turned) };

    $(helper)_times_strips(&sizes, &factors, strips, block->rows, &to, block->packed);
}
