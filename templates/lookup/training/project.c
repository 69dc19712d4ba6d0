//$ takes prologue, of_tile, helper, isa, tile, vectors, code_tile, t, passes, training, in_tile, z_pitch, bias_strips, from, to
//$ lines(prologue)
$(include("templates/lookup/lanes/product.c"))
$(include("templates/lookup/shared/butterfly.c")) //$ if #passes > 0
$(include("templates/lookup/training/hash_gradient.c"))
$(include("templates/lookup/training/outer.c"))
//$ local lanes, m = isa.lanes, shape.neighbours
//$ local sum_of_lanes = across("add")
//$ if shape.kind == "bh4" then

/* rows of a tile: to[row] += factor from[row]. */
static void $(helper)_add_rows(float *restrict to, const float *restrict from, float factor, size_t rows)
{
    const $(isa.vector) scale = $(isa.broadcast("factor"));
    for (size_t i = 0; i < rows * $(tile); $(advance("i", lanes)))
        $(isa.store("to", "i", isa.fma("scale", isa.load("from", "i"), isa.load("to", "i"))));
}
//$ end

/* sums[row] += sum of the tokens of dz[row]. */
static void $(helper)_sum_rows(const float *restrict dz, float *restrict sums, size_t rows)
{
    for (size_t row = 0; row < rows; ++row, dz += $(tile)) {
//$ local total = isa.load("dz", 0)
//$ for n = 1, tile // lanes - 1 do total = isa.add(total, isa.load("dz", n * lanes)) end
        sums[row] += $(sum_of_lanes(total));
    }
}

/* sums[i] += sum over `tokens` rows of dy[i]. */
static void $(helper)_sum_dy(const float *restrict dy, size_t tokens, float *restrict sums)
{
//$ for _, strip in ipairs(bias_strips) do
//$ local function load(base, at, n) return n == lanes and isa.load_unaligned(base, at) or isa.load_partial(base, at, n) end
//$ local function each(at, f)
//$     for n = 0, strip.vectors - 1 do f(n, sum(at, n * lanes), lanes) end
//$     if strip.partial > 0 then f(strip.vectors, sum(at, strip.vectors * lanes), strip.partial) end
//$ end
//$ loop("column", strip.at, strip.at + strip.count * strip.step, strip.step, function(column)
        { //$ if strip.count == 1
//$ each(column, function(n, at, floats)
        $(isa.vector) sum$(n) = $(load("sums", at, floats));
//$ end)
        for (size_t token = 0; token < tokens; ++token) {
            const float *row = dy + token * $(shape.y_step);
//$ each(column, function(n, at, floats)
            sum$(n) = $(isa.add("sum" .. n, load("row", at, floats)));
//$ end)
        }
//$ each(column, function(n, at, floats)
        $(floats == lanes and isa.store_unaligned("sums", at, "sum" .. n) or isa.store_partial("sums", at, floats, "sum" .. n));
//$ end)
    } //$ if strip.count == 1
//$ end)
//$ end
}

/* The first `tokens` tokens of a tile, [$(shape.d)][$(tile)], to rows of their own. */
static void $(helper)_store_dx(const float *restrict tile, size_t tokens, float *restrict turned, float *restrict dx)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
    $(helper)_turn(tile, $(shape.d), turned);
    for (size_t token = 0; token < tokens; ++token)
        for (size_t i = 0; i < $(shape.d); ++i)
            dx[token * $(shape.x_step) + i] = one * turned[token * $(training.x_pitch) + i];
}

