//$ takes isa, helper, tile, vectors, projection, micro, folded, called_blocks, unroll, counted, weight, accumulators, barriers
//$ takes counter, dot, dot_two, integers, integers_text, factored
//$ local starts, lines_name = integers.starts, counter .. "s"
//$ local starts_parameter = starts and "const " .. projection.word.storage .. " *restrict starts, " or ""
//$ if folded then

/* An output whose inputs come in several folds, each with scales of its own. */
typedef struct {
    size_t count;
    size_t $(lines_name); /* words of a fold */
    size_t scales; /* from the scale of one fold to that of the next */
} $(helper)_folds;
//$ end
//$ for _, outputs in ipairs(micro) do

/* $(plural(outputs, "output")) of one tile, held in registers over all inputs: y = W x. $(integers_text)
//$ if folded then
   x       [count * $(lines_name)][$(tile)] words, of all folds
   w       [count * $(lines_name)][width], of which the first $(outputs == 1 and "column is" or outputs .. " columns are") used
   scales  of the outputs' weights, those of the first fold
//$ else
   x       [$(lines_name)][$(tile)] words
   w       [$(lines_name)][width], of which the first $(outputs == 1 and "column is" or outputs .. " columns are") used
   scales  of the outputs' weights
//$ end
//$ if starts then
   units   $(folded and "[count][unit, inverse]" or "")[$(tile)] of the tokens' inputs
   starts  $(folded and "[count]" or "")[$(tile)] what the sums begin with: weights are $(projection.word.offset) too large
//$ else
   units   [$(tile)] of the tokens' inputs
//$ end
   y       [$(outputs)][$(tile)] */
static inline void $(helper)_outputs_$(outputs)(const $(projection.word.storage) *restrict x,
    $(folded and "const " .. helper .. "_folds *folds" or "size_t " .. lines_name),
    const $(projection.word.storage) *restrict w, size_t width, const float *restrict scales,
    const float *restrict units, $(starts_parameter)float *restrict y)
{
//$ local function load_units()
    const $(isa.vector) unit$(n) = $(isa.load("units", n * isa.lanes)); //$ for n = 0, vectors - 1
//$ end
//$ local each_fold = starts and folded -- has units of its own
//$ if folded then
    const size_t count = folds->count, $(lines_name) = folds->$(lines_name), fold_scales = folds->scales;
//$ end
//$ if not each_fold then load_units() end
//$ if folded then
    for (size_t fold = 0; fold < count; ++fold$(starts and ", units += " .. 2 * tile .. ", starts += " .. tile or "")) {
        const float *fold_scale = scales + fold * fold_scales;
//$     if each_fold then load_units() end
//$ end
    const $(isa.index) start$(n) = $(isa.load_words("starts", n * isa.lanes)); //$ if starts for n = 0, vectors - 1
    $(isa.index) $(accumulators(o)); //$ for o = 0, outputs - 1

//$ local sums = {}
//$ for o = 0, outputs - 1 do
//$     for n = 0, vectors - 1 do sums[#sums + 1] = "y" .. o .. "_" .. n end
//$ end
//$ -- Line `number` of words, together with the next one where two words are multiplied at once.
//$ local together = dot_two and unroll > 1 and 2 or 1
//$ local function step(number)
//$ for n = 0, vectors - 1 do
        const $(isa.index) x$(n) = $(isa.load_words("x", number * tile + n * isa.lanes));
        const $(isa.index) next_x$(n) = $(isa.load_words("x", (number + 1) * tile + n * isa.lanes)); //$ if together > 1
//$ end
//$ for o = 0, outputs - 1 do
        const $(isa.index) w$(o) = $(isa.index_broadcast(weight(number, o)));
        const $(isa.index) next_w$(o) = $(isa.index_broadcast(weight(number + 1, o))); //$ if together > 1
//$     for n = 0, vectors - 1 do
//$         local to, x, w = "y" .. o .. "_" .. n, "x" .. n, "w" .. o
        $(to) = $(together > 1 and dot_two(to, w, x, "next_" .. w, "next_" .. x) or dot(to, w, x));
//$     end
//$ end
//$ lines(barriers(sums))
//$ end
    for (size_t $(counter) = 0; $(counter) < $(lines_name); $(counted(counter))) {
        const $(projection.word.storage) *row = w + $(folded and "(fold * " .. lines_name .. " + " .. counter .. ")" or counter) * width;
//$ if unroll == together then
//$     step(0)
//$ else
//$     for number = 0, unroll - 1, together do
        {
//$         step(number)
        }
//$     end
//$ end
    }

//$ local function store(add)
//$ for o = 0, outputs - 1 do
            const $(isa.vector) scale$(o) = $(isa.broadcast((folded and "fold_scale[" or "scales[") .. o .. "]"));
//$     for n = 0, vectors - 1 do
//$         local value = isa.mul(isa.float_of("y" .. o .. "_" .. n), "scale" .. o)
//$         local at = o * tile + n * isa.lanes
            $(isa.store("y", at, add and isa.fma(value, "unit" .. n, isa.load("y", at)) or isa.mul(value, "unit" .. n)));
//$     end
//$ end
//$ end
//$ if folded then
        if (fold == 0) {
//$ store(false)
        } else {
//$ store(true)
        }
    }
//$ else
//$ store(false)
//$ end
}
//$ end
$(include("templates/lookup/shared/factors.c")) //$ if factored
$(include("templates/lookup/lanes/panels.c", { of = block })) //$ for _, block in ipairs(called_blocks)
