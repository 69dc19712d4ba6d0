//$ takes isa, lanes, helper, norms, activations, float, inverse, uses
//$ local function whole_of(count) return lanes == 1 and count or count .. " / " .. lanes .. " * " .. lanes end
//$ local sum_of_lanes = norms[1] and across("add")
//$ -- A loop over the elements of a row: `body(indent, load, store)` prints what is done with a vector of them, where
//$ -- load(base) and store(base, value) are its own.
//$ local function over_elements(width, body)
//$     over_row(width, function(at, load, store)
//$         body(function(base) return load(base, at) end, function(base, value) return store(base, at, value) end)
//$     end, { block = true })
//$ end
//$ for _, norm in ipairs(norms) do
//$ local layernorm, d = norm.kind == "layernorm", norm.width
//$ local one_over_d = "(" .. inverse(d) .. ")"
//$ local share = ("%.17g"):format(1 / d)
//$ local what = layernorm and "(x - mean) / sqrt(variance + eps) gain + offset" or "x / sqrt(mean square + eps) gain"

/* y = $(what), a row of $(d); statistics: $(layernorm and "mean" or "0") and 1 / sqrt(…). */
//$ local offset = layernorm and " const float *restrict offset," or ""
static inline void $(helper)_$(norm.name)_row(const float *restrict x, const float *restrict gain,$(offset) float *restrict y,
    float *restrict statistics)
{
//$ if lanes == 1 then
    double square = 0.0;
//$ if layernorm then
    double mean = 0.0;
    for (size_t i = 0; i < $(d); ++i)
        mean += (double) x[i];
    mean *= $(share);
    for (size_t i = 0; i < $(d); ++i)
        square += ((double) x[i] - mean) * ((double) x[i] - mean);
//$ else
    for (size_t i = 0; i < $(d); ++i)
        square += (double) x[i] * (double) x[i];
//$ end
    const float padded = (float) (square * $(share)) + $(float(norm.eps));
//$ else
//$ if layernorm then
    $(isa.vector) sums = $(isa.zero());
//$ over_elements(d, function(load)
        sums = $(isa.add("sums", load("x")));
//$ end)
    const float mean = $(sum_of_lanes("sums")) * $(one_over_d);
    const $(isa.vector) means = $(isa.broadcast("mean"));
    /* their differences$(d % isa.lanes > 0 and ", whose missing lanes are read as zeros" or "") */
//$ over_elements(d, function(load, store)
        $(store("y", isa.sub(load("x"), "means")));
//$ end)
//$ end
    $(isa.vector) squares = $(isa.zero());
//$ over_elements(d, function(load)
        const $(isa.vector) v = $(load(layernorm and "y" or "x"));
        squares = $(isa.fma("v", "v", "squares"));
//$ end)
    const float padded = $(sum_of_lanes("squares")) * $(one_over_d) + $(float(norm.eps));
//$ end
//$ local factor = first_lane("factor", isa.reciprocal_root(isa.broadcast("padded")))
    statistics[0] = $(layernorm and (lanes == 1 and "(float) mean" or "mean") or "0.0f");
    statistics[1] = $(factor);
//$ if lanes == 1 then
    for (size_t i = 0; i < $(d); ++i)
        y[i] = (float) ((double) x[i] - mean) * $(factor) * gain[i] + offset[i]; //$ if layernorm
        y[i] = x[i] * $(factor) * gain[i]; //$ if not layernorm
//$ else
    const $(isa.vector) factors = $(isa.broadcast(factor));
//$ over_elements(d, function(load, store)
//$ local normal = isa.mul(load(layernorm and "y" or "x"), "factors")
        const $(isa.vector) gains = $(load("gain")), normal = $(normal);
        $(store("y", layernorm and isa.fma("normal", "gains", load("offset")) or isa.mul("normal", "gains")));
//$ end)
//$ end
}

/* The same of `rows` rows. */
static void $(helper)_$(norm.name)(const $(helper)_norm *norm, const float *weights, const $(names.rows) *x, const $(names.rows) *y,
    const $(names.rows) *statistics, size_t rows)
{
    const size_t x_step = x->step, y_step = y->step;
    const float *from = x->at, *gain = weights + norm->gain$(layernorm and ", *offset = weights + norm->offset" or "");
    float *to = y->at, *kept = statistics->at;

    for (size_t row = 0; row < rows; ++row, from += x_step, to += y_step, kept += 2)
        $(helper)_$(norm.name)_row(from, gain,$(layernorm and " offset," or "") to, kept);
}
//$ if norm.name == norm.kind .. "_" .. d then -- of those that differ in eps the first

