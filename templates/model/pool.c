//$ takes isa, panel, output, helper, float_sums, calls
//$ -- Of sums a mean goes through the last map before it is more than a mean.
//$ local divides = output.pool == "mean" or output.sums
//$ local pooled_width, pooled_rows = output.sums and output.sums.pitch or output.width, output.sums and "rows" or "tokens"

//$ if output.pool == "mean" or output.pool == "sqrt_n" then
//$ if output.sums then
/* The mean over `tokens` tokens, of which x[rows][$(pooled_width)] are sums. */
//$ else
/* $(output.pool == "mean" and "The mean" or "The sum / sqrt(tokens)") of x[tokens][$(pooled_width)]. */
//$ end
//$ local root
static void $(helper)_pool(const float *restrict x, $(output.sums and "size_t rows, " or "")size_t tokens, float *restrict y)
{
//$ if float_sums then
    float sums[$(panel)], lost[$(panel)];
//$ if divides then
    const float all = (float) tokens;
//$ else
//$ root = first_lane("root", isa.reciprocal_root(isa.broadcast("(float) tokens")))
//$ end
    const float zero = $hidden(0.0f); /* else its loop is a call of memset */

    for (size_t from = 0; from < $(pooled_width); from += $(panel)) {
        const size_t count = $(pooled_width) - from < $(panel) ? $(pooled_width) - from : $(panel);
        for (size_t i = 0; i < count; ++i) {
            sums[i] = zero;
            lost[i] = zero;
        }
        for (size_t row = 0; row < $(pooled_rows); ++row)
            for (size_t i = 0; i < count; ++i)
                sums[i] = $(calls.add)(sums[i], x[row * $(pooled_width) + from + i], &lost[i]);
        for (size_t i = 0; i < count; ++i)
            y[from + i] = sums[i] $(divides and "/ all" or "* " .. root);
    }
}
//$ else
    double sums[$(panel)];
//$ if divides then
    const double factor = 1.0 / (double) tokens;
//$ else
//$ root = first_lane("root", isa.reciprocal_root(isa.broadcast("(float) tokens")))
    const double factor = (double) $(root);
//$ end
    const double zero = (double) $hidden(0.0f); /* else its loop is a call of memset */

    for (size_t from = 0; from < $(pooled_width); from += $(panel)) {
        const size_t count = $(pooled_width) - from < $(panel) ? $(pooled_width) - from : $(panel);
        for (size_t i = 0; i < count; ++i)
            sums[i] = zero;
        for (size_t row = 0; row < $(pooled_rows); ++row)
            for (size_t i = 0; i < count; ++i)
                sums[i] += (double) x[row * $(pooled_width) + from + i];
        for (size_t i = 0; i < count; ++i)
            y[from + i] = (float) (sums[i] * factor);
    }
}
//$ end
//$ else
/* The $(output.pool) of x[tokens][$(output.width)]. */
static void $(helper)_pool(const float *restrict x, size_t tokens, float *restrict y)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */
    const float *token = x$(output.pool == "last" and " + " .. times("(tokens - 1)", output.width) or "");

    (void) tokens; //$ if output.pool == "first"
    for (size_t i = 0; i < $(output.width); ++i)
        y[i] = one * token[i];
}
//$ end
