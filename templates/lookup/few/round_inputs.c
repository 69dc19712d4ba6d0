//$ takes isa, lanes, helper, rounded, rounded_rows
//$ for _, rows in ipairs(rounded_rows) do
//$ local block = rounded.vectors * lanes
//$ local whole, rest = rows - rows % block, rows % block
//$ -- What is left of `n` floats from `at` on, a vector of them.
//$ local function some(at, n)
//$     if n <= 0 then return isa.zero() end
//$     return n >= lanes and isa.load_unaligned("x", at) or isa.load_partial("x", at, n)
//$ end
//$ -- What ends the names of the variables for the floats from `at` on.
//$ local function number(at) return at == "i" and "" or at end
//$ local function measure(i, at, n)
//$     local v, magnitude = "v" .. number(at), "magnitude" .. number(at)
//$     if isa.max_magnitude then
$(i)max = $(isa.max_magnitude("max", some(at, n)));
//$         return
//$     end
$(i)const $(isa.vector) $(v) = $(some(at, n));
$(i)const $(isa.vector) $(magnitude) = $(isa.abs(v));
$(i)max = $(isa.max("max", magnitude));
$(i)finite = $(isa.fma(isa.zero(), v, "finite"));
//$ end

/* The $(rows) inputs of a token as $(rounded.text): multiples of the unit that it returns, 1/$(rounded.limit) of the largest. A NaN or an
   infinity makes the unit NaN; inputs that are all below 1e-34 count as zeros. */
static inline float $(helper)_round_$(rows)(const float *restrict x, $(rounded.storage) *restrict integers)
{
//$ if isa.max_magnitude then
    $(isa.index) max = $(isa.index_zero()); /* as integers, of which NaN and infinity are the largest */
//$ else
    $(isa.vector) max = $(isa.zero()), finite = $(isa.zero());
//$ end
//$ if rows - rows % lanes > 0 then
    for (size_t i = 0; i < $(rows - rows % lanes); $(lanes == 1 and "++i" or "i += " .. lanes)) {
//$ measure("        ", "i", lanes)
    }
//$ end
//$ if rows % lanes > 0 then
//$ measure("    ", rows - rows % lanes, rows % lanes)
//$ end
//$ local function reduced(i, name, steps, result)
//$     if #steps == 0 then
$(i)const float $(name) = $(result);
//$     else
$(i)float $(name);
$(i){
//$         for _, step in ipairs(steps) do
$(i)    const $(step.type) $(step.name) = $(step.value);
//$         end
$(i)    $(name) = $(result);
$(i)}
//$     end
//$ end
//$ if isa.max_magnitude then
//$ reduced("    ", "largest", isa.reduce_magnitudes("max"))
//$ else
//$ reduced("    ", "largest", isa.reduce("max", "max"))
//$ reduced("    ", "exact", isa.reduce("finite", "add"))
//$ end
    const float scale = largest > 1e-34f ? $(rounded.limit).0f / largest : 0.0f;
    const $(isa.vector) inverse = $(isa.broadcast("scale"));
//$ local function bytes(i, at, n)
//$     for vector = 0, rounded.vectors - 1 do
//$         local from = sum(at, vector * lanes)
$(i)$(isa.store_i8("integers", from, isa.mul(some(from, n - vector * lanes), "inverse")));
//$     end
//$ end
//$ local function words(i, at, n)
//$     if rounded.storage == "int8_t" then return bytes(i, at, n) end
//$     local low, high = "low" .. number(at), "high" .. number(at)
$(i)const $(isa.vector) $(low) = $(isa.mul(some(at, n), "inverse"));
$(i)const $(isa.vector) $(high) = $(isa.mul(some(sum(at, lanes), n - lanes), "inverse"));
$(i)$(isa.store_i16("integers", at == "i" and "i / 2" or at // 2, low, high));
//$ end
//$ if whole > 0 then
    for (size_t i = 0; i < $(whole); i += $(block)) {
//$ words("        ", "i", block)
    }
//$ end
//$ if rest > 0 then
//$ words("    ", whole, rest)
//$ end
    return largest * (1.0f / $(rounded.limit).0f) + $(isa.max_magnitude and "0.0f * largest" or "exact");
}
//$ end
