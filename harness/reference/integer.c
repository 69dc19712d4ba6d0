/* The integer kernels' arithmetic in int64; see reference_integer.h. */
#include "harness/reference/integer.h"

#include "gen/host/files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOG2_ENTRIES = 257, POWER_ENTRIES = 33 };

typedef struct {
    const integer_weights *w;
    const reference_model *model;
    int64_t *x, *values, *sums, *z; /* [d] [N] [N] [h tau] */
    size_t weight, multiplier;      /* the next ones */
    char *error;
    size_t error_size;
    bool ok;
} work;

/* floor(value / 2^shift) of any value. */
static int64_t floor_shift(int64_t value, int shift)
{
    const int64_t divisor = (int64_t)1 << shift, quotient = value / divisor;
    return value % divisor < 0 ? quotient - 1 : quotient;
}

/* The nearest integer to value / 2^shift, halves up. */
static int64_t rounded(int64_t value, int shift)
{
    return shift == 0 ? value : floor_shift(value + ((int64_t)1 << (shift - 1)), shift);
}

/* Notes a value that does not fit. Sums in the kernels never leave int32 on the way, so those here must not either. */
static int64_t fits(work *k, int64_t value, int bits, const char *what)
{
    const int64_t limit = (int64_t)1 << (bits - 1);
    if (k->ok && (value < -limit || value >= limit))
        k->ok = files_error(k->error, k->error_size, "%s: %lld leaves the range of int%d", what, (long long)value, bits);
    return value;
}

static int64_t next_weight(work *k)
{
    const size_t at = k->weight++;
    return k->w->element == 1 ? ((const int8_t *)k->w->projection)[at] : ((const int16_t *)k->w->projection)[at];
}

/* Binary places of the normalised input, and 2^15 sqrt(d) in the units of its gain. */
static int normalised_places(const reference_model *model, int *log2_root, int64_t *gain)
{
    const double root = sqrt((double)model->d);
    *log2_root = (int)ceil(log2(root));
    *gain = llrint(ldexp(root, 15 - *log2_root));
    const int places = 15 - *log2_root;
    return sqrt((double)model->d - 1.0) * ldexp(1.0 + ldexp(1.0, -10), places) > 32766.0 ? places - 1 : places;
}

/* k->x <- the normalised k->x. */
static void normalise(work *k)
{
    const reference_model *model = k->model;
    const int64_t d = (int64_t)model->d;
    int log2_root;
    int64_t gain, sum = 0, largest = 0;
    const int fraction = normalised_places(model, &log2_root, &gain);
    for (size_t i = 0; i < model->d; ++i)
        sum += k->x[i];
    for (size_t i = 0; i < model->d; ++i) {
        k->x[i] = fits(k, d * k->x[i] - sum, 31, "centred input");
        const int64_t size = k->x[i] < 0 ? -k->x[i] - 1 : k->x[i];
        largest = size > largest ? size : largest;
    }
    double eps = (double)d * (double)d * (double)d * model->norm_eps / (k->w->x_unit * k->w->x_unit);
    int least = 0, shift;
    while (eps >= 2147483648.0) {
        eps /= 4.0;
        ++least;
    }
    for (shift = least; largest >> shift >= 1 << 14;)
        ++shift;
    int64_t squares = shift - least < 16 ? (int64_t)floor(eps + 0.5) >> 2 * (shift - least) : 0;
    for (size_t i = 0; i < model->d; ++i) {
        k->x[i] = fits(k, rounded(k->x[i], shift), 16, "shifted input");
        squares += k->x[i] * k->x[i];
    }
    if (squares == 0)
        return;
    int n = 0;
    for (; squares >= 1 << 16; ++n)
        squares >>= 2;
    for (; squares < 1 << 14; --n)
        squares <<= 2;
    int64_t root = 36045 - (squares * 21627 >> 16);
    for (int step = 0; step < 3; ++step)
        root = root * (98304 - ((root * root >> 15) * squares >> 14)) >> 16;
    gain = root * gain >> 15;
    for (size_t i = 0; i < model->d; ++i)
        k->x[i] = fits(k, rounded(k->x[i] * gain, 22 - log2_root - fraction + n), 16, "normalised input");
}

