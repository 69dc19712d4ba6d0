//$ takes lanes, helper, product
//$ local plain, turned = names.macro("TRAIN_PLAIN"), names.macro("TRAIN_ACROSS")
//$ local set, add = names.macro("TRAIN_SET"), names.macro("TRAIN_ADD")
//$ local strip = product.strip
//$ local function smaller(left, most) return left .. " < " .. most .. " ? " .. left .. " : " .. most end

/* Dense products C = A B, C += A B. B is copied in strips of $(plural(strip, "column")) that lie side by side. Every element is summed in the
   order of the depth, wherever it stands. */
#define $(names.macro("TRAIN_DEPTH")) $(product.depth) /* of a part of a product: a strip of B stays in cache */
#define $(names.macro("TRAIN_COLUMNS")) $(product.columns) /* of B that are copied together */
#define $(names.macro("TRAIN_ROWS")) $(product.rows) /* of A that go through all of these strips together */

/* How a matrix lies in memory, [rows][columns] or [columns][rows], and what becomes of what a product is written to. */
enum { $(plain), $(turned) };
enum { $(set), $(add) };

/* A matrix: rows or, if it lies across, columns are `step` floats apart. */
typedef struct $(helper)_matrix {
    const float *at;
    size_t step;
    int across; /* $(plain) or $(turned) */
} $(helper)_matrix;

/* What is multiplied: A of `rows` by `depth`, B of `depth` by `columns`. */
typedef struct $(helper)_sizes {
    size_t rows, columns, depth;
    int add; /* $(set): C = A B, or $(add): C += A B */
} $(helper)_sizes;
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
//$ local packed_b = names.macro("TRAIN_DEPTH") .. (product.bf16 and " / 2 * " or " * ") .. names.macro("TRAIN_COLUMNS")

/* C = A B, or C += A B, of these sizes; scratch: $(plural(product.floats, "float")). */
static void $(helper)_product(const $(helper)_sizes *sizes, const $(helper)_matrix *a, const $(helper)_matrix *b,
    const $(names.rows) *c, float *restrict scratch)
{
    $(helper)_sizes part;
    $(helper)_matrix left;

    part.rows = sizes->rows;
    left.step = a->step;
    left.across = a->across;
    for (size_t j = 0; j < sizes->columns; j += part.columns) {
        const $(names.rows) to = { c->at + j, c->step };

        part.columns = $(smaller("sizes->columns - j", names.macro("TRAIN_COLUMNS")));
        for (size_t k = 0; k < sizes->depth; k += part.depth) {
            part.depth = $(smaller("sizes->depth - k", names.macro("TRAIN_DEPTH")));
            part.add = sizes->add || k > 0;
            left.at = a->across ? a->at + k * a->step : a->at + k;
            if (b->across)
                $(helper)_pack_across(b->at + j * b->step + k, b->step, part.depth, part.columns, scratch);
            else
                $(helper)_pack(b->at + k * b->step + j, b->step, part.depth, part.columns, scratch);
            $(helper)_times_strips(&part, &left, scratch, part.depth, &to, scratch + $(packed_b));
        }
    }
}
