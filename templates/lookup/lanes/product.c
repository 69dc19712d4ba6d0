//$ takes isa, helper, tile, vectors, micro, folded, blocks, panel, unroll, counted, weight, accumulators, unpacked
//$ for _, outputs in ipairs(micro) do

/* $(plural(outputs, "output")) of one tile, held in registers over all inputs: y = W x.
//$ if folded then
   x_folds  folds times [inputs][$(tile)], fold_gap inputs from one to the next
   w        [folds * inputs][width], of which the first $(outputs == 1 and "column is" or outputs .. " columns are") used
//$ else
   x  [inputs][$(tile)]
   w  [inputs][width], of which the first $(outputs == 1 and "column is" or outputs .. " columns are") used
//$ end
   y  [$(outputs)][$(tile)] */
//$ if folded then
static inline void $(helper)_outputs_$(outputs)(const float *restrict x_folds, size_t inputs, size_t folds, size_t fold_gap,
//$ else
static inline void $(helper)_outputs_$(outputs)(const float *restrict x, size_t inputs,
//$ end
    const float *restrict w, size_t width, float *restrict y)
{
    $(isa.vector) $(accumulators(o)); //$ for o = 0, outputs - 1

//$ if folded then
    for (size_t fold = 0; fold < folds; ++fold) {
        const float *x = x_folds + fold * fold_gap * $(tile);
//$ end
//$ local row = folded and "(fold * inputs + k)" or "k"
//$ local function step(number)
            const $(isa.vector) x$(n) = $(isa.load("x", number * tile + n * isa.lanes)); //$ for n = 0, vectors - 1
//$ for o = 0, outputs - 1 do
            const $(isa.vector) w$(o) = $(isa.broadcast(weight(number, o)));
            y$(o)_$(n) = $(isa.fma("w" .. o, "x" .. n, "y" .. o .. "_" .. n)); //$ for n = 0, vectors - 1
//$ end
//$ end
        for (size_t k = 0; k < inputs; $(counted("k"))) {
            const float *row = w + $(row) * width;
//$ if unroll == 1 then
//$     step(0)
//$ else
//$     for number = 0, unroll - 1 do
            {
//$         step(number)
            }
//$     end
//$ end
        }
    } //$ if folded

    $(isa.store("y", o * tile + n * isa.lanes, "y" .. o .. "_" .. n)); //$ for o = 0, outputs - 1 for n = 0, vectors - 1
}
//$ end
//$ if unpacked then
$(include("templates/lookup/lanes/unpack.c"))
//$ else
//$ for _, block in ipairs(blocks) do

//$ if block.folds > 1 then
/* One block of all tiles, y = W x: $(plural(block.outputs, "output")) of $(block.folds) times
   $(plural(block.rows, "input")). Steps are floats from tile to tile. */
//$ else
/* One block of all tiles, y = W x: $(plural(block.outputs, "output")) of $(plural(block.rows, "input")).
   Steps are floats from tile to tile. */
//$ end
static void $(helper)_$(block.name)(const float *restrict x, size_t x_step, const float *restrict weights,
    float *restrict y, size_t y_step, size_t tiles)
{
    for (size_t tile = 0; tile < tiles; ++tile) {
        const float *x_tile = x + tile * x_step;
        const float *w = weights;
        float *y_tile = y + tile * y_step;
//$ local rows = folded and block.rows .. ", " .. block.folds .. ", " .. block.fold_gap or block.rows
//$ if block.full_panels == 1 then
//$     for _, part in ipairs(block.full) do
        $(helper)_outputs_$(part.outputs)(x_tile, $(rows), $(sum("w", part.at)), $(panel), $(sum("y_tile", part.at * tile)));
//$     end
//$     if #block.tail > 0 then
        w += $(block.panel_words);
        y_tile += $(panel * tile);
//$     end
//$ elseif block.full_panels > 1 then
        for (size_t panel = 0; panel < $(block.full_panels); ++panel, w += $(block.panel_words), y_tile += $(panel * tile)) {
//$     for _, part in ipairs(block.full) do
            $(helper)_outputs_$(part.outputs)(x_tile, $(rows), $(sum("w", part.at)), $(panel), $(sum("y_tile", part.at * tile)));
//$     end
        }
//$ end
//$ for _, part in ipairs(block.tail) do
        $(helper)_outputs_$(part.outputs)(x_tile, $(rows), $(sum("w", part.at)), $(block.tail_outputs), $(sum("y_tile", part.at * tile)));
//$ end
    }
}
//$ end
//$ end
