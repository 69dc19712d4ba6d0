-- NEON with DotProd, products of bytes that both have a sign, or none: Neoverse N1, Cortex-A76 and later.
--
-- Words multiply bytes without a sign by bytes with one. Each helper moves one operand by 128, and makes up for it by a
-- sum of the other one, which is that of many calls: compilers keep it.

return require "gen.isa.parts.neon_bytes" {
    name = "dotprod",
    macro = "__ARM_FEATURE_DOTPROD",
    field = { name = "isar0", register = "id_aa64isar0_el1", shift = 44 },
    emulated = "neoverse-n1",
    dots = {
        {
            name = "dotprod_dot",
            text = [[
/* sum + the products of the four bytes in each word of a, without a sign, and of b, with one: those of a - 128, and
   128 b as 64 b + 64 b. */
static inline uint32x4_t $dotprod_dot(uint32x4_t sum, uint32x4_t a, uint32x4_t b)
{
    const int8x16_t less = vreinterpretq_s8_u32(veorq_u32(a, vdupq_n_u32(0x80808080u)));
    const int8x16_t bytes = vreinterpretq_s8_u32(b), half = vdupq_n_s8(64);
    const int32x4_t rest = vdotq_s32(vdotq_s32(vdupq_n_s32(0), half, bytes), half, bytes);
    return vreinterpretq_u32_s32(vaddq_s32(vdotq_s32(vreinterpretq_s32_u32(sum), less, bytes), rest));
}]],
        },
        {
            name = "dotprod_dot_rows",
            text = [[
/* The same, where a is that of many b: the products of b + 128 without those of 128. */
static inline uint32x4_t $dotprod_dot_rows(uint32x4_t sum, uint32x4_t a, uint32x4_t b)
{
    const uint8x16_t bytes = vreinterpretq_u8_u32(a);
    const uint8x16_t more = vreinterpretq_u8_u32(veorq_u32(b, vdupq_n_u32(0x80808080u)));
    const uint32x4_t rest = vdotq_u32(vdupq_n_u32(0), bytes, vdupq_n_u8(128));
    return vsubq_u32(vdotq_u32(sum, bytes, more), rest);
}]],
        },
    },
}