/* The gradient of a row x from that of y, dx; `plus` is added to it where there is one, and may be dx. */
static inline void $(helper)_$(norm.name)_row_back(const float *restrict dy, const float *restrict x, const float *restrict gain,
    const float *restrict statistics, const float *plus, float *dx)
{
    const $(isa.vector) means = $(isa.broadcast("statistics[0]")); //$ if layernorm
    const $(isa.vector) factors = $(isa.broadcast("statistics[1]"));
    $(isa.vector) $(layernorm and "sums = " .. isa.zero() .. ", " or "")along = $(isa.zero());
//$ local function normal(load) return isa.mul(layernorm and isa.sub(load("x"), "means") or load("x"), "factors") end
//$ over_elements(d, function(load)
        const $(isa.vector) g = $(isa.mul(load("dy"), load("gain")));
        const $(isa.vector) normal = $(normal(load));
        sums = $(isa.add("sums", "g")); //$ if layernorm
        along = $(isa.fma("g", "normal", "along"));
//$ end)
//$ if layernorm then
    const float sum = $(sum_of_lanes("sums"));
    const $(isa.vector) level = $(isa.broadcast("sum * " .. one_over_d));
//$ end
    const float product = $(sum_of_lanes("along"));
    const $(isa.vector) slope = $(isa.broadcast("product * " .. one_over_d));
    if (plus) {
//$ for n = 1, 2 do
//$ over_elements(d, function(load, store)
            const $(isa.vector) g = $(isa.mul(load("dy"), load("gain")));
            const $(isa.vector) normal = $(normal(load));
            const $(isa.vector) rest = $(isa.sub(isa.sub("g", "level"), isa.mul("normal", "slope"))); //$ if layernorm
            const $(isa.vector) rest = $(isa.sub("g", isa.mul("normal", "slope"))); //$ if not layernorm
            $(store("dx", n == 1 and isa.fma("rest", "factors", load("plus")) or isa.mul("rest", "factors")));
//$ end)
    } else { //$ if n == 1
//$ end
    }
}

/* The same of `rows` rows; plus may be null. */
static void $(helper)_$(norm.name)_back(const $(helper)_norm *norm, const float *weights, const $(names.rows) *x,
    const $(names.rows) *statistics, const $(names.rows) *dy, const $(names.rows) *plus, const $(names.rows) *dx, size_t rows)
{
    const size_t x_step = x->step, dy_step = dy->step, dx_step = dx->step;
    const float *input = x->at, *from = dy->at, *kept = statistics->at, *gain = weights + norm->gain, *more = plus ? plus->at : NULL;
    float *to = dx->at;

    for (size_t row = 0; row < rows; ++row, input += x_step, from += dy_step, kept += 2, to += dx_step)
        $(helper)_$(norm.name)_row_back(from, input, gain, kept, more ? more + row * dx_step : NULL, to);
}
//$ end
//$ end

/* y = factor x, `width` floats; x may be y. */
static inline void $(helper)_scale(const float *x, float factor, float *y, size_t width)
{
    const $(isa.vector) factors = $(isa.broadcast("factor"));
    const size_t whole = $(whole_of("width"));

    for (size_t i = 0; i < whole; $(advance("i", lanes))) {
        const $(isa.vector) v = $(isa.mul("factors", isa.load_unaligned("x", "i")));
        $(isa.store_unaligned("y", "i", "v"));
    }
//$ if lanes > 1 then
    for (size_t i = whole; i < width; ++i)
        y[i] = factor * x[i];
//$ end
}
//$ if uses.sums or uses.tables or uses.offsets then

/* y += x, elements `first` … `end` - 1. */
static inline void $(helper)_accumulate(const float *restrict x, float *restrict y, size_t first, size_t end)
{
//$ if lanes == 1 then
    const size_t whole = first + (end - first) / 16 * 16;

    for (size_t i = first; i < whole; i += 16)
        for (size_t k = 0; k < 16; ++k)
            y[i + k] += x[i + k];
//$ else
    const size_t whole = first + $(whole_of("(end - first)"));

    for (size_t i = first; i < whole; $(advance("i", lanes))) {
        const $(isa.vector) sum = $(isa.add(isa.load_unaligned("y", "i"), isa.load_unaligned("x", "i")));
        $(isa.store_unaligned("y", "i", "sum"));
    }
//$ end
    for (size_t i = whole; i < end; ++i)
        y[i] += x[i];
}
//$ end
//$ if norms[1] then

