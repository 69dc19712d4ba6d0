//$ takes isa, lanes, helper, product
//$ local strip, vectors, own = product.strip, product.vectors, product.bf16
//$ local counts, pair = own.counts, 2 * lanes
//$ local function accumulator(r, n) return "c" .. r .. "_" .. n end

/* Factors are rounded to bf16, two numbers of the depth to a word; sums are floats. A is copied as [rows][$(own.step)] words, B in strips,
   [strip][depth / 2][$(strip)], of depth / 2 words filled up to a multiple of 16. */

/* Copies b[depth][columns] in strips; what is missing is zeros. */
static void $(helper)_pack(const float *restrict b, size_t b_step, size_t depth, size_t columns, void *restrict packed)
{
    const float one = $hidden(1.0f), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */
    uint32_t *strips = packed;

    for (size_t j = 0; j < columns; j += $(strip)) {
        const size_t count = columns - j < $(strip) ? columns - j : $(strip);
        for (size_t k = 0; k < (depth + 31) / 32 * 32; k += 2, strips += $(strip)) {
            const float *row = k < depth ? b + k * b_step + j : b, *next = k + 1 < depth ? row + b_step : b;
            float edge[$(2 * strip)];
            if (count < $(strip) || k + 1 >= depth) {
                for (size_t i = 0; i < $(strip); ++i) {
                    edge[i] = i < count && k < depth ? one * row[i] : none;
                    edge[$(strip) + i] = i < count && k + 1 < depth ? one * next[i] : none;
                }
                row = edge;
                next = edge + $(strip);
            }
//$ for n = 0, vectors - 1 do
//$ local words = isa.pack_bf16(isa.load_unaligned("row", n * lanes), isa.load_unaligned("next", n * lanes))
            $(isa.store_words("strips", n * lanes, words));
//$ end
        }
    }
}

/* Likewise b[columns][depth], whose rows are the columns of B. */
static void $(helper)_pack_across(const float *restrict b, size_t b_step, size_t depth, size_t columns, void *restrict packed)
{
    uint32_t *strips = packed;

    for (size_t j = 0; j < columns; j += $(strip))
        for (size_t k = 0; k < depth; k += 32, strips += $(16 * strip)) {
            const size_t count = columns - j < $(strip) ? columns - j : $(strip), rest = depth - k < 32 ? depth - k : 32;
            float part[$(32 * strip)];
            $(helper)_turn(b + j * b_step + k, b_step, rest, count, part);
            $(helper)_pack(part, $(strip), rest, $(strip), strips);
        }
}

/* The first `rows` rows of `matrix` by `depth` columns, as words; what is missing up to `all` rows is zeros. */
static void $(helper)_round_rows(const $(helper)_matrix *matrix, size_t depth, size_t rows, size_t all, size_t words,
    uint32_t *restrict packed)
{
    const float one = $hidden(1.0f), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */
    const float *a = matrix->at;
    const size_t a_step = matrix->step;
    const int a_across = matrix->across;

    for (size_t row = 0; row < all; $(advance("row", lanes)))
        for (size_t k = 0; k < 2 * words; k += $(pair)) {
            const int whole = row + $(lanes) <= rows && k + $(pair) <= depth;
            const float *from = a_across ? a + k * a_step + row : a + row * a_step + k;
            float part[$(lanes * pair)];
            const float *of = part;
            size_t step = $(pair); //$ if lanes > 1
            if (whole && !a_across) {
                of = from;
                step = a_step; //$ if lanes > 1
//$ if lanes > 1 then
//$ local transpose = once("templates/math/transpose.c", { step = strip }) .. "_transpose"
            } else if (whole) {
                $(transpose)(from, a_step, part);
                $(transpose)(from + $(lanes) * a_step, a_step, part + $(lanes));
//$ end
            } else {
                for (size_t r = 0; r < $(lanes); ++r)
                    for (size_t i = 0; i < $(pair); ++i) {
                        const int some = row + r < rows && k + i < depth;
                        part[r * $(pair) + i] = some ? one * (a_across ? from[i * a_step + r] : from[r * a_step + i]) : none;
                    }
            }
            for (size_t r = 0; r < $(lanes); ++r) {
                const $(isa.vector) first = $(isa.load_unaligned("of", "r * step")), second = $(isa.load_unaligned("of", "r * step + " .. lanes));
                $(isa.store_bf16("packed", times("(row + r)", own.step) .. " + k / 2", "first", "second"));
            }
        }
}
//$ for _, count in ipairs(counts) do
//$ local pointer = "const uint32_t *restrict "
//$ local parameters = listed(pointer .. "a", pointer .. "b, size_t words, float *restrict c", count > 1 and "size_t c_step", "int add")

