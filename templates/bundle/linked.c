//$ takes align
#define $(names.macro("SOURCES")) /* here its functions are defined */
#include "$(names.linked)"

/* The bytes of $(model).bin, which lookupc pack writes: compile with its folder in the include path (-I), or with its path as this macro.
   Assemblers look in the folder where they run first. */
#ifndef $(names.macro("BLOB"))
#define $(names.macro("BLOB")) "$(model).bin"
#endif
__asm__(".pushsection .rodata.$(model)_blob, \"a\"\n"
        ".balign $(align)\n"
        "$(model)_blob:\n"
        ".incbin \"" $(names.macro("BLOB")) "\"\n"
        "$(model)_blob_end:\n"
        ".byte 0\n"
        ".popsection\n"
        ".globl $(model)_blob\n"
        ".hidden $(model)_blob\n"
        ".globl $(model)_blob_end\n"
        ".hidden $(model)_blob_end\n");
extern const unsigned char $(model)_blob[], $(model)_blob_end[];

int $(names.bind_linked)($(names.weights) *weights)
{
    return $(names.bind)($(model)_blob, (size_t) ($(model)_blob_end - $(model)_blob), weights);
}

/* The same by its plain name. */
#undef $(names.bind_linked)
$(api)int $(names.bind_linked)($(names.weights) *weights);
int $(names.bind_linked)($(names.weights) *weights)
{
    return $(names.bind)($(model)_blob, (size_t) ($(model)_blob_end - $(model)_blob), weights);
}
