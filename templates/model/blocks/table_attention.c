//$ takes prologue, isa, lanes, symbol, helper, chance, training
//$ -- training: false, or of a static function for whole sequences, which leaves the norm to what calls it. sparse: they
//$ -- meet so few rows that these alone are cleared.
//$ local hash, causal, group, width = shape.lsh, shape.causal, shape.group, shape.width
//$ local pitch, code_pitch = names.constant("VALUE_PITCH"), not causal and names.constant("CODE_PITCH")
//$ local tables, window, short = hash.tables, hash.window, shape.cache.limit
//$ lines(prologue)
//$ local sum_of_lanes = across("add")
//$ local code_chance = window > 0 and once("templates/math/code_chance.c", { tau = hash.tau }) .. "_code_chance_" .. hash.tau
//$ if window > 0 then

//$ local codes = "q_code: of table t at t * code_step; code: [" .. tables .. "][" .. (code_pitch or "") .. "]."
//$ local less = ", less what tables add of them. " .. codes
/* y = y + the values of `count` tokens that lie beside each other, by the cosines of q and their keys: each as often as
   $(plural(tables, "table")) would add it on average$(causal and "." or less) */
//$ if causal then
static void $(helper)_near(const float *restrict q, const float *restrict key, size_t key_step,
    const float *restrict value, size_t value_step, size_t count, float *restrict y)
{
//$ else
static void $(helper)_near(const float *restrict q, const float *restrict key, const float *restrict value, size_t count,
    const uint16_t *restrict q_code, size_t code_step, const uint16_t *restrict code, float *restrict y)
{
    const size_t key_step = $(width), value_step = $(pitch);
//$ end
    float products[$(32 * lanes)], weight[33];
    uint16_t agree[32]; /* tables in which codes do: `code` has as many behind its last */ //$ if not causal
    const float none = $hidden(0.0f); /* else loops are calls of memset */ //$ if lanes > 1 or not causal

    for (size_t from = 0, some; from < count; from += some) {
        some = count - from < 32 ? count - from : 32;
//$ if not causal then
        for (size_t n = 0; n < 32; ++n)
            agree[n] = (uint16_t) none;
        for (size_t table = 0; table < $(tables); table += $(hash.together)) {
//$ local total = "agree[n]"
//$ for n = 0, hash.together - 1 do
//$     local table = n > 0 and "(table + " .. n .. ")" or "table"
            const uint16_t *code$(n) = code + $(table) * $(code_pitch) + from, own$(n) = q_code[$(table) * code_step];
//$     total = total .. " + (uint16_t) (code" .. n .. "[n] == own" .. n .. ")"
//$ end

            for (size_t n = 0; n < 32; ++n)
                agree[n] = (uint16_t) ($(total));
        }
        for (size_t n = 0; n < 32; ++n)
            weight[n] = -(float) agree[n];
//$ end
        for (size_t n = 0; n < some; ++n) {
            const float *own = key + (from + n) * key_step;
            $(isa.vector) product = $(isa.zero());
//$ local function multiply(at, load)
            product = $(isa.fma(load("q", at), load("own", at), "product"));
//$ end

//$ if width <= 8 * lanes then -- q stays in registers
//$     for at = 0, width - 1, lanes do
//$         local rest = width - at
//$         multiply(at, rest >= lanes and isa.load_unaligned or function(base, offset)
//$             return isa.load_partial(base, offset, rest)
//$         end)
//$     end
//$ else
//$     over_row(width, multiply)
//$ end
            $(isa.store_unaligned("products", times("n", lanes), "product"));
        }
//$ if lanes > 1 then
        for (size_t n = some; n % $(lanes) > 0; ++n)
            $(isa.store_unaligned("products", times("n", lanes), isa.broadcast("none")));
//$ end
        for (size_t n = 0; n < some; $(advance("n", lanes))) {
//$ local columns = {}
//$ for lane = 0, lanes - 1 do
//$     columns[lane + 1] = "of" .. lane
            const $(isa.vector) of$(lane) = $(isa.load_unaligned("products", lane > 0 and "(n + " .. lane .. ") * " .. lanes or times("n", lanes)));
//$ end
//$ local code, summed = (isa.lane_sums or isa.transpose)(columns)
            const $(isa.vector) $(one.name) = $(one.value); //$ for _, one in ipairs(code)
//$ columns = isa.lane_sums and { summed } or summed
//$ while #columns > 1 do
//$     local halves = {}
//$     for n = 1, #columns // 2 do halves[n] = isa.add(columns[2 * n - 1], columns[2 * n]) end
//$     columns = halves
//$ end
            const $(isa.vector) often = $(code_chance)($(isa.mul(columns[1], isa.broadcast(chance.inverse_width))));
//$ local of_all = isa.broadcast(chance.tables)
//$ local left = causal and isa.mul("often", of_all) or isa.fma("often", of_all, isa.load_unaligned("weight", "n"))
            $(isa.store_unaligned("weight", "n", left));
        }
        weight[some] = 0.0f; /* values come in pairs */
//$ local whole = width // lanes * lanes
//$ local together = whole >= 8 * lanes and isa.registers >= 32 and 8 or 4 -- vectors
//$ local several = whole // (together * lanes) * together * lanes
//$ local function mix(at, vectors, load, store)
//$     for n = 0, vectors - 1 do
            $(isa.vector) sum$(n) = $(load("y", sum(at, n * lanes))), other$(n) = $(isa.zero());
//$     end
            for (size_t n = 0; n < some; n += 2) {
                const $(isa.vector) w0 = $(isa.broadcast("weight[n]")), w1 = $(isa.broadcast("weight[n + 1]"));
                const float *own0 = value + (from + n) * value_step, *own1 = own0 + (n + 1 < some ? value_step : 0);
//$     for n = 0, vectors - 1 do
                sum$(n) = $(isa.fma("w0", load("own0", sum(at, n * lanes)), "sum" .. n));
                other$(n) = $(isa.fma("w1", load("own1", sum(at, n * lanes)), "other" .. n));
//$     end
            }
            $(store("y", sum(at, n * lanes), isa.add("sum" .. n, "other" .. n))); //$ for n = 0, vectors - 1
//$ end
//$ loop("i", 0, several, together * lanes, function(at)
//$     mix(at, together, isa.load_unaligned, isa.store_unaligned)
//$ end, { block = true })
//$ loop("i", several, whole, lanes, function(at)
//$     mix(at, 1, isa.load_unaligned, isa.store_unaligned)
//$ end, { block = true })
//$ if whole < width then
        {
//$ mix(whole, 1, function(base, at) return isa.load_partial(base, at, width - whole) end,
//$     function(base, at, value) return isa.store_partial(base, at, width - whole, value) end)
        }
//$ end
    }
}
//$ end
$(include("templates/model/blocks/short_tables.c")) //$ if short
//$ local codes_of = tables .. " * tokens"
//$ -- The loops over tokens and the heads of q of a group, whose own q, codes and y are `own`, `code` and `out`.
//$ local row = group > 1
//$ local function at(name, step, of_row) return name .. " + token * " .. step .. (row and " + row * " .. of_row or "") end
//$ local function each(body, of_token)
    for (size_t token = 0; token < tokens; ++token)$(row and not of_token and "" or " {")
//$ if of_token then of_token() end
        for (size_t row = 0; row < $(group); ++row) { //$ if row
            float *out = $(at("y", "y_step", width));
//$ body()
        } //$ if row
    } //$ if of_token or not row
