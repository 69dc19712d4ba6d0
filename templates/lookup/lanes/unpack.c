//$ takes isa, lanes, helper, tile, projection, blocks, panel, folded, unpacks
//$ local rows, storage = projection.word.rows, projection.word.storage
//$ for _, unpack in ipairs(unpacks) do
//$ local width = unpack.width
//$ local function part(i, name, at, partial)
$(i)const $(isa.index) $(name) = $(partial > 0 and isa.load_words_partial("words", at, partial) or isa.load_words("words", at));
//$     for row, value in ipairs(isa["unpack_" .. projection.name](name)) do
//$         local to = sum(at, (row - 1) * width)
$(i)$(partial > 0 and isa.store_partial("unpacked", to, partial, value) or isa.store_unaligned("unpacked", to, value));
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
//$         part("            ", "word", "i", 0)
        }
//$ elseif unpack.whole > 0 then
//$     part("        ", "word", 0, 0)
//$ end
//$ if unpack.partial > 0 then
//$     part("        ", "rest", unpack.whole, unpack.partial)
//$ end
    }
}
//$ end
//$ for _, block in ipairs(blocks) do
//$ local inputs = block.rows
//$ if block.folds > 1 then inputs = block.folds .. " times " .. block.rows end

/* One block of all tiles: $(plural(block.outputs, "output")) of $(plural(inputs, "input")). The weights of a panel are unpacked once. Steps are floats
   from tile to tile. */
static void $(helper)_$(block.name)(const float *restrict x, size_t x_step, const $(storage) *restrict w,
    float *restrict unpacked, float *restrict y, size_t y_step, size_t tiles)
{
//$ local arguments = block.rows
//$ if folded then arguments = block.rows .. ", " .. block.folds .. ", " .. block.fold_gap end
//$ local function panel_of(i, parts, width)
$(i)$(helper)_unpack_$(width)(w, $(block.depth), unpacked);
$(i)for (size_t tile = 0; tile < tiles; ++tile)$(#parts > 1 and " {" or "")
//$     for _, part in ipairs(parts) do
$(i)    $(helper)_outputs_$(part.outputs)(x + tile * x_step, $(arguments), $(sum("unpacked", part.at)), $(width), $(sum("y + tile * y_step", part.at * tile)));
//$     end
//$     if #parts > 1 then
$(i)}
//$     end
//$ end
//$ if block.full_panels > 1 then
    for (size_t panel = 0; panel < $(block.full_panels); ++panel, w += $(block.panel_words), y += $(panel * tile)) {
//$     panel_of("        ", block.full, panel)
    }
//$ elseif block.full_panels == 1 then
//$     panel_of("    ", block.full, panel)
//$     if #block.tail > 0 then
    w += $(block.panel_words);
    y += $(panel * tile);
//$     end
//$ end
//$ if #block.tail > 0 then
//$     panel_of("    ", block.tail, block.tail_outputs)
//$ end
}
//$ end