/* $(plural(count, "row")) of A times a strip. */
static inline void $(helper)_words_$(count)($(parameters))
{
//$ if own.tiles then
    if (add) {
//$ for n = 0, 3 do
        $(isa.tile_load(n, "c", sum(n // 2 * 16 > 0 and times(n // 2 * 16, "c_step") or 0, n % 2 * 16), "4 * c_step"));
//$ end
    } else {
        $(isa.tile_zero(n)); //$ for n = 0, 3
    }
    for (size_t k = 0; k < words; k += 16) {
        const uint32_t *row = b + k * $(strip);
        $(isa.tile_load(4, "a", "k", 4 * own.step));
        $(isa.tile_load(6, "row", 0, 4 * strip));
        $(isa.tile_dot_bf16(0, 4, 6));
        $(isa.tile_load(7, "row", 16, 4 * strip));
        $(isa.tile_dot_bf16(1, 4, 7));
        $(isa.tile_load(5, "a", sum("k", 16 * own.step), 4 * own.step));
        $(isa.tile_dot_bf16(2, 5, 6));
        $(isa.tile_dot_bf16(3, 5, 7));
    }
//$ for n = 0, 3 do
    $(isa.tile_store(n, "c", sum(n // 2 * 16 > 0 and times(n // 2 * 16, "c_step") or 0, n % 2 * 16), "4 * c_step"));
//$ end
//$ else
    const $(isa.vector) zero = $(isa.zero());
//$ for r = 0, count - 1 do
//$ for n = 0, vectors - 1 do
    $(isa.vector) $(accumulator(r, n)) = add ? $(isa.load_unaligned("c", sum(times(r, "c_step"), n * lanes))) : zero;
//$ end
//$ end

    for (size_t k = 0; k < words; ++k) {
        const uint32_t *row = b + k * $(strip);
        const $(isa.index) b$(n) = $(isa.load_words("row", n * lanes)); //$ for n = 0, vectors - 1
//$ for r = 0, count - 1 do
        const $(isa.index) a$(r) = $(isa.index_broadcast("a[" .. sum("k", r * own.step) .. "]"));
        $(accumulator(r, n)) = $(isa.dot_bf16(accumulator(r, n), "a" .. r, "b" .. n)); //$ for n = 0, vectors - 1
//$ end
    }
//$ for r = 0, count - 1 do
    $(isa.store_unaligned("c", sum(times(r, "c_step"), n * lanes), accumulator(r, n))); //$ for n = 0, vectors - 1
//$ end
//$ end
}
//$ end
//$ if #counts > 1 then

/* The kernel for `count` rows. */
static inline void $(helper)_words(size_t count, const uint32_t *restrict a, const uint32_t *restrict strip, size_t words,
    float *restrict c, size_t c_step, int add)
{
//$ for n, count in ipairs(counts) do
    $(n > 1 and "else " or "")$(n < #counts and "if (count == " .. count .. ")" or "")
        $(helper)_words_$(count)($(listed("a, strip, words, c", count > 1 and "c_step", "add")));
//$ end
}
//$ end
//$ local words = #counts > 1 and helper .. "_words(count, " or helper .. "_words_" .. counts[1] .. "("

/* C = A B, or C += A B, of these sizes but for the depth: of rounded rows and strips of `strip_words` words, of which
   `words` count. */
static void $(helper)_times_words(const $(helper)_sizes *sizes, const uint32_t *restrict a, const uint32_t *restrict strips,
    size_t strip_words, size_t words, const $(names.rows) *c)
{
    const size_t rows = sizes->rows, columns = sizes->columns, c_step = c->step;
    const int add = sizes->add;

    for (size_t j = 0; j < columns; j += $(strip)) {
        const uint32_t *strip = strips + j * strip_words;
        const size_t width = columns - j < $(strip) ? columns - j : $(strip);
        for (size_t row = 0, count; row < rows; row += count) {
            float edge[$(counts[1] * strip)], *to = c->at + row * c_step + j;
//$ if own.tiles then
            count = $(counts[1]);
            const size_t some = rows - row < count ? rows - row : count;
//$ else
            count = $(helper)_rows_of(rows - row);
            const size_t some = count;
//$ end
            if (some == count && width == $(strip)) {
                $(words)a + row * $(own.step), strip, words, to, c_step, add);
                continue;
            }
            /* the last rows and columns, by way of a whole block */
            if (add)
                $(helper)_read_edge(some, width, to, c_step, count, edge);
            $(words)a + row * $(own.step), strip, words, edge, $(strip), add);
            $(helper)_write_edge(some, width, edge, to, c_step);
        }
    }
}

/* C = A B, or C += A B, of these sizes, for B in strips of `packed_depth` numbers, of which the first ones count; scratch:
   $(plural(product.packed_a, "word")). */
static void $(helper)_times_strips(const $(helper)_sizes *sizes, const $(helper)_matrix *a, const void *restrict strips,
    size_t packed_depth, const $(names.rows) *c, void *restrict scratch)
{
    const size_t rows = sizes->rows, depth = sizes->depth, strip_words = (packed_depth + 31) / 32 * 16;
    uint32_t *packed = scratch;
    $(helper)_sizes some;
    $(helper)_matrix from;

    $(isa.tile_configure()); //$ if own.tiles
    some.columns = sizes->columns;
    from.step = a->step;
    from.across = a->across;
    for (size_t k = 0; k < depth; k += $(names.macro("TRAIN_DEPTH"))) {
        const size_t part = depth - k < $(names.macro("TRAIN_DEPTH")) ? depth - k : $(names.macro("TRAIN_DEPTH"));
        const size_t words = (part + 31) / 32 * 16;
        const uint32_t *b = (const uint32_t *) strips + k / 2 * $(strip);
        for (size_t row = 0; row < rows; row += $(names.macro("TRAIN_ROWS"))) {
            const $(names.rows) to = { c->at + row * c->step, c->step };

            some.rows = rows - row < $(names.macro("TRAIN_ROWS")) ? rows - row : $(names.macro("TRAIN_ROWS"));
            some.add = sizes->add || k > 0;
            from.at = a->across ? a->at + k * a->step + row : a->at + row * a->step + k;
            $(helper)_round_rows(&from, part, some.rows, (some.rows + $(own.whole - 1)) / $(own.whole) * $(own.whole), words, packed);
            $(helper)_times_words(&some, packed, b, strip_words, words, &to);
        }
    }
    $(isa.tile_release()); //$ if own.tiles
}
