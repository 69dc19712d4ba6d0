/* Matrix products in float64 that give the same bytes on every machine; see matmul.h. Compiled with -ffp-contract=off. */
#include "gen/weights/matmul.h"

#include <string.h>

enum {
    TILE_ROWS = 6,
    MOST_LANES = 8,
    BLOCK_ROWS = 32 * TILE_ROWS, /* of a, with BLOCK_DEPTH columns: 384 KiB, for L2 */
    BLOCK_DEPTH = 256,           /* a strip of b is BLOCK_DEPTH deep: up to 32 KiB, for L1 */
};

#define TILE_VECTOR(name) TILE_VECTOR_OF(name)
#define TILE_VECTOR_OF(name) name##_vector

#define TILE_NAME tile_of_2
#define TILE_LANES 2
#define TILE_TARGET
#include "gen/weights/matmul_tile.h"
#undef TILE_NAME
#undef TILE_LANES
#undef TILE_TARGET

#ifdef __x86_64__
#define TILE_NAME tile_of_4
#define TILE_LANES 4
#define TILE_TARGET __attribute__((target("avx2")))
#include "gen/weights/matmul_tile.h"
#undef TILE_NAME
#undef TILE_LANES
#undef TILE_TARGET

#define TILE_NAME tile_of_8
#define TILE_LANES 8
#define TILE_TARGET __attribute__((target("avx512f")))
#include "gen/weights/matmul_tile.h"
#undef TILE_NAME
#undef TILE_LANES
#undef TILE_TARGET
#endif

typedef struct {
    void (*add)(size_t k, const double *a, const double *b, double *c, size_t ldc);
    size_t columns;
} tile;

/* The widest tile of at most so many lanes that this CPU can compute. */
static tile widest_tile(size_t lanes)
{
#ifdef __x86_64__
    if (lanes >= 8 && __builtin_cpu_supports("avx512f"))
        return (tile){tile_of_8, 16};
    if (lanes >= 4 && __builtin_cpu_supports("avx2"))
        return (tile){tile_of_4, 8};
#else
    (void)lanes;
#endif
    return (tile){tile_of_2, 4};
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* packed[strips][depth][TILE_ROWS] <- sign * a[rows][depth] from (row, column) on, padded with zeros. */
static void pack_a(double sign, matmul_matrix a, size_t row, size_t column, size_t rows, size_t depth, double *packed)
{
    for (size_t strip = 0; strip < rows; strip += TILE_ROWS, packed += depth * TILE_ROWS) {
        for (size_t i = 0; i < TILE_ROWS; ++i) {
            const double *from = a.data + (row + strip + i) * a.row + column * a.column;
            for (size_t k = 0; k < depth; ++k)
                packed[k * TILE_ROWS + i] = strip + i < rows ? sign * from[k * a.column] : 0.0;
        }
    }
}

/* packed[depth][wide] <- columns of b from (row, column) on, padded with zeros. */
static void pack_b(matmul_matrix b, size_t row, size_t column, size_t depth, size_t columns, size_t wide, double *packed)
{
    const double *from = b.data + row * b.row + column * b.column;
    if (b.column == 1 && columns == wide) {
        for (size_t k = 0; k < depth; ++k)
            memcpy(packed + k * wide, from + k * b.row, wide * sizeof *packed);
        return;
    }
    for (size_t j = 0; j < wide; ++j)
        for (size_t k = 0; k < depth; ++k)
            packed[k * wide + j] = j < columns ? from[k * b.row + j * b.column] : 0.0;
}

/* A tile at an edge of c, of which only [m][n] exist. */
static void add_edge(const tile *t, matmul_sizes sizes, const double *a, const double *b, double *c, size_t ldc)
{
    double whole[TILE_ROWS * 2 * MOST_LANES] = {0};
    for (size_t i = 0; i < sizes.m; ++i)
        memcpy(whole + i * t->columns, c + i * ldc, sizes.n * sizeof *c);
    t->add(sizes.k, a, b, whole, t->columns);
    for (size_t i = 0; i < sizes.m; ++i)
        memcpy(c + i * ldc, whole + i * t->columns, sizes.n * sizeof *c);
}

void matmul_add(double sign, matmul_sizes sizes, matmul_matrix a, matmul_matrix b, double *c, size_t ldc)
{
    matmul_add_narrow(MOST_LANES, sign, sizes, a, b, c, ldc);
}

void matmul_add_narrow(size_t lanes, double sign, matmul_sizes sizes, matmul_matrix a, matmul_matrix b, double *c, size_t ldc)
{
    /* 416 KiB: more than some stacks hold */
    static double packed_a[BLOCK_ROWS * BLOCK_DEPTH], packed_b[BLOCK_DEPTH * 2 * MOST_LANES];
    const tile t = widest_tile(lanes);
    for (size_t row = 0; row < sizes.m; row += BLOCK_ROWS) {
        const size_t rows = least(BLOCK_ROWS, sizes.m - row);
        for (size_t at = 0; at < sizes.k; at += BLOCK_DEPTH) {
            const size_t depth = least(BLOCK_DEPTH, sizes.k - at);
            pack_a(sign, a, row, at, rows, depth, packed_a);
            for (size_t column = 0; column < sizes.n; column += t.columns) {
                const size_t columns = least(t.columns, sizes.n - column);
                pack_b(b, at, column, depth, columns, t.columns, packed_b);
                for (size_t strip = 0; strip < rows; strip += TILE_ROWS) {
                    const double *strip_a = packed_a + strip * depth;
                    double *to = c + (row + strip) * ldc + column;
                    if (columns == t.columns && rows - strip >= TILE_ROWS)
                        t.add(depth, strip_a, packed_b, to, ldc);
                    else
                        add_edge(&t, (matmul_sizes){least(TILE_ROWS, rows - strip), columns, depth}, strip_a, packed_b, to, ldc);
                }
            }
        }
    }
}
