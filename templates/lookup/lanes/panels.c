//$ takes helper, tile, projection, block, panel, folded, integers
//$ -- The function that multiplies a block for all tiles, one panel of weights after the other: integers, or words that are unpacked first.
//$ local word, starts = projection.word.storage, integers and integers.starts
//$ local sizes = (integers and block.lines or block.rows) .. (folded and ", " .. block.folds .. ", " .. block.fold_gap or "")
//$ local units = integers and ", units + tile * " .. integers.units_pitch .. (starts and ", starts + tile * " .. integers.blocks * tile or "")
//$ local inputs = integers and plural(block.rows, "input") or plural(block.folds > 1 and block.folds .. " times " .. block.rows or block.rows, "input")

/* One block of all tiles: $(plural(block.outputs, "output")) of $(integers and block.folds > 1 and block.folds .. " times " or "")$(inputs). $(integers and "Steps are words or floats from tile to tile." or "The weights of a panel are unpacked once. Steps are floats")
//$ if not integers then
   from tile to tile. */
//$ elseif starts then
   units  [tiles][$(plural(integers.blocks, "fold"))][unit, inverse][$(tile)]; starts  [tiles][$(plural(integers.blocks, "fold"))][$(tile)] */
//$ else
   units  [tiles][x, outputs of a stage][unit, inverse][$(tile)], from those of the inputs on */
//$ end
static void $(helper)_$(block.name)(const $(integers and word or "float") *restrict x, size_t x_step, const $(word) *restrict w,
    $(integers and "const float *restrict scales, const float *restrict units, " or "float *restrict unpacked, ")$(starts and "const " .. word .. " *restrict starts, " or "")float *restrict y, size_t y_step, size_t tiles)
{
//$ local function panel_of(i, parts, width)
//$     if not integers then
$(i)$(helper)_unpack_$(width)(w, $(block.depth), unpacked);
//$     end
$(i)for (size_t tile = 0; tile < tiles; ++tile)$(#parts > 1 and " {" or "")
//$     for _, part in ipairs(parts) do
//$         local factors = integers and ", " .. sum("scales", part.at) .. units .. ",\n" .. i .. "        " or ", "
$(i)    $(helper)_outputs_$(part.outputs)(x + tile * x_step, $(sizes), $(sum(integers and "w" or "unpacked", part.at)), $(width)$(factors)$(sum("y + tile * y_step", part.at * tile)));
//$     end
//$     if #parts > 1 then
$(i)}
//$     end
//$ end
//$ if block.full_panels > 1 then
    for (size_t panel = 0; panel < $(block.full_panels); ++panel, w += $(block.panel_words)$(integers and ", scales += " .. panel or ""), y += $(panel * tile)) {
//$     panel_of("        ", block.full, panel)
    }
//$ elseif block.full_panels == 1 then
//$     panel_of("    ", block.full, panel)
//$     if #block.tail > 0 then
    w += $(block.panel_words);
//$         if integers then
    scales += $(panel);
//$         end
    y += $(panel * tile);
//$     end
//$ end
//$ if #block.tail > 0 then
//$     panel_of("    ", block.tail, block.tail_outputs)
//$ end
}
