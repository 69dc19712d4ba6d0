//$ takes prologue, helper, isa, lanes, t, training, pitch, strip_kinds, code_tile
//$ lines(prologue)
//$ local m, slots = shape.neighbours, shape.slots
//$ local sum_of_lanes = across("add")

/* Where the $(m > 1 and m .. " scores" or "score") of a table and a token begin$(m > 1 and "s" or "s"):
   score [tiles][$(shape.h)]$(m > 1 and "[" .. m .. "]" or "")[$(code_tile)]. */
static inline size_t $(helper)_place(size_t table, size_t token)
{
    return (token / $(code_tile) * $(slots) + $(times("table", m))) * $(code_tile) + token % $(code_tile);
}

/* Buckets the tokens of a table by their codes, in order.
   code          of all tables and tokens
   table         its number
   tokens        how many there are
   begin         [$(shape.rows) + 1]: bucket `row` is place[begin[row]] … place[begin[row + 1] - 1], where its scores are
   place, token  [$(m > 1 and m .. " * " or "")tokens]: where a score is, and its token */
static void $(helper)_bucket(const uint16_t *code, size_t table, size_t tokens, uint32_t *begin, uint32_t *place, uint32_t *token)
{
    const uint32_t none = (uint32_t) $hidden_integer(0); /* else its loop is a call of memset */
    for (size_t row = 0; row <= $(shape.rows); ++row)
        begin[row] = none;
    for (size_t t = 0; t < tokens; ++t) {
        const size_t at = $(helper)_place(table, t);
//$ if m > 1 then
        for (size_t n = 0; n < $(m); ++n)
            ++begin[code[at + n * $(code_tile)]];
//$ else
        ++begin[code[at]];
//$ end
    }
    /* counts become ends of buckets; filled from the last token down they become begins */
    for (size_t row = 1; row <= $(shape.rows); ++row)
        begin[row] += begin[row - 1];
    for (size_t t = tokens; t-- > 0;) {
        const size_t at = $(helper)_place(table, t);
//$ if m > 1 then
        for (size_t n = $(m); n-- > 0;) {
            const uint32_t to = --begin[code[at + n * $(code_tile)]];
            place[to] = (uint32_t) (at + n * $(code_tile));
            token[to] = (uint32_t) t;
        }
//$ else
        const uint32_t to = --begin[code[at]];
        place[to] = (uint32_t) at;
        token[to] = (uint32_t) t;
//$ end
    }
}
//$ for _, kind in ipairs(strip_kinds) do
//$ local function each(f)
//$     for n = 0, kind.vectors - 1 do f(n, n * lanes, lanes) end
//$     if kind.partial > 0 then f(kind.vectors, kind.vectors * lanes, kind.partial) end
//$ end
//$ local function load(base, at, n) return n == lanes and isa.load_unaligned(base, at) or isa.load_partial(base, at, n) end
//$ local chains = kind.chains

/* $(plural(kind.floats, "column")) of a bucket of `count` tokens: gradient = sum of score times dy; slope of a score += <dy, row>. */
static void $(helper)_strip_$(kind.name)(const float *restrict row, const float *restrict dy,
    const uint32_t *restrict place, const uint32_t *restrict token,
    size_t count, const float *restrict score, float *restrict slope, float *restrict gradient)
{
//$ each(function(n)
    $(isa.vector) gradient$(n) = $(isa.zero());
//$ end)
    for (size_t entry = 0; entry < count; ++entry) {
        const float *from = dy + (size_t) token[entry] * $(shape.y_step);
        const $(isa.vector) factor = $(isa.broadcast("score[place[entry]]"));
//$ each(function(n, at, floats)
        const $(isa.vector) dy$(n) = $(load("from", at, floats));
//$ if n < chains then
        $(chains == kind.count and "const " or "")$(isa.vector) along$(n) = $(isa.mul("dy" .. n, load("row", at, floats)));
//$ else
        along$(n % chains) = $(isa.fma("dy" .. n, load("row", at, floats), "along" .. n % chains));
//$ end
        gradient$(n) = $(isa.fma("factor", "dy" .. n, "gradient" .. n));
//$ end)
//$ local total = "along0"
//$ for n = 1, chains - 1 do total = isa.add(total, "along" .. n) end
        slope[place[entry]] += $(sum_of_lanes(total));
    }
//$ each(function(n, at, floats)
//$ local value = "gradient" .. n
    $(floats == lanes and isa.store_unaligned("gradient", at, value) or isa.store_partial("gradient", at, floats, value));
//$ end)
}
//$ end

