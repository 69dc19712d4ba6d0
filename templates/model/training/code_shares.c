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

/* Codes of heads that lie side by side: code[$(lsh.tables)][step]. A Hadamard transform of a head times signs makes the bits of
   $(plural(lsh.per_round, "code")). */
static void $(a.helper)_hash(const float *restrict signs, const float *restrict x, size_t rows, uint16_t *restrict code, size_t step)
{
    for (size_t row = 0; row < rows; ++row, x += $(w))
        for (size_t round = 0; round < $(lsh.rounds); ++round) {
            float z[$(lsh.padded)];

            for (size_t i = 0; i < $(w); ++i)
                z[i] = signs[round * $(lsh.padded) + i] * x[i];
//$ if w < lsh.padded then
            for (size_t i = $(w); i < $(lsh.padded); ++i)
                z[i] = 0.0f;
//$ end
            for (size_t half = 1; half < $(lsh.padded); half *= 2)
                for (size_t i = 0; i < $(lsh.padded); i += 2 * half)
                    for (size_t j = i; j < i + half; ++j) {
                        const float low = z[j], high = z[j + half];
                        z[j] = low + high;
                        z[j + half] = low - high;
                    }
            for (size_t i = 0, table = round * $(lsh.per_round); i < $(lsh.per_round) && table < $(lsh.tables); ++i, ++table) {
                unsigned bits = 0;
                for (size_t bit = 0; bit < $(lsh.tau); ++bit)
                    bits = bits << 1 | (z[i * $(lsh.tau) + bit] > 0.0f);
                code[table * step + row] = (uint16_t) bits;
            }
        }
}

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

/* weight[begin … end - 1] = the share of tables in which the codes of a query, [$(lsh.tables)], and of these keys agree. */
static void $(a.helper)_share(const uint16_t *restrict query, const uint16_t *restrict code, size_t step, size_t begin, size_t end,
    float *restrict weight)
{
    for (size_t k = begin / $(strip) * $(strip); k < end; k += $(strip)) {
        uint16_t agree[$(strip)] = {0};

        for (size_t table = 0; table < $(lsh.tables); ++table) {
            const uint16_t own = query[table];
            for (size_t i = 0; i < $(strip); ++i)
                agree[i] = (uint16_t) (agree[i] + (code[table * step + k + i] == own));
        }
        for (size_t i = 0; i < $(strip); ++i)
            if (k + i >= begin && k + i < end)
                weight[k + i] = (float) agree[i] * $(float(1 / lsh.tables));
    }
}

/* From expected weights to those of tables, in place, but for tokens nearer than $(lsh.window). q: heads of queries, the first at position
   `first`; code: of keys. */
static void $(a.helper)_sample(const float *signs, const float *q, const uint16_t *code, size_t code_step, size_t first, size_t rows,
    size_t length, float *weight, size_t step)
{
    for (size_t row = 0; row < rows; ++row, q += $(w), weight += step) {
        const size_t own = first + row, near = own + 1 > $(lsh.window) ? own + 1 - $(lsh.window) : 0;
        uint16_t query[$(lsh.tables)];

        $(a.helper)_hash(signs, q, 1, query, 1);
        $(a.helper)_share(query, code, code_step, 0, near < length ? near : length, weight);
//$ if not a.causal then
        $(a.helper)_share(query, code, code_step, own + $(lsh.window) > near ? own + $(lsh.window) : near, length, weight);
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
