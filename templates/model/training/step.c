//$ takes helper, v, training, tapes, features_at, features_pitch, uses
//$ once("templates/math/exp.c")

/* What the arrays of a pass take, in floats. */
#define $(one.name) $(one.value) /* $(one.doc) */ //$ for _, one in ipairs(training.sizes)

/* How far rows of values and of their gradients are apart, in floats: at powers of two those of several tokens would
   drive each other out of the cache. */
#define $(one.name) $(one.value) /* $(one.doc) */ //$ for _, one in ipairs(training.pitches)
//$ for _, tape in ipairs(tapes) do
//$ for _, group in ipairs(tape.places) do
//$ if group.list[1] then

/* $(group.doc) */
//$ end
#define $(place.name) $(place.value) /* $(place.doc) */ //$ for _, place in ipairs(group.list)
//$ end
//$ end

/* A pass, and what of it a part does: the tokens of some of the sequences. In `memory` lie rows of values and of gradients,
   a row for each token, [all][pitch]. */
typedef struct $(helper)_run {
    const $(helper) *t;
    const int32_t *ids, *targets; /* [sequences][length] */
    size_t sequences, length;
    size_t all;             /* tokens that there is memory for: whole tiles of $(training.tile) */
    size_t first, count;    /* the part's tokens: number of the first, and how many */
    size_t targets_counted;
    int drops;              /* whether there is dropout */
    size_t layer;           /* of the blocks that are computed */ //$ if uses.layers
    float *memory, *scratch;
    /* where in memory, in floats: */
    size_t $(place.name)_at; /* $(place.doc) */ //$ for _, place in ipairs(training.places)
    size_t scratch_at, scratch_floats; /* of each part */
    /* rows of all tokens: */
    const float *features;  /* what the head reads, [all][$(features_pitch)] */
    float *d_out, *d_in;    /* on the way back, the gradients of what comes out of the layer and of what goes in */
} $(helper)_run;

/* Of the rows of all tokens that begin at *at, `step` floats apart, those from token number `first` on; *at goes on behind all. */
static inline void $(helper)_next_rows(const $(helper)_run *r, float **at, size_t step, size_t first, $(names.rows) *rows)
{
    rows->at = *at + first * step;
    rows->step = step;
    *at += r->all * step;
}

/* The numbers of the counted tokens. */
static inline uint32_t *$(helper)_counted(const $(helper)_run *r)
{
    return (uint32_t *) (void *) (r->memory + r->counted_at);
}

/* All parts of a step meet here. */
static void $(helper)_wait(const $(helper) *t)
{
    if (t->parts > 1)
        t->barrier(t->context);
}

/* Where the share of part `part` in `count` rows or columns begins: at multiples of 16, so that vectors hold the same
   ones whatever the parts. */
static size_t $(helper)_part_begins(const $(helper) *t, size_t count, size_t part)
{
    return part == t->parts ? count : count * part / t->parts / 16 * 16;
}
$(include("templates/model/training/product.c"))
$(include("templates/model/training/tensors.c"))
$(include("templates/model/training/rows.c"))
$(include("templates/model/training/multiply.c"))
//$ if uses.scalars then

/* Adds to the gradients of scalars those of all sequences: one part does. */
static void $(helper)_sequence_sums(const $(helper)_run *r, const $(names.rows) *from, float *sums)
{
    if (r->t->part == 0)
        $(helper)_column_sums(from, sums, 0, from->step, r->sequences);
}
//$ end
$(include("templates/model/training/scores.c"))

/* What attention of the part's tokens takes and gives. */
typedef struct $(uses.attention.type) {
    $(field.type)$(field.name); /* $(field.doc) */ //$ for _, field in ipairs(uses.attention.fields)
} $(uses.attention.type);

/* Tokens of sequence number `s` of the part. */
static inline size_t $(helper)_length_of(const $(helper)_run *r, size_t s)
{
    return r->t->lengths ? r->t->lengths[r->first / r->length + s] : r->length;
}
//$ for _, tape in ipairs(tapes) do
$(include("templates/model/training/attention.c", { attention = tape.attention })) //$ if tape.attention
//$ end
//$ if training.looks_up then