//$ end
//$ -- Makes row `row` of keys and values that of a token.
//$ local function copy(row, of_k, of_v)
        const float *from_k = $(of_k), *from_v = $(of_v);
        float *to_k = keys + $(row) * $(width), *to_v = values + $(row) * $(pitch);

//$ for _, letter in ipairs { "k", "v" } do
//$ over_row(width, function(at, load, store)
        $(store("to_" .. letter, at, isa.mul(isa.broadcast("one"), load("from_" .. letter, at))));
//$ end)
//$ end
//$ end
//$ local q_code = row and "q_code + row * " .. codes_of .. " + token" or "q_code + token"
//$ -- Of `together` tables, from number `table` on, whose rows lie from `rows` on: the row of each that `code` prints, or
//$ -- its number.
//$ local table_step = "(" .. hash.rows .. " * " .. pitch .. ")"
//$ local over_together = hash.together > 1 and "table / " .. hash.together or "table"
//$ local function table_at(n) return n > 0 and "(table + " .. n .. ")" or "table" end
//$ local function rows_of(const, name, code)
//$ for n = 0, hash.together - 1 do
//$ if short then
        const size_t $(name)$(n) = $(n > 0 and n * hash.rows .. " + " or "")(size_t) $(code(n));
//$ else
        $(const)float *$(name)$(n) = rows + $(n > 0 and times(n, table_step) .. " + " or "")(size_t) $(code(n)) * $(pitch);
