//$ takes isa, helper

/* Stores a vector of y: past the caches if y is aligned, as the lines that it fills need not be read then. */
static inline void $(helper)_store_y(float *y, $(isa.vector) value, int streams)
{
    if (streams)
        $(isa.stream("y", "value"));
    else
        $(isa.store_unaligned("y", 0, "value"));
}