/* The gradient of one row from its bucket of tokens, and the slopes of their scores. */
static void $(helper)_row_gradient(const float *row, const float *dy, const uint32_t *place, const uint32_t *token, size_t count,
    const float *score, float *slope, float *gradient)
{
    for (size_t entry = 0; entry < count; ++entry)
        slope[place[entry]] = 0.0f;
//$ for _, strip in ipairs(t.strips) do
//$ loop("column", strip.at, strip.at + strip.count * strip.step, strip.step, function(column)
        $(helper)_strip_$(strip.name)($(sum("row", column)), $(sum("dy", column)), place, token, count, score, slope,
            $(sum("gradient", column)));
//$ end, { braces = false })
//$ end
}
//$ local full = shape.d_out - shape.d_out % lanes
//$ local rest = shape.d_out % lanes
//$ local function columns(body)
//$     loop("i", 0, full, lanes, function(at)
//$         body(at, lanes)
//$     end, { block = true })
//$     if rest > 0 then
        {
//$         body(full, rest)
        }
//$     end
//$ end
//$ local function load(base, at, n) return n == lanes and isa.load_unaligned(base, at) or isa.load_partial(base, at, n) end
//$ local function store(base, at, n, value)
//$     return n == lanes and isa.store_unaligned(base, at, value) or isa.store_partial(base, at, n, value)
//$ end

/* Moves a row against its gradient: see $(training.names.rates). */
static void $(helper)_move_row(const $(training.names.rates) *rates, float *restrict row, float *restrict state,
    const float *restrict gradient)
{
    const $(isa.vector) epsilon = $(isa.broadcast("rates->epsilon"));
    if (rates->adam) {
        const $(isa.vector) rate = $(isa.broadcast("-rates->rate * rates->correction1"));
        const $(isa.vector) correction = $(isa.broadcast("rates->correction2"));
        const $(isa.vector) new_first = $(isa.broadcast("1.0f - rates->beta1"));
        const $(isa.vector) new_second = $(isa.broadcast("1.0f - rates->beta2"));
        float *second_state = state + $(pitch);
//$ local function adam(at, n)
    const $(isa.vector) g = $(load("gradient", at, n));
    const $(isa.vector) old_first = $(load("state", at, n));
    const $(isa.vector) old_second = $(load("second_state", at, n));
    const $(isa.vector) first = $(isa.fma("new_first", isa.sub("g", "old_first"), "old_first"));
    const $(isa.vector) second = $(isa.fma("new_second", isa.sub(isa.mul("g", "g"), "old_second"), "old_second"));
    const $(isa.vector) variance = $(isa.fma("correction", "second", "epsilon"));
    const $(isa.vector) step = $(isa.mul(isa.mul("rate", "first"), isa.reciprocal_root("variance")));
    $(store("state", at, n, "first"));
    $(store("second_state", at, n, "second"));
    $(store("row", at, n, isa.add(load("row", at, n), "step")));
//$ end
//$ columns(adam)
        return;
    }
    $(isa.vector) squares = $(isa.zero());
//$ columns(function(at, n)
        const $(isa.vector) g = $(load("gradient", at, n));
        squares = $(isa.fma("g", "g", "squares"));
//$ end)
    *state += $(sum_of_lanes("squares")) * ($(training.one_over_d_out));
    const $(isa.vector) sum = $(isa.add(isa.broadcast("*state"), "epsilon"));
    const $(isa.vector) rate = $(isa.mul(isa.broadcast("-rates->rate"), isa.reciprocal_root("sum")));
//$ columns(function(at, n)
        $(store("row", at, n, isa.fma("rate", load("gradient", at, n), load("row", at, n))));
//$ end)
}

