//$ takes isa, helper, word

/* $(word == "add" and "The sum of all lanes." or "The largest lane.") */
static inline float $(helper)_$(word == "add" and "sum_of_lanes" or "largest_lane")($(isa.vector) v)
{
//$ local steps, result = isa.reduce("v", word)
//$ declare_constants(steps)
    return $(result);
}