/* The sum of `count` inputs in `folds` parts, `gap` apart, times the next weights; its multiplier is applied. */
static int64_t output_of(work *k, const int64_t *x, size_t count, size_t folds, size_t gap)
{
    int64_t sum = 0;
    for (size_t fold = 0; fold < folds; ++fold)
        for (size_t i = 0; i < count; ++i)
            sum = fits(k, sum + next_weight(k) * x[fold * gap + i], 32, "sum of products");
    return fits(k, floor_shift(sum * k->w->multipliers[k->multiplier++], 16), 32, "output");
}

/* y[blocks][width] <- its transform over the blocks. */
static void transform(work *k, int64_t *y, size_t blocks, size_t width)
{
    for (size_t half = 1; half < blocks; half *= 2)
        for (size_t block = 0; block < blocks; ++block)
            for (size_t i = 0; (block & half) == 0 && i < width; ++i) {
                int64_t *low = &y[block * width + i], *high = low + half * width;
                const int64_t sum = *low + *high, difference = *low - *high;
                *low = fits(k, sum, 32, "transform");
                *high = fits(k, difference, 32, "transform");
            }
}

/* One repeat of BH4 whose first `need` outputs are read: into z. */
static void repeat_bh4(work *k, size_t repeat, size_t need)
{
    const reference_model *model = k->model;
    const size_t N = reference_padded(model), b = model->block;
    for (size_t i = 0; i < N; ++i)
        k->values[i] = i < model->d ? k->x[i] : 0;
    for (size_t stage = 0; stage < 3; ++stage) {
        memset(k->sums, 0, N * sizeof *k->sums);
        for (size_t first = 0; first < N; first += b) {
            const size_t inputs = stage > 0 || first + b <= model->d ? b : first < model->d ? model->d - first : 0;
            for (size_t o = 0; inputs > 0 && o < b; ++o)
                k->sums[first + o] = output_of(k, k->values + first, inputs, 1, 0);
        }
        transform(k, k->sums, N / b, b);
        for (size_t i = 0; i < N; ++i)
            k->values[i] = fits(k, rounded(k->sums[i], k->w->shifts[4 + 3 * repeat + stage]), 16, "value of a stage");
    }
    size_t blocks = 1;
    while (blocks * b < need)
        blocks *= 2;
    const size_t outputs = blocks == 1 && need < b ? need : b;
    for (size_t first = 0; first < blocks; ++first)
        for (size_t o = 0; o < outputs; ++o)
            k->sums[first * b + o] = output_of(k, k->values + first * b, b, N / b / blocks, blocks * b);
    transform(k, k->sums, blocks, b);
    memcpy(k->z + repeat * N, k->sums, need * sizeof *k->z);
}

static void project(work *k)
{
    const reference_model *model = k->model;
    const size_t bits = model->h * model->tau, N = reference_padded(model);
    if (model->projection == REFERENCE_DENSE) {
        for (size_t j = 0; j < bits; ++j)
            k->z[j] = output_of(k, k->x, model->d, 1, 0);
    } else {
        for (size_t repeat = 0; repeat < reference_repeats(model); ++repeat)
            repeat_bh4(k, repeat, bits - repeat * N < N ? bits - repeat * N : N);
    }
    for (size_t j = 0; j < bits; ++j) {
        const size_t i = j % N;
        if (model->projection == REFERENCE_BH4 && k->w->residual && i < model->d)
            k->z[j] = fits(k, k->z[j] + rounded(fits(k, k->x[i] * k->w->residual[i], 31, "residual"), k->w->shifts[1]), 32, "z");
        k->z[j] = fits(k, k->z[j] + k->w->projection_bias[j], 32, "z");
    }
}

void reference_integer_tables(uint16_t *log2_table, uint16_t *power_table)
{
    for (int i = 0; i < LOG2_ENTRIES; ++i)
        log2_table[i] = (uint16_t)floor(32768.0 * log2(1.0 + exp(-2.0 * i / 32.0)) + 0.5);
    for (int i = 0; i < POWER_ENTRIES; ++i)
        power_table[i] = (uint16_t)floor(32768.0 * exp2(-i / 32.0) + 0.5);
}

int64_t reference_integer_log2(const uint16_t *table, int64_t z)
{
    const int64_t i = z / 128, part = z % 128;
    return i >= LOG2_ENTRIES - 1 ? 0 : table[i] - (table[i] - table[i + 1]) * part / 128;
}

int64_t reference_integer_power(const uint16_t *table, int64_t f)
{
    const int64_t i = f / 1024, part = f % 1024;
    return table[i] - (table[i] - table[i + 1]) * part / 1024;
}