/* The part's share of all tokens, in whole tiles: `count` of them from token number `first` on. */
static void $(helper)_part_of_tiles(const $(helper)_run *r, size_t tile, size_t *first, size_t *count)
{
    const size_t tokens = r->sequences * r->length, tiles = (tokens + tile - 1) / tile;
    const size_t end = tiles * (r->t->part + 1) / r->t->parts * tile;

    *first = tiles * r->t->part / r->t->parts * tile;
    *count = (end < tokens ? end : tokens) - *first;
}
//$ end
//$ for _, tape in ipairs(tapes) do
//$ if tape.lookup then
$(include("templates/model/training/lookup.c", { word = tape.word, layers = tape.layers, lookup = tape.lookup, place = tape.place }))
//$ end
//$ end
$(include("templates/model/training/embedding.c", { place = tapes[1].place }))
$(include("templates/model/training/head.c"))
//$ -- What a function on tape `tape` begins with.
//$ local function begin(tape, c)
    $(one.type)$(one.name)$(one.value and " = " .. one.value or ""); //$ for _, one in ipairs(c.variables)

    $(helper)_$(tape.word)_$(fill.kind)_at(r, $(fill.first), &$(fill.name)); //$ for _, fill in ipairs(c.fills)
//$ end
//$ for _, tape in ipairs(tapes) do
//$ -- The functions are printed first, as they say which rows they use.
//$ local forward, rows, parameters = tape.scope(true), tape.scope(true), tape.scope(false)
//$ local forward_body = include("templates/model/training/forward.c", { tape = tape, c = forward })
//$ local rows_body = include("templates/model/training/backward.c", { tape = tape, c = rows })
//$ local parameters_body = include("templates/model/training/parameters.c", { tape = tape, c = parameters })
$(include("templates/model/training/values.c", { tape = tape }))
//$ if tape.forward[1] then

/* $(tape.doc), of the part's tokens. */
static void $(helper)_forward_$(tape.word)(const $(helper)_run *r)
{
//$ begin(tape, forward)
$(forward_body)
}
//$ end
//$ if tape.back.rows[1] then

/* $(tape.back_doc), of the part's tokens. */
static void $(helper)_back_rows_$(tape.word)(const $(helper)_run *r)
{
//$ begin(tape, rows)
$(rows_body)
}
//$ end
//$ if tape.back.parameters[1] then

/* Adds up the gradients of the weights over all tokens, in r->t->gradients; each part has rows or columns of its own. */
static void $(helper)_weight_gradients_$(tape.word)(const $(helper)_run *r)
{
//$ begin(tape, parameters)
$(parameters_body)
}
//$ end

/* Backward through $(tape.what): first rows of all tokens, then the weights, which need what all parts made. */
static void $(helper)_back_$(tape.word)(const $(helper)_run *r)
{
    $(helper)_back_rows_$(tape.word)(r); //$ if tape.back.rows[1]
    $(helper)_wait(r->t);
//$ if tape.back.parameters[1] then
    $(helper)_weight_gradients_$(tape.word)(r);
    $(helper)_wait(r->t);
//$ end
}
//$ end
//$ -- A call of `word` for each layer of a tape, in a backward pass from the last one on.
//$ local function of_layers(tape, word, back)
//$ if tape.layers then
    for (r->layer = $(back and tape.layers or 0); r->layer$(back and "-- > 0;" or " < " .. tape.layers .. "; ++r->layer"))$(back and " {" or "")
//$ end
        $(helper)_$(word)(r);
        $(helper)_swap_gradients(r); //$ if back and tape.first
    } //$ if back and tape.layers
//$ end

