//$ takes isa, lanes, helper, float, a
//$ -- What attention by tables has in place of a softmax.
//$ local lsh, w = a.lsh, a.width
//$ local chance = once("templates/math/code_chance.c", { tau = lsh.tau }) .. "_code_chance_" .. lsh.tau
//$ local sum_of_lanes = across("add")
//$ local own_layer = a.first_layer > 0 and "(" .. sum(a.first_layer, "layer") .. ")" or "layer"

/* The signs of layer `layer`, [$(lsh.rounds)][$(lsh.padded)]: those of the model, or others in each step. */
static void $(a.helper)_make_signs(const $(helper) *t, size_t layer, float *restrict signs)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memmove */
    const float *own = $(sum("t->constants", lsh.signs_at, times("layer", lsh.signs)));
    uint32_t key = $(helper)_mixed((uint32_t) t->seed) ^ (uint32_t) (t->seed >> 32);

    key = $(helper)_mixed(key ^ (uint32_t) t->step) ^ (uint32_t) (t->step >> 32);
    key = $(helper)_mixed(key ^ ~(uint32_t) $(own_layer)); /* no site of dropout */
    for (size_t i = 0; i < $(lsh.signs); ++i) {
        const int negative = $(helper)_mixed(key + 0x9e3779b9u * (uint32_t) i) >> 31 != 0;
        signs[i] = t->signs == 1 ? (negative ? -1.0f : 1.0f) : one * own[i];
    }
}
$(include("templates/model/blocks/hash.c", { helper = a.helper, hash = a.lsh, shape = { width = w } }))

/* From products of q and k to $(plural(lsh.tables, "time")) the chances that their codes agree, in place; 0 for what a row does not see. */
static void $(a.helper)_expect(const $(helper)_scores *block)
{
    const float none = $hidden(0.0f); /* else its loop is a call of memset */
    const size_t columns = block->columns;
    float *score = block->weights;

    for (size_t row = 0; row < block->rows; ++row, score += block->step) {
//$ if a.causal then
        const size_t end = $(a.helper)_seen(block->first + row, block->own);

//$ end
        for (size_t k = 0; k < columns; $(advance("k", lanes))) {
            const $(isa.vector) cosine = $(isa.mul(isa.load_unaligned("score", "k"), isa.broadcast(a.tables.chance.inverse_width)));
            const $(isa.vector) often = $(chance)(cosine);
            $(isa.store_unaligned("score", "k", isa.mul("often", isa.broadcast(a.tables.chance.tables))));
        }
        for (size_t k = $(a.causal and "end" or "block->own"); k < columns; ++k)
            score[k] = none;
    }
}

//$ local causal, near, pitch = a.causal, lsh.window > 0, lsh.shape.cache.pitch

/* What tables keep of a head. */
typedef struct $(a.helper)_cache {
//$ for _, part in ipairs(lsh.shape.cache.parts) do
    $(causal and "" or "const ")$(part.storage) *$(part.name); //$ if part.read
//$ end
} $(a.helper)_cache;

/* What attention by tables reads, works in and writes. */
typedef struct $(a.helper)_attention {
    struct {
        const float *at;
        size_t step;
    } q$(causal and (near and ", k, v" or ", v") or "");
    $(names.rows) y;
    const uint16_t *q_codes$(causal and ", *k_codes" or "");
    float *table; //$ if not causal
} $(a.helper)_attention;
$(include("templates/model/blocks/table_attention.c", a.tables))

/* y = $(plural(lsh.tables, "time")) the values v of keys k that queries q find in tables$(near and ", and by their cosines nearer than " .. lsh.window or "") in the sequence
   of `block`. Heads of q and k lie side by side. */
static void $(a.helper)_read_tables(const $(helper)_scores *block, const float *q, const float *k, const float *v, size_t v_step, float *y,
    size_t y_step, float *scratch)
{
    const size_t length = block->length, own = block->own;
    const float *signs = block->signs;
    $(a.helper)_attention work;
    $(a.helper)_cache kept;
    $(names.span) span;
    float *z = scratch, *tables = z + $(a.z);
//$ if causal then
    float *near_keys = tables + $(lsh.together * lsh.rows * pitch), *near_values = near_keys + $(lsh.shape.cache.rows * w);
    uint16_t *ring_codes = (uint16_t *) (void *) (near_values + $(lsh.shape.cache.rows * pitch)), *q_code = ring_codes + $(lsh.tables * lsh.window);
    uint16_t *k_code = q_code + $(lsh.tables) * length;

    (void) own; /* no token sees those behind it */
    $(a.helper)_hash_heads(signs, q, $(w), 1, length, q_code, z);
    $(a.helper)_hash_heads(signs, k, $(w), 1, length, k_code, z);
//$ else
    float *values = tables + $(lsh.together * lsh.rows * pitch);
    uint16_t *k_code = (uint16_t *) (void *) (values + own * $(pitch)), *q_code = k_code + $(lsh.tables * lsh.code_pitch);
    const float one = $hidden(1.0f), none = $hidden(0.0f); /* else loops are calls of memcpy and memset */

    $(a.helper)_hash_heads(signs, q, $(w), 1, own, q_code, z);
    $(a.helper)_hash_tokens(signs, k, $(w), own, k_code, $(lsh.code_pitch), z);
    for (size_t token = 0; token < own; ++token)
        $(helper)_scale(v + token * v_step, one, values + token * $(pitch), $(w));
    for (size_t token = own; token < length; ++token)
        for (size_t i = 0; i < $(w); ++i)
            y[token * y_step + i] = none;
//$ end
    work.q.at = q;
    work.q.step = $(w);
    work.q_codes = q_code;
//$ if causal then
    work.k.at = k; //$ if near
    work.k.step = $(w); //$ if near
    work.v.at = v;
    work.v.step = v_step;
    work.k_codes = k_code;
    kept.keys = near_keys; //$ if near
    kept.values = near_values; //$ if near
    kept.codes = ring_codes; //$ if near
    kept.tables = tables;
//$ else
    work.table = tables;
    kept.keys = k; //$ if near
    kept.values = values;
    kept.codes = k_code;
//$ end
    work.y.at = y;
    work.y.step = y_step;
    span.first = 0;
    span.count = $(causal and "length" or "own");
    span.tokens = $(causal and "length" or "own");
    $(a.tables.symbol)(&kept, &span, &work);
}
//$ if causal then

