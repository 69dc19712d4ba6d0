//$ takes none, characters, copies
#define $(names.macro("NONE")) 0xffffffffu /* no node, no value, no entry */ //$ if none
#define $(names.macro("FULL")) ((size_t) -1) /* a text that does not fit */ //$ if copies
#define $(names.macro("BROKEN")) 0xffffffffu /* no character: bytes that are not UTF-8 */ //$ if characters
//$ if copies then

/* Keeps compilers from making a call to memcpy of a loop: this code calls no library. */
#if defined(__GNUC__)
#define $(names.macro("NO_LIBRARY")) __asm__ volatile("" ::: "memory")
#else
#define $(names.macro("NO_LIBRARY")) ((void) 0)
#endif
//$ end
