//$ takes helper, uses
//$ local plain, turned = names.macro("TRAIN_PLAIN"), names.macro("TRAIN_ACROSS")
//$ local set, add = names.macro("TRAIN_SET"), names.macro("TRAIN_ADD")

/* Products of maps, in the part's own scratch. y = the outputs for `rows` rows x. */
static void $(helper)_multiply(const $(helper)_run *r, const $(helper)_map *map, const float *weights, const $(names.rows) *x,
    const $(names.rows) *y, size_t rows)
{
    const $(helper)_sizes sizes = { rows, map->outputs, map->inputs, $(set) };
    const $(helper)_matrix a = { x->at, x->step, $(plain) };
    const $(helper)_matrix b = { weights + map->at, map->step, map->across ? $(plain) : $(turned) };

    if (rows == 0)
        return;
    $(helper)_product(&sizes, &a, &b, y, r->scratch);
//$ if uses.bias then
    if (map->bias > 0)
        $(helper)_add_bias(weights + map->bias, y, map->outputs, rows);
//$ end
}

/* dx = the gradients of x from those of y; add: $(set), or $(add) to what is there. */
static void $(helper)_multiply_back(const $(helper)_run *r, const $(helper)_map *map, const float *weights, const $(names.rows) *dy,
    const $(names.rows) *dx, int add, size_t rows)
{
    const $(helper)_sizes sizes = { rows, map->inputs, map->outputs, add };
    const $(helper)_matrix a = { dy->at, dy->step, $(plain) };
    const $(helper)_matrix b = { weights + map->at, map->step, map->across ? $(turned) : $(plain) };

    if (rows > 0)
        $(helper)_product(&sizes, &a, &b, dx, r->scratch);
}

/* Adds to the gradients of the map from `rows` rows, in `sums` like the parameters; each part has rows or columns of its own. */
static void $(helper)_multiply_sums(const $(helper)_run *r, const $(helper)_map *map, float *sums, const $(names.rows) *x,
    const $(names.rows) *dy, size_t rows)
{
    const $(names.rows) *left = map->across ? x : dy, *right = map->across ? dy : x;
    const size_t shared = map->across ? map->inputs : map->outputs;
    const size_t first = $(helper)_part_begins(r->t, shared, r->t->part);
    const size_t end = $(helper)_part_begins(r->t, shared, r->t->part + 1);
    const $(names.rows) to = { sums + map->at + first * map->step, map->step };
    const $(helper)_sizes sizes = { end - first, map->across ? map->outputs : map->inputs, rows, $(add) };
    const $(helper)_matrix a = { left->at + first, left->step, $(turned) }, b = { right->at, right->step, $(plain) };

    if (first < end)
        $(helper)_product(&sizes, &a, &b, &to, r->scratch);
//$ if uses.bias then
    if (map->bias > 0)
        $(helper)_column_sums(dy, sums + map->bias, $(helper)_part_begins(r->t, map->outputs, r->t->part),
            $(helper)_part_begins(r->t, map->outputs, r->t->part + 1), rows);
//$ end
}
