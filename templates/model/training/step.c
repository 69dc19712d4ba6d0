//$ takes helper, v, training, tapes, features_at, uses
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

/* A pass, and what of it a part does: the tokens of some of the sequences. Rows of values and of gradients lie in
   `memory` behind each other, a row for each token, [all][pitch] from the place of the first one on. */
typedef struct $(helper)_run {
    const $(helper) *t;
    const int32_t *ids, *targets; /* [sequences][length] */
    size_t sequences, length;
    size_t all;             /* tokens of a row of memory */
    size_t first, count;    /* tokens of the part */
    size_t targets_counted;
    int drops;              /* whether there is dropout */
    size_t layer;           /* of the blocks that are computed */ //$ if uses.layers
    float *memory, *scratch;
    /* where in memory, in floats: */
    size_t $(place.name)_at; /* $(place.doc) */ //$ for _, place in ipairs(training.places)
    size_t scratch_at, scratch_floats; /* of each part */
} $(helper)_run;

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
//$ local function variables(c)
//$ for _, one in ipairs(c.variables) do
//$ local value = one.step and "{ " .. one.at .. ", " .. one.step .. " }" or one.at
    $(one.type)$(one.name)$(value and " = " .. value or "");
//$ end
//$ end
//$ for _, tape in ipairs(tapes) do
//$ local d_in, of_d_in = tape.first and ", float *d_in" or "", tape.first and ", d_in" or ""
//$ if tape.forward[1] then
//$ local c = tape.scope(true)
//$ local body = include("templates/model/training/forward.c", { tape = tape, c = c })

/* $(tape.doc), of the part's tokens: reads and writes rows of values in r->memory. */
static void $(helper)_forward_$(tape.word)(const $(helper)_run *r)
{
//$ variables(c)

$(body)
}
//$ end
//$ if tape.back.rows[1] then
//$ local c = tape.scope(true)
//$ local body = include("templates/model/training/backward.c", { tape = tape, c = c })

/* $(tape.back_doc), of the part's tokens. Rows of all tokens: d_out, that of its output$(tape.first and "; d_in, that of its input" or ""). */
static void $(helper)_back_rows_$(tape.word)(const $(helper)_run *r, float *d_out$(d_in))
{
//$ variables(c)

$(body)
}
//$ end
//$ local c = tape.scope(false)
//$ if tape.back.parameters[1] then
//$ local body = include("templates/model/training/parameters.c", { tape = tape, c = c })

/* Adds up the gradients of the weights over all tokens, in r->t->gradients; each part has rows or columns of its own. */
static void $(helper)_weight_gradients_$(tape.word)(const $(helper)_run *r$(c.takes_output and ", float *d_out" or ""))
{
//$ variables(c)

$(body)
}
//$ end

//$ local through = ({ embedding = "what stands before the blocks", output = "what stands behind the blocks" })[tape.word]
/* Backward through $(through or "a block"): first rows of all tokens, then the weights, which need what all parts made. */
static void $(helper)_back_$(tape.word)(const $(helper)_run *r, float *d_out$(d_in))
{
    $(helper)_back_rows_$(tape.word)(r, d_out$(of_d_in)); //$ if tape.back.rows[1]
    $(helper)_wait(r->t);
//$ if tape.back.parameters[1] then
    $(helper)_weight_gradients_$(tape.word)(r$(c.takes_output and ", d_out" or ""));
    $(helper)_wait(r->t);
//$ end
}
//$ end

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
    r->targets_counted = 0;
    for (size_t i = 0; i < sequences * length; ++i)
        if (targets[i] >= 0) {
            if (t->part == 0)
                ((uint32_t *) (void *) (memory + r->counted_at))[r->targets_counted] = (uint32_t) i;
            ++r->targets_counted;
        }
//$ for _, tape in ipairs(tapes) do
//$ if tape.lookup and tape.layers then
    for (r->layer = t->part; r->layer < $(tape.layers); r->layer += t->parts)
        $(helper)_$(tape.word)_prepare(r);
//$ elseif tape.lookup then
    if (t->part == 0)
        $(helper)_$(tape.word)_prepare(r);
//$ end
//$ end
//$ for _, tape in ipairs(tapes) do
//$ if tape.layers then
    for (r->layer = 0; r->layer < $(tape.layers); ++r->layer)
        $(helper)_forward_$(tape.word)(r);
//$ elseif tape.forward[1] then
    $(helper)_forward_$(tape.word)(r);
//$ end
//$ end
    $(helper)_head(r, $(sum("memory", "r->kept_at", times(features_at, "r->all"))), back, memory + r->streams_at);
    for (size_t i = 0; i < r->targets_counted; ++i)
        sum += (double) memory[r->losses_at + i];
    if (back) {
        float *streams[2];

        streams[0] = memory + r->streams_at;
        streams[1] = streams[0] + $(names.macro("TRAIN_STREAM_FLOATS")) * r->all;
//$ for _, turn in ipairs(training.turns) do
//$ if turn.layers > 1 then
        for (r->layer = $(turn.layers); r->layer-- > 0;)
            $(helper)_back_$(turn.word)(r, streams[$(turn.even)], streams[$(turn.odd)]);
//$ else
        $(helper)_back_$(turn.word)(r, streams[$(turn.from)]$(turn.ends and "" or ", streams[" .. 1 - turn.from .. "]"));
//$ end
//$ end
    }
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

    run.t = t;
    run.memory = t->parameters;
    run.prepared_at = 0;
//$ for _, tape in ipairs(tapes) do
//$ if tape.lookup and tape.layers then
    for (r->layer = 0; r->layer < $(tape.layers); ++r->layer)
        $(helper)_$(tape.word)_apply(r);
//$ elseif tape.lookup then
    $(helper)_$(tape.word)_apply(r);
//$ end
//$ end
    $(helper)_wait(t);
}
//$ end
