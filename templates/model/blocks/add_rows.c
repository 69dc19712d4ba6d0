//$ takes isa, helper, width

/* y = a + b, row by row of $(width); y may be a or b. */
static void $(helper)_add_$(width)(const float *a, size_t a_step, const float *b, size_t b_step, float *y, size_t y_step,
    size_t rows)
{
    for (size_t row = 0; row < rows; ++row, a += a_step, b += b_step, y += y_step) {
//$ over_row(width, function(at, load, store)
            $(store("y", at, isa.add(load("a", at), load("b", at))));
//$ end)
    }
}
