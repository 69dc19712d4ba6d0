/* Bias and GELU of the hidden layer, vectorised by the compiler: build this file with
   -O3 -fno-trapping-math -fno-math-errno -ffp-contract=fast -fopenmp, else it becomes a bottleneck of the dense FFN. */
#include "harness/baseline/ffn.h"
#include "harness/baseline/power.h"
#include "harness/baseline/vectors.h"

static inline __attribute__((always_inline)) void bias_gelu(float *restrict x, const float *restrict bias, size_t rows, size_t columns)
{
    /* 0.5 v (1 + tanh u) = v / (1 + 2^e), e = -2 u / ln 2, u = sqrt(2/pi) (v + 0.044715 v^3) */
    const float linear = -2.3022082f, cubic = -0.10294324f;
    for (size_t row = 0; row < rows; ++row, x += columns) {
        for (size_t i = 0; i < columns; ++i) {
            const float v = x[i] + bias[i];
            float e = v * (linear + cubic * v * v);
            e = e > 126.0f ? 126.0f : e;
            e = e < -126.0f ? -126.0f : e;
            x[i] = v / (1.0f + baseline_power_of_two(e));
        }
    }
}

/* One copy for each vector width; target_clones would do, but clang 14 picks its clones by the CPU's maker. */
VECTORS_64 static void bias_gelu_64(float *x, const float *bias, size_t rows, size_t columns)
{
    bias_gelu(x, bias, rows, columns);
}

VECTORS_32 static void bias_gelu_32(float *x, const float *bias, size_t rows, size_t columns)
{
    bias_gelu(x, bias, rows, columns);
}

static void bias_gelu_here(float *x, const float *bias, size_t rows, size_t columns)
{
    switch (vectors_bytes()) {
    case 64: bias_gelu_64(x, bias, rows, columns); break;
    case 32: bias_gelu_32(x, bias, rows, columns); break;
    default: bias_gelu(x, bias, rows, columns);
    }
}

void baseline_bias_gelu(float *x, const float *bias, size_t rows, size_t columns, size_t threads)
{
    const size_t parts = threads < rows ? threads : rows;
    if (parts < 2) {
        bias_gelu_here(x, bias, rows, columns);
        return;
    }
#pragma omp parallel for num_threads((int)parts) schedule(static, 1)
    for (size_t part = 0; part < parts; ++part) {
        const size_t first = part * rows / parts, next = (part + 1) * rows / parts;
        bias_gelu_here(x + first * columns, bias, next - first, columns);
    }
}
