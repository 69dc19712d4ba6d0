//$ takes isa, lanes, helper, norms, activations, float, uses
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
//$ local one_over_d = float(1 / d)
//$ local share = ("%.17g"):format(1 / d)
//$ local what = layernorm and "(x - mean) / sqrt(variance + eps) gain + offset" or "x / sqrt(mean square + eps) gain"
//$ local parameters = listed(
//$     "const float *restrict x, size_t x_step, const float *restrict gain",
//$     layernorm and "const float *restrict offset",
//$     "float *restrict y, size_t y_step, float *restrict statistics, size_t rows"
//$ )

/* y = $(what), of rows of $(d); statistics: $(layernorm and "mean" or "0") and 1 / sqrt(…) of each. */
static void $(helper)_$(norm.name)($(parameters))
{
    for (size_t row = 0; row < rows; ++row, x += x_step, y += y_step, statistics += 2) {
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
        const float variance = (float) (square * $(share)) + $(float(norm.eps));
//$ else
//$ if layernorm then
        $(isa.vector) sums = $(isa.zero());
//$ over_elements(d, function(load)
            sums = $(isa.add("sums", load("x")));
//$ end)
        const float mean = $(sum_of_lanes("sums")) * $(one_over_d);
        const $(isa.vector) means = $(isa.broadcast("mean"));
        /* their differences, whose missing lanes are read as zeros */
//$ over_elements(d, function(load, store)
            $(store("y", isa.sub(load("x"), "means")));
//$ end)
//$ end
        $(isa.vector) squares = $(isa.zero());
//$ over_elements(d, function(load)
            const $(isa.vector) v = $(load(layernorm and "y" or "x"));
            squares = $(isa.fma("v", "v", "squares"));
//$ end)
        const float variance = $(sum_of_lanes("squares")) * $(one_over_d) + $(float(norm.eps));
//$ end
//$ local factor = first_lane("factor", isa.reciprocal_root(isa.broadcast("variance")))
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
}
//$ if norm.name == norm.kind .. "_" .. d then -- of those that differ in eps the first

/* The gradient of x from that of y, dx; `plus` is added to it where there is one, and may be dx. */
static void $(helper)_$(norm.name)_back(const float *restrict dy, size_t dy_step, const float *restrict x,
    size_t x_step, const float *restrict gain, const float *restrict statistics, const float *plus, float *dx,
    size_t dx_step, size_t rows)
{
    for (size_t row = 0; row < rows; ++row, dy += dy_step, x += x_step, dx += dx_step, statistics += 2) {
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
//$ if layernorm then
                const $(isa.vector) rest = $(isa.sub(isa.sub("g", "level"), isa.mul("normal", "slope")));
//$ else
                const $(isa.vector) rest = $(isa.sub("g", isa.mul("normal", "slope")));
//$ end
                $(store("dx", n == 1 and isa.fma("rest", "factors", load("plus")) or isa.mul("rest", "factors")));
//$ end)
//$ if n == 1 then
            plus += dx_step;
        } else {
//$ end
//$ end
        }
    }
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
//$ if uses.bias or uses.sums or uses.tables or norms[1] then

/* y += x, elements `first` … `end` - 1. */
static inline void $(helper)_accumulate(const float *restrict x, float *restrict y, size_t first, size_t end)
{
    const size_t whole = $(lanes == 1 and "end" or "first + " .. whole_of("(end - first)"));

    for (size_t i = first; i < whole; $(advance("i", lanes))) {
        const $(isa.vector) sum = $(isa.add(isa.load_unaligned("y", "i"), isa.load_unaligned("x", "i")));
        $(isa.store_unaligned("y", "i", "sum"));
    }
//$ if lanes > 1 then
    for (size_t i = whole; i < end; ++i)
        y[i] += x[i];
//$ end
}
//$ end
//$ if norms[1] then

/* Adds to the gradients of columns `column` … `end` - 1 of a norm's gains, and of its offsets where it has some. */
static void $(helper)_norm_sums(const float *restrict dy, size_t dy_step, const float *restrict x, size_t x_step,
    const float *restrict statistics, float *restrict gain, float *restrict offset, size_t column, size_t end,
    size_t rows)
{
    for (size_t row = 0; row < rows; ++row, dy += dy_step, x += x_step, statistics += 2) {
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
        if (offset)
            $(helper)_accumulate(dy, offset, column, end);
    }
}
//$ end
//$ if uses.sums then

/* Adds the rows to sums, columns `column` … `end` - 1. */
static void $(helper)_column_sums(const float *restrict dy, size_t dy_step, float *restrict sums, size_t column, size_t end, size_t rows)
{
    for (size_t row = 0; row < rows; ++row, dy += dy_step)
        $(helper)_accumulate(dy, sums, column, end);
}
//$ end
//$ if uses.bias then

/* y += bias, row by row of `width` values. */
static void $(helper)_add_bias(const float *restrict bias, float *restrict y, size_t y_step, size_t width, size_t rows)
{
    for (size_t row = 0; row < rows; ++row, y += y_step)
        $(helper)_accumulate(bias, y, 0, width);
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

/* y = x, `width` columns of rows that are as far apart as said. */
static void $(helper)_columns(const float *x, size_t x_step, float *y, size_t y_step, size_t width, size_t rows)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    for (size_t row = 0; row < rows; ++row)
        $(helper)_scale(x + row * x_step, one, y + row * y_step, width);
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

/* Dropout at place `site` of the model: y = x / (1 - share) or 0, rows of `step` floats, of which the first is token number `token` of
   the whole batch. The choice depends on seed, step, site, token and column alone. x may be y. */
static void $(helper)_drop(const $(helper) *t, uint32_t site, uint64_t token, const float *x, float *y, size_t step, size_t rows)
{
    const float factor = 1.0f / (1.0f - t->dropout), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */
    const uint32_t limit = (uint32_t) (t->dropout * 4294967040.0f);
    uint32_t key = $(helper)_mixed((uint32_t) t->seed) ^ (uint32_t) (t->seed >> 32);

    key = $(helper)_mixed(key ^ (uint32_t) t->step) ^ (uint32_t) (t->step >> 32);
    key = $(helper)_mixed(key ^ site);
    for (size_t row = 0; row < rows; ++row, x += step, y += step) {
        const uint64_t number = token + row;
        const uint32_t own = $(helper)_mixed(key ^ (uint32_t) number) ^ (uint32_t) (number >> 32);
        for (size_t i = 0; i < step; ++i)
            y[i] = $(helper)_mixed(own + 0x9e3779b9u * (uint32_t) i) < limit ? none : x[i] * factor;
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
