//$ takes helper, tile, projection, of, panel, folded, integers, counter
//$ -- The function that multiplies a block for all tiles, one panel of weights after the other: integers, or words that are unpacked first.
//$ local word, starts = projection.word.storage, integers and integers.starts
//$ local sizes = (integers and of.lines or of.rows) .. (folded and ", " .. of.folds .. ", " .. of.fold_gap or "")
//$ if integers and folded then sizes = "&folds" end
//$ local units = integers
//$     and ", units + tile * " .. integers.units_pitch
//$     .. (starts and ", starts + tile * " .. integers.blocks * tile or "")
//$ local inputs = integers and plural(of.rows, "input") or plural(of.folds > 1 and of.folds .. " times " .. of.rows or of.rows, "input")
//$ if integers and of.folds > 1 then inputs = of.folds .. " times " .. inputs end

//$ if not integers then
/* One block of all tiles, y = W x: $(plural(of.outputs, "output")) of $(inputs). The weights of a panel are unpacked once. Steps
   are floats from tile to tile. */
//$ else
/* One block of all tiles, y = W x: $(plural(of.outputs, "output")) of $(inputs). `y_step` is floats from tile to tile.
   x        [tiles][$(integers.pitch)] words, from those of the inputs on
//$     if starts then
//$         local folds = integers.blocks > 1 and "[" .. integers.blocks .. " folds]" or ""
   factors  units [tiles]$(folds)[unit, inverse][$(tile)], starts [tiles]$(folds)[$(tile)] */
//$     else
   factors  units [tiles][x, outputs of a stage][unit, inverse][$(tile)], from those of the inputs on */
//$     end
//$ end
//$ local x = integers and word .. " *restrict x" or "float *restrict x, size_t x_step"
static void $(helper)_$(of.name)(const $(x), const $(word) *restrict w,
    $(integers and "const " .. helper .. "_factors *factors" or "float *restrict unpacked"), float *restrict y, size_t y_step,
    size_t tiles)
{
//$ if integers then
    const float *scales = factors->scales, *units = factors->units;
    const $(word) *starts = factors->starts; //$ if starts
//$ end
//$ if integers and folded then
    $(helper)_folds folds;
    folds.count = $(of.folds);
    folds.$(counter)s = $(of.lines);
    folds.scales = $(of.fold_gap);
//$ end

//$ local x_step = integers and integers.pitch or "x_step"
//$ local function panel_of(parts, width)
        $(helper)_unpack_$(width)(w, $(of.depth), unpacked); //$ if not integers
        for (size_t tile = 0; tile < tiles; ++tile) {
//$     for _, part in ipairs(parts) do
//$         local factors = integers and ", " .. sum("scales", part.at) .. units .. ",\n            " or ", "
            $(helper)_outputs_$(part.outputs)(x + tile * $(x_step), $(sizes), $(sum(integers and "w" or "unpacked", part.at)),
                $(width)$(factors)$(sum("y + tile * y_step", part.at * tile)));
//$     end
        }
//$ end
//$ if of.full_panels > 1 then
    for (size_t panel = 0; panel < $(of.full_panels); ++panel,
        w += $(of.panel_words)$(integers and ", scales += " .. panel or ""), y += $(panel * tile)) {
//$     panel_of(of.full, panel)
    }
//$ elseif of.full_panels == 1 then
//$     panel_of(of.full, panel)
//$     if #of.tail > 0 then
    w += $(of.panel_words);
    scales += $(panel); //$ if integers
    y += $(panel * tile);
//$     end
//$ end
//$ if #of.tail > 0 then
//$     panel_of(of.tail, of.tail_outputs)
//$ end
}