/* From ids to what the head reads, of the part's tokens. */
static void $(helper)_forward($(helper)_run *r)
{
//$ for _, tape in ipairs(tapes) do
//$ if tape.lookup and tape.layers then
    for (r->layer = r->t->part; r->layer < $(tape.layers); r->layer += r->t->parts)
        $(helper)_$(tape.word)_prepare(r);
//$ elseif tape.lookup then
    if (r->t->part == 0)
        $(helper)_$(tape.word)_prepare(r);
//$ end
//$ end
//$ for _, tape in ipairs(tapes) do
//$ if tape.forward[1] then of_layers(tape, "forward_" .. tape.word) end
//$ end
}

/* What was the gradient of an input is now that of the output before it; the other one's place is free. */
static void $(helper)_swap_gradients($(helper)_run *r)
{
    float *spare = r->d_out;

    r->d_out = r->d_in;
    r->d_in = spare;
}

/* From the gradient of what the head reads to those of all weights. */
static void $(helper)_backward($(helper)_run *r)
{
//$ for i = #tapes, 1, -1 do
//$ of_layers(tapes[i], "back_" .. tapes[i].word, true)
//$ end
}

/* Gives all that a pass needs a place in memory; returns how many floats that is. */
static size_t $(helper)_lay_out($(helper)_run *r, size_t sequences, size_t length, size_t parts)
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

    return $(helper)_lay_out(&r, sequences, length, parts) * sizeof(float);
}

/* Counts the targets that are not -1; one part lists their tokens. */
static void $(helper)_count_targets($(helper)_run *r)
{
    uint32_t *counted = $(helper)_counted(r);

    r->targets_counted = 0;
    for (size_t i = 0; i < r->sequences * r->length; ++i)
        if (r->targets[i] >= 0) {
            if (r->t->part == 0)
                counted[r->targets_counted] = (uint32_t) i;
            ++r->targets_counted;
        }
}

/* The sum of the cross-entropies of the counted targets; back: and the gradients. */
static double $(helper)_pass(const $(helper) *t, const int32_t *ids, const int32_t *targets, size_t sequences,
    size_t length, float *memory, int back)
{
    $(helper)_run run, *r = &run;
    const size_t before = sequences * t->part / t->parts, behind = sequences * (t->part + 1) / t->parts;
    double sum = 0.0;

    $(helper)_lay_out(r, sequences, length, t->parts);
    r->t = t;
    r->ids = ids;
    r->targets = targets;
    r->memory = memory;
    r->first = before * length;
    r->count = (behind - before) * length;
    r->drops = back && t->dropout > 0.0f;
    r->scratch = memory + r->scratch_at + t->part * r->scratch_floats;
    r->features = $(sum("memory", "r->kept_at", times(features_at, "r->all")));
    r->d_out = memory + r->streams_at;
    r->d_in = r->d_out + $(names.macro("TRAIN_STREAM_FLOATS")) * r->all;
    $(helper)_count_targets(r);
    $(helper)_forward(r);
    $(helper)_show_features(r, back);
    $(helper)_head(r, back);
    for (size_t i = 0; i < r->targets_counted; ++i)
        sum += (double) memory[r->losses_at + i];
    if (back)
        $(helper)_backward(r);
    $(helper)_wait(t);
    return sum;
}

double $(v.training.names.step)(const $(helper) *t, const int32_t *ids, const int32_t *targets, size_t sequences,
    size_t length, void *workspace)
{
    return $(helper)_pass(t, ids, targets, sequences, length, (float *) workspace, 1);
}

double $(v.training.names.loss)(const $(helper) *t, const int32_t *ids, const int32_t *targets, size_t sequences,
    size_t length, void *workspace)
{
    return $(helper)_pass(t, ids, targets, sequences, length, (float *) workspace, 0);
}
//$ if training.looks_up then

void $(v.training.names.apply)(const $(helper) *t)
{
    $(helper)_run run, *r = &run;

    r->t = t;
    r->memory = t->parameters; /* that of packed projections, which are not read */
    r->prepared_at = 0;
//$ for _, tape in ipairs(tapes) do
//$ if tape.lookup then of_layers(tape, tape.word .. "_apply") end
//$ end
    $(helper)_wait(t);
}
//$ end
