//$ takes align
#define $(names.macro("SOURCES")) /* here its functions are defined */
#include "$(names.linked)"

#include <stdint.h>

/* The bytes of $(model).bin, which lookupc pack writes: compile with its folder in the include path (-I), or with its path as this macro.
   Assemblers look in the folder where they run first, and with -flto in no other: compile this file with -fno-lto then. */
#ifndef $(names.macro("BLOB"))
#define $(names.macro("BLOB")) "$(model).bin"
#endif

/* A section of constants, and a label that is seen in the whole program or library and no further, for each format of object files. */
#if defined(__ELF__)
#define $(names.macro("SECTION"))(text) ".pushsection .rodata.$(model)_blob, \"a\"\n" text ".popsection\n"
#define $(names.macro("LABEL"))(name) ".globl " name "\n.hidden " name "\n" name ":\n"
#elif defined(__APPLE__) /* Mach-O */
#define $(names.macro("SECTION"))(text) ".pushsection __TEXT,__const\n" text ".popsection\n"
#define $(names.macro("LABEL"))(name) ".globl " name "\n.private_extern " name "\n" name ":\n"
#elif defined(_WIN32) /* COFF */
#define $(names.macro("SECTION"))(text) ".section .rdata, \"dr\"\n" text ".text\n"
#define $(names.macro("LABEL"))(name) ".globl " name "\n" name ":\n"
#else
#error "weights can be linked in where object files are ELF, Mach-O or COFF"
#endif

__asm__($(names.macro("SECTION"))(
    ".balign $(align)\n"
    $(names.macro("LABEL"))("$(model)_blob")
    ".incbin \"" $(names.macro("BLOB")) "\"\n"
    "1:\n"
    ".balign 4\n"
    $(names.macro("LABEL"))("$(model)_blob_bytes")
    ".long 1b - $(model)_blob\n"));

/* Under these names, without the _ that Mach-O puts before those of C. */
extern const unsigned char $(model)_blob[] __asm__("$(model)_blob");
extern const uint32_t $(model)_blob_bytes __asm__("$(model)_blob_bytes");

int $(names.bind_linked)($(names.weights) *weights)
{
    return $(names.bind)($(model)_blob, $(model)_blob_bytes, weights);
}

/* The same by its plain name. */
#undef $(names.bind_linked)
$(api)int $(names.bind_linked)($(names.weights) *weights);
int $(names.bind_linked)($(names.weights) *weights)
{
    return $(names.bind)($(model)_blob, $(model)_blob_bytes, weights);
}