/* Rows of a head in the opposite order. */
static void $(a.helper)_turn(const float *restrict x, size_t rows, float *restrict y)
{
    const float one = $hidden(1.0f); /* else its loop is a call of memcpy */

    for (size_t row = 0; row < rows; ++row)
        $(helper)_scale(x + row * $(w), one, y + (rows - 1 - row) * $(w), $(w));
}
//$ end

/* The gradients of values, added to `d`, from those of sums, dy: tables in which keys look up what queries put there$(causal and ",\n   from the last token to the first" or ""). */
static void $(a.helper)_read_tables_back(const $(helper)_scores *block, const float *q, const float *k, const float *dy, float *restrict d,
    float *scratch)
{
    const size_t length = block->length;
//$ if causal then
    float *turned_q = scratch, *turned_k = turned_q + length * $(w), *turned_dy = turned_k + length * $(w), *sums = turned_dy + length * $(w);

    $(a.helper)_turn(q, length, turned_q);
    $(a.helper)_turn(k, length, turned_k);
    $(a.helper)_turn(dy, length, turned_dy);
    $(a.helper)_read_tables(block, turned_k, turned_q, turned_dy, $(w), sums, $(w), sums + length * $(w));
    for (size_t row = 0; row < length; ++row)
        $(helper)_accumulate(sums + (length - 1 - row) * $(w), d + row * $(w), 0, $(w));
//$ else
    float *sums = scratch;

    $(a.helper)_read_tables(block, k, q, dy, $(w), sums, $(w), sums + length * $(w));
    for (size_t row = 0; row < length; ++row)
        $(helper)_accumulate(sums + row * $(w), d + row * $(w), 0, $(w));
//$ end
}

/* Rows of a head, whose norm is that of tables. */
static void $(a.helper)_shorten(const $(names.rows) *from, size_t rows, const $(names.rows) *to)
{
    const float *sums = from->at;
    float *y = to->at;

    for (size_t row = 0; row < rows; ++row, sums += from->step, y += to->step) {
//$ local norm = { from = "sums", to = "y", width = w, chance = a.tables.chance, sum_of_lanes = sum_of_lanes }
$(include("templates/model/blocks/norm_of_tables.c", norm))
    }
}

/* The way back: from sums as they were, and the gradients dy of what became of them, to those of sums, d. */
static void $(a.helper)_shorten_back(const float *restrict sums, size_t sums_step, const float *restrict dy, size_t dy_step, size_t rows,
    float *restrict d)
{
    for (size_t row = 0; row < rows; ++row, sums += sums_step, dy += dy_step, d += $(w)) {
        $(isa.vector) squares = $(isa.zero()), products = $(isa.zero());
//$ over_row(w, function(at, load, store)
            const $(isa.vector) v = $(load("sums", at));
            squares = $(isa.fma("v", "v", "squares"));
            products = $(isa.fma("v", load("dy", at), "products"));
//$ end, { block = true })
        const float square = $(sum_of_lanes("squares")) + $(a.tables.chance.least), product = $(sum_of_lanes("products"));
        const $(isa.vector) root = $(isa.reciprocal_root(isa.broadcast("square")));
        const $(isa.vector) slope = $(isa.mul(isa.broadcast("product"), isa.mul("root", "root")));
//$ over_row(w, function(at, load, store)
            const $(isa.vector) rest = $(isa.sub(load("dy", at), isa.mul("slope", load("sums", at))));
            $(store("d", at, isa.mul("root", "rest")));
//$ end, { block = true })
    }
}

/* From the expected weights of a block and the gradients of weights, d, to those of cosines, in place of the latter. The slope of a
   weight is taken as $(lsh.tau) / 2 times the weight, less than it is, which stays finite where q and k are alike. */
static void $(a.helper)_expect_back(const $(helper)_scores *block, const float *restrict expected, float *restrict d)
{
    const $(isa.vector) half_tau = $(isa.broadcast(float(lsh.tau / 2)));
    const size_t rows = block->rows, columns = block->columns, step = block->step;

    for (size_t row = 0; row < rows; ++row, expected += step, d += step)
        for (size_t k = 0; k < columns; $(advance("k", lanes))) {
            const $(isa.vector) slope = $(isa.mul("half_tau", isa.load_unaligned("expected", "k")));
            $(isa.store_unaligned("d", "k", isa.mul("slope", isa.load_unaligned("d", "k"))));
        }
}
