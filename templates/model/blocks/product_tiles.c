//$ takes isa, lanes, helper, panel, rounded, sums, dot, scale, outputs

//$ -- Several tokens on a matrix engine. Rows of words of the inputs are tiles as they are, and so are panels of weights.
/* A block of a product: the $(panel) outputs of a panel, of 16 tokens and of 16 more, or of 16 alone. */
typedef struct {
    const uint32_t *x[2];
    float *y[2];
    const float *$(rounded.integers and "scale, *" or "")bias;
} $(helper)_block;

/* A token's sums become its outputs: row `row` of `sums`, which has 32 of them. */
static inline void $(helper)_finish(const $(helper)_block *block, const $(sums.type) *sums, size_t row, size_t x_step,
    size_t y_step, size_t words)
{
//$ if rounded.integers then
    const uint32_t *x = block->x[row / 16] + row % 16 * x_step;
    const float unit = ((const float *) (const void *) x)[words + 1];
    const $(isa.index) start = $(isa.index_broadcast("x[words]"));
    const float *scale = block->scale;
//$ end
    const float *bias = block->bias;
    float *y = block->y[row / 16] + row % 16 * y_step;
    sums += $(times("row", panel // lanes));
//$ for n = 0, panel // lanes - 1 do
//$ local sum = "sums[" .. n .. "]"
    const $(sums.type) sum$(n) = $(rounded.integers and isa.index_add(sum, "start") or sum);
//$ end
//$ for n = 0, panel // lanes - 1 do
    $(isa.store_unaligned("y", n * lanes, outputs("sum" .. n, "unit", n * lanes)));
//$ end
//$ if not rounded.integers then
    (void) x_step, (void) words;
//$ end
}

/* The product of `tokens` tokens, 16 at least, in blocks of 32 or 16 tokens, the last 16 of which begin earlier if they
   do not come out even: the same outputs are stored twice. Rows of x are read up to a multiple of 16 words: what lies
   behind their own$(rounded.integers and "" or ", which is finite,") meets zeros.
   The tokens of a block are finished beside the products of the next one, whose sums lie where stores do not meet loads
   of the same place in a page. */
static void $(helper)_by_tiles(const uint32_t *restrict x, size_t x_step, const uint32_t *restrict w, $(scale)const float *restrict bias,
    float *restrict y, size_t y_step, size_t words, size_t panels, size_t tokens)
{
    const size_t steps = (words + 15) / 16, each = (32 + steps - 1) / steps, rest = words % 16;
    const size_t blocks_of_panel = (tokens + 31) / 32;
    const size_t lines = (31 + blocks_of_panel) / blocks_of_panel; /* of the next panel, to be prefetched in a step */
    const $(isa.index) none = $(isa.index_broadcast("$hidden_integer(0)")); /* else loops are calls of memset and memcpy */
    $(isa.index) last[$(16 * panel // lanes)]; /* the last words of a panel, and zeros */
    $(sums.type) sums[2][$(32 * panel // lanes + 3)];
    $(helper)_block blocks[2];
    size_t finished = 0, unfinished = 0, now = 0; /* tokens of the block before; number of this one */

    for (size_t n = 0; n < $(16 * panel // lanes); ++n)
        last[n] = none;
    $(isa.tile_configure());
    for (size_t panel = 0; panel < panels; ++panel, w += $(panel) * words) {
        uintptr_t ahead = (uintptr_t) (w + $(panel) * words);
        const uintptr_t behind = ahead + $(4 * panel) * words;
        for (size_t n = 0; n < $(times("rest", panel // lanes)); ++n)
            last[n] = $(isa.index_add(isa.load_words("w", "(words - rest) * " .. panel .. " + n * " .. lanes), "none"));
        for (size_t token = 0; token < tokens; token += 32) {
            const size_t left = tokens - token;
            const size_t at = left < 16 ? tokens - 16 : token, next_at = left < 32 ? tokens - 16 : token + 16;
            const uint32_t *first = x + at * x_step, *second = x + next_at * x_step;
            float *outputs = y + panel * $(panel);
            $(helper)_block *block = &blocks[now];
            block->x[0] = first, block->x[1] = second;
            block->y[0] = outputs + at * y_step, block->y[1] = outputs + next_at * y_step;
//$ if rounded.integers then
            block->scale = scale + panel * $(panel);
//$ end
            block->bias = bias + panel * $(panel);

//$ for tile = 0, 3 do
            $(isa.tile_zero(tile));
//$ end
            for (size_t k = 0; k < words; k += 16) {
                const uint32_t *weights = words - k < 16 ? (const uint32_t *) (const void *) last : w + k * $(panel);
                $(isa.tile_load(4, "first", "k", "4 * x_step"));
//$ for tile = 6, 7 do
                $(isa.tile_load(tile, "weights", (tile - 6) * 16, 4 * panel));
//$ end
//$ for tile = 0, 1 do
                $(dot(tile, 4, 6 + tile % 2));
//$ end
                if (left > 16) {
                    $(isa.tile_load(5, "second", "k", "4 * x_step"));
//$ for tile = 2, 3 do
                    $(dot(tile, 5, 6 + tile % 2));
//$ end
                }
                for (size_t line = 0; line < lines && ahead < behind; ++line, ahead += 64)
                    $(isa.prefetch_l2("ahead", 0));
                for (const size_t end = finished + each; finished < end && finished < unfinished; ++finished)
                    $(helper)_finish(&blocks[1 - now], sums[1 - now], finished, x_step, y_step, words);
            }
//$ for tile = 0, 3 do
//$ local condition, at = tile > 1 and "if (left > 16) " or "", tile // 2 * 16 * panel // lanes + tile % 2
            $(condition)$(isa.tile_store(tile, "sums[now]", at, 4 * panel));
//$ end
            finished = 0;
            unfinished = left > 16 ? 32 : 16;
            now = 1 - now;
        }
    }
    $(isa.tile_release());
    for (; finished < unfinished; ++finished)
        $(helper)_finish(&blocks[1 - now], sums[1 - now], finished, x_step, y_step, words);
}
