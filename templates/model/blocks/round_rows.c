//$ takes isa, lanes, helper, rounded, inputs, measured, rounding
//$ local words = (inputs + rounded.rows - 1) // rounded.rows
//$ if rounded.integers then
//$ rounding.rounded_alone, rounding.integers.measured = { inputs }, measured
$(include("templates/lookup/rows/round_inputs.c", rounding))

//$ local of_group = rounded.groups and rounded.groups // rounded.rows
//$ local starts = of_group and "; then what sums of each " .. rounded.groups .. " inputs start from" or ""
/* The $(plural(inputs, "input")) of each token as a product takes them, rows of words `step`
   apart: $(plural(words, "word")) of four inputs, what its sums start from, and
   the unit of the inputs, a float$(starts). */
static void $(helper)_rounded_$(inputs)(const float *restrict x, size_t x_step, uint32_t *words, size_t step, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token, x += x_step, words += step) {
        uint32_t start;
        const float unit = $(helper)_round_block_$(inputs)(x, words, &start);
        words[$(words)] = start;
        *(float *) (void *) (words + $(words + 1)) = unit;
//$ if of_group then
        for (size_t k = 0; k < $(words); k += $(of_group)) {
            /* -8 times the sum of two inputs of each word, in the low half, and of the others: they are 128 larger at first */
            uint32_t sums = 0;
            for (size_t i = k; i < k + $(of_group); ++i) {
                const uint32_t inputs = $(words % of_group > 0 and "(i < " .. words .. " ? words[i] : 0)" or "words[i]") ^ 0x80808080u;
                sums += (inputs & 0x00ff00ffu) + (inputs >> 8 & 0x00ff00ffu);
            }
            const uint32_t low = sums & 0xffffu, high = sums >> 16;
            words[$(words + 2) + k / $(of_group)] = (8 * ($(256 * of_group) - low) & 0xffffu) | ($(256 * of_group) - high) << 19;
        }
//$ end
    }
}
//$ if measured then

/* The same, where the first words of each token are its largest magnitudes, the bits of floats: the largest of them
   counts. */
static void $(helper)_rounded_measured_$(inputs)(const float *restrict x, size_t x_step, uint32_t *words, size_t step, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token, x += x_step, words += step) {
        uint32_t start;
        const float unit = $(helper)_round_measured_$(inputs)(x, $(isa.load_words("words", 0)), words, &start);
        words[$(words)] = start;
        *(float *) (void *) (words + $(words + 1)) = unit;
    }
}
//$ end
//$ else
//$ local step, rest = 2 * lanes, inputs % (2 * lanes)
//$ -- What is left of `n` floats from `at` on, a vector of them.
//$ local function some(at, n)
//$     if n <= 0 then return isa.zero() end
//$     return n >= lanes and isa.load_unaligned("x", at) or isa.load_partial("x", at, n)
//$ end
//$ local function round(at, n)
            $(isa.store_bf16("words", at == "i" and "i / 2" or at // 2, some(at, n), some(sum(at, lanes), n - lanes)));
//$ end

/* The $(plural(inputs, "input")) of each token as a product takes them, rows of words `step`
   apart: $(plural(words, "word")) of two inputs in bf16. */
static void $(helper)_rounded_$(inputs)(const float *restrict x, size_t x_step, uint32_t *words, size_t step, size_t tokens)
{
    for (size_t token = 0; token < tokens; ++token, x += x_step, words += step) {
//$ loop("i", 0, inputs - rest, step, function(at)
//$ round(at, step)
//$ end)
//$ if rest > 0 then
//$ round(inputs - rest, rest)
//$ end
    }
}
//$ end
