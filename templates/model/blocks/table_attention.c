//$ takes prologue, isa, lanes, symbol, helper, attention_parameters, chance
//$ local hash, causal, group, width = shape.lsh, shape.causal, shape.group, shape.width
//$ local pitch, code_pitch = names.constant("VALUE_PITCH"), not causal and names.constant("CODE_PITCH")
//$ local tables, window, short = hash.tables, hash.window, shape.cache.limit
//$ local sum_of_lanes = across("add")
//$ lines("", prologue)
//$ local code_chance = window > 0 and once("templates/math/code_chance.c", { tau = hash.tau }) .. "_code_chance_" .. hash.tau
//$ if window > 0 then

//$ local codes = "q_code: of table t at t * code_step; code: [" .. tables .. "][" .. (code_pitch or "") .. "]."
//$ local less = ", less what tables add of them. " .. codes
/* y = y + the values of `count` tokens that lie beside each other, by the cosines of q and their keys: each as often as
   $(plural(tables, "table")) would add it on average$(causal and "." or less) */
static void $(helper)_near(const float *restrict q, const float *restrict key, size_t key_step,
    const float *restrict value, size_t value_step, size_t count,
    $(causal and "" or "const uint16_t *restrict q_code, size_t code_step, const uint16_t *restrict code, ")float *restrict y)
{
    float cosine[32], weight[32];
//$ if not causal then
    uint16_t agree[32]; /* tables in which codes do: `code` has as many behind its last */
    const uint16_t none = (uint16_t) $hidden(0.0f); /* else its loop is a call of memset */
//$ end

    for (size_t from = 0, some; from < count; from += some) {
        some = count - from < 32 ? count - from : 32;
//$ if not causal then
        for (size_t n = 0; n < 32; ++n)
            agree[n] = none;
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
        for (size_t n = 0; n < some; n += $(lanes)) {
            const float *own0 = key + (from + n) * key_step;
//$ for lane = 1, lanes - 1 do
            const float *own$(lane) = own$(lane - 1) + (n + $(lane) < some ? key_step : 0);
//$ end
//$ local sums = {}
//$ for lane = 0, lanes - 1 do
//$ sums[lane + 1] = "sum" .. lane
            $(isa.vector) sum$(lane) = $(isa.zero());
//$ end

//$ over_row("            ", width, function(i, at, load)
$(i)const $(isa.vector) x = $(load("q", at));
//$ for lane = 0, lanes - 1 do
$(i)sum$(lane) = $(isa.fma("x", load("own" .. lane, at), "sum" .. lane));
//$ end
//$ end, { block = true })
//$ local code, columns = isa.transpose(sums)
//$ for _, one in ipairs(code) do
            const $(isa.vector) $(one.name) = $(one.value);
//$ end
//$ while #columns > 1 do
//$     local halves = {}
//$     for n = 1, #columns // 2 do halves[n] = isa.add(columns[2 * n - 1], columns[2 * n]) end
//$     columns = halves
//$ end
            $(isa.store_unaligned("cosine", "n", isa.mul(columns[1], isa.broadcast(chance.inverse_width))));
        }
        for (size_t n = 0; n < some; n += $(lanes)) {
            const $(isa.vector) often = $(code_chance)($(isa.load_unaligned("cosine", "n")));
//$ local of_all = isa.broadcast(chance.tables)
//$ local left = causal and isa.mul("often", of_all) or isa.fma("often", of_all, isa.load_unaligned("weight", "n"))
            $(isa.store_unaligned("weight", "n", left));
        }
//$ local whole = width // lanes * lanes
//$ local together = whole >= 8 * lanes and isa.registers >= 16 and 8 or 4 -- vectors
//$ local several = whole // (together * lanes) * together * lanes
//$ local function mix(i, at, vectors, load, store)
//$     for n = 0, vectors - 1 do
$(i)$(isa.vector) sum$(n) = $(load("y", sum(at, n * lanes)));
//$     end
$(i)for (size_t n = 0; n < some; ++n) {
$(i)    const $(isa.vector) w = $(isa.broadcast("weight[n]"));
$(i)    const float *own = value + (from + n) * value_step;
//$     for n = 0, vectors - 1 do
$(i)    sum$(n) = $(isa.fma("w", load("own", sum(at, n * lanes)), "sum" .. n));
//$     end
$(i)}
//$     for n = 0, vectors - 1 do
$(i)$(store("y", sum(at, n * lanes), "sum" .. n));
//$     end
//$ end
//$ loop("        ", "i", 0, several, together * lanes, function(i, at)
//$     mix(i, at, together, isa.load_unaligned, isa.store_unaligned)
//$ end, { block = true })
//$ loop("        ", "i", several, whole, lanes, function(i, at)
//$     mix(i, at, 1, isa.load_unaligned, isa.store_unaligned)
//$ end, { block = true })
//$ if whole < width then
        {
//$ mix("            ", whole, 1, function(base, at) return isa.load_partial(base, at, width - whole) end,
//$     function(base, at, value) return isa.store_partial(base, at, width - whole, value) end)
        }
//$ end
    }
}
//$ end
//$ if short then
$(include("templates/model/blocks/short_tables.c"))
//$ end
//$ local codes_of = tables .. " * tokens"
//$ -- The loops over tokens and the heads of q of a group, whose own q, codes and y are `own`, `code` and `out`.
//$ local row = group > 1
//$ local function at(name, step, of_row) return name .. " + token * " .. step .. (row and " + row * " .. of_row or "") end
//$ local function each(body)
    for (size_t token = 0; token < tokens; ++token)$(row and "" or " {")
