-- NEON with I8MM, products of unsigned and signed bytes: Neoverse V1, N2 and later.

return require "gen.isa.parts.neon_bytes" {
    name = "i8mm",
    macro = "__ARM_FEATURE_MATMUL_INT8",
    field = { name = "isar1", register = "id_aa64isar1_el1", shift = 52 },
    emulated = "max",
    dots = {
        {
            name = "i8mm_dot",
            text = [[
/* sum + the products of the four bytes in each word of a, without a sign, and of b, with one. */
static inline uint32x4_t $i8mm_dot(uint32x4_t sum, uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u32_s32(
        vusdotq_s32(vreinterpretq_s32_u32(sum), vreinterpretq_u8_u32(a), vreinterpretq_s8_u32(b)));
}]],
        },
    },
}
