//$ takes isa, lanes, helper, projection, rounded_rows, rounded_alone, integers, dot_inputs, store_inputs, round_runs, together_counts
//$ local word, starts = projection.word, integers.starts
//$ local levels, per_word, alone = word.levels, word.rows, rounded_alone or rounded_rows
//$ local sum_of_lanes = #alone > 0 and (starts or not isa.max_magnitude) and across("add")
//$ local largest_lane = #alone > 0 and across(isa.max_magnitude and "magnitude" or "max")
//$ for _, rows in ipairs(alone) do
//$ local vectors = per_word * lanes -- floats of a vector of words
//$ local whole, rest = rows - rows % vectors, rows % vectors
//$ -- What is left of `n` floats from `at` on, a vector of them.
//$ local function some(at, n)
//$     if n <= 0 then return isa.zero() end
//$     return n >= lanes and isa.load_unaligned("x", at) or isa.load_partial("x", at, n)
//$ end
//$ -- What ends the names of the variables for the floats from `at` on.
//$ local function number(at) return (at == "i" or at == 0) and "" or at end
//$ local function measure(at, n)
//$     local v, magnitude = "v" .. number(at), "magnitude" .. number(at)
//$     if isa.max_magnitude then
        max = $(isa.max_magnitude("max", some(at, n)));
//$         return
//$     end
        const $(isa.vector) $(v) = $(some(at, n));
        const $(isa.vector) $(magnitude) = $(isa.abs(v));
        max = $(isa.max("max", magnitude));
        finite = $(isa.fma(isa.zero(), v, "finite"));
//$ end
//$ local function measure_all()
//$ if isa.max_magnitude then
    $(isa.index) max = $(isa.index_zero()); /* as integers, of which NaN and infinity are the largest */
//$ else
    $(isa.vector) max = $(isa.zero()), finite = $(isa.zero());
//$ end
//$ loop("i", 0, rows - rows % lanes, lanes, function(at)
//$ measure(at, lanes)
//$ end)
//$ if rows % lanes > 0 then
//$ measure(rows - rows % lanes, rows % lanes)
//$ end
//$ end
//$ -- Who has measured inputs before calls a function of its own.
//$ local measured = starts and integers.measured

//$ if starts then
/* The $(plural(rows, "input")) x of a token's block as 8-bit integers, four to a word: multiples of the unit that it
   returns, 1/$(levels) of the largest. A NaN or an infinity makes the unit NaN; inputs that are all below 1e-34 count
   as zeros.
   max    their largest magnitudes, the bits of floats //$ if measured
   start  -$(word.offset) times the sum of the integers: weights are $(word.offset) too large */
//$ else
/* The $(plural(rows, "input")) of a token as 16-bit integers, two to a word: multiples of the unit that it returns,
   1/$(levels) of the largest. A NaN or an infinity makes the unit NaN; inputs that are all below 1e-34 count as
   zeros. */
//$ end
static inline float $(helper)_round_$(measured and "measured_" or starts and "block_" or "")$(rows)(const float *restrict x,
//$ local words = word.storage .. " *restrict "
    $(listed(measured and isa.index .. " max", words .. "integers", starts and words .. "start")))
{
//$ if not measured then measure_all() end
    const float largest = $(largest_lane("max"));
    const float exact = $(sum_of_lanes("finite")); //$ if not isa.max_magnitude
    const float scale = largest > 1e-34f ? $(levels).0f / largest : 0.0f;
    const $(isa.vector) inverse = $(isa.broadcast("scale"));
    $(isa.index) total = $(isa.index_zero()); //$ if starts
//$ local function words(at, n)
//$     local parts = {}
//$     for part, name in ipairs(per_word == 2 and { "low", "high" } or { "first", "second", "third", "fourth" }) do
//$         local before = (part - 1) * lanes
//$         parts[part] = name .. number(at)
        const $(isa.vector) $(parts[part]) = $(isa.mul(some(sum(at, before), n - before), "inverse"));
//$     end
//$     local place = at == "i" and "i / " .. per_word or at // per_word
        $(store_inputs("integers", place, parts));
//$     if starts then
        total = $(dot_inputs("total", isa.index_broadcast("0x01010101u"), isa.load_words("integers", place)));
//$     end
//$ end
//$ loop("i", 0, whole, vectors, function(at)
//$ words(at, vectors)
//$ end)
//$ if rest > 0 then
//$ words(whole, rest)
//$ end
    *start = (uint32_t) (-$(word.offset) * (int32_t) $(sum_of_lanes(isa.float_of("total")))); //$ if starts
    return largest * (1.0f / $(levels).0f) + $(isa.max_magnitude and "0.0f * largest" or "exact");
}
//$ if measured then

