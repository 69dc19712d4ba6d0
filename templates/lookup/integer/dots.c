//$ takes storage, may_have
//$ -- Products of as many inputs at a time, the load of eight weights, and the address of weight `at` of output `s`.
//$ local width, load = storage == "int16_t" and 2 or 4, storage == "int16_t" and "vld1q_s16" or "vldrbq_s16"
//$ local function row(s, at) return s == 0 and sum("w", at) or sum("w + " .. (s == 1 and "step" or s .. " * step"), at) end
/* Adds eight products to each of four outputs, whose weights are `step` apart. */
static inline void $(model)_add_dots8(int32_t *sum, const int16_t *x, const $(storage) *w, size_t step)
{
//$ if may_have.mve then
#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE & 1
    const int16x8_t inputs = vld1q_s16(x);
    sum[$(s)] = vmladavaq_s16(sum[$(s)], inputs, $(load)($(row(s, 0)))); //$ for s = 0, 3
//$ end
//$ if may_have.neon then
#$(may_have.mve and "el" or "")if defined(__aarch64__) && defined(__ARM_NEON)
    const int16x8_t inputs = vld1q_s16(x);
//$ for s = 0, 3 do
//$     local address = row(s, 0)
    const int16x8_t row$(s) = $(storage == "int16_t" and "vld1q_s16(" .. address .. ")" or "vmovl_s8(vld1_s8(" .. address .. "))");
    sum[$(s)] += vaddvq_s32(vmlal_high_s16(vmull_s16(vget_low_s16(inputs), vget_low_s16(row$(s))), inputs, row$(s)));
//$ end
//$ end
#else //$ if may_have.vectors
//$ for at = 0, 7, width do
    sum[$(s)] = $(model)_add_dot$(width)(sum[$(s)], $(sum("x", at)), $(row(s, at))); //$ for s = 0, 3
//$ end
#endif //$ if may_have.vectors
}
