//$ takes prologue, symbol, helper, training, copies, fold_columns
//$ lines(prologue)
//$ if shape.kind == "bh4" then
//$ local b = shape.block

/* The Hadamard transform of a block's outputs, times `factor`, as the packer computes it: in float64, rounded once.
   block    [$(plural(b, "output"))][$(plural(b, "input"))]; folded likewise
   columns  [$(b)][$(fold_columns)], overwritten */
static void $(helper)_fold_block(const float *restrict block, double factor, float *restrict folded, double *restrict columns)
{
//$ loop("first", 0, b, fold_columns, function(first)
//$ local from = sum(times("o", b), first)
        for (size_t o = 0; o < $(b); ++o)
            for (size_t i = 0; i < $(fold_columns); ++i)
                columns[o * $(fold_columns) + i] = (double) block[$(from) + i];
        for (size_t half = 1; half < $(b); half *= 2)
            for (size_t o = 0; o < $(b); ++o) {
                if (o & half)
                    continue;
                double *low = columns + o * $(fold_columns), *high = low + half * $(fold_columns);
                for (size_t i = 0; i < $(fold_columns); ++i) {
                    const double sum = low[i] + high[i], difference = low[i] - high[i];
                    low[i] = sum;
                    high[i] = difference;
                }
            }
        for (size_t o = 0; o < $(b); ++o)
            for (size_t i = 0; i < $(fold_columns); ++i)
                folded[$(from) + i] = (float) (columns[o * $(fold_columns) + i] * factor);
//$ end)
}
//$ end

/* Packs the projection's weights for forward and backward, as `lookupc pack` does: once after they changed.
   parameters  their projection is read
   prepared    [$(training.prepared)], 64-byte aligned
   scratch     64-byte aligned; none may overlap. Cannot fail. */
void $(symbol)(const $(training.names.parameters) *parameters, float *prepared, void *scratch)
{
//$ if shape.kind == "bh4" then
    float *folded = (float *) scratch;
    double *columns = (double *) (void *) (folded + $(4 * shape.repeats) * $(names.constant("TRAIN_W_FLOATS")));
    const float *from;
    float *to;

    for (size_t block = 0; block < $(shape.repeats * 4 * (shape.padded // shape.block)); ++block)
        $(helper)_fold_block(parameters->projection + block * $(shape.block * shape.block),
            block / $(shape.padded // shape.block) % 4 == 3 ? $(training.decay) : 1.0,
            folded + block * $(shape.block * shape.block), columns);
//$ else
    const float *folded = parameters->projection, *from;
    float *to;

    (void) scratch;
//$ end
//$ local variables = { "repeat", "block", "panel", "fold", "row", "column" }
//$ for _, group in ipairs(copies) do

    /* $(group.text) */
//$ for _, box in ipairs(group.boxes) do
//$ local repeated = box.dims[1].count > 1
    for (size_t repeat = 0; repeat < $(box.dims[1].count); ++repeat) { //$ if repeated
    from = $(sum("folded", repeated and box.repeated_from or 0, box.from));
    to = $(sum("prepared", repeated and box.repeated_to or 0, box.to));
//$ local from, to = 0, 0
//$ for n = 2, #variables do
//$ local dim, variable = box.dims[n], variables[n]
//$ if dim.count > 1 then
    for (size_t $(variable) = 0; $(variable) < $(dim.count); ++$(variable))
//$ from, to = sum(times(variable, dim.from), from), sum(times(variable, dim.to), to)
//$ end
//$ end
    to[$(to)] = from[$(from)];
    } //$ if repeated
//$ end
//$ end
}
