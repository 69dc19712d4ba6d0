//$ takes helper, v, training, tapes
$(include("templates/math/exp.c"))

//$ lines("", training.run_struct)

/* All parts of a step meet here. */
static void $(helper)_wait(const $(helper) *t)
{
    if (t->parts > 1)
        t->barrier(t->context);
}

/* Where the share of part `part` in `count` rows or columns begins: at multiples of 16, so that vectors hold the same ones whatever the parts. */
static size_t $(helper)_from(const $(helper) *t, size_t count, size_t part)
{
    return part == t->parts ? count : count * part / t->parts / 16 * 16;
}
$(include("templates/model/training/product.c"))

/* C = A B, or C += A B; a part has products of its own. */
static void $(helper)_multiply(const $(helper)_run *r, int a_across, int b_across, size_t rows, size_t columns, size_t depth, const float *a, size_t a_step, const float *b, size_t b_step, float *c, size_t c_step, int add)
{
    if (rows > 0)
        $(helper)_product(a_across, b_across, rows, columns, depth, a, a_step, b, b_step, c, c_step, add, r->scratch);
}
$(include("templates/model/training/rows.c"))
//$ for _, tape in ipairs(tapes) do
//$ if tape.attention then
$(include("templates/model/training/attention.c", { attention = tape.attention }))
//$ end
//$ end
//$ if training.looked[1] then

/* The part's share of all tokens, in whole tiles. */
static void $(helper)_share(const $(helper)_run *r, size_t tile, size_t *first, size_t *count)
{
    const size_t tokens = r->sequences * r->length, tiles = (tokens + tile - 1) / tile;
    const size_t end = tiles * (r->t->part + 1) / r->t->parts * tile;

    *first = tiles * r->t->part / r->t->parts * tile;
    *count = (end < tokens ? end : tokens) - *first;
}
//$ end
//$ for _, tape in ipairs(tapes) do
//$ if tape.lookup then
$(include("templates/model/training/lookup.c", { word = tape.word, layers = tape.layers, lookup = tape.lookup }))
//$ end
//$ end
$(include("templates/model/training/embedding.c"))
$(include("templates/model/training/head.c"))
//$ for _, tape in ipairs(tapes) do
//$ if tape.forward[1] then

/* $(tape.doc) */
static void $(helper)_forward_$(tape.word)(const $(helper)_run *r$(tape.layers and ", size_t layer" or ""))
{
//$ lines("    ", tape.forward_names)
//$ lines("    ", tape.forward)
}
//$ end

//$ local layer, of_layer = tape.layers and ", size_t layer" or "", tape.layers and ", layer" or ""
//$ local d_in, of_d_in = tape.first and ", float *d_in" or "", tape.first and ", d_in" or ""
//$ local sums_d_out = tape.sums_of_output and ", const float *d_out" or ""
//$ if tape.rows[1] then
/* $(tape.back_doc) */
static void $(helper)_rows_$(tape.word)(const $(helper)_run *r$(layer), const float *d_out$(d_in))
{
//$ lines("    ", tape.row_names)
//$ lines("    ", tape.rows)
}

//$ end
//$ if tape.parameters[1] then
/* Adds to the gradients of its weights: a part to its own. */
static void $(helper)_sums_$(tape.word)(const $(helper)_run *r$(layer)$(sums_d_out))
{
//$ lines("    ", tape.parameter_names)
//$ lines("    ", tape.parameters)
}

//$ end
static void $(helper)_back_$(tape.word)(const $(helper)_run *r$(layer), const float *d_out$(d_in))
{
//$ if tape.rows[1] then
    $(helper)_rows_$(tape.word)(r$(of_layer), d_out$(of_d_in));
//$ end
    $(helper)_wait(r->t);
//$ if tape.parameters[1] then
    $(helper)_sums_$(tape.word)(r$(of_layer)$(tape.sums_of_output and ", d_out" or ""));
    $(helper)_wait(r->t);
//$ end
}
//$ end

