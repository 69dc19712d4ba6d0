//$ takes

/* Rows of floats: row number t begins at at + t * step. */
typedef struct $(names.rows) {
    float *at;
    size_t step;
} $(names.rows);