/* The same, measured here. */
static inline float $(helper)_round_block_$(rows)(const float *restrict x, $(word.storage) *restrict integers,
    $(word.storage) *restrict start)
{
//$ measure_all()
    return $(helper)_round_measured_$(rows)(x, max, integers, start);
}
//$ end
//$ end
//$ local block = integers.block
//$ for _, together in ipairs(together_counts) do
//$ local words = block // per_word

/* The inputs of $(together) blocks of a token as 8-bit integers, four to a word: multiples of the block's unit,
   1/$(levels) of its largest. A NaN or an infinity makes the unit NaN; inputs that are all below 1e-34 count as
   zeros. Maxima and sums of the blocks are found side by side.
   x         [$(together)][$(block)]
   units     [$(together)]
   integers  [$(together)][$(words)]
   starts    [$(together)] -$(word.offset) times the sum of the integers: weights are $(word.offset) too large */
static void $(helper)_round_$(together)_blocks_$(block)(const float *restrict x, float *restrict units, $(word.storage) *restrict integers,
    $(word.storage) *restrict starts)
{
//$ local maxima, sums = {}, {}
//$ for n = 0, together - 1 do
//$ maxima[n + 1], sums[n + 1] = "max" .. n, "sum" .. n
//$ end
//$ for n, max in ipairs(maxima) do
    $(isa.index) $(max) = $(isa.index_zero());$(n == 1 and " /* as integers, of which NaN and infinity are the largest */" or "")
//$ end
    for (size_t i = 0; i < $(block); $(advance("i", lanes))) {
//$ for n, max in ipairs(maxima) do
        $(max) = $(isa.max_magnitude(max, isa.load_unaligned("x", sum("i", (n - 1) * block))));
//$ end
    }
//$ local steps, largest = isa.largest_of(maxima)
    const $(isa.index) $(step.name) = $(step.value); //$ for _, step in ipairs(steps)
    const $(isa.vector) largest = $(largest);
//$ local inverses = isa.div(isa.broadcast(levels .. ".0f"), "largest")
    const $(isa.vector) some = $(isa.select(isa.less(isa.broadcast("1e-34f"), "largest"), inverses, isa.zero()));
    float scales[$(lanes)];
    $(isa.store_unaligned("scales", 0, "some"));
//$ local level = isa.broadcast("1.0f / " .. levels .. ".0f")
    $(isa.store_partial("units", 0, together, isa.fma("largest", level, isa.mul("largest", isa.zero()))));

    for (size_t block = 0; block < $(together); ++block) {
        const $(isa.vector) inverse = $(isa.broadcast("scales[block]"));
//$ loop("i", 0, block, per_word * lanes, function(at)
//$ local parts = {}
//$ for part, name in ipairs { "first", "second", "third", "fourth" } do
//$ parts[part] = name
        const $(isa.vector) $(name) = $(isa.mul(isa.load_unaligned("x", sum("block * " .. block, sum(at, (part - 1) * lanes))), "inverse"));
//$ end
            $(store_inputs("integers", sum("block * " .. words, at == "i" and "i / " .. per_word or 0), parts));
//$ end)
    }

    const $(isa.index) offsets = $(isa.index_broadcast(integers.offsets));
//$ for n, name in ipairs(sums) do
//$ local total = isa.index_zero()
//$ for at = 0, words - lanes, lanes do total = dot_inputs(total, "offsets", isa.load_words("integers", (n - 1) * words + at)) end
    const $(isa.index) $(name) = $(total);
//$ end
//$ local steps, total = isa.sums_of(sums)
    const $(isa.index) $(step.name) = $(step.value); //$ for _, step in ipairs(steps)
    $(isa.store_words_partial("starts", 0, together, isa.index_sub(isa.index_zero(), total)));
}
//$ end
//$ for _, rows in ipairs(starts and rounded_rows or {}) do
//$ local rest, words = rows % block, (block + per_word - 1) // per_word

/* The $(plural(rows, "input")) of a token$(rows > block and ", block by block: units and starts of each" or ""). */
static void $(helper)_round_$(rows)(const float *restrict x, float *restrict units, $(word.storage) *restrict integers,
    $(word.storage) *restrict starts)
{
//$ for _, run in ipairs(round_runs(rows)) do
//$ local together = run.together
//$ loop("block", run.first, run.first + run.count, together, function(at)
//$ local function from(step) return at == "block" and "block * " .. step or at * step end
//$ if together > 1 then
        $(helper)_round_$(together)_blocks_$(block)($(sum("x", from(block))), $(sum("units", at)),
            $(sum("integers", from(words))), $(sum("starts", at)));
//$ else
        units[$(at)] = $(helper)_round_block_$(block)($(sum("x", from(block))), $(sum("integers", from(words))), $(sum("starts", at)));
//$ end
//$ end)
//$ end
//$ if rest > 0 then
    units[$(rows // block)] = $(helper)_round_block_$(rest)($(sum("x", rows - rest)),
        $(sum("integers", rows // block * words)), $(sum("starts", rows // block)));
//$ end
}
//$ end
