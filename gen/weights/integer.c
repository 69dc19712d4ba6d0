/* Folded float64 weights as integers; see integer.h. */
#include "gen/weights/integer.h"

#include "gen/host/files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_SUM 2147483000.0 /* of the absolute values of a sum in int32 */
#define LARGEST_STAGE 0x1p30     /* of a stage's outputs: rounding shifts add to them */
enum { LARGEST_MULTIPLIER = 32767, LARGEST_VALUE = 32767, MOST_Z_SHIFT = 16, MOST_Y_SHIFT = 24, MOST_SCORE_SHIFT = 15 };

/* Values of a stage as linear forms of the input: value[i] = form[i] . input, |error| <= error[i]. Units: the input's and the stage's. */
typedef struct {
    double *form;  /* [padded][d] */
    double *error; /* [padded] */
    double *bound; /* [padded] of |value| */
} values;

typedef struct {
    integer_projection *p;
    values in, out;
    double length;     /* of the input in its units */
    double unit;       /* of the values `in` */
    bool exact;        /* `in` is the input itself */
    double z_unit;     /* 0: to be found */
    double min_z_unit; /* that keeps multipliers and sums in range */
    double *row;       /* the weights of an output, [inputs] */
    size_t *place;     /* and the inputs that they are for */
} state;

static double length_of(const double *form, size_t d)
{
    double sum = 0.0;
    for (size_t i = 0; i < d; ++i)
        sum += form[i] * form[i];
    return sqrt(sum);
}

/* Reads the weights of output `o` of block `k`, returns how many, and their largest magnitude. */
static size_t read_row(state *s, const integer_product *product, size_t k, size_t o, double *largest)
{
    size_t n = 0;
    *largest = 0.0;
    for (size_t fold = 0; fold < product->folds; ++fold)
        for (size_t i = 0; i < product->rows; ++i, ++n) {
            s->row[n] = s->p->weights[product->from + k * product->block + fold * product->fold + i * product->row + o * product->output];
            s->place[n] = product->x_at + k * product->x_stride + fold * product->fold_gap + i;
            *largest = fmax(*largest, fabs(s->row[n]));
        }
    return n;
}

/* The smallest unit of the weights in s->row that makes them small enough for their type and their sum for int32. */
static double min_row_unit(const state *s, size_t count, double largest)
{
    double inputs = 0.0, sum = 0.0;
    for (size_t i = 0; i < count; ++i) {
        inputs += s->in.bound[s->place[i]];
        sum += fabs(s->row[i]) * s->in.bound[s->place[i]];
    }
    double unit = sum / (LARGEST_SUM - 0.5 * inputs);
    if (s->exact)
        unit = fmin(unit, length_of(s->row, count) * s->length / (LARGEST_SUM - 0.5 * sqrt((double)count) * s->length));
    return fmax(largest / s->p->max_weight, unit);
}

static void store_weight(const integer_projection *p, size_t at, double value)
{
    if (p->element == 1)
        ((int8_t *)p->packed)[at] = (int8_t)value;
    else
        ((int16_t *)p->packed)[at] = (int16_t)value;
}

/* Packs the weights in s->row for outputs in `unit`; fills the output's form. */
static void pack_row(state *s, const integer_product *product, size_t k, size_t o, size_t count, double largest, double unit)
{
    integer_projection *p = s->p;
    const size_t at = k * product->outputs + o, target = product->target_at + at, d = p->d;
    const double min = min_row_unit(s, count, largest);
    const double multiplier = largest > 0.0 ? fmin(fmax(ceil(0x1p16 * min * s->unit / unit), 1.0), LARGEST_MULTIPLIER) : 1.0;
    const double row_unit = multiplier * unit / (0x1p16 * s->unit);
    double *form = s->out.form + target * d, error = 0.0;
    memset(form, 0, d * sizeof *form);
    for (size_t i = 0; i < count; ++i) {
        const double weight = largest > 0.0 ? fmin(fmax(rint(s->row[i] / row_unit), -p->max_weight), p->max_weight) : 0.0;
        const double difference = weight * row_unit - s->row[i], *input = s->in.form + s->place[i] * d;
        store_weight(p, product->weight_at + at * count + i, weight);
        p->tally.error += difference * difference;
        p->tally.power += s->row[i] * s->row[i];
        for (size_t j = 0; weight != 0.0 && j < d; ++j)
            form[j] += weight * multiplier / 0x1p16 * input[j];
        error += fabs(weight) * multiplier / 0x1p16 * s->in.error[s->place[i]];
    }
    p->multipliers[product->multiplier_at + at] = (int16_t)multiplier;
    s->out.error[target] = error + 1.0; /* rounded down */
    s->out.bound[target] = length_of(form, d) * s->length + s->out.error[target];
}

