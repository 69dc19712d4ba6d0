//$ takes isa, helper
//$ local sum_of_lanes = across("add")

/* The sum of all lanes of four vectors. */
static inline float $(helper)_total($(isa.vector) a, $(isa.vector) b, $(isa.vector) c, $(isa.vector) d)
{
    const $(isa.vector) all = $(isa.add(isa.add("a", "b"), isa.add("c", "d")));
    return $(sum_of_lanes("all"));
}
