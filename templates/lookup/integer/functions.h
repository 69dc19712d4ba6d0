//$ takes storage, neon
#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE & 1
#include <arm_mve.h>
#endif
#if defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>
#endif
//$ if neon then
#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#endif
//$ end

/* floor(value factor / 2^16) for 0 <= factor < 2^15, without a product of more than 32 bits where those are slow. */
static inline int32_t $(model)_scale_by(int32_t value, int32_t factor)
{
#if defined(__ARM_FEATURE_DSP)
    return (int32_t) ((int64_t) value * factor >> 16);
#else
    return (value >> 16) * factor + (int32_t) (((uint32_t) value & 0xffffu) * (uint32_t) factor >> 16);
#endif
}

/* round(value / 2^shift), halves up. Neither value nor shift may be so large that the sum overflows: lookupc pack sees to it. */
static inline int32_t $(model)_shift_rounded(int32_t value, unsigned shift)
{
    return (value + ((1 << shift) >> 1)) >> shift;
}

//$ if storage == "int16_t" then
#if defined(__ARM_FEATURE_DSP)
typedef int32_t __attribute__((may_alias, aligned(2))) $(model)_i16_pair;

/* sum + x[0] w[0] + x[1] w[1] */
static inline int32_t $(model)_add_dot2(int32_t sum, const int16_t *x, const int16_t *w)
{
    return __smlad(*(const $(model)_i16_pair *) (const void *) x, *(const $(model)_i16_pair *) (const void *) w, sum);
}
#else
/* sum + x[0] w[0] + x[1] w[1] */
static inline int32_t $(model)_add_dot2(int32_t sum, const int16_t *x, const int16_t *w)
{
    return sum + x[0] * w[0] + x[1] * w[1];
}
#endif
//$ else
/* sum + x[0] w[0] + x[1] w[1] */
static inline int32_t $(model)_add_dot2(int32_t sum, const int16_t *x, const int8_t *w)
{
    return sum + x[0] * w[0] + x[1] * w[1];
}

#if defined(__ARM_FEATURE_DSP)
typedef uint32_t __attribute__((may_alias, aligned(1))) $(model)_i8_quad;

/* sum + x[0] w[0] + … + x[3] w[3]: weights 0 and 2, then 1 and 3, in halves of a word. */
static inline int32_t $(model)_add_dot4(int32_t sum, const int16_t *x, const int8_t *w)
{
    const uint32_t low = *(const $(model)_i8_quad *) (const void *) x, high = *(const $(model)_i8_quad *) (const void *) (x + 2), all = *(const $(model)_i8_quad *) (const void *) w;
    const uint32_t even = (low & 0xffffu) | high << 16, odd = low >> 16 | (high & 0xffff0000u);
    return __smlad((int32_t) odd, __sxtb16((int32_t) (all >> 8 | all << 24)), __smlad((int32_t) even, __sxtb16((int32_t) all), sum));
}
#else
/* sum + x[0] w[0] + … + x[3] w[3] */
static inline int32_t $(model)_add_dot4(int32_t sum, const int16_t *x, const int8_t *w)
{
    return $(model)_add_dot2($(model)_add_dot2(sum, x, w), x + 2, w + 2);
}
#endif
//$ end

//$ -- Products of as many inputs at a time, the load of eight weights, and the address of weight `at` of output `s`.
//$ local width, load = storage == "int16_t" and 2 or 4, storage == "int16_t" and "vld1q_s16" or "vldrbq_s16"
//$ local function row(s, at) return s == 0 and sum("w", at) or sum("w + " .. (s == 1 and "step" or s .. " * step"), at) end
/* Adds eight products to each of four outputs, whose weights are `step` apart. */
static inline void $(model)_add_dots8(int32_t *sum, const int16_t *x, const $(storage) *w, size_t step)
{
#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE & 1
    const int16x8_t inputs = vld1q_s16(x);
//$ for s = 0, 3 do
    sum[$(s)] = vmladavaq_s16(sum[$(s)], inputs, $(load)($(row(s, 0))));
//$ end
//$ if neon then
#elif defined(__aarch64__) && defined(__ARM_NEON)
    const int16x8_t inputs = vld1q_s16(x);
//$ for s = 0, 3 do
//$     local address = row(s, 0)
    const int16x8_t row$(s) = $(storage == "int16_t" and "vld1q_s16(" .. address .. ")" or "vmovl_s8(vld1_s8(" .. address .. "))");
    sum[$(s)] += vaddvq_s32(vmlal_high_s16(vmull_s16(vget_low_s16(inputs), vget_low_s16(row$(s))), inputs, row$(s)));
//$ end
//$ end
#else
//$ for at = 0, 7, width do
//$ for s = 0, 3 do
    sum[$(s)] = $(model)_add_dot$(width)(sum[$(s)], $(sum("x", at)), $(row(s, at)));
//$ end
//$ end
#endif
}