/* Multiplies rows of forms by the Hadamard matrix over blocks; errors add. */
static void transform(state *s, const integer_step *step)
{
    const size_t d = s->p->d, rows = step->blocks * step->width;
    for (size_t half = step->width; half < rows; half *= 2)
        for (size_t row = 0; row < rows; ++row) {
            if (row / half % 2)
                continue;
            double *low = s->out.form + row * d, *high = low + half * d;
            for (size_t i = 0; i < d; ++i) {
                const double sum = low[i] + high[i], difference = low[i] - high[i];
                low[i] = sum;
                high[i] = difference;
            }
            s->out.error[row] = s->out.error[row + half] = s->out.error[row] + s->out.error[row + half];
        }
    for (size_t row = 0; row < rows; ++row)
        s->out.bound[row] = length_of(s->out.form + row * d, d) * s->length + s->out.error[row];
}

/* The smallest unit of a stage's outputs that keeps the multipliers in range. Where all weights are zero, as with decay = 0, any would do:
   a tiny one leaves z to residual and bias. */
static double min_unit(state *s, const integer_step *step)
{
    double unit = 0.0;
    for (size_t n = 0; n < step->product_count; ++n) {
        const integer_product *product = &step->products[n];
        for (size_t at = 0; at < product->count * product->outputs; ++at) {
            double largest;
            const size_t count = read_row(s, product, at / product->outputs, at % product->outputs, &largest);
            unit = fmax(unit, min_row_unit(s, count, largest) * s->unit * 0x1p16 / LARGEST_MULTIPLIER);
        }
    }
    return unit > 0.0 ? unit : step->last ? 0x1p-200 : s->unit;
}

/* The products of a stage in `unit`, and the largest sum of |outputs| over the blocks. */
static double multiply(state *s, const integer_step *step, double unit)
{
    memset(s->out.form, 0, step->blocks * step->width * s->p->d * sizeof *s->out.form);
    memset(s->out.error, 0, step->blocks * step->width * sizeof *s->out.error);
    memset(s->out.bound, 0, step->blocks * step->width * sizeof *s->out.bound);
    for (size_t n = 0; n < step->product_count; ++n) {
        const integer_product *product = &step->products[n];
        for (size_t at = 0; at < product->count * product->outputs; ++at) {
            const size_t k = at / product->outputs, o = at % product->outputs;
            double largest;
            const size_t count = read_row(s, product, k, o, &largest);
            pack_row(s, product, k, o, count, largest, unit);
        }
    }
    double max = 0.0;
    for (size_t row = 0; row < step->width; ++row) {
        double sum = 0.0;
        for (size_t block = 0; block < step->blocks; ++block)
            sum += s->out.bound[block * step->width + row];
        max = fmax(max, sum);
    }
    return max;
}

/* The last stage: bounds of z with residual and bias, and if its unit is known, these. */
static void finish_z(state *s, const integer_step *step, double unit, double max)
{
    integer_projection *p = s->p;
    s->min_z_unit = fmax(s->min_z_unit, fmax(unit, unit * max / LARGEST_STAGE));
    for (size_t row = 0; row < step->rows; ++row) {
        const size_t j = step->z_at + row, i = j % p->padded;
        double bound = s->out.bound[row] * unit + fabs(p->bias[j]);
        if (p->residual && i < p->d)
            bound += fabs(p->residual[i]) * LARGEST_VALUE * p->unit;
        p->largest[j] = bound;
        s->min_z_unit = fmax(s->min_z_unit, bound / LARGEST_STAGE);
    }
}

