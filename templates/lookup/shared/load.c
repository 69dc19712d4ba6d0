//$ takes isa, helper, tables, load

/* $(plural(load.n, "element")) of a row$(tables.scaled and ", in units of its scale" or ""). */
static inline $(isa.vector) $(helper)$(load.ending)(const $(tables.storage) *row$(load.column))
{
    return $(load.value);
}
