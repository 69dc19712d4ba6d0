//$ takes isa, helper, width

/* y = x, row by row of $(width). */
static void $(helper)_copy_$(width)(const float *restrict x, size_t x_step, float *restrict y, size_t y_step, size_t rows)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    for (size_t row = 0; row < rows; ++row, x += x_step, y += y_step) {
//$ over_row(width, function(at, load, store)
            $(store("y", at, isa.mul(isa.broadcast("one"), load("x", at))));
//$ end)
    }
}
