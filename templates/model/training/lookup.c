//$ takes helper, word, layers, lookup, place
//$ local l = lookup
//$ local run, own = "const " .. helper .. "_run *r" .. (layers and ", size_t layer" or ""), layers and "r, layer" or "r"
//$ local function of_layer(base, step) return sum(base, layers and times("layer", step) or 0) end
//$ local tables = l.tensors.tables
//$ local layer_step, tables_step = place("layer", l.stride), place("tables_layer", l.tables_stride)
//$ -- Of table `k` of a layer: its first row among all, how many of its rows are listed, and their gradients.
//$ local row_of_table = sum(of_layer(tables.state_at, l.rows), times("k", l.table_rows))
//$ local count_of_table = "t->row_counts[" .. sum(of_layer(tables.first_table, l.h), "k") .. "]"
//$ local table_floats = times("k", l.table_rows * l.pitch)
//$ local gradients_of_table = sum("t->row_gradients", of_layer(l.listed_at, tables_step), table_floats)
//$ local prepared = sum("r->memory + r->prepared_at", of_layer(l.prepared_at, l.prepared))

/* The parameters of the lookup FFN$(layers and " of a layer" or ""). */
static $(l.names.parameters) $(helper)_$(word)_ffn($(run))
{
    const float *parameters = $(of_layer("r->t->parameters", layer_step));
    $(l.names.parameters) ffn;

    ffn.projection = $(sum("parameters", place("tensor", l.tensors.projection.at)));
    ffn.projection_bias = $(sum("parameters", place("tensor", l.tensors.projection_bias.at)));
    ffn.bias = $(sum("parameters", place("tensor", l.tensors.bias.at)));
    ffn.tables = $(sum("r->t->parameters", of_layer(place("tensor", tables.at), tables_step)));
    ffn.state = r->t->table_state + (r->t->adam ? $(times(2, of_layer(l.listed_at, tables_step))) : $(of_layer(tables.state_at, l.rows)));
    ffn.prepared = $(prepared);
    return ffn;
}

/* How rows of tables move: as the caller says in t. */
static $(l.names.rates) $(helper)_$(word)_rates(const $(helper) *t)
{
    $(l.names.rates) rates;

    rates.rate = t->table_rate;
    rates.epsilon = t->table_epsilon;
    rates.beta1 = t->beta1;
    rates.beta2 = t->beta2;
    rates.correction1 = t->correction1;
    rates.correction2 = t->correction2;
    rates.adam = t->adam;
    return rates;
}

/* Brings the projection into the order in which the kernels read it. */
static void $(helper)_$(word)_prepare($(run))
{
    const $(l.names.parameters) ffn = $(helper)_$(word)_ffn($(own));

    $(l.kernels.prepare)(&ffn, $(prepared), r->scratch);
}

/* The lookup FFN of the part's share of all tokens, in whole tiles: y from x, and what the way back needs of each
   token, z, codes and scores. */
static void $(helper)_$(word)_look_up($(run), const float *x, float *y, float *z, float *code, float *score)
{
    const $(l.names.parameters) ffn = $(helper)_$(word)_ffn($(own));
    size_t first, count;

    $(helper)_wait(r->t);
    $(helper)_part_of_tiles(r, $(l.tile), &first, &count);
    if (count > 0)
//$ local rows = listed("x + first * " .. l.x_step, "y + first * " .. l.y_step)
//$ local kept = listed("z + first * " .. l.z, "(uint16_t *) (void *) code + first * " .. l.slots, "score + first * " .. l.slots)
        $(l.kernels.forward)(&ffn, $(rows), count, $(kept), r->scratch);
    $(helper)_wait(r->t);
}

/* dx, the gradient of x, from that of y; rows of the part's tables move, or are listed. */
//$ local given = "const float *x, const float *dy, const float *z, const float *code, const float *score"
static void $(helper)_$(word)_look_back($(run), $(given), float *slope, float *dx)
{
    const $(helper) *t = r->t;
    const $(l.names.parameters) ffn = $(helper)_$(word)_ffn($(own));
    const size_t table = $(l.h) * t->part / t->parts, end = $(l.h) * (t->part + 1) / t->parts;
    const size_t tokens = r->sequences * r->length;
    const uint16_t *codes = (const uint16_t *) (const void *) code;
    uint32_t *uses = t->row_uses ? $(sum("t->row_uses", of_layer(tables.state_at, l.rows))) : NULL;
    float *sums = r->memory + r->sums_at + t->part * $(l.sums);
    size_t first, count;

    $(helper)_wait(t);
    if (t->rows) {
        for (size_t k = table; k < end; ++k) {
            uint32_t *rows = t->rows + $(row_of_table);
            float *gradients = $(gradients_of_table);
            $(count_of_table) = (uint32_t) $(l.kernels.list_rows)(&ffn, dy, tokens, codes, score, slope, uses, k, k + 1,
                rows, gradients, r->scratch);
        }
    } else if (table < end) {
        const $(l.names.rates) rates = $(helper)_$(word)_rates(t);
        $(l.kernels.rows)(&ffn, &rates, dy, tokens, codes, score, slope, uses, table, end, r->scratch);
    }
    $(helper)_clear(sums, $(l.sums), 1);
    $(helper)_wait(t);
    $(helper)_part_of_tiles(r, $(l.tile), &first, &count);
    if (count > 0)
//$ local rows = listed("x + first * " .. l.x_step, "dy + first * " .. l.y_step)
//$ local kept = listed("z + first * " .. l.z, "codes + first * " .. l.slots, "slope + first * " .. l.slots)
        $(l.kernels.project)(&ffn, $(rows), count, $(kept), dx + first * $(l.x_step), sums, r->scratch);
    $(helper)_wait(t);
}

/* Adds up what all parts have of the gradients of the projection and of the biases. */
static void $(helper)_$(word)_look_sums(const $(helper)_run *r, float *projection, float *projection_bias, float *bias)
{
    $(l.kernels.finish)(r->memory + r->sums_at, r->t->parts, projection, projection_bias, bias, r->scratch);
}

/* Moves the listed rows of the part's tables. */
static void $(helper)_$(word)_apply($(run))
{
    const $(helper) *t = r->t;
    const $(l.names.parameters) ffn = $(helper)_$(word)_ffn($(own));
    const $(l.names.rates) rates = $(helper)_$(word)_rates(t);

    for (size_t k = $(l.h) * t->part / t->parts; k < $(l.h) * (t->part + 1) / t->parts; ++k) {
        const float *gradients = $(gradients_of_table);
        $(l.kernels.apply_rows)(&ffn, &rates, t->rows + $(row_of_table), gradients, $(count_of_table));
    }
}