/* Places in memory, in floats; returns how many floats it takes. */
static size_t $(helper)_place($(helper)_run *r, size_t sequences, size_t length, size_t parts)
{
    const size_t tokens = sequences * length, all = (tokens + $(training.tile - 1)) / $(training.tile) * $(training.tile);
    size_t at = 0;

    r->sequences = sequences;
    r->length = length;
    r->all = all;
//$ for _, place in ipairs(training.places) do
    r->$(place.name)_at = at;
    at += $(place.floats);
//$ end
    r->scratch_floats = $(training.scratch);
    r->scratch_at = at;
    return at + parts * r->scratch_floats;
}

size_t $(v.training.names.workspace)(size_t sequences, size_t length, size_t parts)
{
    $(helper)_run r;

    return $(helper)_place(&r, sequences, length, parts) * sizeof(float);
}

/* The sum of the cross-entropies of the counted targets; back: and the gradients. */
static double $(helper)_pass(const $(helper) *t, const int32_t *ids, const int32_t *targets, size_t sequences, size_t length, float *memory, int back)
{
    $(helper)_run run, *r = &run;
    const size_t before = sequences * t->part / t->parts, behind = sequences * (t->part + 1) / t->parts;
    double sum = 0.0;

    $(helper)_place(r, sequences, length, t->parts);
    r->t = t;
    r->ids = ids;
    r->targets = targets;
    r->memory = memory;
    r->first = before * length;
    r->count = (behind - before) * length;
    r->drops = back && t->dropout > 0.0f;
    r->scratch = memory + r->scratch_at + t->part * r->scratch_floats;
    r->targets_counted = 0;
    for (size_t i = 0; i < sequences * length; ++i)
        if (targets[i] >= 0) {
            if (t->part == 0)
                ((uint32_t *) (void *) (memory + r->counted_at))[r->targets_counted] = (uint32_t) i;
            ++r->targets_counted;
        }
//$ for _, of in ipairs(training.looked) do
//$ if of.layers > 1 then
    for (size_t layer = t->part; layer < $(of.layers); layer += t->parts)
        $(helper)_$(of.word)_prepare(r, layer);
//$ else
    if (t->part == 0)
        $(helper)_$(of.word)_prepare(r);
//$ end
//$ end
//$ lines("    ", training.forward)
    $(helper)_head(r, memory + r->kept_at + $(training.features_at) * r->all, back, memory + r->streams_at);
    for (size_t i = 0; i < r->targets_counted; ++i)
        sum += (double) memory[r->losses_at + i];
    if (back) {
        float *streams[2];

        streams[0] = memory + r->streams_at;
        streams[1] = streams[0] + $(training.stream) * r->all;
//$ lines("        ", training.back)
    }
    $(helper)_wait(t);
    return sum;
}

double $(v.training.names.step)(const $(helper) *t, const int32_t *ids, const int32_t *targets, size_t sequences, size_t length, void *workspace)
{
    return $(helper)_pass(t, ids, targets, sequences, length, (float *) workspace, 1);
}

double $(v.training.names.loss)(const $(helper) *t, const int32_t *ids, const int32_t *targets, size_t sequences, size_t length, void *workspace)
{
    return $(helper)_pass(t, ids, targets, sequences, length, (float *) workspace, 0);
}
//$ if training.looked[1] then

void $(v.training.names.apply)(const $(helper) *t)
{
    $(helper)_run run, *r = &run;

    run.t = t;
    run.memory = t->parameters;
    run.prepared_at = 0;
//$ for _, of in ipairs(training.looked) do
//$ if of.layers > 1 then
    for (size_t layer = 0; layer < $(of.layers); ++layer)
        $(helper)_$(of.word)_apply(r, layer);
//$ else
    $(helper)_$(of.word)_apply(r);
//$ end
//$ end
    $(helper)_wait(t);
}
//$ end
