//$ takes firmware, align
#include "$(names.header)"
//$ for _, part in ipairs(firmware.parts) do

extern const unsigned char $(part.symbol)[$(part.bytes)];
__attribute__((aligned($(align)), section($(part.section)))) const unsigned char $(part.symbol)[$(part.bytes)] = {
//$ lines(firmware.byte_lines(part))
};
//$ end