/* Sums of y are exact: whatever x is, no partial sum leaves int32, since lookupc pack chooses the units of scores and rows by their bounds. */
#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE & 1
#define $(names.macro("STRIP")) 16 /* columns of y that are summed together */

typedef struct {
    int32x4_t part[4];
} $(model)_gather_sums;

static inline void $(model)_gather_begin(const int32_t *bias, $(model)_gather_sums *sums)
{
    sums->part[0] = vld1q_s32(bias);
    sums->part[1] = vld1q_s32(bias + 4);
    sums->part[2] = vld1q_s32(bias + 8);
    sums->part[3] = vld1q_s32(bias + 12);
}

static inline void $(model)_gather_add(int32_t factor, const int8_t *entry, $(model)_gather_sums *sums)
{
    sums->part[0] = vmlaq_n_s32(sums->part[0], vldrbq_s32(entry), factor);
    sums->part[1] = vmlaq_n_s32(sums->part[1], vldrbq_s32(entry + 4), factor);
    sums->part[2] = vmlaq_n_s32(sums->part[2], vldrbq_s32(entry + 8), factor);
    sums->part[3] = vmlaq_n_s32(sums->part[3], vldrbq_s32(entry + 12), factor);
}

static inline void $(model)_gather_end(const $(model)_gather_sums *sums, unsigned shift, int32_t *y)
{
    vst1q_s32(y, vrshlq_s32(sums->part[0], vdupq_n_s32(-(int32_t) shift)));
    vst1q_s32(y + 4, vrshlq_s32(sums->part[1], vdupq_n_s32(-(int32_t) shift)));
    vst1q_s32(y + 8, vrshlq_s32(sums->part[2], vdupq_n_s32(-(int32_t) shift)));
    vst1q_s32(y + 12, vrshlq_s32(sums->part[3], vdupq_n_s32(-(int32_t) shift)));
}
//$ if neon then
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define $(names.macro("STRIP")) 16 /* columns of y that are summed together */

typedef struct {
    int32x4_t part[4];
} $(model)_gather_sums;

/* sums = bias */
static inline void $(model)_gather_begin(const int32_t *bias, $(model)_gather_sums *sums)
{
    for (unsigned part = 0; part < 4; ++part)
        sums->part[part] = vld1q_s32(bias + 4 * part);
}

/* sums += factor entry */
static inline void $(model)_gather_add(int32_t factor, const int8_t *entry, $(model)_gather_sums *sums)
{
    const int8x16_t bytes = vld1q_s8(entry);
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    sums->part[0] = vmlaq_n_s32(sums->part[0], vmovl_s16(vget_low_s16(low)), factor);
    sums->part[1] = vmlaq_n_s32(sums->part[1], vmovl_high_s16(low), factor);
    sums->part[2] = vmlaq_n_s32(sums->part[2], vmovl_s16(vget_low_s16(high)), factor);
    sums->part[3] = vmlaq_n_s32(sums->part[3], vmovl_high_s16(high), factor);
}

/* y = round(sums / 2^shift) */
static inline void $(model)_gather_end(const $(model)_gather_sums *sums, unsigned shift, int32_t *y)
{
    for (unsigned part = 0; part < 4; ++part)
        vst1q_s32(y + 4 * part, vrshlq_s32(sums->part[part], vdupq_n_s32(-(int32_t) shift)));
}
//$ end
#else
#define $(names.macro("STRIP")) 4 /* columns of y that are summed together */

typedef struct {
    int32_t part[4];
} $(model)_gather_sums;

/* sums = bias */
static inline void $(model)_gather_begin(const int32_t *bias, $(model)_gather_sums *sums)
{
    sums->part[0] = bias[0];
    sums->part[1] = bias[1];
    sums->part[2] = bias[2];
    sums->part[3] = bias[3];
}

/* sums += factor entry */
static inline void $(model)_gather_add(int32_t factor, const int8_t *entry, $(model)_gather_sums *sums)
{
    sums->part[0] += factor * entry[0];
    sums->part[1] += factor * entry[1];
    sums->part[2] += factor * entry[2];
    sums->part[3] += factor * entry[3];
}

/* y = round(sums / 2^shift) */
static inline void $(model)_gather_end(const $(model)_gather_sums *sums, unsigned shift, int32_t *y)
{
    y[0] = $(model)_shift_rounded(sums->part[0], shift);
    y[1] = $(model)_shift_rounded(sums->part[1], shift);
    y[2] = $(model)_shift_rounded(sums->part[2], shift);
    y[3] = $(model)_shift_rounded(sums->part[3], shift);
}
#endif
