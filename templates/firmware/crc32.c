//$ takes firmware
/* Whether the parts, one behind the other, have the CRC-32 of the weights (IEEE 802.3: polynomial 0xedb88320, reflected).
   Four bits at a time: the table for eight would take 1024 bytes of flash instead of 64. */
static int $(model)_is_whole(const unsigned char *const part[$(#firmware.parts)], const size_t part_bytes[$(#firmware.parts)])
{
    static const uint32_t table[16] = {
//$ lines(firmware.crc_lines)
    };
    uint32_t crc = 0xffffffffu;

    for (unsigned k = 0; k < $(#firmware.parts); ++k)
        for (size_t i = 0; i < part_bytes[k]; ++i) {
            crc ^= part[k][i];
            crc = (crc >> 4) ^ table[crc & 15u];
            crc = (crc >> 4) ^ table[crc & 15u];
        }
    return ~crc == $(firmware.crc32);
}
