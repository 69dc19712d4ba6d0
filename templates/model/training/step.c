//$ takes helper, v, training, tapes, features_at
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

/* C = A B, or C += A B, as $(helper)_product does it, in the part's own scratch. */
//$ local matrices = "const float *a, size_t a_step, const float *b, size_t b_step, float *c, size_t c_step"
static void $(helper)_multiply(const $(helper)_run *r, int a_across, int b_across, size_t rows, size_t columns,
    size_t depth, $(matrices), int add)
{
    if (rows > 0)
        $(helper)_product(a_across, b_across, rows, columns, depth, a, a_step, b, b_step, c, c_step, add, r->scratch);
}
$(include("templates/model/training/rows.c"))

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
$(include("templates/model/training/head.c", { place = tapes[#tapes].place }))
//$ local function pointers(c)
    $(one.type) *$(one.name) = $(one.at); //$ for _, one in ipairs(c.pointers)
//$ end
//$ for _, tape in ipairs(tapes) do
//$ local layer, of_layer = tape.layers and ", size_t layer" or "", tape.layers and ", layer" or ""
//$ local d_in, of_d_in = tape.first and ", float *d_in" or "", tape.first and ", d_in" or ""
//$ if tape.forward[1] then
//$ local c = tape.scope(true)
//$ local body = include("templates/model/training/forward.c", { tape = tape, c = c })

/* $(tape.doc), of the part's tokens: reads and writes rows of values in r->memory. */
static void $(helper)_forward_$(tape.word)(const $(helper)_run *r$(layer))
{
//$ pointers(c)

$(body)
}
//$ end
//$ if tape.back.rows[1] then
//$ local c = tape.scope(true)
//$ local body = include("templates/model/training/backward.c", { tape = tape, c = c })

/* $(tape.back_doc), of the part's tokens.
   d_out  [r->all][$(c.gradient_pitch("d_out"))], of all tokens, that of its output
   d_in   [r->all][$(c.gradient_pitch("d_in"))], that of its input //$ if tape.first
   */
static void $(helper)_back_rows_$(tape.word)(const $(helper)_run *r$(layer), const float *d_out$(d_in))
{
//$ pointers(c)

$(body)
}
//$ end
//$ local c = tape.scope(false)
//$ if tape.back.parameters[1] then
//$ local body = include("templates/model/training/parameters.c", { tape = tape, c = c })

/* Adds up the gradients of the weights over all tokens, in r->t->gradients; each part has rows or columns of its own. */
static void $(helper)_weight_gradients_$(tape.word)(const $(helper)_run *r$(layer)$(c.takes_output and ", const float *d_out" or ""))
{
//$ pointers(c)
$(body)
}
//$ end

//$ local through = ({ embedding = "what stands before the blocks", output = "what stands behind the blocks" })[tape.word]
/* Backward through $(through or "a block"): first rows of all tokens, then the weights, which need what all parts made. */
static void $(helper)_back_$(tape.word)(const $(helper)_run *r$(layer), const float *d_out$(d_in))
{
    $(helper)_back_rows_$(tape.word)(r$(of_layer), d_out$(of_d_in)); //$ if tape.back.rows[1]
    $(helper)_wait(r->t);
//$ if tape.back.parameters[1] then
    $(helper)_weight_gradients_$(tape.word)(r$(of_layer)$(c.takes_output and ", d_out" or ""));
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
    for (size_t layer = t->part; layer < $(tape.layers); layer += t->parts)
        $(helper)_$(tape.word)_prepare(r, layer);
//$ elseif tape.lookup then
    if (t->part == 0)
        $(helper)_$(tape.word)_prepare(r);
//$ end
//$ end
//$ for _, tape in ipairs(tapes) do
//$ if tape.layers then
    for (size_t layer = 0; layer < $(tape.layers); ++layer)
        $(helper)_forward_$(tape.word)(r, layer);
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
//$ local even, odd = "layer % 2", "(layer + 1) % 2"
//$ if (turn.from + turn.layers) % 2 == 0 then even, odd = odd, even end
        for (size_t layer = $(turn.layers); layer-- > 0;)
            $(helper)_back_$(turn.word)(r, layer, streams[$(even)], streams[$(odd)]);
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
    for (size_t layer = 0; layer < $(tape.layers); ++layer)
        $(helper)_$(tape.word)_apply(r, layer);
//$ elseif tape.lookup then
    $(helper)_$(tape.word)_apply(r);
//$ end
//$ end
    $(helper)_wait(t);
}
//$ end
