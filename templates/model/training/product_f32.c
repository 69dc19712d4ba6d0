//$ takes isa, lanes, helper, product
//$ -- Floats: B is copied as [strip][depth][columns]; rows of A and a strip are summed in registers.
//$ local strip, vectors, step = product.strip, product.vectors, product.tokens[1]
//$ local function accumulator(r, n) return "c" .. r .. "_" .. n end
//$ for _, lies_across in ipairs { false, true } do
//$ for _, count in ipairs(product.tokens) do
//$ if count > 1 or not lies_across then
//$ local function element(r)
//$     return "a[" .. (lies_across and sum(times("k", count), r) or sum(times(r, "a_step"), "k")) .. "]"
//$ end
//$ local parameters = listed(
//$     "const float *restrict a",
//$     count > 1 and not lies_across and "size_t a_step",
//$     "const float *restrict b, size_t depth, float *restrict c",
//$     count > 1 and "size_t c_step",
//$     "int add"
//$ )

/* $(plural(count, "row")) of A$(lies_across and ", which lie side by side, [depth][" .. count .. "]," or "") times a strip. */
static inline void $(helper)_$(lies_across and "across" or "rows")_$(count)($(parameters))
{
    const $(isa.vector) zero = $(isa.zero());
//$ for r = 0, count - 1 do
//$ for n = 0, vectors - 1 do
    $(isa.vector) $(accumulator(r, n)) = add ? $(isa.load_unaligned("c", sum(times(r, "c_step"), n * lanes))) : zero;
//$ end
//$ end

    for (size_t k = 0; k < depth; ++k) {
        const float *row = b + k * $(strip);
        const $(isa.vector) b$(n) = $(isa.load_unaligned("row", n * lanes)); //$ for n = 0, vectors - 1
//$ for r = 0, count - 1 do
        const $(isa.vector) a$(r) = $(isa.broadcast(element(r)));
        $(accumulator(r, n)) = $(isa.fma("a" .. r, "b" .. n, accumulator(r, n))); //$ for n = 0, vectors - 1
//$ end
    }
//$ for r = 0, count - 1 do
    $(isa.store_unaligned("c", sum(times(r, "c_step"), n * lanes), accumulator(r, n))); //$ for n = 0, vectors - 1
//$ end
}
//$ end
//$ end
//$ end

/* Copies b[depth][columns] in strips; columns that are missing are zeros. */
static void $(helper)_pack(const float *restrict b, size_t b_step, size_t depth, size_t columns, float *restrict strips)
{
    const float one = $hidden(1.0f), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */

    for (size_t j = 0; j < columns; j += $(strip)) {
        const size_t count = columns - j < $(strip) ? columns - j : $(strip);
        for (size_t k = 0; k < depth; ++k, strips += $(strip)) {
            const float *row = b + k * b_step + j;
            if (count == $(strip)) {
                const $(isa.vector) v$(n) = $(isa.load_unaligned("row", n * lanes)); //$ for n = 0, vectors - 1
                $(isa.store_unaligned("strips", n * lanes, "v" .. n)); //$ for n = 0, vectors - 1
                continue;
            }
            for (size_t i = 0; i < $(strip); ++i)
                strips[i] = i < count ? one * row[i] : none;
        }
    }
}

/* `count` columns of a[depth][] side by side. */
static void $(helper)_pack_rows(const float *restrict a, size_t a_step, size_t depth, size_t count, float *restrict packed)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

//$ if lanes > 1 and step < lanes then
    if (count == $(step)) {
        for (size_t k = 0; k < depth; ++k, a += a_step, packed += $(step)) {
            const $(isa.vector) v = $(isa.load_partial("a", 0, step));
            $(isa.store_partial("packed", 0, step, "v"));
        }
        return;
    }
//$ end
    for (size_t k = 0; k < depth; ++k, a += a_step, packed += count)
        for (size_t i = 0; i < count; ++i)
            packed[i] = one * a[i];
}

//$ for _, name in ipairs { "across", "rows" } do
//$ local step = name == "rows" and "a_step"
//$ local rows = listed("const float *restrict a", step and "size_t " .. step)
/* The kernel for `count` rows$(step and "" or " that lie side by side"). */
static inline void $(helper)_tile_$(name)(size_t count, $(rows), const float *restrict strip, size_t depth, float *restrict c,
    size_t c_step, int add)
{
//$ for n, count in ipairs(product.tokens) do
    $(n == 1 and "" or n < #product.tokens and "else " or "else")$(n < #product.tokens and "if (count == " .. count .. ")" or "")
        $(helper)_rows_1(a, strip, depth, c, add); //$ if count == 1
        $(helper)_$(name)_$(count)($(listed("a", step, "strip, depth, c, c_step, add"))); //$ if count ~= 1
//$ end
}

//$ end
/* C = A B or C += A B, of these sizes, for B in strips of `packed_depth` rows, of which the first ones count; packed:
   $(plural(product.packed_a, "float")), overwritten if A lies across. */
static void $(helper)_times_strips(const $(helper)_sizes *sizes, const $(helper)_matrix *a, const float *restrict strips,
    size_t packed_depth, const $(names.rows) *c, float *restrict packed)
{
    const size_t rows = sizes->rows, columns = sizes->columns, depth = sizes->depth, a_step = a->step, c_step = c->step;
    const int across = a->across, add = sizes->add;

    for (size_t first = 0; first < rows; first += $(names.macro("TRAIN_ROWS"))) {
        const size_t end = rows - first < $(names.macro("TRAIN_ROWS")) ? rows : first + $(names.macro("TRAIN_ROWS"));
        if (across)
            for (size_t row = first, count; row < end; row += count) {
                count = $(helper)_rows_of(end - row);
                $(helper)_pack_rows(a->at + row, a_step, depth, count, packed + (row - first) * depth);
            }
        for (size_t j = 0; j < columns; j += $(strip)) {
            const float *strip = strips + j * packed_depth;
            float edge[$(step * strip)];
            const int whole = columns - j >= $(strip);
            for (size_t row = first, count; row < end; row += count) {
                float *to = c->at + row * c_step + j;
                const float *from = across ? packed + (row - first) * depth : a->at + row * a_step;
                count = $(helper)_rows_of(end - row);
                if (whole) {
                    if (across)
                        $(helper)_tile_across(count, from, strip, depth, to, c_step, add);
                    else
                        $(helper)_tile_rows(count, from, a_step, strip, depth, to, c_step, add);
                    continue;
                }
                /* the last columns, by way of a whole strip */
                if (add)
                    $(helper)_read_edge(count, columns - j, to, c_step, count, edge);
                if (across)
                    $(helper)_tile_across(count, from, strip, depth, edge, $(strip), add);
                else
                    $(helper)_tile_rows(count, from, a_step, strip, depth, edge, $(strip), add);
                $(helper)_write_edge(count, columns - j, edge, to, c_step);
            }
        }
    }
}
