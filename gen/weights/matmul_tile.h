/* One tile of a product for one instruction set: matmul.c includes this file once for each, with TILE_NAME, TILE_LANES and TILE_TARGET
   defined. No include guard. */

typedef double TILE_VECTOR(TILE_NAME) __attribute__((vector_size(TILE_LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

/* c[TILE_ROWS][2 vectors] += a b, a packed [k][TILE_ROWS], b packed [k][2 vectors]. */
TILE_TARGET static void TILE_NAME(size_t k, const double *a, const double *b, double *c, size_t ldc)
{
    typedef TILE_VECTOR(TILE_NAME) vector;
    vector sum[TILE_ROWS][2];
    for (size_t i = 0; i < TILE_ROWS; ++i) {
        sum[i][0] = *(const vector *)(const void *)(c + i * ldc);
        sum[i][1] = *(const vector *)(const void *)(c + i * ldc + TILE_LANES);
    }
    for (; k > 0; --k, a += TILE_ROWS, b += 2 * TILE_LANES) {
        const vector b0 = *(const vector *)(const void *)b, b1 = *(const vector *)(const void *)(b + TILE_LANES);
        for (size_t i = 0; i < TILE_ROWS; ++i) {
            sum[i][0] += a[i] * b0;
            sum[i][1] += a[i] * b1;
        }
    }
    for (size_t i = 0; i < TILE_ROWS; ++i) {
        *(vector *)(void *)(c + i * ldc) = sum[i][0];
        *(vector *)(void *)(c + i * ldc + TILE_LANES) = sum[i][1];
    }
}
