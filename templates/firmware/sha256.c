//$ takes firmware
/* `word` rotated right, 0 < bits < 32. */
static uint32_t $(model)_rotated(uint32_t word, unsigned bits)
{
    return (word >> bits) | (word << (32 - bits));
}

/* One block of SHA-256, FIPS 180-4, section 6.2.2. */
static void $(model)_sha256_block(uint32_t state[8], const unsigned char block[64])
{
    static const uint32_t k[64] = {
//$ lines(firmware.sha256_constant_lines)
    };
    const uint32_t zero = (uint32_t) $hidden_integer(0); /* else the loop that copies state is a call of memcpy */
    uint32_t w[16]; /* the last words of the message schedule, word t at t % 16 */
    uint32_t s[8]; /* the working variables a to h */

    for (unsigned i = 0; i < 16; ++i)
        w[i] = ((uint32_t) block[4 * i] << 24) | ((uint32_t) block[4 * i + 1] << 16)
            | ((uint32_t) block[4 * i + 2] << 8) | block[4 * i + 3];
    for (unsigned i = 0; i < 8; ++i)
        s[i] = state[i] + zero;
    for (unsigned i = 0; i < 64; ++i) {
        if (i >= 16) {
            const uint32_t a = w[(i + 1) % 16], b = w[(i + 14) % 16];
            w[i % 16] += ($(model)_rotated(a, 7) ^ $(model)_rotated(a, 18) ^ (a >> 3)) + w[(i + 9) % 16]
                + ($(model)_rotated(b, 17) ^ $(model)_rotated(b, 19) ^ (b >> 10));
        }
        const uint32_t t1 = s[7] + ($(model)_rotated(s[4], 6) ^ $(model)_rotated(s[4], 11) ^ $(model)_rotated(s[4], 25))
                + ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[i] + w[i % 16];
        const uint32_t t2 = ($(model)_rotated(s[0], 2) ^ $(model)_rotated(s[0], 13) ^ $(model)_rotated(s[0], 22))
                + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        s[7] = s[6];
        s[6] = s[5];
        s[5] = s[4];
        s[4] = s[3] + t1;
        s[3] = s[2];
        s[2] = s[1];
        s[1] = s[0];
        s[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; ++i)
        state[i] += s[i];
}

/* Whether the parts have the SHA-256 of the weights. All parts but the last are whole blocks. */
static int $(model)_is_whole(const unsigned char *const part[$(#firmware.parts)], const size_t part_bytes[$(#firmware.parts)])
{
    static const uint32_t expected[8] = {
//$ lines(firmware.sha256_lines)
    };
    static const uint32_t start[8] = {
//$ lines(firmware.sha256_start_lines)
    };
    const uint32_t zero = (uint32_t) $hidden_integer(0); /* else loops are calls of memcpy and memset */
    /* two words: shifts of 64 bits are library calls on CPUs of 32 */
//$ local bytes = names.macro("WEIGHTS_BYTES")
    const uint32_t bits[2] = { (uint32_t) ((uint64_t) $(bytes) >> 29), (uint32_t) $(bytes) << 3 };
    uint32_t state[8];
    unsigned char block[64];
    uint32_t differing = 0;
    size_t left = 0;

    for (unsigned k = 0; k < 8; ++k)
        state[k] = start[k] + zero;
    for (unsigned k = 0; k < $(#firmware.parts); ++k) {
        size_t i = 0;
        for (; i + 64 <= part_bytes[k]; i += 64)
            $(model)_sha256_block(state, part[k] + i);
        for (left = 0; i < part_bytes[k]; ++i, ++left)
            block[left] = (unsigned char) (part[k][i] + zero);
    }

    /* padding: a bit that is 1, zeros, and in the last 8 bytes the number of bits, big-endian */
    block[left++] = 0x80;
    if (left > 56) {
        for (; left < 64; ++left)
            block[left] = (unsigned char) (zero * left);
        $(model)_sha256_block(state, block);
        left = 0;
    }
    for (; left < 56; ++left)
        block[left] = (unsigned char) (zero * left);
    for (size_t i = 0; i < 8; ++i)
        block[56 + i] = (unsigned char) ((bits[i / 4] + zero) >> (24 - 8 * (i % 4)));
    $(model)_sha256_block(state, block);
    for (unsigned k = 0; k < 8; ++k)
        differing |= state[k] ^ expected[k];
    return differing == 0;
}
