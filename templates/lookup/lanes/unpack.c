//$ takes isa, lanes, helper, projection, blocks, unpacks
//$ local rows, storage = projection.word.rows, projection.word.storage
//$ for _, unpack in ipairs(unpacks) do
//$ local width = unpack.width
//$ local function part(name, at, partial)
            const $(isa.index) $(name) = $(partial > 0 and isa.load_words_partial("words", at, partial) or isa.load_words("words", at));
//$     for row, value in ipairs(isa["unpack_" .. projection.name](name)) do
//$         local to = sum(at, (row - 1) * width)
            $(partial > 0 and isa.store_partial("unpacked", to, partial, value) or isa.store_unaligned("unpacked", to, value));
//$     end
//$ end

/* The weights of a panel of $(plural(width, "output")), $(plural(rows, "input")) in a word, as floats.
   words     [k_pairs][$(width)]
   unpacked  [$(rows) * k_pairs][$(width)] */
static void $(helper)_unpack_$(width)(const $(storage) *restrict words, size_t k_pairs, float *restrict unpacked)
{
    for (size_t k_pair = 0; k_pair < k_pairs; ++k_pair, words += $(width), unpacked += $(rows * width)) {
//$ if unpack.whole > lanes then
        for (size_t i = 0; i < $(unpack.whole); $(lanes == 1 and "++i" or "i += " .. lanes)) {
//$         part("word", "i", 0)
        }
//$ elseif unpack.whole > 0 then
//$     part("word", 0, 0)
//$ end
//$ if unpack.partial > 0 then
//$     part("rest", unpack.whole, unpack.partial)
//$ end
    }
}
//$ end
$(include("templates/lookup/lanes/panels.c", { of = block })) //$ for _, block in ipairs(blocks)