//$ if row then
        for (size_t row = 0; row < $(group); ++row) {
//$ end
//$ local i = row and "            " or "        "
$(i)float *out = $(at("y", "y_step", width));
//$ body(i)
//$ if row then
        }
//$ else
    }
//$ end
//$ end
//$ local q_code = row and "q_code + row * " .. codes_of .. " + token" or "q_code + token"
//$ -- Of `together` tables, from number `table` on, whose rows lie from `rows` on: the row of each that `code` prints, or
//$ -- its number.
//$ local table_step = "(" .. hash.rows .. " * " .. pitch .. ")"
//$ local over_together = hash.together > 1 and "table / " .. hash.together or "table"
//$ local function table_at(n) return n > 0 and "(table + " .. n .. ")" or "table" end
//$ local function rows_of(i, const, name, code)
//$ for n = 0, hash.together - 1 do
//$ if short then
$(i)const size_t $(name)$(n) = $(n > 0 and n * hash.rows .. " + " or "")(size_t) $(code(n));
//$ else
$(i)$(const)float *$(name)$(n) = rows + $(n > 0 and times(n, table_step) .. " + " or "")(size_t) $(code(n)) * $(pitch);
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
//$ local function clear(where)
        for (size_t i = 0; $(where)i < $(hash.together) * $(table_step); ++i)
            rows[i] = $(short and "none" or "zero");
//$ if short and not causal then
        unit = $(helper)_unit(peak, unit, rows);
//$ end
//$ end
//$ local function insert(i)
//$ if short then
//$ if causal then
$(i)unit = $(helper)_unit($(helper)_peak(value, 0, 1), unit, rows);
//$ end
$(i)unit = $(helper)_insert(value, $(all("into")), unit, rows);
//$ return
//$ end
//$ over_row(i, width, function(i, at, load, store)
$(i)const $(isa.vector) x = $(load("value", at));
//$ for n = 0, hash.together - 1 do
$(i)$(store("into" .. n, at, isa.add(load("into" .. n, at), "x")));
//$ end
//$ end, { block = true })
//$ end
//$ local function look_up(i)
//$ if row then
$(i)for (size_t row = 0; row < $(group); ++row) {
//$ end
//$ local inner = row and i .. "    " or i
$(inner)float *out = $(at("y", "y_step", width));
//$ local of_row = row and " + row * " .. codes_of or ""
//$ rows_of(inner, "const ", "found", function(n) return "q_code[" .. table_at(n) .. " * tokens" .. of_row .. " + token]" end)

//$ if short then
$(inner)$(helper)_look_up(rows, $(all("found")), unit, out);
//$ else
//$ over_row(inner, width, function(i, at, load, store)
//$ local total = load("out", at)
//$ for n = 0, hash.together - 1 do total = isa.add(total, load("found" .. n, at)) end
$(i)$(store("out", at, total));
//$ end)
//$ end
//$ if row then
$(i)}
//$ end
//$ end

/* Attention of a head of k and v and $(group > 1 and "the " .. group .. " heads" or "the head") of q that it serves, by tables
   (YOSO, arXiv 2111.09714), for some tokens$((causal or window > 0) and " from position `first` on" or "").
   q        [tokens], q_step apart, of $(plural(group, "head"))
   q_code   $(group > 1 and "[" .. group .. "]" or "")[$(tables)][tokens]
//$ if causal then
   k, v     [tokens] of a head
   k_code   [$(tables)][tokens]
//$ if window > 0 then
   keys     [$(window)][$(width)] of the last $(plural(window, "token")) before them, a ring, and likewise
   values   [$(window)][$(shape.cache.pitch)]
   codes    [$(tables)][$(window)]
//$ end
   tables   [$(tables)][$(hash.rows)][$(shape.cache.pitch)]: sums of the values of all tokens before
            $(window > 0 and "these" or "them")$(short and ", in units" or ""); cleared where first is 0
//$ if short then
   units    [$(tables // hash.together)]: of $(plural(hash.together, "table")) each
//$ end
//$ else
//$ if window > 0 then
   keys     [end][$(width)] of the sequence
//$ end
   values   [end][$(shape.cache.pitch)] of the sequence
   codes    [$(tables)][$(code_pitch)] of its keys
   rows     [$(hash.together)][$(hash.rows)][$(shape.cache.pitch)]: $(plural(hash.together, "table")) at a time, overwritten
//$ end
   y        [tokens], y_step apart. Cannot fail. */