/* Backward of hash and projection for some tokens: see the header. Cannot fail. */
void $(t.names.project)(const $(training.names.parameters) *parameters, const $(training.names.tokens) *tokens, size_t first, size_t count,
    float *sums, void *scratch)
{
    const float *weights = parameters->prepared, *z = tokens->z, *slope = tokens->slope;
    const size_t end = first + count;
    const uint16_t *code = tokens->code; //$ if m > 1
    const float zero = $hidden(0.0f); /* else its loop is a call of memset */ //$ if shape.kind == "bh4"
//$ local place = "(float *) scratch"
//$ for _, buffer in ipairs(t.buffers) do
//$ local name = (buffer.name == "x" or buffer.name == "dx") and buffer.name .. "_tile" or buffer.name
    float *$(name) = $(place); /* [$(buffer.rows)][$(tile)] */
//$ place = sum(name, of_tile(buffer.rows * tile), buffer.floats - buffer.rows * tile)
//$ end

    $(helper)_sum_dy(tokens->dy + first * $(shape.y_step), count, sums + $(names.constant("TRAIN_SUMS_BIAS_AT")));
    for (; first < end; first += $(tile)) {
        const size_t present = end - first < $(tile) ? end - first : $(tile);
        const float *z_tile = z + first / $(code_tile) * ($(z_pitch) * $(code_tile))$(in_tile and " + first % " .. code_tile or "");
        const size_t place = first / $(code_tile) * ($(shape.slots) * $(code_tile))$(in_tile and " + first % " .. code_tile or "");
        $(t.names.load)(tokens->x + first * $(shape.x_step), present, x_tile);
//$ loop("table", 0, shape.h, 1, function(table)
//$ loop("token", 0, tile, lanes, function(token)
//$ local function at(base, pitch) return sum(base, times(table, pitch), token) end
                $(helper)_hash_gradient($(at("z_tile", shape.tau * code_tile)),
                    $(m > 1 and at("code + place", m * code_tile) .. ", " or "")$(at("slope + place", m * code_tile)),
                    $(at("dz", shape.tau * tile)));
//$ end, { braces = false })
//$ end, { braces = false })
        $(helper)_sum_rows(dz, sums + $(names.constant("TRAIN_SUMS_PROJECTION_BIAS_AT")), $(shape.bits));
//$ if shape.kind == "bh4" then
        for (size_t i = 0; i < $(shape.d * tile); ++i)
            dx_tile[i] = zero;
//$ end
$(include("templates/lookup/training/stages.c"))
        $(helper)_store_dx(dx_tile, present, turned, tokens->dx + first * $(shape.x_step));
    }
}

//$ if shape.kind == "bh4" then
/* The gradient of a block from that of its folded weights: the Hadamard transform of the outputs, times `factor`; added to.
   columns  [$(shape.block)][$(training.fold_columns)], overwritten */
static void $(helper)_unfold_block(const float *restrict folded, float factor, float *restrict block, float *restrict columns)
{
//$ loop("first", 0, shape.block, training.fold_columns, function(first)
//$ local from = sum("o * " .. shape.block, first)
        for (size_t o = 0; o < $(shape.block); ++o)
            for (size_t i = 0; i < $(training.fold_columns); ++i)
                columns[o * $(training.fold_columns) + i] = folded[$(from) + i] * factor;
        for (size_t half = 1; half < $(shape.block); half *= 2)
            for (size_t o = 0; o < $(shape.block); ++o) {
                if (o & half)
                    continue;
                float *low = columns + o * $(training.fold_columns), *high = low + half * $(training.fold_columns);
                for (size_t i = 0; i < $(training.fold_columns); ++i) {
                    const float sum = low[i] + high[i], difference = low[i] - high[i];
                    low[i] = sum;
                    high[i] = difference;
                }
            }
        for (size_t o = 0; o < $(shape.block); ++o)
            for (size_t i = 0; i < $(training.fold_columns); ++i)
                block[$(from) + i] += columns[o * $(training.fold_columns) + i];
//$ end)
}

//$ end
/* Adds to the gradients of the parameters what `parts` threads summed, each in sums of its own, one after the other.
   Cannot fail. */
void $(t.names.finish)(const float *sums, size_t parts, float *d_projection, float *d_projection_bias, float *d_bias, void *scratch)
{
//$ if shape.kind == "bh4" then
    float *columns = (float *) scratch;
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
//$ else
    (void) scratch;
//$ end
    for (size_t part = 0; part < parts; ++part, sums += $(names.constant("TRAIN_SUMS"))) {
//$ if shape.kind == "bh4" then
        for (size_t block = 0; block < $(shape.repeats * 4 * (shape.padded // shape.block)); ++block)
            $(helper)_unfold_block(sums + block * $(shape.block * shape.block),
                block / $(shape.padded // shape.block) % 4 == 3 ? $(training.decay_float) * one : one,
                d_projection + block * $(shape.block * shape.block), columns);
//$ else
        for (size_t i = 0; i < $(training.projection_floats); ++i)
            d_projection[i] += sums[i];
//$ end
        for (size_t i = 0; i < $(shape.bits); ++i)
            d_projection_bias[i] += sums[$(names.constant("TRAIN_SUMS_PROJECTION_BIAS_AT")) + i];
        for (size_t i = 0; i < $(shape.d_out); ++i)
            d_bias[i] += sums[$(names.constant("TRAIN_SUMS_BIAS_AT")) + i];
    }
}
