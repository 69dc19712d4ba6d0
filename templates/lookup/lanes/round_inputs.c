//$ takes isa, lanes, tile, vectors, helper, projection, measured_rows, rounded_rows, integers, dot_inputs, pack_word, rows_first
//$ local word, starts = projection.word, integers.starts
//$ local levels, per_word = word.levels .. ".0f", word.rows
//$ -- Vectors of tokens and rows that are met together, so that no maximum waits for the one before.
//$ local width = lanes == 1 and 1 or vectors
//$ local function at(n) return n * lanes end

/* The unit of $(lanes == 1 and "a token's" or "some tokens'") $(8 * 4 // per_word)-bit integers, 1/$(word.levels) of
   `max`, the largest input, and its inverse.
   `finite` is 0, or NaN if an input is NaN or infinite: so is the unit then. Inputs that are all below 1e-34 count as zeros.
   units  [unit, inverse][$(tile)] */
static inline void $(helper)_set_units($(isa.vector) max, $(isa.vector) finite, float *units)
{
    $(isa.store("units", 0, isa.fma("max", isa.broadcast("1.0f / " .. levels), "finite")));
    const $(isa.vector) some = $(isa.max("max", isa.broadcast("1e-34f")));
    $(isa.store("units", tile, isa.div(isa.broadcast(levels), "some")));
}
//$ for _, rows in ipairs(measured_rows) do
//$ local together = rows > 1 and 8 * width <= isa.registers and 2 or 1

/* The units of each token for $(plural(rows, "input")).
   x      [$(rows)][$(tile)]
   units  [unit, inverse][$(tile)] */
static void $(helper)_units_$(rows)(const float *restrict x, float *restrict units)
{
//$ if width * lanes < tile then
    for (size_t lane = 0; lane < $(tile); $(lanes == 1 and "++lane" or "lane += " .. lanes), ++x, ++units) {
//$ end
//$ local function measure(row, r)
        const $(isa.vector) v$(r)_$(n) = $(isa.load("x", sum(row, r * tile + at(n)))); //$ for n = 0, width - 1
//$     for n = 0, width - 1 do
        const $(isa.vector) magnitude$(r)_$(n) = $(isa.abs("v" .. r .. "_" .. n));
        max$(r)_$(n) = $(isa.max("max" .. r .. "_" .. n, "magnitude" .. r .. "_" .. n));
        finite$(r)_$(n) = $(isa.fma(isa.zero(), "v" .. r .. "_" .. n, "finite" .. r .. "_" .. n));
//$     end
//$ end
//$ for r = 0, together - 1 do
    $(isa.vector) max$(r)_$(n) = $(isa.zero()), finite$(r)_$(n) = $(isa.zero()); //$ for n = 0, width - 1
//$ end
//$ loop("row", 0, rows - rows % together, together, function(row)
//$     for r = 0, together - 1 do measure(row == "row" and "row * " .. tile or 0, r) end
//$ end, { block = rows % together > 0 })
//$ if rows % together > 0 then
    {
//$     measure((rows - 1) * tile, 0)
    }
//$ end
//$ for n = 0, width - 1 do
//$     local max, finite = "max0_" .. n, "finite0_" .. n
//$     if together > 1 then max, finite = isa.max(max, "max1_" .. n), isa.add(finite, "finite1_" .. n) end
    $(helper)_set_units($(max), $(finite), $(sum("units", at(n))));
//$ end
    } //$ if width * lanes < tile
}
//$ end
//$ if rows_first then

/* The units of each token for a block of which the butterflies before have found the largest magnitudes.
   maxima  [$(tile)] words
   units   [unit, inverse][$(tile)] */
static void $(helper)_units_of_maxima(const uint32_t *restrict maxima, float *restrict units)
{
//$ for n = 0, vectors - 1 do
    const $(isa.vector) largest$(n) = $(isa.as_floats(isa.load_words("maxima", at(n))));
    $(helper)_set_units(largest$(n), $(isa.mul("largest" .. n, isa.zero())), $(sum("units", at(n))));
//$ end
}
//$ end
//$ for _, rows in ipairs(rounded_rows) do
//$ local words = (rows + per_word - 1) // per_word

//$ if starts then
/* $(plural(rows, "input")) of a block of a tile as 8-bit integers, four to a word: multiples of a
   token's unit$(rows_first and "" or ", which it finds").
//$ else
/* $(plural(rows, "input")) of a tile as 16-bit integers, two to a word: multiples of a token's unit.
//$ end
   x         [$(rows)][$(tile)]
   units     [unit, inverse][$(tile)]
//$ if starts then
   integers  [$(words)][$(tile)]
   starts    [$(tile)] -$(word.offset) times the sum of the integers: weights are $(word.offset) too large */
static void $(helper)_round_$(rows)(const float *restrict x, $(rows_first and "const " or "")float *restrict units,
    $(word.storage) *restrict integers, $(word.storage) *restrict starts)
{
    $(helper)_units_$(rows)(x, units); //$ if not rows_first
//$ else
   integers  [$(words)][$(tile)] */
static void $(helper)_round_$(rows)(const float *restrict x, const float *restrict units, $(word.storage) *restrict integers)
{
//$ end
//$ if width * lanes < tile then
    for (size_t lane = 0; lane < $(tile); $(lanes == 1 and "++lane" or "lane += " .. lanes), ++x, ++units,
        ++integers$(starts and ", ++starts" or "")) {
//$ end
    const $(isa.vector) inverse$(n) = $(isa.load("units", tile + at(n))); //$ for n = 0, width - 1
    $(isa.index) start$(n) = $(isa.index_zero()); //$ for n = 0, starts and width - 1 or -1
//$ local whole, rest = rows - rows % per_word, rows % per_word
//$ -- A word of the rows from `row` on, `count` of them, whose names begin with `names`.
//$ local function add_word(row, count, place, names)
//$     for n = 0, width - 1 do
//$         local parts = {}
//$         for part = 0, per_word - 1 do
//$             local value = isa.zero()
//$             if part < count then
//$                 value = names[part + 1] .. n
        const $(isa.vector) $(value) = $(isa.mul(isa.load("x", sum(row, part * tile + at(n))), "inverse" .. n));
//$             end
//$             parts[part + 1] = value
//$         end
//$         local packed, to = pack_word(parts), sum(place, at(n))
//$         if starts then
        const $(isa.index) word$(n) = $(packed);
        $(isa.store_words("integers", to, "word" .. n));
        start$(n) = $(dot_inputs("start" .. n, isa.index_broadcast(integers.offsets), "word" .. n));
//$         else
        $(isa.store_words("integers", to, packed));
//$         end
//$     end
//$ end
//$ loop("row", 0, whole, per_word, function(row)
//$     local from, place = 0, 0
//$     if row == "row" then from, place = "row * " .. tile, "row / " .. per_word .. " * " .. tile end
//$     add_word(from, per_word, place, per_word == 2 and { "low", "high" } or { "first", "second", "third", "fourth" })
//$ end, { block = rest > 0 })
//$ if rest > 0 then
    { //$ if starts
//$     add_word(whole * tile, rest, whole // per_word * tile, per_word == 2 and { "last" }
//$         or { "first", "second", "third" })
    } //$ if starts
//$ end
//$ for n = 0, starts and width - 1 or -1 do
    $(isa.store_words("starts", at(n), isa.index_sub(isa.index_zero(), "start" .. n)));
//$ end
    } //$ if width * lanes < tile
}
//$ end