/* One walk over all stages. */
static void walk(state *s)
{
    integer_projection *p = s->p;
    const double element = p->length > 0.0 ? LARGEST_VALUE : 32768.0;
    for (size_t n = 0; n < p->step_count; ++n) {
        const integer_step *step = &p->steps[n];
        s->exact = step->first;
        if (step->first) {
            s->unit = p->unit;
            memset(s->in.form, 0, p->padded * p->d * sizeof *s->in.form);
            for (size_t i = 0; i < p->d; ++i) {
                s->in.form[i * p->d + i] = 1.0;
                s->in.error[i] = 0.0;
                s->in.bound[i] = element;
            }
        }
        double unit = step->last && s->z_unit > 0.0 ? s->z_unit : min_unit(s, step), max = multiply(s, step, unit);
        if (step->last) {
            transform(s, step);
            finish_z(s, step, unit, max);
            continue;
        }
        while (max > LARGEST_STAGE && unit < 0x1p900) {
            unit *= 2.0;
            max = multiply(s, step, unit);
        }
        transform(s, step);
        double largest = 0.0;
        for (size_t row = 0; row < step->rows; ++row)
            largest = fmax(largest, s->out.bound[row]);
        int shift = 0;
        while (shift < 30 && ldexp(largest, -shift) + 0.5 > LARGEST_VALUE)
            ++shift;
        p->shifts[step->shift_at] = (uint8_t)shift;
        for (size_t row = 0; row < step->rows; ++row) {
            s->in.error[row] = ldexp(s->out.error[row], -shift) + 0.5;
            s->in.bound[row] = fmin(LARGEST_VALUE, ldexp(s->out.bound[row], -shift) + 0.5);
            for (size_t i = 0; i < p->d; ++i)
                s->in.form[row * p->d + i] = ldexp(s->out.form[row * p->d + i], -shift);
        }
        s->unit = ldexp(unit, shift);
    }
}

static bool allocate(values *v, size_t rows, size_t d)
{
    *v = (values){malloc(rows * d * sizeof(double)), malloc(rows * sizeof(double)), malloc(rows * sizeof(double))};
    return v->form && v->error && v->bound;
}

static void release(values *v)
{
    free(v->form);
    free(v->error);
    free(v->bound);
}

/* The residual's factors in units of z with as many binary places as fit. */
static void pack_residual(state *s)
{
    integer_projection *p = s->p;
    double largest = 0.0;
    for (size_t i = 0; i < p->d; ++i)
        largest = fmax(largest, fabs(p->residual[i]) * p->unit / s->z_unit);
    int shift = 0;
    while (shift < 15 && ldexp(largest, shift + 1) <= LARGEST_VALUE)
        ++shift;
    *p->residual_shift = (uint8_t)shift;
    for (size_t i = 0; i < p->d; ++i)
        p->packed_residual[i] = (int16_t)rint(ldexp(p->residual[i] * p->unit / s->z_unit, shift));
}

static bool pack(state *s, char *error, size_t size)
{
    integer_projection *p = s->p;
    walk(s);
    /* Magnitudes of z have magnitude_unit after a shift of z; the residual's factors must fit into int16. */
    for (size_t i = 0; p->residual && i < p->d; ++i)
        s->min_z_unit = fmax(s->min_z_unit, fabs(p->residual[i]) * p->unit / LARGEST_VALUE);
    int shift = MOST_Z_SHIFT;
    while (shift >= 0 && ldexp(p->magnitude_unit, -shift) < s->min_z_unit)
        --shift;
    double largest = 0.0;
    for (size_t j = 0; j < p->bits; ++j)
        largest = fmax(largest, p->largest[j]);
    if (shift < 0 || !(s->min_z_unit < INFINITY))
        return files_error(error, size, "projected values reach %.3g: too large for integer arithmetic", largest);
    s->z_unit = ldexp(p->magnitude_unit, -shift);
    *p->z_shift = (uint8_t)shift;
    p->tally = (quantise_tally){0};
    walk(s);
    if (p->residual)
        pack_residual(s);
    for (size_t j = 0; j < p->bits; ++j)
        p->packed_bias[j] = (int32_t)rint(p->bias[j] / s->z_unit);
    return true;
}

