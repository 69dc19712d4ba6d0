//$ takes isa, helper
//$ -- Tables whose rows are sums in 16 bits of values rounded to 8 bits, several tables in one unit.
//$ local hash, width, pitch, limit = shape.lsh, shape.width, names.constant("VALUE_PITCH"), names.constant("SUM_LIMIT")
//$ local together, some = hash.together, plural(hash.together, "table")
//$ local largest_lane, sum_of_lanes = across("max"), across("add")
//$ local several = together < 4 and together or 4
//$ -- Takes magnitudes of a value into the largest one, `max`, and their sum, `all`, which is not finite if one is not.
//$ local function magnitudes(at, load)
    const $(isa.vector) magnitude = $(isa.abs(load("value", at)));
    max = $(isa.max("max", "magnitude"));
    all = $(isa.add("all", "magnitude"));
//$ end

/* The largest magnitude in `count` values, value_step apart. NaN and infinity make it NaN. */
static float $(helper)_peak(const float *restrict value, size_t value_step, size_t count)
{
    $(isa.vector) max = $(isa.zero()), all = $(isa.zero());

    for (size_t n = 0; n < count; ++n, value += value_step) {
//$ over_row(width, magnitudes, { block = true })
    }
    return $(largest_lane("max")) + 0.0f * $(sum_of_lanes("all"));
}

//$ if shape.causal then
/* Whether a value has elements of more than 127 units, or such as are not finite. */
static inline int $(helper)_exceeds(const float *restrict value, float unit)
{
    $(isa.vector) max = $(isa.zero()), all = $(isa.zero());

//$ over_row(width, magnitudes, { block = true })
    /* a value that is not finite counts as 3e38 */
    max = $(isa.select(isa.less("all", isa.broadcast("3e38f")), "max", isa.broadcast("3e38f")));
    const $(isa.mask) more = $(isa.less(isa.broadcast("127.0f * unit"), isa.mul("max", isa.broadcast("0.99999f"))));
    return $(isa.any("more"));
}

//$ end
/* Makes the unit of $(some) twice as large. */
static float $(helper)_doubled(float unit, int16_t *restrict rows)
{
    for (size_t i = 0; i < $(together * hash.rows) * $(pitch); ++i)
        rows[i] = (int16_t) (rows[i] / 2);
    return 2.0f * unit;
}

/* The unit of $(some), so far `unit`, 0 if they are empty, for values of up to `peak`: 127 units or fewer. NaN stays NaN.
   peak / 127 is rounded: 0.99999 keeps a peak of 127 units from counting as more. */
static float $(helper)_unit(float peak, float unit, int16_t *restrict rows)
{
    if (unit <= 0.0f && peak > 1e-30f)
        unit = peak * (1.0f / 127.0f);
    while (unit > 0.0f && 127.0f * unit < 0.99999f * peak)
        unit = $(helper)_doubled(unit, rows);
    return unit + 0.0f * peak;
}

//$ local parameters
//$ for n = 0, several - 1 do parameters = listed(parameters, "int16_t *restrict row" .. n) end
/* A value in whole units, rounded to the nearest: + 128 and - 128, as casts round towards zero. */
static inline void $(helper)_whole(const float *restrict value, float inverse, int16_t *restrict whole)
{
    for (size_t i = 0; i < $(width); ++i)
        whole[i] = (int16_t) ((int) (inverse * value[i] + 128.5f) - 128);
}

/* Adds a value in whole units to $(several > 1 and "rows of " .. several .. " tables" or "a row"). Returns 2 * $(limit) or more if a sum is below -$(limit)
   now, or not below $(limit). */
static inline uint16_t $(helper)_add(const int16_t *restrict whole, $(parameters))
{
    uint16_t all = 0;

    for (size_t i = 0; i < $(width); ++i) {
//$ for n = 0, several - 1 do
        row$(n)[i] = (int16_t) (row$(n)[i] + whole[i]);
        all = (uint16_t) (all | (uint16_t) (row$(n)[i] + $(limit)));
//$ end
    }
    return all;
}

/* Adds a value to a row of each of $(some), the first of which begins at `rows`. Returns their unit: it doubles if the sum
   of such rows might exceed 16 bits. */
static inline float $(helper)_insert(const float *restrict value, int16_t *const *row, float unit, int16_t *restrict rows)
{
    if (!(unit > 0.0f)) /* values are too small, or one is NaN */
        return unit;
    int16_t whole[$(width)];

    $(helper)_whole(value, 1.0f / unit, whole);
//$ for from = 0, together - 1, several do
//$ local own
//$ for n = from, from + several - 1 do own = listed(own, "row[" .. n .. "]") end
    $(from == 0 and "uint16_t all =" or "all |=") $(helper)_add(whole, $(own));
//$ end

    return all < 2 * $(limit) ? unit : $(helper)_doubled(unit, rows);
}

/* y = y + a row of each of $(some). */
static inline void $(helper)_look_up(int16_t *const *row, float unit, float *restrict y)
{
//$ local total
//$ for n = 0, together - 1 do
    const int16_t *found$(n) = row[$(n)];
//$     total = (total and total .. " + " or "") .. "found" .. n .. "[i]"
//$ end

    for (size_t i = 0; i < $(width); ++i)
        y[i] += unit * (float) (int16_t) ($(total));
}