/* Slopes of tokens that are not there, in the last tile of a table: zero. */
static void $(helper)_clear_absent(size_t table, size_t tokens, float *slope)
{
    for (size_t token = tokens; token % $(code_tile) != 0; ++token) {
        float *at = slope + $(helper)_place(table, token);
//$ if m > 1 then
        for (size_t n = 0; n < $(m); ++n)
            at[n * $(code_tile)] = 0.0f;
//$ else
        *at = 0.0f;
//$ end
    }
}

/* Backward of the gather for the tables first_table … end_table - 1, which moves each row that a token took, once.
   Cannot fail. */
void $(t.names.rows)(const $(training.names.parameters) *parameters, const $(training.names.rates) *rates,
    const $(training.names.tokens) *tokens, size_t first_table, size_t end_table, void *scratch)
//$ local function buckets(body)
{
    uint32_t *begin = (uint32_t *) (void *) ((float *) scratch + $(training.row_floats));
    uint32_t *place = begin + $(shape.rows + 1);
    uint32_t *token = place + $(times("tokens->count", m)), *uses = tokens->uses;
    float *slope = tokens->slope;
//$     body("before")

    for (size_t table = first_table; table < end_table; ++table) {
        $(helper)_bucket(tokens->code, table, tokens->count, begin, place, token);
        $(helper)_clear_absent(table, tokens->count, slope);
        for (size_t row = 0; row < $(shape.rows); ++row) {
            const uint32_t first = begin[row], count = begin[row + 1] - first;
            const size_t number = table * $(shape.rows) + row;
            if (count == 0)
                continue;
            if (uses)
                uses[number] += count;
//$     body("row")
        }
    }
//$     body("after")
}
//$ end
//$ buckets(function(part)
//$ if part == "before" then
    float *gradient = (float *) scratch;
//$ elseif part == "row" then
            float *here = parameters->tables + number * $(pitch);
            $(helper)_row_gradient(here, tokens->dy, place + first, token + first, count, tokens->score, slope, gradient);
            $(helper)_move_row(rates, here, parameters->state + number * (rates->adam ? $(2 * pitch) : 1), gradient);
//$ end
//$ end)

/* The same, but lists rows and their gradients instead. Returns how many. Cannot fail. */
size_t $(t.names.list_rows)(const $(training.names.parameters) *parameters, const $(training.names.tokens) *tokens,
    size_t first_table, size_t end_table, uint32_t *listed, float *gradients, void *scratch)
//$ buckets(function(part)
//$ if part == "before" then
    size_t listed_rows = 0;
//$ elseif part == "row" then
            $(helper)_row_gradient(parameters->tables + number * $(pitch), tokens->dy, place + first, token + first, count,
                tokens->score, slope, gradients + listed_rows * $(pitch));
            listed[listed_rows++] = (uint32_t) number;
//$ elseif part == "after" then
    return listed_rows;
//$ end
//$ end)

/* Moves the rows of a list against their gradients. Cannot fail. */
void $(t.names.apply_rows)(const $(training.names.parameters) *parameters, const $(training.names.rates) *rates,
    const uint32_t *row, const float *gradient, size_t count)
{
    for (size_t n = 0; n < count; ++n)
        $(helper)_move_row(rates, parameters->tables + (size_t) row[n] * $(pitch),
            parameters->state + (size_t) row[n] * (rates->adam ? $(2 * pitch) : 1),
            gradient + n * $(pitch));
}