bool integer_pack_projection(integer_projection *projection, char *error, size_t size)
{
    integer_projection *p = projection;
    size_t rows = p->padded, inputs = p->d;
    for (size_t n = 0; n < p->step_count; ++n) {
        const size_t outputs = p->steps[n].blocks * p->steps[n].width;
        rows = outputs > rows ? outputs : rows;
        for (size_t k = 0; k < p->steps[n].product_count; ++k) {
            const size_t count = p->steps[n].products[k].folds * p->steps[n].products[k].rows;
            inputs = count > inputs ? count : inputs;
        }
    }
    state s = {.p = p, .row = malloc(inputs * sizeof(double)), .place = malloc(inputs * sizeof(size_t))};
    s.length = p->length > 0.0 ? p->length / p->unit : sqrt((double)p->d) * 32768.0;
    const bool memory = allocate(&s.in, rows, p->d) && allocate(&s.out, rows, p->d) && s.row && s.place;
    const bool ok = memory ? pack(&s, error, size) : files_error(error, size, "not enough memory");
    release(&s.in);
    release(&s.out);
    free(s.row);
    free(s.place);
    return ok;
}

/* The scale of rows in elements of at most `unit`, in units of the rows' scales. */
static double scale_of(const integer_tables *t, double unit)
{
    return fmin(ceil(unit / t->unit), 65535.0);
}

/* The largest sum of scores times scales of a token's rows of table `k`, in units of the sums before the shift. */
static double largest_scores(const integer_tables *t, size_t k)
{
    double unit = 0.0;
    for (size_t i = 0; i < t->rows; ++i)
        unit = fmax(unit, t->units[k * t->rows + i]);
    const double scale = scale_of(t, unit);
    if (!t->along)
        return 32768.0 * t->shares * scale;
    const double sum = fmin(floor(ldexp(t->largest[k], t->magnitude_fraction - t->sum_shift)) + 1.0, 65535.0);
    return 32768.0 * t->shares * sum * scale / 65536.0;
}

bool integer_plan_tables(integer_tables *t, char *error, size_t size)
{
    const double most = quantise_largest(t->type);
    double largest = 0.0, bias = 0.0; /* unit, element */
    for (size_t i = 0; i < t->h * t->rows; ++i)
        largest = fmax(largest, t->units[i]);
    for (size_t o = 0; o < t->d_out; ++o)
        bias = fmax(bias, fabs(t->bias[o]));
    if (!(most * largest < 0x1p100) || !(bias < 0x1p100))
        return files_error(error, size, "values of tables or bias reach %.3g: too large for integer arithmetic",
                           fmax(most * largest, bias));
    /* A power of two, so that a shift makes y of its sums; not so small that the shift were too long. */
    t->unit = ldexp(1.0, -t->fraction - 40);
    while (largest > 65535.0 * t->unit)
        t->unit *= 2.0;
    const int places = t->along ? 15 + t->magnitude_fraction - t->sum_shift - 16 : 15;
    for (;; t->unit *= 2.0) {
        double sum = 0.0;
        for (size_t k = 0; k < t->h; ++k)
            sum += largest_scores(t, k) + 1.0;
        int shift = 0, exponent;
        double sums = 0.0, unit = 0.0;
        for (; shift <= MOST_SCORE_SHIFT; ++shift) {
            unit = ldexp(t->unit, shift - places);
            sums = most * ldexp(sum, -shift) + bias / unit;
            if (sums <= LARGEST_SUM - ldexp(1.0, MOST_Y_SHIFT))
                break;
        }
        if (shift > MOST_SCORE_SHIFT)
            continue; /* the bias is far larger than the rows */
        frexp(unit, &exponent);
        const int y_shift = -t->fraction - (exponent - 1);
        if (y_shift < 0)
            return files_error(error, size, "y may reach %.3g: too large for int32 with integer.fraction = %d", sums * unit, t->fraction);
        if (y_shift > MOST_Y_SHIFT)
            continue;
        *t->score_shift = (uint8_t)shift;
        *t->y_shift = (uint8_t)y_shift;
        for (size_t o = 0; o < t->d_out; ++o)
            t->packed_bias[o] = (int32_t)rint(t->bias[o] / unit);
        return true;
    }
}

void integer_pack_row(integer_tables *t, const double *row, double least_unit, void *packed, uint16_t *scale)
{
    const double multiplier = scale_of(t, least_unit), unit = multiplier * t->unit, most = quantise_largest(t->type);
    *scale = (uint16_t)multiplier;
    for (size_t o = 0; o < t->d_out; ++o) {
        const double value = unit > 0.0 ? fmin(fmax(rint(row[o] / unit), -most), most) : 0.0, difference = value * unit - row[o];
        quantise_store(t->type, value, packed, o);
        t->tally.error += difference * difference;
        t->tally.power += row[o] * row[o];
    }
}