/* Adds a row's share to the gradients of columns `column` … `end` - 1 of a norm's gains. */
static inline void $(helper)_gain_sums(const float *restrict dy, const float *restrict x, const float *restrict statistics,
    float *restrict gain, size_t column, size_t end)
{
    const float mean = statistics[0], factor = statistics[1];
    const $(isa.vector) means = $(isa.broadcast("mean")), factors = $(isa.broadcast("factor"));
    const size_t whole = $(lanes == 1 and "end" or "column + " .. whole_of("(end - column)"));

    for (size_t i = column; i < whole; $(advance("i", lanes))) {
        const $(isa.vector) normal = $(isa.mul(isa.sub(isa.load_unaligned("x", "i"), "means"), "factors"));
        const $(isa.vector) sum = $(isa.fma("normal", isa.load_unaligned("dy", "i"), isa.load_unaligned("gain", "i")));
        $(isa.store_unaligned("gain", "i", "sum"));
    }
//$ if lanes > 1 then
    for (size_t i = whole; i < end; ++i)
        gain[i] += dy[i] * ((x[i] - mean) * factor);
//$ end
}

/* Adds to the gradients of a norm over all tokens, in `sums` like the parameters; each part has columns of its own. */
static void $(helper)_norm_sums(const $(helper)_run *r, const $(helper)_norm *norm, float *sums, const $(names.rows) *x,
    const $(names.rows) *statistics, const $(names.rows) *dy)
{
    const size_t column = $(helper)_part_begins(r->t, norm->width, r->t->part);
    const size_t end = $(helper)_part_begins(r->t, norm->width, r->t->part + 1);
    const size_t rows = r->sequences * r->length, x_step = x->step, dy_step = dy->step;
    const float *input = x->at, *from = dy->at, *kept = statistics->at;
    float *gain = sums + norm->gain;
    float *offset = norm->offset > 0 ? sums + norm->offset : NULL; //$ if uses.offsets

    for (size_t row = 0; row < rows; ++row, input += x_step, from += dy_step, kept += 2) {
        $(helper)_gain_sums(from, input, kept, gain, column, end);
//$ if uses.offsets then
        if (offset)
            $(helper)_accumulate(from, offset, column, end);
//$ end
    }
}
//$ end
//$ if uses.sums then

/* Adds the rows to sums, columns `column` … `end` - 1. */
static void $(helper)_column_sums(const $(names.rows) *dy, float *sums, size_t column, size_t end, size_t rows)
{
    const size_t step = dy->step;
    const float *from = dy->at;

    for (size_t row = 0; row < rows; ++row, from += step)
        $(helper)_accumulate(from, sums, column, end);
}
//$ end
//$ if uses.bias then

/* y += bias, row by row of `width` values. */
static void $(helper)_add_bias(const float *bias, const $(names.rows) *y, size_t width, size_t rows)
{
    const size_t step = y->step;
    float *to = y->at;

    for (size_t row = 0; row < rows; ++row, to += step)
        $(helper)_accumulate(bias, to, 0, width);
}
//$ end
//$ if uses.add then

/* y = a + b, rows of `step` floats. */
static void $(helper)_add(const float *a, const float *b, float *y, size_t step, size_t rows)
{
    for (size_t i = 0; i < rows * step; $(advance("i", lanes))) {
        const $(isa.vector) sum = $(isa.add(isa.load_unaligned("a", "i"), isa.load_unaligned("b", "i")));
        $(isa.store_unaligned("y", "i", "sum"));
    }
}
//$ end

/* y = x, rows of `step` floats. */
static void $(helper)_copy(const float *restrict x, float *restrict y, size_t step, size_t rows)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    for (size_t i = 0; i < rows * step; $(advance("i", lanes))) {
        const $(isa.vector) v = $(isa.mul(isa.load_unaligned("x", "i"), isa.broadcast("one")));
        $(isa.store_unaligned("y", "i", "v"));
    }
}
//$ if uses.columns then

/* y = x, `width` columns of the rows. */
static void $(helper)_columns(const $(names.rows) *x, const $(names.rows) *y, size_t width, size_t rows)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    for (size_t row = 0; row < rows; ++row)
        $(helper)_scale(x->at + row * x->step, one, y->at + row * y->step, width);
}
//$ end

