//$ takes isa, lanes, helper, chance
//$ -- The tokens near a query, which attention by tables weights as an average over all tables would.
//$ local hash, causal, width, tables = shape.lsh, shape.causal, shape.width, shape.lsh.tables
//$ local pitch, code_pitch = names.constant("VALUE_PITCH"), not causal and names.constant("CODE_PITCH")
//$ local code_chance = once("templates/math/code_chance.c", { tau = hash.tau }) .. "_code_chance_" .. hash.tau

//$ local codes = "q_code: of table t at " .. (tables > 1 and "t * code_step" or 0) .. "; code: [" .. tables .. "][" .. (code_pitch or "") .. "]."
//$ local less = ", less what tables add of them. " .. codes
/* y = y + the values of `count` tokens that lie beside each other, by the cosines of q and their keys: each as often as
   $(plural(tables, "table")) would add it on average$(causal and "." or less) */
//$ if causal then
static void $(helper)_near(const float *restrict q, const float *restrict key, size_t key_step,
    const float *restrict value, size_t value_step, size_t count, float *restrict y)
{
//$ else
static void $(helper)_near(const float *restrict q, const float *restrict key, const float *restrict value, size_t count,
    const uint16_t *restrict q_code, $(tables > 1 and "size_t code_step, " or "")const uint16_t *restrict code, float *restrict y)
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
