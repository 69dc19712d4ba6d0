//$ takes firmware, align
/* The weights, included as they are; compile with the folder of $(model)_weights.bin in the include path (-I). */

#ifndef $(names.macro("WEIGHTS_SECTION"))
#define $(names.macro("WEIGHTS_SECTION")) ".rodata.$(model)_weights"
#endif
//$ if firmware.slow_bytes > 0 then
#ifndef $(names.macro("TABLE_SECTION"))
#define $(names.macro("TABLE_SECTION")) ".rodata.$(model)_tables"
#endif
//$ end
//$ for _, part in ipairs(firmware.parts) do

    .section $(part.section), "a", %progbits
    .balign $(align)
    .global $(part.symbol)
    .type $(part.symbol), %object
    .size $(part.symbol), $(part.bytes)
$(part.symbol):
    .incbin "$(model)_weights.bin", $(part.at), $(part.bytes)
//$ end

#if defined(__linux__) && defined(__ELF__)
    .section .note.GNU-stack, "", %progbits
#endif
