//$ takes isa, lanes, helper, cache_type, elements, text
//$ -- Rounds keys and values as they go into the cache; text: what C calls the number of elements.
//$ -- A loop over the vectors of these elements, or what it does once; `one` prints that for element `k`.
//$ local function over_elements(one)
//$     loop("i", 0, elements, lanes, one, { to = text })
//$ end
//$ if cache_type.name == "f16" then

/* Rounds one head of a key or value to IEEE half precision, $(text) elements. */
static void $(helper)_round_head(const float *restrict from, uint16_t *restrict to)
{
    const $(isa.vector) lowest = $(isa.broadcast("-65504.0f"));
//$ over_elements(function(k)
        const $(isa.vector) x = $(isa.load_unaligned("from", k));
        const $(isa.vector) above = $(isa.max("lowest", "x"));
        const $(isa.vector) negative = $(isa.sub(isa.zero(), "above"));
        const $(isa.vector) within = $(isa.max("lowest", "negative"));
        const $(isa.vector) rounded = $(isa.sub(isa.zero(), "within"));
        $(isa.store_f16("to", k, "rounded"));
//$ end)
}
//$ elseif cache_type.scaled then
//$ local largest_lane, sum_of_lanes = across("max"), across("add")

/* Rounds one head of a key or value to integers, $(text) elements; returns their unit, their
   largest magnitude / 127. NaN and infinity make it NaN. */
static float $(helper)_round_head(const float *restrict from, int8_t *restrict to)
{
    $(isa.vector) max = $(isa.zero()), all = $(isa.zero());
//$ over_elements(function(k)
        const $(isa.vector) magnitude = $(isa.abs(isa.load_unaligned("from", k)));
        max = $(isa.max("max", "magnitude"));
        all = $(isa.add("all", "magnitude"));
//$ end)
    const float largest = $(largest_lane("max")), total = $(sum_of_lanes("all"));
    const float factor = largest > 1e-30f ? 127.0f / largest : 0.0f;
    const $(isa.vector) inverse = $(isa.broadcast("factor"));
//$ over_elements(function(k)
        const $(isa.vector) units = $(isa.mul(isa.load_unaligned("from", k), "inverse"));
        $(isa.store_i8("to", k, "units"));
//$ end)
    return largest * (1.0f / 127.0f) + 0.0f * total;
}
//$ end
