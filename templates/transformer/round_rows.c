//$ takes helper, rounded, rounded_rows, rounding
$(include("templates/lookup/few/round_inputs.c", rounding))
//$ for _, inputs in ipairs(rounded_rows) do
//$ local words = (inputs + rounded.rows - 1) // rounded.rows

/* The $(inputs) inputs of each token as a product takes them, rows of words `step` apart: $(words) words of four inputs, what its sums start from, and
   the unit of the inputs, a float. */
static void $(helper)_rounded_$(inputs)(const float *restrict x, size_t x_step, uint32_t *words, size_t step, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token, x += x_step, words += step) {
        uint32_t start;
        const float unit = $(helper)_round_block_$(inputs)(x, words, &start);
        words[$(words)] = start;
        *(float *) (void *) (words + $(words + 1)) = unit;
    }
}
//$ end
