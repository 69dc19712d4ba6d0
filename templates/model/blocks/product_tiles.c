//$ takes isa, lanes, helper, panel, rounded, sums, dot, outputs, epilogue, matrix

//$ -- Several tokens on a matrix engine. Rows of words of the inputs are tiles as they are, and so are panels of weights.
//$ -- epilogue: { activated: the function that outputs go through, gate: whether it takes those of another product, which
//$ -- outputs are multiplied by then, those of the first panel first }; false: outputs are stored as they are.
//$ local integers, vectors = rounded.integers, panel // lanes
//$ local gated, stores = epilogue and epilogue.gate, integers or not epilogue
/* Where outputs go$(epilogue and ", and what they meet before" or ""): rows of tokens. */
typedef struct {
//$ if stores then
    float *y;
    size_t y_step;
//$ end
//$ if gated then
    const float *gate; /* from the first panel at hand on */
    size_t gate_step;
//$ end
//$ if epilogue then
    uint32_t *rounded;
    size_t rounded_step;
//$ end
} $(helper)_output;

/* A block of a product: the $(panel) outputs of a panel, of 16 tokens and of 16 more, or of 16 alone. */
typedef struct {
    const uint32_t *x[2];
    const float *gate[2]; //$ if gated
    float *y[2]; //$ if stores
    uint32_t *rounded[2]; //$ if epilogue
    int first; /* of the panels */ //$ if epilogue and integers
    const float *$(integers and "scale, *" or "")bias;
} $(helper)_block;

//$ if not epilogue then
/* A token's sums become its outputs: row `row` of `sums`, which has 32 of them. */
//$ elseif integers then
/* A token's sums become its activated outputs: row `row` of `sums`, which has 32 of them. The largest magnitudes so far,
   a vector, lie where its rounded outputs will. */
