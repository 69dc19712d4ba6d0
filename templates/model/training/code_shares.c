//$ takes isa, lanes, helper, float, a
//$ -- What attention by tables has in place of a softmax.
//$ local lsh, w, strip = a.lsh, a.width, a.strip
//$ local chance = once("templates/math/code_chance.c", { tau = lsh.tau }) .. "_code_chance_" .. lsh.tau
//$ local sum_of_lanes = across("add")
//$ local own_layer = a.first_layer > 0 and "(" .. sum(a.first_layer, "layer") .. ")" or "layer"

/* The signs of layer `layer`, [$(lsh.rounds)][$(lsh.padded)]: those of the model, or others in each step. */
static void $(a.helper)_make_signs(const $(helper) *t, size_t layer, float *restrict signs)
{
    const float *own = $(sum("t->constants", lsh.signs_at, times("layer", lsh.signs)));
    uint32_t key = $(helper)_mixed((uint32_t) t->seed) ^ (uint32_t) (t->seed >> 32);

    key = $(helper)_mixed(key ^ (uint32_t) t->step) ^ (uint32_t) (t->step >> 32);
    key = $(helper)_mixed(key ^ ~(uint32_t) $(own_layer)); /* no site of dropout */
    for (size_t i = 0; i < $(lsh.signs); ++i) {
        const int negative = $(helper)_mixed(key + 0x9e3779b9u * (uint32_t) i) >> 31 != 0;
        signs[i] = t->signs == 1 ? (negative ? -1.0f : 1.0f) : own[i];
    }
}
$(include("templates/model/blocks/hash.c", { helper = a.helper, hash = a.lsh, shape = { width = w } }))

//$ local first = a.causal and "size_t first"
/* From cosines to the weights that tables have on average, in place; 0 for what a row does not
   see.$(a.causal and " Row 0 is position `first`." or "") */
static void $(a.helper)_expect($(listed("float *score, size_t step", first, "size_t rows, size_t columns, size_t length")))
{
    const float none = $hidden(0.0f); /* else its loop is a call of memset */

    for (size_t row = 0; row < rows; ++row, score += step) {
//$ if a.causal then
        const size_t end = $(a.helper)_seen(first + row, length);

//$ end
        for (size_t k = 0; k < columns; $(advance("k", lanes)))
            $(isa.store_unaligned("score", "k", chance .. "(" .. isa.load_unaligned("score", "k") .. ")"));
        for (size_t k = $(a.causal and "end" or "length"); k < columns; ++k)
            score[k] = none;
    }
}

/* weight[begin … end - 1] = the share of tables in which the codes of a query and of these keys agree: those of table t lie
   at t * query_step and t * step. */
static void $(a.helper)_share(const uint16_t *restrict query, size_t query_step, const uint16_t *restrict code, size_t step,
    size_t begin, size_t end, float *restrict weight)
{
    for (size_t k = begin / $(strip) * $(strip); k < end; k += $(strip)) {
        uint16_t agree[$(strip)] = {0};

        for (size_t table = 0; table < $(lsh.tables); ++table) {
            const uint16_t own = query[table * query_step];
            for (size_t i = 0; i < $(strip); ++i)
                agree[i] = (uint16_t) (agree[i] + (code[table * step + k + i] == own));
        }
        for (size_t i = 0; i < $(strip); ++i)
            if (k + i >= begin && k + i < end)
                weight[k + i] = (float) agree[i] * $(float(1 / lsh.tables));
    }
}

/* From expected weights to those of tables, in place, but for tokens nearer than $(lsh.window). query: codes of some tokens, the first at
   position `first`, [$(lsh.tables)][rows]; code: of keys, [$(lsh.tables)][length]. */
static void $(a.helper)_sample(const uint16_t *query, const uint16_t *code, size_t first, size_t rows, size_t length, size_t own,
    float *weight, size_t step)
{
    for (size_t row = 0; row < rows; ++row, weight += step) {
        const size_t here = first + row, near = here + 1 > $(lsh.window) ? here + 1 - $(lsh.window) : 0;

        $(a.helper)_share(query + row, rows, code, length, 0, near < own ? near : own, weight);
//$ if not a.causal then
        $(a.helper)_share(query + row, rows, code, length, here + $(lsh.window) > near ? here + $(lsh.window) : near, own, weight);
//$ end
    }
}

/* y / sqrt(|y|^2 + eps^2), rows of $(w) floats, `step` apart. */
static void $(a.helper)_shorten(float *y, size_t step, size_t rows)
{
    for (size_t row = 0; row < rows; ++row, y += step) {
        $(isa.vector) squares = $(isa.zero());
//$ over_row("        ", w, function(i, at, load, store)
$(i)const $(isa.vector) v = $(load("y", at));
$(i)squares = $(isa.fma("v", "v", "squares"));
//$ end, { block = true })
        const float square = $(sum_of_lanes("squares")) + $(float(lsh.eps * lsh.eps));
        const $(isa.vector) root = $(isa.reciprocal_root(isa.broadcast("square")));
//$ over_row("        ", w, function(i, at, load, store)
$(i)$(store("y", at, isa.mul("root", load("y", at))));
//$ end)
    }
}

/* The way back: from y as it was, and the gradients dy of what became of it, to those of y, in place. */
static void $(a.helper)_shorten_back(const float *restrict dy, size_t rows, float *restrict y)
{
    for (size_t row = 0; row < rows; ++row, dy += $(a.y_step), y += $(w)) {
        $(isa.vector) squares = $(isa.zero()), products = $(isa.zero());
//$ over_row("        ", w, function(i, at, load, store)
$(i)const $(isa.vector) v = $(load("y", at));
$(i)squares = $(isa.fma("v", "v", "squares"));
$(i)products = $(isa.fma("v", load("dy", at), "products"));
//$ end, { block = true })
        const float square = $(sum_of_lanes("squares")) + $(float(lsh.eps * lsh.eps)), product = $(sum_of_lanes("products"));
        const $(isa.vector) root = $(isa.reciprocal_root(isa.broadcast("square")));
        const $(isa.vector) slope = $(isa.mul(isa.broadcast("product"), isa.mul("root", "root")));
//$ over_row("        ", w, function(i, at, load, store)
$(i)const $(isa.vector) rest = $(isa.sub(load("dy", at), isa.mul("slope", load("y", at))));
$(i)$(store("y", at, isa.mul("root", "rest")));
//$ end, { block = true })
    }
}

/* From expected weights and the gradients of weights to those of cosines, in place of the latter. The slope of a weight is
   taken as $(lsh.tau) / 2 times the weight, less than it is, which stays finite where q and k are alike. */
static void $(a.helper)_expect_back(const float *restrict expected, float *restrict d, size_t step, size_t rows, size_t columns)
{
    const $(isa.vector) half_tau = $(isa.broadcast(float(lsh.tau / 2)));

    for (size_t row = 0; row < rows; ++row, expected += step, d += step)
        for (size_t k = 0; k < columns; $(advance("k", lanes))) {
            const $(isa.vector) slope = $(isa.mul("half_tau", isa.load_unaligned("expected", "k")));
            $(isa.store_unaligned("d", "k", isa.mul("slope", isa.load_unaligned("d", "k"))));
        }
}