//$ end
//$ end
//$ end
//$ -- The rows of these tables that begin with `name`.
//$ local function all(name)
//$     local list = name .. 0
//$     for n = 1, hash.together - 1 do list = list .. ", " .. name .. n end
//$     return list
//$ end
//$ -- Clears them where the condition `where` holds, and gives them a unit.
//$ local function clear_all(where)
        for (size_t i = 0; $(where)i < $(hash.together) * $(table_step); ++i)
            rows[i] = $(short and "none" or "zero");
        unit = $(helper)_unit(peak, unit, rows); //$ if short and not causal
//$ end
//$ -- Clears the rows that `code` prints for each of `count` tokens.
//$ local function clear_met(count, code)
        for (size_t token = 0; token < $(count); ++token) {
//$ rows_of("", "met", code)

//$ over_row(width, function(at, load, store)
            $(store("met" .. n, at, isa.broadcast("zero"))); //$ for n = 0, hash.together - 1
//$ end, { block = true })
        }
//$ end
//$ local function code_of(name, step)
//$     return function(n) return name .. "[" .. table_at(n) .. " * " .. step .. " + token]" end
//$ end
//$ local function insert()
//$ if short then
//$ if causal then
                if ($(helper)_exceeds(value, unit))
                    unit = $(helper)_unit($(helper)_peak(value, 0, 1), unit, rows);
//$ end
                unit = $(helper)_insert(value, $(all("into")), unit, rows);
//$ return
//$ end
//$ over_row(width, function(at, load, store)
        const $(isa.vector) x = $(load("value", at));
        $(store("into" .. n, at, isa.add(load("into" .. n, at), "x"))); //$ for n = 0, hash.together - 1
//$ end, { block = true })
//$ end
//$ local function look_up()
            for (size_t row = 0; row < $(group); ++row) { //$ if row
        float *out = $(at("y", "y_step", width));
//$ local of_row = row and " + row * " .. codes_of or ""
//$ rows_of("const ", "found", function(n) return "q_code[" .. table_at(n) .. " * tokens" .. of_row .. " + token]" end)

//$ if short then
        $(helper)_look_up(rows, $(all("found")), unit, out);
//$ else
//$ over_row(width, function(at, load, store)
//$ local total = load("out", at)
//$ for n = 0, hash.together - 1 do total = isa.add(total, load("found" .. n, at)) end
            $(store("out", at, total));
//$ end)
//$ end
            } //$ if row
//$ end