void $(symbol)($(attention_parameters))
{
    const float zero = $hidden(0.0f); /* else its loops are calls of memset */

//$ each(function(i)
//$ if window > 0 then
$(i)const float *own = $(at("q", "q_step", width));
//$ if causal then
$(i)const size_t here = token + 1 < $(window) ? token + 1 : $(window);
$(i)const size_t left = $(window) - here < first ? $(window) - here : first, slot = (first - left) % $(window);
$(i)const size_t part = left < $(window) - slot ? left : $(window) - slot;
//$ else
$(i)const size_t position = first + token, low = position < $(window) ? 0 : position - $(window - 1);
$(i)const size_t high = position + $(window) < end ? position + $(window) : end;
//$ end
//$ end

//$ over_row(i, width, function(i, at, load, store)
$(i)$(store("out", at, isa.broadcast("zero")));
//$ end)
//$ if window > 0 and causal then
$(i)$(helper)_near(own, k + (token + 1 - here) * k_step, k_step, v + (token + 1 - here) * v_step, v_step, here, out);
$(i)$(helper)_near(own, keys + slot * $(width), $(width), values + slot * $(pitch), $(pitch), part, out);
$(i)$(helper)_near(own, keys, $(width), values, $(pitch), left - part, out);
//$ elseif window > 0 then
$(i)$(helper)_near(own, keys + low * $(width), $(width), values + low * $(pitch), $(pitch), high - low, $(q_code), tokens,
$(i)    codes + low, out);
//$ end
//$ end)

//$ if short then
    const int16_t none = (int16_t) zero;
//$ if not causal then
    const float peak = $(helper)_peak(values, $(pitch), end);
//$ end

//$ end
    for (size_t table = 0; table < $(tables); table += $(hash.together)) {
//$ if causal then
        $(shape.cache.row.storage) *rows = tables + table * $(table_step);
//$ if short then
        float unit = first > 0 ? units[$(over_together)] : 0.0f;
//$ end

//$ clear("first == 0 && ")
        for (size_t token = 0; token < tokens; ++token) {
//$ if window > 0 then
            if (first + token >= $(window)) { /* one leaves the window */
                const size_t slot = (first + token) % $(window);
                const size_t step = token < $(window) ? $(window) : tokens;
                const uint16_t *own = token < $(window) ? codes + slot : k_code + token - $(window);
                const uint16_t *code = own + table * step;
                const float *value = token < $(window) ? values + slot * $(pitch) : v + (token - $(window)) * v_step;
//$ rows_of("                ", "", "into", function(n) return n > 0 and "code[" .. times(n, "step") .. "]" or "code[0]" end)

//$ insert("                ")
            }
//$ else
            const float *value = v + token * v_step;
//$ rows_of("            ", "", "into", function(n) return "k_code[" .. table_at(n) .. " * tokens + token]" end)

//$ insert("            ")
//$ end
//$ look_up("            ")
        }
//$ if short then
        units[$(over_together)] = unit;
//$ end
//$ else
//$ if short then
        float unit = 0.0f;

//$ end
//$ clear("")
        for (size_t position = 0; position < end; ++position) {
            const float *value = values + position * $(pitch);
//$ rows_of("            ", "", "into", function(n) return "codes[" .. table_at(n) .. " * " .. code_pitch .. " + position]" end)

//$ insert("            ")
        }
        for (size_t token = 0; token < tokens; ++token) {
//$ look_up("            ")
        }
//$ end
    }
//$ if causal and window > 0 then
    for (size_t token = tokens < $(window) ? 0 : tokens - $(window); token < tokens; ++token) {
        const size_t slot = (first + token) % $(window);
        const float one = $hidden(1.0f); /* else its loops are calls of memcpy */
        const float *from_k = k + token * k_step, *from_v = v + token * v_step;
        float *key = keys + slot * $(width), *value = values + slot * $(pitch);

//$ for _, pair in ipairs { { "key", "from_k" }, { "value", "from_v" } } do
//$ over_row("        ", width, function(i, at, load, store)
$(i)$(store(pair[1], at, isa.mul(isa.broadcast("one"), load(pair[2], at))));
//$ end)
//$ end
        for (size_t table = 0; table < $(tables); ++table)
            codes[table * $(window) + slot] = k_code[table * tokens + token];
    }
//$ end
    /* y / sqrt(|y|^2 + $(chance.eps_text)^2), of $(tables) times y */
//$ each(function(i)
$(i)$(isa.vector) square = $(isa.zero());

//$ over_row(i, width, function(i, at, load)
$(i)square = $(isa.fma(load("out", at), load("out", at), "square"));
//$ end)
$(i)const float length = $(sum_of_lanes("square")) + $(chance.least);
$(i)const $(isa.vector) factor = $(isa.reciprocal_root(isa.broadcast("length")));
//$ over_row(i, width, function(i, at, load, store)
$(i)$(store("out", at, isa.mul("factor", load("out", at))));
//$ end)
//$ end)
}
