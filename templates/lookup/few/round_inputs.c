//$ takes isa, lanes, helper, projection, rounded_rows, block_rows, integers, store_inputs
//$ local word, starts = projection.word, integers.starts
//$ local levels, per_word = word.levels, word.rows
//$ for _, rows in ipairs(starts and block_rows or rounded_rows) do
//$ local vectors = per_word * lanes -- floats of a vector of words
//$ local whole, rest = rows - rows % vectors, rows % vectors
//$ -- What is left of `n` floats from `at` on, a vector of them.
//$ local function some(at, n)
//$     if n <= 0 then return isa.zero() end
//$     return n >= lanes and isa.load_unaligned("x", at) or isa.load_partial("x", at, n)
//$ end
//$ -- What ends the names of the variables for the floats from `at` on.
//$ local function number(at) return (at == "i" or at == 0) and "" or at end
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

//$ if starts then
/* The $(plural(rows, "input")) of a token's block as 8-bit integers, four to a word: multiples of the unit that it returns, 1/$(levels) of the largest. A NaN
   or an infinity makes the unit NaN; inputs that are all below 1e-34 count as zeros.
   start  -$(word.offset) times the sum of the integers: weights are $(word.offset) too large */
//$ else
/* The $(plural(rows, "input")) of a token as 16-bit integers, two to a word: multiples of the unit that it returns, 1/$(levels) of the largest. A NaN or an
   infinity makes the unit NaN; inputs that are all below 1e-34 count as zeros. */
//$ end
static inline float $(helper)_round_$(starts and "block_" or "")$(rows)(const float *restrict x, $(word.storage) *restrict integers$(starts and ", " .. word.storage .. " *restrict start" or ""))
{
//$ if isa.max_magnitude then
    $(isa.index) max = $(isa.index_zero()); /* as integers, of which NaN and infinity are the largest */
//$ else
    $(isa.vector) max = $(isa.zero()), finite = $(isa.zero());
//$ end
//$ loop("    ", "i", 0, rows - rows % lanes, lanes, function(i, at)
//$ measure(i, at, lanes)
//$ end)
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
    const float scale = largest > 1e-34f ? $(levels).0f / largest : 0.0f;
    const $(isa.vector) inverse = $(isa.broadcast("scale"));
//$ if starts then
    $(isa.index) total = $(isa.index_zero());
//$ end
//$ local function words(i, at, n)
//$     local parts = {}
//$     for part, name in ipairs(per_word == 2 and { "low", "high" } or { "first", "second", "third", "fourth" }) do
//$         local before = (part - 1) * lanes
//$         parts[part] = name .. number(at)
$(i)const $(isa.vector) $(parts[part]) = $(isa.mul(some(sum(at, before), n - before), "inverse"));
//$     end
//$     local place = at == "i" and "i / " .. per_word or at // per_word
$(i)$(store_inputs("integers", place, parts));
//$     if starts then
$(i)total = $(isa.dot_i8("total", isa.index_broadcast("0x01010101u"), isa.load_words("integers", place)));
//$     end
//$ end
//$ loop("    ", "i", 0, whole, vectors, function(i, at)
//$ words(i, at, vectors)
//$ end)
//$ if rest > 0 then
//$ words("    ", whole, rest)
//$ end
//$ if starts then
//$ reduced("    ", "sum", isa.reduce(isa.float_of("total"), "add"))
    *start = (uint32_t) (-$(word.offset) * (int32_t) sum);
//$ end
    return largest * (1.0f / $(levels).0f) + $(isa.max_magnitude and "0.0f * largest" or "exact");
}
//$ end
//$ for _, rows in ipairs(starts and rounded_rows or {}) do
//$ local block = integers.block
//$ local count, rest, words = rows // block, rows % block, (block + per_word - 1) // per_word

/* The $(plural(rows, "input")) of a token$(rows > block and ", block by block: units and starts of each" or ""). */
static void $(helper)_round_$(rows)(const float *restrict x, float *restrict units, $(word.storage) *restrict integers, $(word.storage) *restrict starts)
{
//$ if count > 1 then
    for (size_t block = 0; block < $(count); ++block)
        units[block] = $(helper)_round_block_$(block)(x + block * $(block), integers + block * $(words), starts + block);
//$ elseif count == 1 then
    units[0] = $(helper)_round_block_$(block)(x, integers, starts);
//$ end
//$ if rest > 0 then
    units[$(count)] = $(helper)_round_block_$(rest)($(sum("x", count * block)), $(sum("integers", count * words)), $(sum("starts", count)));
//$ end
}
//$ end
