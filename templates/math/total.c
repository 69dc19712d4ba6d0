//$ takes isa, helper

/* The sum of all lanes of four vectors. */
static inline float $(helper)_total($(isa.vector) a, $(isa.vector) b, $(isa.vector) c, $(isa.vector) d)
{
    const $(isa.vector) all = $(isa.add(isa.add("a", "b"), isa.add("c", "d")));
//$ local steps, total = isa.reduce("all", "add")
//$ declare_constants("    ", steps)
    return $(total);
}
