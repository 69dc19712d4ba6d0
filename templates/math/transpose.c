//$ takes isa, lanes, helper, step

/* $(plural(lanes, "row")) of $(plural(lanes, "float")), `x_step` apart, become columns of y[$(lanes)][$(step)]. */
static inline void $(helper)_transpose(const float *restrict x, size_t x_step, float *restrict y)
{
//$ local rows = {}
//$ for r = 0, lanes - 1 do
//$     rows[r + 1] = "row" .. r
    const $(isa.vector) row$(r) = $(isa.load_unaligned("x", times(r, "x_step")));
//$ end
//$ local code, columns = isa.transpose(rows)
    const $(isa.vector) $(one.name) = $(one.value); //$ for _, one in ipairs(code)
    $(isa.store_unaligned("y", times(c - 1, step), column)); //$ for c, column in ipairs(columns)
}