/* |z| in the score's units, at most 16 bits. */
static int64_t magnitude_of(const work *k, int64_t z)
{
    const int64_t magnitude = floor_shift(z, k->w->shifts[0]);
    return magnitude < 65535 ? magnitude : 65535;
}

/* Of a table the best row and its score, then perhaps that whose code differs in the bit of least |z|, the first of several. */
static void hash(work *k, uint32_t *row, int32_t *score)
{
    const int64_t loss = llrint(32768.0 / log(2.0)); /* times |z| / 2^11: 2^15 log2(exp(2 |z|)) */
    const reference_model *model = k->model;
    uint16_t log2_table[LOG2_ENTRIES], power_table[POWER_ENTRIES];
    reference_integer_tables(log2_table, power_table);
    int sum_shift = 0;
    while ((size_t)1 << sum_shift < model->tau)
        ++sum_shift;
    for (size_t table = 0; table < model->h; ++table) {
        int64_t code = 0, sum = 0, log = 0, least = INT64_MAX, flip = 0;
        for (size_t j = 0; j < model->tau; ++j) {
            const int64_t z = k->z[table * model->tau + j], magnitude = z < 0 ? -z : z, size = magnitude_of(k, magnitude);
            code = 2 * code + (z > 0 ? 1 : 0);
            if (magnitude < least) {
                least = magnitude;
                flip = (int64_t)1 << (model->tau - 1 - j);
            }
            sum += size;
            log += reference_integer_log2(log2_table, size);
        }
        least = magnitude_of(k, least);
        for (size_t n = 0; n < model->neighbours; ++n) {
            const int64_t place = (int64_t)table * ((int64_t)1 << model->tau) + (n == 0 ? code : code ^ flip);
            const int64_t along = n == 0 ? sum : sum - 2 * least, scale = k->w->table_scales[place];
            int64_t power = n == 0 ? log : log + least * loss / 2048;
            if (!reference_scores[model->score].share)
                power = 0;
            int64_t scaled = reference_integer_power(power_table, power % 32768);
            scaled = reference_scores[model->score].along ? (scaled * (along >> sum_shift)) * scale >> 16 : scaled * scale;
            const int64_t places = power / 32768 + k->w->shifts[2];
            row[table * model->neighbours + n] = (uint32_t)place;
            score[table * model->neighbours + n] = (int32_t)fits(k, places < 63 ? scaled >> places : 0, 32, "score");
        }
    }
}

/* Element `at` of the tables. */
static int64_t element_at(const integer_weights *w, size_t at)
{
    if (!w->halves)
        return w->tables[at];
    const int64_t byte = (uint8_t)w->tables[at / 2], half = at % 2 ? byte / 16 : byte % 16;
    return half < 8 ? half : half - 16;
}

static void gather(work *k, const uint32_t *row, const int32_t *score, int32_t *y)
{
    for (size_t o = 0; o < k->model->d_out; ++o) {
        int64_t sum = k->w->bias[o];
        for (size_t slot = 0; slot < k->model->h * k->model->neighbours; ++slot)
            sum = fits(k, sum + (int64_t)score[slot] * element_at(k->w, row[slot] * k->w->pitch + o), 32, "sum of rows");
        y[o] = (int32_t)rounded(fits(k, sum + ((int64_t)1 << k->w->shifts[3] >> 1), 32, "rounded y") - ((int64_t)1 << k->w->shifts[3] >> 1),
                                k->w->shifts[3]);
    }
}

bool reference_integer(const integer_weights *weights, const int16_t *x, uint32_t *row, int32_t *score, int32_t *y, char *error,
                       size_t error_size)
{
    const reference_model *model = weights->model;
    const size_t N = reference_padded(model), bits = model->h * model->tau;
    work k = {.w = weights, .model = model, .error = error, .error_size = error_size, .ok = true};
    int64_t *memory = malloc((model->d + 2 * N + bits + N) * sizeof *memory);
    if (!memory)
        return files_error(error, error_size, "not enough memory");
    k.x = memory;
    k.values = k.x + model->d;
    k.sums = k.values + N;
    k.z = k.sums + N;
    for (size_t i = 0; i < model->d; ++i)
        k.x[i] = x[i];
    if (model->norm)
        normalise(&k);
    project(&k);
    hash(&k, row, score);
    gather(&k, row, score, y);
    free(memory);
    return k.ok;
}
