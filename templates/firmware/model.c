//$ takes firmware
#include "$(names.runtime)"

/* The weights that are linked in: parts of the blob, in the sections that the header names. */
#define $(part.size) $(part.bytes) //$ for _, part in ipairs(firmware.parts)
extern const unsigned char $(part.symbol)[$(part.size)]; //$ for _, part in ipairs(firmware.parts)

/* Where sections lie in their parts, in bytes: where `lookupc pack` places them. */
//$ for _, section in ipairs(firmware.sections) do
#define $(section.place) $(section.at) /* of part $(section.part) */ //$ if section.at > 0
//$ end

#if $(names.macro("CHECK")) == $(names.macro("CHECK_SHA256"))

$(include("templates/firmware/sha256.c"))

#else

$(include("templates/firmware/crc32.c"))

#endif

/* Checks the parts of a blob and fills `weights`, as the header says of both functions below.
   part  [$(#firmware.parts)], in their order in the blob, each $(names.macro("ALIGN"))-byte aligned: the linker may have placed them apart */
static int $(model)_bind_parts(const unsigned char *const part[$(#firmware.parts)], $(names.weights) *weights)
{
    static const size_t part_bytes[$(#firmware.parts)] = { $(firmware.part_bytes) };
    const uint16_t byte_order = 1; /* its first byte is 1 on little-endian CPUs only */

    if (!weights)
        return $(names.macro("ERROR_NULL"));
    for (unsigned k = 0; k < $(#firmware.parts); ++k)
        if ((uintptr_t) part[k] % $(names.macro("ALIGN")))
            return $(names.macro("ERROR_ALIGNMENT"));
    if (!$(model)_is_whole(part, part_bytes))
        return $(names.macro("ERROR_CHECKSUM"));
    if (*(const unsigned char *) &byte_order != 1)
        return $(names.macro("ERROR_BYTE_ORDER"));

//$ for _, section in ipairs(firmware.sections) do
//$ local part = "part[" .. section.part .. "]"
//$ local place = section.at > 0 and "(" .. part .. " + " .. section.place .. ")" or part
    weights->$(section.name) = (const $(section.storage) *) (const void *) $(place);
//$ end
    return $(names.macro("OK"));
}

int $(names.bind_linked)($(names.weights) *weights)
{
    const unsigned char *part[$(#firmware.parts)];

    /* assigned, not initialised: of a list compilers make a table, which they may copy by memcpy */
    part[$(i - 1)] = $(part.symbol); //$ for i, part in ipairs(firmware.parts)
    return $(model)_bind_parts(part, weights);
}

int $(names.bind)(const void *blob, size_t bytes, $(names.weights) *weights)
{
    const unsigned char *part[$(#firmware.parts)];

    if (!blob)
        return $(names.macro("ERROR_NULL"));
    if (bytes != $(names.macro("WEIGHTS_BYTES")))
        return $(names.macro("ERROR_SIZE"));
    part[0] = (const unsigned char *) blob; /* here the parts are contiguous */
    part[$(i - 1)] = part[$(i - 2)] + $(firmware.parts[i - 1].size); //$ for i = 2, #firmware.parts
    return $(model)_bind_parts(part, weights);
}

$(include(firmware.family.templates .. "calls.c"))
