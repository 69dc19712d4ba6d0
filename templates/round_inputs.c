//$ for _, rows in ipairs(rounded_rows) do

/* $(rows) inputs of a tile as 16-bit integers, two to a word: multiples of a token's unit, 1/32767 of the largest. A NaN or an infinity makes
   the unit NaN; inputs that are all below 1e-34 count as zeros.
   x         [$(rows)][$(tile)]
   integers  [$((rows + 1) // 2)][$(tile)]
   units     [$(tile)] */
static void $(helper)_round_$(rows)(const float *restrict x, $(projection.word.storage) *restrict integers, float *restrict units)
{
    for (size_t lane = 0; lane < $(tile); $(lanes == 1 and "++lane" or "lane += " .. lanes)) {
        $(isa.vector) most = $(isa.zero()), finite = $(isa.zero());
        for (size_t row = 0; row < $(rows); ++row) {
            const $(isa.vector) v = $(isa.load("x", "row * " .. tile .. " + lane"));
            const $(isa.vector) size = $(isa.abs("v"));
            most = $(isa.max("most", "size"));
            finite = $(isa.fma(isa.zero(), "v", "finite"));
        }
        const $(isa.vector) some = $(isa.max("most", isa.broadcast("1e-34f")));
        const $(isa.vector) inverse = $(isa.div(isa.broadcast("32767.0f"), "some"));
        $(isa.store("units", "lane", isa.fma("most", isa.broadcast("(1.0f / 32767.0f)"), "finite")));
//$ if rows > 1 then
        for (size_t row = 0; row < $(rows - rows % 2); row += 2) {
            const $(isa.vector) low = $(isa.mul(isa.load("x", "row * " .. tile .. " + lane"), "inverse"));
            const $(isa.vector) high = $(isa.mul(isa.load("x", "row * " .. tile .. " + " .. tile .. " + lane"), "inverse"));
            $(isa.store_words("integers", "row / 2 * " .. tile .. " + lane", isa.pairs("low", "high")));
        }
//$ end
//$ if rows % 2 == 1 then
        const $(isa.vector) last = $(isa.mul(isa.load("x", sum("lane", (rows - 1) * tile)), "inverse"));
        $(isa.store_words("integers", sum("lane", rows // 2 * tile), isa.pairs("last", isa.zero())));
//$ end
    }
}
//$ end
