//$ takes storage, may_have
//$ if may_have.mve then
#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE & 1
#include <arm_mve.h>
#endif
//$ end
//$ if may_have.dsp then
#if defined(__ARM_FEATURE_DSP)
#include <arm_acle.h>
#endif
//$ end
//$ if may_have.neon then
#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#endif
//$ end

/* floor(value factor / 2^16) for 0 <= factor < 2^15, without a product of more than 32 bits where those are slow. */
static inline int32_t $(model)_scale_by(int32_t value, int32_t factor)
{
//$ if may_have.dsp then
#if defined(__ARM_FEATURE_DSP)
    return (int32_t) ((int64_t) value * factor >> 16);
#else
//$ end
    return (value >> 16) * factor + (int32_t) (((uint32_t) value & 0xffffu) * (uint32_t) factor >> 16);
#endif //$ if may_have.dsp
}

/* round(value / 2^shift), halves up. Neither value nor shift may be so large that the sum overflows: lookupc pack sees to it. */
static inline int32_t $(model)_shift_rounded(int32_t value, unsigned shift)
{
    return (value + ((1 << shift) >> 1)) >> shift;
}

//$ local wide = storage == "int16_t"
//$ if may_have.dsp and wide then
#if defined(__ARM_FEATURE_DSP)
typedef int32_t __attribute__((may_alias, aligned(2))) $(model)_i16_pair;

/* sum + x[0] w[0] + x[1] w[1] */
static inline int32_t $(model)_add_dot2(int32_t sum, const int16_t *x, const int16_t *w)
{
    return __smlad(*(const $(model)_i16_pair *) (const void *) x, *(const $(model)_i16_pair *) (const void *) w, sum);
}
#else
//$ else
/* sum + x[0] w[0] + x[1] w[1] */
//$ end
static inline int32_t $(model)_add_dot2(int32_t sum, const int16_t *x, const $(storage) *w)
{
    return sum + x[0] * w[0] + x[1] * w[1];
}
#endif //$ if may_have.dsp and wide
//$ if not wide then

//$ if may_have.dsp then
#if defined(__ARM_FEATURE_DSP)
typedef uint32_t __attribute__((may_alias, aligned(1))) $(model)_i8_quad;

/* sum + x[0] w[0] + … + x[3] w[3]: weights 0 and 2, then 1 and 3, in halves of a word. */
static inline int32_t $(model)_add_dot4(int32_t sum, const int16_t *x, const int8_t *w)
{
    const uint32_t low = *(const $(model)_i8_quad *) (const void *) x;
    const uint32_t high = *(const $(model)_i8_quad *) (const void *) (x + 2);
    const uint32_t all = *(const $(model)_i8_quad *) (const void *) w;
    const uint32_t even = (low & 0xffffu) | high << 16, odd = low >> 16 | (high & 0xffff0000u);
    return __smlad((int32_t) odd, __sxtb16((int32_t) (all >> 8 | all << 24)), __smlad((int32_t) even, __sxtb16((int32_t) all), sum));
}
#else
//$ else
/* sum + x[0] w[0] + … + x[3] w[3] */
//$ end
static inline int32_t $(model)_add_dot4(int32_t sum, const int16_t *x, const int8_t *w)
{
    return $(model)_add_dot2($(model)_add_dot2(sum, x, w), x + 2, w + 2);
}
#endif //$ if may_have.dsp
//$ end