/* Attention of a head of k and v and $(group > 1 and "the " .. group .. " heads" or "the head") of q that it serves, by tables
   (YOSO, arXiv 2111.09714), for some tokens$((causal or window > 0) and " from position `first` on" or "").
   span     the tokens
   kept     the cache of the head of k and v:
//$ if causal then
//$ if window > 0 then
            keys [$(shape.cache.rows)][$(width)] of the last $(plural(window, "token")) before them, the oldest in row first % $(window),
            $(window > 1 and "then of their own first ones, " or "")and likewise
            values [$(shape.cache.rows)][$(shape.cache.pitch)]; codes [$(tables)][$(window)], a ring;
//$ end
//$ if training then
            tables [$(hash.together)][$(hash.rows)][$(shape.cache.pitch)]: $(plural(hash.together, "table")) at a time, overwritten
//$ else
            tables [$(tables)][$(hash.rows)][$(shape.cache.pitch)]: sums of the values of all tokens before
            $(window > 0 and "these" or "them")$(short and ", in units" or ""); cleared where first is 0
            units [$(tables // hash.together)]: of $(plural(hash.together, "table")) each //$ if short
//$ end
//$ else
            keys [positions][$(width)], //$ if window > 0
            values [positions][$(shape.cache.pitch)], codes [$(tables)][$(code_pitch)] of the keys of the sequence
//$ end
   a        q $(plural(group, "head")), q_codes $(group > 1 and "[" .. group .. "]" or "")[$(tables)][tokens]
//$ if causal then
            k, v a head, k_codes [$(tables)][tokens]
//$ else
            table [$(hash.together)][$(hash.rows)][$(shape.cache.pitch)]: $(plural(hash.together, "table")) at a time, overwritten
//$ end
            y is written. Cannot fail. */