//$ else
/* A token's sums become its activated and rounded outputs: row `row` of `sums`, which has 32 of them. */
//$ end
static inline void $(helper)_finish(const $(helper)_block *block, const $(helper)_output *to, const $(sums.type) *sums, size_t row,
    size_t x_step, size_t words)
{
//$ local function row_of(name, step) return "block->" .. name .. "[row / 16] + row % 16 * " .. step end
//$ if not integers then
    (void) x_step; /* only integers have a unit behind their words */
    (void) words;
//$ end
//$ if integers then
    const uint32_t *x = $(row_of("x", "x_step"));
    const float unit = ((const float *) (const void *) x)[words + 1];
    const $(isa.index) start = $(isa.index_broadcast("x[words]"));
    const float *scale = block->scale;
//$ end
    const float *bias = block->bias;
    const float *gate = $(row_of("gate", "to->gate_step")); //$ if gated
    float *y = $(row_of("y", "to->y_step")); //$ if stores
    uint32_t *rounded = $(row_of("rounded", "to->rounded_step")); //$ if epilogue
    sums += $(times("row", vectors));
//$ for n = 0, vectors - 1 do
//$ local sum = "sums[" .. n .. "]"
    const $(sums.type) sum$(n) = $(integers and isa.index_add(sum, "start") or sum);
//$ end
//$ local values = {}
//$ for n = 0, vectors - 1 do
//$ values[n] = outputs("sum" .. n, "unit", n * lanes)
//$ if epilogue then
    const $(isa.vector) output$(n) = $(values[n]);
    const $(isa.vector) open$(n) = $(epilogue.activated)($(isa.load_unaligned("gate", n * lanes))); //$ if gated
    const $(isa.vector) value$(n) = $(gated and isa.mul("open" .. n, "output" .. n) or epilogue.activated .. "(output" .. n .. ")");
//$ values[n] = "value" .. n
//$ end
//$ end
//$ if epilogue and integers then
    $(isa.index) largest = block->first ? $(isa.index_zero()) : $(isa.load_words("rounded", 0));
    largest = $(isa.max_magnitude("largest", values[n])); //$ for n = 0, vectors - 1
    $(isa.store_words("rounded", 0, "largest"));
//$ end
    $(isa.store_unaligned("y", n * lanes, values[n])); //$ for n = 0, stores and vectors - 1 or -1
//$ if stores then
    const uintptr_t next = (uintptr_t) (y + $(panel)); /* of the next panel: rows as wide as a vocabulary leave the caches */
    $(isa.prefetch_l2("next", 64 * line - 1)); //$ for line = 1, panel // 16
//$ end
//$ for n = 0, stores and -1 or vectors - 1, 2 do
    $(isa.store_bf16("rounded", n * lanes // 2, values[n], values[n + 1]));
//$ end
}

/* The product of `tokens` tokens, of panels number `panel` to `until` - 1, in blocks of 32 or 16 tokens: 16 tokens at least, and 16
   words of inputs. What does not come
   out even begins earlier: the last 16 tokens, whose outputs are stored twice, and the last 16 words, of which those
   that have been multiplied before meet zeros. The tokens of a block are finished beside the products of the next one,
   whose sums lie where stores do not meet loads of the same place in a page. */
//$ local finish = helper .. "_finish(&blocks[1 - now], to, sums[1 - now], finished, x_step, words)"
static void $(helper)_by_tiles(const $(matrix) *map, const uint32_t *x, size_t x_step, const $(helper)_output *to,
    size_t panel, size_t until, size_t tokens)
{
    const size_t words = (map->inputs + $(rounded.rows - 1)) / $(rounded.rows);
    const uint32_t *w = map->weights + panel * $(panel) * words;
    const float *gate = to->gate; //$ if gated
    const size_t steps = (words + 15) / 16, each = (32 + steps - 1) / steps, rest = words % 16;
    const size_t blocks_of_panel = (tokens + 31) / 32;
    const size_t lines = (31 + blocks_of_panel) / blocks_of_panel; /* of the next panel, to be prefetched in a step */
    const $(isa.index) none = $(isa.index_broadcast("$hidden_integer(0)")); /* else loops are calls of memset and memcpy */
    $(isa.index) last[$(16 * panel // lanes)]; /* zeros, and the last words of a panel */
    $(sums.type) sums[2][$(32 * panel // lanes + 3)];
    $(helper)_block blocks[2];
    size_t finished = 0, unfinished = 0, now = 0; /* tokens of the block before; number of this one */

    for (size_t n = 0; n < $(16 * panel // lanes); ++n)
        last[n] = none;
    $(isa.tile_configure());
    for (; panel < until; ++panel, w += $(panel) * words$(gated and ", gate += " .. panel or "")) {
        uintptr_t ahead = (uintptr_t) (w + $(panel) * words);
        const uintptr_t behind = ahead + $(4 * panel) * words;
//$ local rest_at = "(words - rest) * " .. panel
        for (size_t n = 0; n < $(times("rest", vectors)); ++n)
            last[(16 - rest) * $(vectors) + n] = $(isa.index_add(isa.load_words("w", rest_at .. " + n * " .. lanes), "none"));
        for (size_t token = 0; token < tokens; token += 32) {
            const size_t left = tokens - token;
            const size_t at = left < 16 ? tokens - 16 : token, next_at = left < 32 ? tokens - 16 : token + 16;
            const uint32_t *first = x + at * x_step, *second = x + next_at * x_step;
            $(helper)_block *block = &blocks[now];
            block->x[0] = first, block->x[1] = second;
//$ local function rows(name, from, step)
            block->$(name)[0] = $(sum(from, "at * " .. step)), block->$(name)[1] = $(sum(from, "next_at * " .. step));
//$ end
//$ if gated then rows("gate", "gate", "to->gate_step") end
//$ if stores then rows("y", "to->y + panel * " .. panel, "to->y_step") end
//$ if epilogue then rows("rounded", integers and "to->rounded" or "to->rounded + panel * " .. panel // 2, "to->rounded_step") end
            block->first = panel == 0; //$ if epilogue and integers
            block->scale = map->scales + panel * $(panel); //$ if integers
            block->bias = map->bias + panel * $(panel);

            $(isa.tile_zero(tile)); //$ for tile = 0, 3
            for (size_t k = 0; k < words; k += 16) {
                const int is_whole = words - k >= 16;
                const uint32_t *weights = is_whole ? w + k * $(panel) : (const uint32_t *) (const void *) last;
                const size_t from = is_whole ? k : words - 16;
                $(isa.tile_load(4, "first", "from", "4 * x_step"));
                $(isa.tile_load(tile, "weights", (tile - 6) * 16, 4 * panel)); //$ for tile = 6, 7
                $(dot(tile, 4, 6 + tile % 2)); //$ for tile = 0, 1
                if (left > 16) {
                    $(isa.tile_load(5, "second", "from", "4 * x_step"));
                    $(dot(tile, 5, 6 + tile % 2)); //$ for tile = 2, 3
                }
                for (size_t line = 0; line < lines && ahead < behind; ++line, ahead += 64)
                    $(isa.prefetch_l2("ahead", 0));
                for (const size_t end = finished + each; finished < end && finished < unfinished; ++finished)
                    $(finish);
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
        $(finish);
}
