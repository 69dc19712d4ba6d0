//$ takes isa, lanes, tile, vectors, helper, projection, measured_rows, rounded_rows
//$ -- Vectors of tokens and rows that are met together, so that no maximum waits for the one before.
//$ local width = lanes == 1 and 1 or vectors
//$ local function at(n) return n * lanes end

/* The unit of $(lanes == 1 and "a token's" or "some tokens'") 16-bit integers, 1/32767 of the largest input, and its inverse.
   `finite` is 0, or NaN if an input is NaN or infinite: so is the unit then. Inputs that are all below 1e-34 count as zeros.
   units  [unit, inverse][$(tile)] */
static inline void $(helper)_set_units($(isa.vector) max, $(isa.vector) finite, float *units)
{
    $(isa.store("units", 0, isa.fma("max", isa.broadcast("1.0f / 32767.0f"), "finite")));
    const $(isa.vector) some = $(isa.max("max", isa.broadcast("1e-34f")));
    $(isa.store("units", tile, isa.div(isa.broadcast("32767.0f"), "some")));
}
//$ for _, rows in ipairs(measured_rows) do
//$ local together = rows > 1 and 8 * width <= isa.registers and 2 or 1

/* The units of each token for $(rows) inputs.
   x      [$(rows)][$(tile)]
   units  [unit, inverse][$(tile)] */
static void $(helper)_units_$(rows)(const float *restrict x, float *restrict units)
{
//$ local i = "    "
//$ if width * lanes < tile then
    for (size_t lane = 0; lane < $(tile); $(lanes == 1 and "++lane" or "lane += " .. lanes), ++x, ++units) {
//$     i = "        "
//$ end
//$ local function measure(i, row, r)
//$     for n = 0, width - 1 do
$(i)const $(isa.vector) v$(r)_$(n) = $(isa.load("x", sum(row, r * tile + at(n))));
//$     end
//$     for n = 0, width - 1 do
$(i)const $(isa.vector) magnitude$(r)_$(n) = $(isa.abs("v" .. r .. "_" .. n));
$(i)max$(r)_$(n) = $(isa.max("max" .. r .. "_" .. n, "magnitude" .. r .. "_" .. n));
$(i)finite$(r)_$(n) = $(isa.fma(isa.zero(), "v" .. r .. "_" .. n, "finite" .. r .. "_" .. n));
//$     end
//$ end
//$ for r = 0, together - 1 do
//$     for n = 0, width - 1 do
$(i)$(isa.vector) max$(r)_$(n) = $(isa.zero()), finite$(r)_$(n) = $(isa.zero());
//$     end
//$ end
$(i)for (size_t row = 0; row < $(rows - rows % together); $(together == 1 and "++row" or "row += " .. together)) {
//$ for r = 0, together - 1 do measure(i .. "    ", "row * " .. tile, r) end
$(i)}
//$ if rows % together > 0 then
$(i){
//$     measure(i .. "    ", tostring((rows - 1) * tile), 0)
$(i)}
//$ end
//$ for n = 0, width - 1 do
//$     local max, finite = "max0_" .. n, "finite0_" .. n
//$     if together > 1 then max, finite = isa.max(max, "max1_" .. n), isa.add(finite, "finite1_" .. n) end
$(i)$(helper)_set_units($(max), $(finite), $(sum("units", at(n))));
//$ end
//$ if width * lanes < tile then
    }
//$ end
}
//$ end
//$ for _, rows in ipairs(rounded_rows) do

/* $(rows) inputs of a tile as 16-bit integers, two to a word: multiples of a token's unit.
   x         [$(rows)][$(tile)]
   units     [unit, inverse][$(tile)]
   integers  [$((rows + 1) // 2)][$(tile)] */
static void $(helper)_round_$(rows)(const float *restrict x, const float *restrict units, $(projection.word.storage) *restrict integers)
{
//$ local i = "    "
//$ if width * lanes < tile then
    for (size_t lane = 0; lane < $(tile); $(lanes == 1 and "++lane" or "lane += " .. lanes), ++x, ++units, ++integers) {
//$     i = "        "
//$ end
//$ for n = 0, width - 1 do
$(i)const $(isa.vector) inverse$(n) = $(isa.load("units", tile + at(n)));
//$ end
//$ if rows > 1 then
$(i)for (size_t row = 0; row < $(rows - rows % 2); row += 2) {
//$     for n = 0, width - 1 do
$(i)    const $(isa.vector) low$(n) = $(isa.mul(isa.load("x", sum("row * " .. tile, at(n))), "inverse" .. n));
$(i)    const $(isa.vector) high$(n) = $(isa.mul(isa.load("x", sum("row * " .. tile, tile + at(n))), "inverse" .. n));
$(i)    $(isa.store_words("integers", sum("row / 2 * " .. tile, at(n)), isa.pack_i16("low" .. n, "high" .. n)));
//$     end
$(i)}
//$ end
//$ if rows % 2 == 1 then
//$     for n = 0, width - 1 do
$(i)const $(isa.vector) last$(n) = $(isa.mul(isa.load("x", (rows - 1) * tile + at(n)), "inverse" .. n));
$(i)$(isa.store_words("integers", rows // 2 * tile + at(n), isa.pack_i16("last" .. n, isa.zero())));
//$     end
//$ end
//$ if width * lanes < tile then
    }
//$ end
}
//$ end
