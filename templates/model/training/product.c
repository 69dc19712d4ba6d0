//$ takes lanes, helper, product
//$ local plain, turned = names.macro("TRAIN_PLAIN"), names.macro("TRAIN_ACROSS")
//$ local set, add = names.macro("TRAIN_SET"), names.macro("TRAIN_ADD")
//$ local strip = product.strip

/* Dense products C = A B, C += A B. B is copied in strips of $(plural(strip, "column")) that lie side by side. Every element is summed in the
   order of the depth, wherever it stands. */
#define $(names.macro("TRAIN_DEPTH")) $(product.depth) /* of a part of a product: a strip of B stays in cache */
#define $(names.macro("TRAIN_COLUMNS")) $(product.columns) /* of B that are copied together */
#define $(names.macro("TRAIN_ROWS")) $(product.rows) /* of A that go through all of these strips together */

/* How a matrix lies in memory, [rows][columns] or [columns][rows], and what becomes of what a product is written to. */
enum { $(plain), $(turned) };
enum { $(set), $(add) };
//$ local across = helper .. (product.bf16 and "_turn" or "_pack_across")
//$ local transpose = lanes > 1 and once("templates/math/transpose.c", { step = strip }) .. "_transpose"

/* Copies b[columns][depth], whose rows are the columns of B, as [strip][depth][$(strip)]; columns that are missing are zeros. */
static void $(across)(const float *restrict b, size_t b_step, size_t depth, size_t columns, float *restrict strips)
{
    const float one = $hidden(1.0f), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */

    for (size_t j = 0; j < columns; j += $(strip), strips += depth * $(strip)) {
        const size_t count = columns - j < $(strip) ? columns - j : $(strip);
        const float *rows = b + j * b_step;
//$ if lanes > 1 then
        const size_t whole = depth / $(lanes) * $(lanes), side = count / $(lanes) * $(lanes);

        for (size_t i = 0; i < side; $(advance("i", lanes)))
            for (size_t k = 0; k < whole; $(advance("k", lanes)))
                $(transpose)(rows + i * b_step + k, b_step, strips + k * $(strip) + i);
        for (size_t k = 0; k < depth; ++k)
            for (size_t i = k < whole ? side : 0; i < $(strip); ++i)
                strips[k * $(strip) + i] = i < count ? one * rows[i * b_step + k] : none;
//$ else

        for (size_t k = 0; k < depth; ++k)
            for (size_t i = 0; i < $(strip); ++i)
                strips[k * $(strip) + i] = i < count ? one * rows[i * b_step + k] : none;
//$ end
    }
}
//$ if not (product.bf16 and product.bf16.tiles) then
//$ local choice = ""
//$ for n, count in ipairs(product.tokens) do
//$     choice = choice .. (n < #product.tokens and "rows >= " .. count .. " ? " .. count .. " : " or count)
//$ end

/* How many of `rows` rows go into registers together. */
static inline size_t $(helper)_rows_of(size_t rows)
{
    return $(choice);
}
//$ end

/* Rows of the last columns, which fill no strip, become a block of `all` whole rows, whose other elements are zeros. */
static void $(helper)_read_edge(size_t rows, size_t columns, const float *restrict from, size_t from_step, size_t all,
    float *restrict block)
{
    const float one = $hidden(1.0f), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */

    for (size_t row = 0; row < all; ++row)
        for (size_t i = 0; i < $(strip); ++i)
            block[row * $(strip) + i] = row < rows && i < columns ? one * from[row * from_step + i] : none;
}

/* The way back: those rows and columns of a block. */
static void $(helper)_write_edge(size_t rows, size_t columns, const float *restrict block,
    float *restrict to, size_t to_step)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    for (size_t row = 0; row < rows; ++row)
        for (size_t i = 0; i < columns; ++i)
            to[row * to_step + i] = one * block[row * $(strip) + i];
}
$(include("templates/model/training/product_bf16.c")) //$ if product.bf16
$(include("templates/model/training/product_f32.c")) //$ if not product.bf16

/* C = A B, or C += A B: a[rows][a_step], or a[depth][a_step] if it lies across; b[depth][b_step], or b[columns][b_step] if it does;
   scratch: $(plural(product.floats, "float")). */
static void $(helper)_product(int a_across, int b_across, size_t rows, size_t columns, size_t depth,
    const float *restrict a, size_t a_step, const float *restrict b, size_t b_step, float *restrict c, size_t c_step,
    int add, float *restrict scratch)
{
    for (size_t j = 0; j < columns; j += $(names.macro("TRAIN_COLUMNS"))) {
        const size_t width = columns - j < $(names.macro("TRAIN_COLUMNS")) ? columns - j : $(names.macro("TRAIN_COLUMNS"));
        for (size_t k = 0; k < depth; k += $(names.macro("TRAIN_DEPTH"))) {
            const size_t part = depth - k < $(names.macro("TRAIN_DEPTH")) ? depth - k : $(names.macro("TRAIN_DEPTH"));
            if (b_across)
                $(helper)_pack_across(b + j * b_step + k, b_step, part, width, scratch);
            else
                $(helper)_pack(b + k * b_step + j, b_step, part, width, scratch);
            $(helper)_times_strips(a_across, rows, width, part, a_across ? a + k * a_step : a + k, a_step, scratch,
                part, c + j, c_step, add || k > 0, scratch + $(product.packed_b));
        }
    }
}
