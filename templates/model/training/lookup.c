//$ takes helper, word, layers, lookup, place
//$ local l = lookup
//$ local function of_layer(base, step) return sum(base, layers and times("r->layer", step) or 0) end
//$ local tables = l.tensors.tables
//$ local layer_step, tables_step = place("layer", l.stride), place("tables_layer", l.tables_stride)
//$ local rows_step = place("rows_layer", l.rows)
//$ -- Of table `k` of a layer: its first row among all, how many of its rows are listed, and their gradients.
//$ local row_of_table = sum(of_layer(tables.state_at, rows_step), times("k", l.table_rows))
//$ local count_of_table = "t->row_counts[" .. sum(of_layer(tables.first_table, l.h), "k") .. "]"
//$ local table_floats = times("k", l.table_floats)
//$ local gradients_of_table = sum("t->row_gradients", of_layer(l.listed_at, tables_step), table_floats)
//$ local prepared = sum("r->memory + r->prepared_at", of_layer(l.prepared_at, place("prepared_layer", l.prepared)))

/* The parameters of the lookup FFN$(layers and " of a layer" or ""). */
static void $(helper)_$(word)_ffn(const $(helper)_run *r, $(l.names.parameters) *ffn)
{
    const float *parameters = $(of_layer("r->t->parameters", layer_step));

//$ for _, field in ipairs { "projection", "projection_bias", "bias" } do
    ffn->$(field) = $(sum("parameters", place("tensor", l.tensors[field].at)));
//$ end
    ffn->tables = $(sum("r->t->parameters", of_layer(place("tensor", tables.at), tables_step)));
    ffn->state = r->t->table_state + (r->t->adam ? $(times(2, of_layer(l.listed_at, tables_step))) : $(of_layer(tables.state_at, rows_step)));
    ffn->prepared = $(prepared);
}

/* How rows of tables move: as the caller says in t. */
static void $(helper)_$(word)_rates(const $(helper) *t, $(l.names.rates) *rates)
{
    rates->rate = t->table_rate;
    rates->epsilon = t->table_epsilon;
    rates->beta1 = t->beta1;
    rates->beta2 = t->beta2;
    rates->correction1 = t->correction1;
    rates->correction2 = t->correction2;
    rates->adam = t->adam;
}

/* Brings the projection into the order in which the kernels read it. */
static void $(helper)_$(word)_prepare(const $(helper)_run *r)
{
    $(l.names.parameters) ffn;

    $(helper)_$(word)_ffn(r, &ffn);
    $(l.kernels.prepare)(&ffn, $(prepared), r->scratch);
}

/* The lookup FFN of the part's share of all tokens, in whole tiles: y from x, and what the way back needs of each
   token, z, codes and scores. */
static void $(helper)_$(word)_look_up(const $(helper)_run *r, $(l.names.tokens) *tokens)
{
    $(l.names.parameters) ffn;
    size_t first, count;

    $(helper)_$(word)_ffn(r, &ffn);
    tokens->count = r->sequences * r->length;
    $(helper)_wait(r->t);
    $(helper)_part_of_tiles(r, $(l.tile), &first, &count);
    if (count > 0)
        $(l.kernels.forward)(&ffn, tokens, first, count, r->scratch);
    $(helper)_wait(r->t);
}

/* dx, the gradient of x, from that of y; rows of the part's tables move, or are listed. */
static void $(helper)_$(word)_look_back(const $(helper)_run *r, $(l.names.tokens) *tokens)
{
    const $(helper) *t = r->t;
    const size_t table = $(l.h) * t->part / t->parts, end = $(l.h) * (t->part + 1) / t->parts;
    float *sums = r->memory + r->sums_at + t->part * $(l.sums);
    $(l.names.parameters) ffn;
    size_t first, count;

    $(helper)_$(word)_ffn(r, &ffn);
    tokens->count = r->sequences * r->length;
    tokens->uses = t->row_uses ? $(sum("t->row_uses", of_layer(tables.state_at, rows_step))) : NULL;
    $(helper)_wait(t);
    if (t->rows) {
        for (size_t k = table; k < end; ++k) {
            uint32_t *rows = t->rows + $(row_of_table);
            float *gradients = $(gradients_of_table);
            $(count_of_table) = (uint32_t) $(l.kernels.list_rows)(&ffn, tokens, k, k + 1, rows, gradients, r->scratch);
        }
    } else if (table < end) {
        $(l.names.rates) rates;

        $(helper)_$(word)_rates(t, &rates);
        $(l.kernels.rows)(&ffn, &rates, tokens, table, end, r->scratch);
    }
    $(helper)_clear(sums, $(l.sums), 1);
    $(helper)_wait(t);
    $(helper)_part_of_tiles(r, $(l.tile), &first, &count);
    if (count > 0)
        $(l.kernels.project)(&ffn, tokens, first, count, sums, r->scratch);
    $(helper)_wait(t);
}

/* Adds up what all parts have of the gradients of the projection and of the biases. */
static void $(helper)_$(word)_look_sums(const $(helper)_run *r)
{
    float *gradients = $(of_layer("r->t->gradients", layer_step));

    if (r->t->part == 0)
        $(l.kernels.finish)(r->memory + r->sums_at, r->t->parts, $(sum("gradients", place("tensor", l.tensors.projection.at))),
            $(sum("gradients", place("tensor", l.tensors.projection_bias.at))), $(sum("gradients", place("tensor", l.tensors.bias.at))),
            r->scratch);
}

/* Moves the listed rows of the part's tables. */
static void $(helper)_$(word)_apply(const $(helper)_run *r)
{
    const $(helper) *t = r->t;
    $(l.names.parameters) ffn;
    $(l.names.rates) rates;

    $(helper)_$(word)_ffn(r, &ffn);
    $(helper)_$(word)_rates(t, &rates);
    for (size_t k = $(l.h) * t->part / t->parts; k < $(l.h) * (t->part + 1) / t->parts; ++k) {
        const float *gradients = $(gradients_of_table);
        $(l.kernels.apply_rows)(&ffn, &rates, t->rows + $(row_of_table), gradients, $(count_of_table));
    }
}