/* y = 0, rows of `step` floats. */
static void $(helper)_clear(float *y, size_t step, size_t rows)
{
    const float none = $hidden(0.0f); /* else its loop is a call of memset */
    const $(isa.vector) zero = $(isa.broadcast("none"));

    for (size_t i = 0; i < rows * step; $(advance("i", lanes)))
        $(isa.store_unaligned("y", "i", "zero"));
}

/* 32 bits that depend on every bit of x. */
static inline uint32_t $(helper)_mixed(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Dropout at place `site` of the model, of the part's tokens: y = x / (1 - share) or 0, and y = x where there is no dropout. The choice
   depends on seed, step, site, number of the token in the whole batch and column alone. x may be y. */
static void $(helper)_drop(const $(helper)_run *r, uint32_t site, const $(names.rows) *x, const $(names.rows) *y)
{
    const $(helper) *t = r->t;
    const float factor = 1.0f / (1.0f - t->dropout), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */
    const uint32_t limit = (uint32_t) (t->dropout * 4294967040.0f);
    uint32_t key = $(helper)_mixed((uint32_t) t->seed) ^ (uint32_t) (t->seed >> 32);

    if (!r->drops) {
        if (x->at != y->at)
            $(helper)_copy(x->at, y->at, y->step, r->count);
        return;
    }
    key = $(helper)_mixed(key ^ (uint32_t) t->step) ^ (uint32_t) (t->step >> 32);
    key = $(helper)_mixed(key ^ site);
    for (size_t row = 0; row < r->count; ++row) {
        const uint64_t number = t->first_sequence * r->length + r->first + row;
        const uint32_t own = $(helper)_mixed(key ^ (uint32_t) number) ^ (uint32_t) (number >> 32);
        const float *from = x->at + row * x->step;
        float *to = y->at + row * y->step;
        for (size_t i = 0; i < y->step; ++i)
            to[i] = $(helper)_mixed(own + 0x9e3779b9u * (uint32_t) i) < limit ? none : from[i] * factor;
    }
}
//$ for _, activation in ipairs(activations) do
//$ local activated = once("templates/math/activation.c", { activation = activation.name }) .. "_" .. activation.name
$(include("templates/model/training/slope.c", { activation = activation.name, helper = activation.helper }))
//$ for _, gated in ipairs(activation.gated) do

//$ if gated then
/* y = activation(gate) x, rows of `step` floats. */
static void $(activation.helper)_gate(const float *restrict gate, const float *restrict x, float *restrict y, size_t step, size_t rows)
//$ else
/* y = activation(x), rows of `step` floats. */
static void $(activation.helper)_activate(const float *restrict x, float *restrict y, size_t step, size_t rows)
//$ end
{
    for (size_t i = 0; i < rows * step; $(advance("i", lanes))) {
//$ if gated then
        const $(isa.vector) open = $(activated)($(isa.load_unaligned("gate", "i")));
        $(isa.store_unaligned("y", "i", isa.mul("open", isa.load_unaligned("x", "i"))));
//$ else
        $(isa.store_unaligned("y", "i", activated .. "(" .. isa.load_unaligned("x", "i") .. ")"));
//$ end
    }
}

//$ if gated then
/* The gradients of gate and x from that of y. */
static void $(activation.helper)_gate_back(const float *restrict dy, const float *restrict gate,
    const float *restrict x, float *restrict dgate, float *restrict dx, size_t step, size_t rows)
//$ else
/* The gradient of x from that of y. */
static void $(activation.helper)_activate_back(const float *restrict dy, const float *restrict x, float *restrict dx,
    size_t step, size_t rows)
//$ end
{
    for (size_t i = 0; i < rows * step; $(advance("i", lanes))) {
        const $(isa.vector) d = $(isa.load_unaligned("dy", "i"));
//$ if gated then
        const $(isa.vector) g = $(isa.load_unaligned("gate", "i"));
        const $(isa.vector) open = $(activated)(g), slope = $(activation.helper)_slope(g);
        $(isa.store_unaligned("dx", "i", isa.mul("d", "open")));
        $(isa.store_unaligned("dgate", "i", isa.mul(isa.mul("d", "slope"), isa.load_unaligned("x", "i"))));
//$ else
        const $(isa.vector) slope = $(activation.helper)_slope($(isa.load_unaligned("x", "i")));
        $(isa.store_unaligned("dx", "i", isa.mul("d", "slope")));
//$ end
    }
}
//$ end
//$ end
