//$ takes isa, helper, activation, table
//$ local function coefficient(power) return isa.entry(table.coefficients[power + 1], "number") end

/* $(activation) for results that are rounded next: half of x, and of |x| what one of 32 cubics in a table says. Off by at most
   $(table.error) |x|. */
static inline $(isa.vector) $(helper)_$(activation)_by_table($(isa.vector) x)
{
    const $(isa.vector) magnitude = $(isa.abs("x"));
    const $(isa.vector) bounded = $(isa.min("magnitude", isa.broadcast(table.bound)));
    /* floats near 1.5 2^23 have no fraction: the cubic's number stands in the lowest bits */
    const $(isa.vector) number = $(isa.fma("bounded", isa.broadcast(table.by_step), isa.broadcast("12582912.0f")));
    $(isa.vector) share = $(coefficient(3));
    share = $(isa.fma("share", "bounded", coefficient(power))); //$ for power = 2, 0, -1
    return $(isa.fma("magnitude", "share", isa.mul("x", isa.broadcast("0.5f"))));
}
