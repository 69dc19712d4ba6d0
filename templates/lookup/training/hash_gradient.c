//$ takes isa, helper, score, from, to, inverse_h
//$ local exp = score.share and once("templates/math/exp.c") .. "_exp"
//$ local m = shape.neighbours
//$ local last = shape.tau - 1
//$ local product = score.share and score.along

/* Gradients of $(isa.lanes > 1 and isa.lanes .. " groups" or "a group") of $(plural(shape.tau, "bit")) from the slopes
   of their scores. With a = |z|$(score.share and ", e = exp(-2a), share = e / (1 + e)" or ""):
//$ if product then
   score = p exp(-2 cost) (sum of a - 2 cost); its logarithm's first factor grows by 2 share with each a, less 2 where the bit is flipped.
//$ elseif score.along then
   score = sum of a - 2 cost, which grows by 1 with each a, less 2 where the bit is flipped.
//$ else
   score = p exp(-2 cost), which grows by its 2 share with each a, less by its 2 where the bit is flipped.
//$ end
   z      bit j is z[j * $(from)] and on, dz likewise with $(to)
   slope  vertex n is slope[n * $(from)] and on, code likewise */
static inline void $(helper)_hash_gradient(const float *restrict z,
    $(m > 1 and "const uint16_t *restrict code, " or "")const float *restrict slope, float *restrict dz)
{
    const $(isa.vector) none = $(isa.zero());
//$ if score.share then
    const $(isa.vector) one = $(isa.broadcast("1.0f"));
    const $(isa.vector) two = $(isa.broadcast("2.0f"));
//$ end
    const $(isa.vector) minus_two = $(isa.broadcast("-2.0f")); //$ if score.share or m > 1
    $(isa.vector) product = one; //$ if score.share
    $(isa.vector) sum = none; //$ if product
    $(isa.index) row = $(isa.index_zero()); //$ if m > 1
//$ for bit = 0, last do

    const $(isa.vector) z$(bit) = $(isa.load("z", bit * from));
//$ if score.share then
    const $(isa.vector) magnitude$(bit) = $(isa.abs("z" .. bit));
    const $(isa.vector) other$(bit) = $(exp)($(isa.mul("minus_two", "magnitude" .. bit)));
    const $(isa.vector) share$(bit) = $(isa.div(isa.mul("two", "other" .. bit), isa.add("one", "other" .. bit)));
    product = $(isa.fma("product", "other" .. bit, "product"));
//$ end
    sum = $(isa.add("sum", "magnitude" .. bit)); //$ if product
    row = $(isa.index_or_if_positive("row", "z" .. bit, tostring(1 << last - bit))); //$ if m > 1
//$ end

//$ local best = inverse_h and isa.broadcast(inverse_h)
//$ if score.share then
    const $(isa.vector) best = $(isa.div(best or "one", "product"));
//$     best = "best"
//$ end
//$ if m == 1 then
    const $(isa.vector) weights = $(best and isa.mul(isa.load("slope", 0), best) or isa.load("slope", 0));
    const $(isa.vector) total = $(isa.mul("weights", "sum")); //$ if product
//$ else
    $(isa.vector) weights = none;
    $(isa.vector) total = none; //$ if product
    $(isa.vector) change$(bit) = none; /* of the vertices in which the bit is flipped */ //$ for bit = 0, last
    for (size_t n = 0; n < $(m); ++n) {
        const $(isa.index) code_n = $(isa.index_load("code", "n * " .. from));
        const $(isa.index) flips = $(isa.index_xor("row", "code_n"));
        $(isa.vector) cost = none; //$ if score.share
//$     for bit = 0, last do
        const $(isa.mask) flipped$(bit) = $(isa.index_has("flips", 1 << last - bit));
        cost = $(isa.add("cost", isa.select("flipped" .. bit, "magnitude" .. bit, "none"))); //$ if score.share
//$     end
        const $(isa.vector) loss = $(isa.mul("minus_two", "cost")); //$ if score.share
//$     local slope = isa.load("slope", "n * " .. from)
//$     local by = score.share and isa.mul(exp .. "(loss)", best) or best
        const $(isa.vector) weight = $(by and isa.mul(by, slope) or slope);
        weights = $(isa.add("weights", "weight"));
//$     if product then
        const $(isa.vector) along = $(isa.mul("weight", isa.add("sum", "loss")));
        total = $(isa.add("total", "along"));
        const $(isa.vector) less = $(isa.mul("minus_two", isa.add("weight", "along")));
//$     else
        const $(isa.vector) less = $(isa.mul("minus_two", "weight"));
//$     end
        change$(bit) = $(isa.add("change" .. bit, isa.select("flipped" .. bit, "less", "none"))); //$ for bit = 0, last
    }
//$ end
//$ for bit = 0, last do
//$     local gain
//$     if product then gain = isa.fma("share" .. bit, "total", m > 1 and isa.add("weights", "change" .. bit) or "weights")
//$     elseif score.along then gain = m > 1 and isa.add("weights", "change" .. bit) or "weights"
//$     elseif m > 1 then gain = isa.fma("share" .. bit, "weights", "change" .. bit)
//$     else gain = isa.mul("share" .. bit, "weights") end
    const $(isa.vector) gain$(bit) = $(gain);
    const $(isa.mask) positive$(bit) = $(isa.less("none", "z" .. bit));
    $(isa.store("dz", bit * to, isa.select("positive" .. bit, "gain" .. bit, isa.sub("none", "gain" .. bit))));
//$ end
}
