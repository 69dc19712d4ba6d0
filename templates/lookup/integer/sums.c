//$ takes may_have, tables
/* Sums of y are exact: whatever x is, no partial sum leaves int32, since lookupc pack chooses the units of scores and
   rows by their bounds. */
//$ local packed, branches = tables.bytes < 1, 0
//$ if packed then

/* Element `number` of a row: two lie in a byte, the first one in its low bits. */
static inline int32_t $(model)_gather_element(const int8_t *entry, size_t number)
{
    return number % 2 ? entry[number / 2] >> 4 : (int32_t) ((uint32_t) entry[number / 2] << 28) >> 28;
}

//$ end
//$ -- Begins the functions for where `condition` is true, for the last branch without one: `columns` of y, in four sums.
//$ local function branch(condition, columns, type)
//$     branches = branches + 1
//$     if condition then
#$(branches > 1 and "el" or "")if $(condition)
//$     elseif branches > 1 then
#else
//$     end
#define $(names.macro("STRIP")) $(columns) /* columns of y that are summed together */

typedef struct {
    $(type) part[4];
} $(model)_gather_sums;

//$ end
//$ local function comment(text)
/* $(text) */ //$ if branches == 1
//$ end
//$ local function begin()
//$ comment "sums = bias"
static inline void $(model)_gather_begin(const int32_t *bias, $(model)_gather_sums *sums)
//$ end
//$ local function add()

//$ comment "sums += factor entry"
static inline void $(model)_gather_add(int32_t factor, const int8_t *entry, $(model)_gather_sums *sums)
//$ end
//$ local function finish()

//$ comment "y = round(sums / 2^shift)"
static inline void $(model)_gather_end(const $(model)_gather_sums *sums, unsigned shift, int32_t *y)
//$ end
//$ -- The same with vectors of rows in i4: of eight columns a part has the even ones, the next part the odd ones.
//$ local function begin_pairs()
{
//$     for part = 0, 3, 2 do
    const int32x4x2_t columns$(part) = vld2q_s32($(sum("bias", 4 * part)));
    sums->part[$(part)] = columns$(part).val[0];
    sums->part[$(part + 1)] = columns$(part).val[1];
//$     end
}
//$ end
//$ local function finish_pairs()
{
    const int32x4_t places = vdupq_n_s32(-(int32_t) shift);
//$     for part = 0, 3, 2 do
    const int32x4x2_t columns$(part) = {{vrshlq_s32(sums->part[$(part)], places), vrshlq_s32(sums->part[$(part + 1)], places)}};
    vst2q_s32($(sum("y", 4 * part)), columns$(part));
//$     end
}
//$ end
//$ if may_have.mve then
//$ branch("defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE & 1", 16, "int32x4_t")
//$ begin()
//$ if packed then
//$ begin_pairs()
//$ add()
{
//$ for part = 0, 3, 2 do
    const int32x4_t bytes$(part) = vldrbq_s32($(sum("entry", 2 * part)));
    sums->part[$(part)] = vmlaq_n_s32(sums->part[$(part)], vshrq_n_s32(vshlq_n_s32(bytes$(part), 28), 28), factor);
    sums->part[$(part + 1)] = vmlaq_n_s32(sums->part[$(part + 1)], vshrq_n_s32(bytes$(part), 4), factor);
//$ end
}
//$ finish()
//$ finish_pairs()
//$ else
{
    sums->part[$(part)] = vld1q_s32($(sum("bias", 4 * part))); //$ for part = 0, 3
}
//$ add()
{
//$ for part = 0, 3 do
    sums->part[$(part)] = vmlaq_n_s32(sums->part[$(part)], vldrbq_s32($(sum("entry", 4 * part))), factor);
//$ end
}
//$ finish()
{
//$ for part = 0, 3 do
    vst1q_s32($(sum("y", 4 * part)), vrshlq_s32(sums->part[$(part)], vdupq_n_s32(-(int32_t) shift)));
//$ end
}
//$ end
//$ end
//$ if may_have.neon then
//$ branch("defined(__aarch64__) && defined(__ARM_NEON)", 16, "int32x4_t")
//$ begin()
//$ if packed then
//$ begin_pairs()
//$ add()
{
    const int8x8_t bytes = vld1_s8(entry);
    const int16x8_t even = vmovl_s8(vshr_n_s8(vshl_n_s8(bytes, 4), 4)), odd = vmovl_s8(vshr_n_s8(bytes, 4));
    sums->part[0] = vmlaq_n_s32(sums->part[0], vmovl_s16(vget_low_s16(even)), factor);
    sums->part[1] = vmlaq_n_s32(sums->part[1], vmovl_s16(vget_low_s16(odd)), factor);
    sums->part[2] = vmlaq_n_s32(sums->part[2], vmovl_high_s16(even), factor);
    sums->part[3] = vmlaq_n_s32(sums->part[3], vmovl_high_s16(odd), factor);
}
//$ finish()
//$ finish_pairs()
//$ else
{
    for (unsigned part = 0; part < 4; ++part)
        sums->part[part] = vld1q_s32(bias + 4 * part);
}
//$ add()
{
    const int8x16_t bytes = vld1q_s8(entry);
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    sums->part[0] = vmlaq_n_s32(sums->part[0], vmovl_s16(vget_low_s16(low)), factor);
    sums->part[1] = vmlaq_n_s32(sums->part[1], vmovl_high_s16(low), factor);
    sums->part[2] = vmlaq_n_s32(sums->part[2], vmovl_s16(vget_low_s16(high)), factor);
    sums->part[3] = vmlaq_n_s32(sums->part[3], vmovl_high_s16(high), factor);
}
//$ finish()
{
    for (unsigned part = 0; part < 4; ++part)
        vst1q_s32(y + 4 * part, vrshlq_s32(sums->part[part], vdupq_n_s32(-(int32_t) shift)));
}
//$ end
//$ end
//$ branch(nil, 4, "int32_t")
//$ begin()
{
    sums->part[$(part)] = bias[$(part)]; //$ for part = 0, 3
}
//$ add()
{
//$ for part = 0, 3 do
    sums->part[$(part)] += factor * $(packed and model .. "_gather_element(entry, " .. part .. ")" or "entry[" .. part .. "]");
//$ end
}
//$ finish()
{
    y[$(part)] = $(model)_shift_rounded(sums->part[$(part)], shift); //$ for part = 0, 3
}
#endif //$ if branches > 1
