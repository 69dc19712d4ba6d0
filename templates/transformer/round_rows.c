//$ takes isa, lanes, helper, rounded, rounded_rows
$(include("templates/lookup/few/round_inputs.c"))
//$ for _, inputs in ipairs(rounded_rows) do
//$ local groups = (inputs + rounded.vectors - 1) // rounded.vectors

/* The $(inputs) inputs of each token as a product takes them, rows of words `step` apart: $(groups) words of four inputs, what its sums start from, and
   the unit of the inputs, a float. Weights are 128 too large: sums start from -128 times the sum of the inputs. */
static void $(helper)_rounded_$(inputs)(const float *restrict x, size_t x_step, uint32_t *words, size_t step, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token, x += x_step, words += step) {
        const float unit = $(helper)_round_$(inputs)(x, (int8_t *) (void *) words);
        $(isa.index) sums = $(isa.index_zero());
        uint32_t parts[$(lanes)], start = 0;
        for (size_t word = 0; word < $((groups + lanes - 1) // lanes * lanes); $(lanes == 1 and "++word" or "word += " .. lanes)) {
            const $(isa.index) inputs = $(isa.load_words("words", "word"));
            sums = $(isa.dot_bytes("sums", isa.index_broadcast("0x80808080u"), "inputs"));
        }
        $(isa.store_words("parts", 0, "sums"));
        for (size_t lane = 0; lane < $(lanes); ++lane)
            start -= parts[lane];
        words[$(groups)] = start;
        *(float *) (void *) (words + $(groups + 1)) = unit;
    }
}
//$ end
