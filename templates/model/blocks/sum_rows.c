//$ takes isa, helper, name, width, activated
//$ -- activated: the function whose values of the elements are summed, or false.

/* sums[$(width)] of $(activated and "the activations of " or "")the rows x[rows], x_step apart. */
static void $(helper)_$(name)(const float *restrict x, size_t x_step, size_t rows, float *restrict sums)
{
//$ over_row(width, function(at, load, store)
        $(isa.vector) total = $(isa.zero());
        for (size_t row = 0; row < rows; ++row) {
            const $(isa.vector) value = $(load("x", sum("row * x_step", at)));
            total = $(isa.add("total", activated and activated .. "(value)" or "value"));
        }
        $(store("sums", at, "total"));
//$ end, { block = true })
}
