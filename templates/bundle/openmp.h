//$ takes max_threads, scratch_bytes, shared, works_in
#ifdef $(names.macro("OPENMP"))
#if $(names.macro("OPENMP")) < 1 || $(names.macro("OPENMP")) > $(max_threads)
#error "$(names.macro("OPENMP")): must be the largest number of threads, from 1 to $(max_threads)"
#endif
#define $(names.macro("SCRATCH_BYTES")) ((size_t) $(names.macro("OPENMP")) * $(scratch_bytes)u) /* that $(works_in), for all threads */
/* Other names, so that files compiled with and without $(names.macro("OPENMP")) do not link. */ //$ if #shared > 0
#define $(name) $(names.openmp(name)) //$ for _, name in ipairs(shared)
#else
#define $(names.macro("SCRATCH_BYTES")) $(scratch_bytes)u /* that $(works_in) */
#endif