$(training and "static " or "")void $(symbol)(const $(names.type("cache")) *kept, const $(names.span) *span, const $(names.type("attention")) *a)
{
//$ if window > 0 then
    const float *q = a->q.at;
    const size_t q_step = a->q.step;
//$ end
    const uint16_t *q_code = a->q_codes;
//$ if causal and window > 0 then
    const float *k = a->k.at;
    const size_t k_step = a->k.step;
//$ end
//$ if causal then
    const float *v = a->v.at;
    const size_t v_step = a->v.step;
    const uint16_t *k_code = a->k_codes;
//$ end
//$ for _, part in ipairs(shape.cache.parts) do
    $(causal and "" or "const ")$(part.storage) *$(part.name) = kept->$(part.name); //$ if part.read
//$ end
    $(shape.cache.row.storage) *rows = $(short and "(int16_t *) (void *) a->table" or "a->table"); //$ if not causal
    float *y = a->y.at;
    const size_t y_step = a->y.step, tokens = span->count;
//$ if causal and window == 0 and training and training.sparse then
//$ elseif causal or window > 0 then
    const size_t first = span->first;
//$ end
    const size_t end = span->tokens; //$ if not causal
    const float zero = $hidden(0.0f); /* else its loops are calls of memset */
//$ if causal and window > 0 then
    const float one = $hidden(1.0f); /* else its loops are calls of memcpy */
    const size_t oldest = first % $(window);
//$ end

//$ each(function()
//$ if window > 0 then
        const float *own = $(at("q", "q_step", width));
//$ if not causal then
        const size_t position = first + token, low = position < $(window) ? 0 : position - $(window - 1);
        const size_t high = position + $(window) < end ? position + $(window) : end;
//$ end
//$ end

//$ over_row(width, function(at, load, store)
        $(store("out", at, isa.broadcast("zero")));
//$ end)
//$ if window > 0 and causal then
        $(helper)_near(own, key, key_step, value, value_step, count, out);
//$ elseif window > 0 then
        $(helper)_near(own, keys + low * $(width), values + low * $(pitch), high - low, $(q_code), tokens,
            codes + low, out);
//$ end
//$ end, causal and window > 0 and function()
//$ local from_row = "(oldest + token + " .. window + 1 .. " - count)"
    const size_t seen = first + token + 1, count = seen < $(window) ? seen : $(window);
    const size_t is_first = token + 1 < $(window), key_step = is_first ? $(width) : k_step, value_step = is_first ? $(pitch) : v_step;
    const float *key = is_first ? keys + $(from_row) * $(width) : k + (token + 1 - count) * k_step;
    const float *value = is_first ? values + $(from_row) * $(pitch) : v + (token + 1 - count) * v_step;

    if (is_first) {
//$ copy("(oldest + token + " .. window .. ")", "k + token * k_step", "v + token * v_step")
    }
//$ end)

//$ if short then
    const int16_t none = (int16_t) zero;
    const float peak = $(helper)_peak(values, $(pitch), end); //$ if not causal

//$ end
    for (size_t table = 0; table < $(tables); table += $(hash.together)) {
//$ if causal then
        $(shape.cache.row.storage) *rows = $(training and "tables" or "tables + table * " .. table_step);
        float unit = first > 0 ? units[$(over_together)] : 0.0f; //$ if short

//$ if training and training.sparse then
//$ clear_met("tokens", code_of("k_code", "tokens"))
//$ clear_met("tokens", code_of("q_code", "tokens"))
//$ else
//$ clear_all("first == 0 && ")
//$ end
        for (size_t token = 0; token < tokens; ++token) {
//$ if window > 0 then
            if (first + token >= $(window)) { /* one leaves the window */
                const size_t step = token < $(window) ? $(window) : tokens;
                const uint16_t *own = token < $(window) ? codes + (first + token) % $(window) : k_code + token - $(window);
                const uint16_t *code = own + table * step;
                const float *value = token < $(window) ? values + (oldest + token) * $(pitch) : v + (token - $(window)) * v_step;
//$ rows_of("", "into", function(n) return n > 0 and "code[" .. times(n, "step") .. "]" or "code[0]" end)

//$ insert()
            }
//$ else
            const float *value = v + token * v_step;
//$ rows_of("", "into", function(n) return "k_code[" .. table_at(n) .. " * tokens + token]" end)

//$ insert()
//$ end
//$ look_up()
        }
        units[$(over_together)] = unit; //$ if short
//$ else
//$ if training and training.sparse then
//$ clear_met("end", code_of("codes", code_pitch))
//$ clear_met("tokens", code_of("q_code", "tokens"))
//$ else
//$ if short then
        float unit = 0.0f;

//$ end
//$ clear_all("")
//$ end
        for (size_t position = 0; position < end; ++position) {
            const float *value = values + position * $(pitch);
//$ rows_of("", "into", function(n) return "codes[" .. table_at(n) .. " * " .. code_pitch .. " + position]" end)

//$ insert()
        }
        for (size_t token = 0; token < tokens; ++token) {
//$ look_up()
        }
//$ end
    }
//$ if causal and window > 0 then
    if (oldest + tokens >= $(window)) /* the last $(plural(window, "token")) */
        for (size_t n = 0; n < $(window); ++n) {
//$ local function from(letter, kept, step)
//$     local own = letter .. " + (tokens + n - " .. window .. ") * " .. letter .. "_step"
//$     return "tokens < " .. window .. " ? " .. kept .. " + (oldest + tokens + n) * " .. step .. " : " .. own
//$ end
//$ copy("((first + tokens) % " .. window .. " + n)", from("k", "keys", width), from("v", "values", pitch))
        }
    for (size_t token = tokens < $(window) ? 0 : tokens - $(window); token < tokens; ++token)
        for (size_t table = 0; table < $(tables); ++table)
            codes[table * $(window) + (first + token) % $(window)] = k_code[table * tokens + token];
//$ end
//$ if not training then
    /* y / sqrt(|y|^2 + $(chance.eps_text)^2), of $(tables) times y */
//$ each(function(i)
$(include("templates/model/blocks/norm_of_tables.c", { i = i, from = "out", to = "out", width = width, sum_of_lanes = sum_of_lanes }))
//$ end)
//$ end
}
