//$ takes guard
/* Functions are for the program or library that these sources become a part of: others may have a $(model) too.
   A shared library offers them where $(names.macro("SHARED")) is defined, for these sources and for its users. */
#if defined($(names.macro("SOURCES"))) && defined(_WIN32) && defined($(names.macro("SHARED")))
#define $(names.macro("API")) __declspec(dllexport)
#elif defined(_WIN32) && defined($(names.macro("SHARED")))
#define $(names.macro("API")) __declspec(dllimport)
#elif defined(__ELF__) || defined(__MACH__)
#ifdef $(names.macro("SHARED"))
#define $(names.macro("API")) __attribute__((visibility("default")))
#else
#define $(names.macro("API")) __attribute__((visibility("hidden")))
#endif
#else
#define $(names.macro("API"))
#endif

/* The name that linkers see has a number of this model, its sizes, types and options: sources of others do not link with
   this header. */
#define $(names.bind) $(names.guarded(names.bind, guard))
