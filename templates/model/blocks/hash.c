//$ takes isa, lanes, helper, hash
//$ -- Codes of heads of q and k, which attention by tables looks up.
//$ local wide = hash.padded * lanes
//$ local add, sub = isa.add, isa.sub
//$ local whole = shape.width // lanes * lanes
//$ local full = shape.width == hash.padded and #hash.stages > 0 -- the first butterflies read heads
//$ local transpose = lanes > 1 and whole > 0 and once("templates/math/transpose.c", { step = lanes }) .. "_transpose"

/* Codes of the `heads` heads x, $(plural(lanes, "head")) at most, x_step apart, from the signs of the layer, [$(hash.rounds)][$(hash.padded)]: a head times signs,
   filled up with zeros, then its Hadamard transform. That of table t of head i goes to code[i * code_step + t * table_step]:
   of its $(plural(hash.tau, "bit")), which stand for outputs above 0, the first is the most significant; 0 and NaN count as bit 0.
   z  $(lanes > 1 and "[2]" or "")[$(hash.padded)][$(lanes)]: outputs$(lanes > 1 and ", then heads" or "") */
static void $(helper)_hash(const float *restrict signs, const float *restrict x, size_t x_step, size_t heads,
    uint16_t *restrict code, size_t code_step, size_t table_step, float *restrict z)
{
//$ if lanes > 1 then
    float *head = z + $(wide);
    const unsigned same = (unsigned) $hidden_integer(0); /* else a loop is a call of memcpy */
//$ else
    const float *head = x;
//$ end
//$ if lanes > 1 or shape.width < hash.padded then
    const float none = $hidden(0.0f); /* else its loop is a call of memset */
//$ end

//$ if lanes > 1 then
    if (heads == $(lanes)) {
//$ loop("i", 0, whole, lanes, function(at)
            $(transpose)($(sum("x", at)), x_step, $(sum("head", times(at, lanes))));
//$ end)
//$ if whole < shape.width then
        for (size_t i = $(whole); i < $(shape.width); ++i)
            for (size_t n = 0; n < $(lanes); ++n)
                head[i * $(lanes) + n] = x[n * x_step + i];
//$ end
    } else {
        for (size_t i = 0; i < $(shape.width); ++i)
            $(isa.store_unaligned("head", times("i", lanes), isa.broadcast("none")));
        for (size_t n = 0; n < heads; ++n)
            for (size_t i = 0; i < $(shape.width); ++i)
                head[i * $(lanes) + n] = x[n * x_step + i];
    }
//$ else
    (void) x_step; /* heads come one by one */
    (void) heads;
    (void) code_step;
//$ end
//$ loop("round", 0, hash.rounds, 1, function(round)
//$ local sign = times(round, hash.padded)
//$ local function signed(at) return isa.mul(isa.broadcast("signs[" .. sum(sign, at) .. "]"), isa.load_unaligned("head", times(at, lanes))) end
//$ if not full then
//$ loop("i", 0, shape.width, 1, function(at)
            $(isa.store_unaligned("z", times(at, lanes), signed(at)));
//$ end)
//$ loop("i", shape.width, hash.padded, 1, function(at)
            $(isa.store_unaligned("z", times(at, lanes), isa.broadcast("none")));
//$ end)
//$ end
//$ for stage, one in ipairs(hash.stages) do
//$ local ways, half = one.ways, one.half
        /* outputs $(half)$(ways > 2 and (ways > 4 and ", " or " and ") .. 2 * half or "")$(ways > 4 and " and " .. 4 * half or "") apart */
//$ loop("from", 0, hash.padded, ways * half, function(from)
//$ loop("i", 0, half, 1, function(at)
                float *at = $(sum("z", times(from, lanes), times(at, lanes)));
//$ for n = 0, ways - 1 do
                const $(isa.vector) a$(n) = $(full and stage == 1 and signed(sum(from, n)) or isa.load_unaligned("at", n * half * lanes));
//$ end
//$ local from_list, distance = "a", 1
//$ while 2 * distance < ways do
//$     local to_list = from_list == "a" and "b" or "c"
//$     for n = 0, ways - 1 do
//$         if n // distance % 2 == 0 then
                const $(isa.vector) $(to_list)$(n) = $(add(from_list .. n, from_list .. n + distance));
                const $(isa.vector) $(to_list)$(n + distance) = $(sub(from_list .. n, from_list .. n + distance));
//$         end
//$     end
//$     from_list, distance = to_list, 2 * distance
//$ end
//$ for n = 0, ways - 1 do
//$     local low = n % distance
            $(isa.store_unaligned("at", n * half * lanes, (n < distance and add or sub)(from_list .. low, from_list .. low + distance)));
//$ end
//$ end, { block = true })
//$ end, { block = true })
//$ end
        for (size_t table = $(times(round, hash.per_round)), n = 0; $(hash.tables % hash.per_round > 0 and "table < " .. hash.tables .. " && " or "")n < $(hash.per_round); ++table, ++n) {
            const float *bit = z + n * $(hash.tau * lanes);
            $(isa.index) bits = $(isa.index_zero());

//$ for bit = 0, hash.tau - 1 do
            bits = $(isa.index_or_if_positive("bits", isa.load_unaligned("bit", bit * lanes), tostring(1 << (hash.tau - 1 - bit))));
//$ end
//$ if lanes > 1 then
            if (heads == $(lanes) && code_step == 1) {
                $(isa.index_store("code", "table * table_step", "bits"));
            } else {
                uint16_t row[$(lanes)];
                $(isa.index_store("row", 0, "bits"));
                for (size_t i = 0; i < heads; ++i)
                    code[i * code_step + table * table_step] = (uint16_t) (row[i] | same);
            }
//$ else
            $(isa.index_store("code", "table * table_step", "bits"));
//$ end
        }
//$ end, { block = true })
}

//$ local some = lanes == 1 and "1" or "tokens - token < " .. lanes .. " ? tokens - token : " .. lanes
/* The same for a head of each of some tokens, x_step apart: code [$(hash.tables)][table_step] of tokens. */
static void $(helper)_hash_tokens(const float *restrict signs, const float *restrict x, size_t x_step, size_t tokens,
    uint16_t *restrict code, size_t table_step, float *restrict z)
{
    for (size_t token = 0; token < tokens; token += $(lanes))
        $(helper)_hash(signs, x + token * x_step, x_step, $(some), code + token, 1, table_step, z);
}

/* The same for all of `heads` heads of some tokens: code [heads][$(hash.tables)][tokens]. */
static void $(helper)_hash_heads(const float *restrict signs, const float *restrict x, size_t x_step, size_t heads,
    size_t tokens, uint16_t *restrict code, float *restrict z)
{
//$ if lanes > 1 then
    if (tokens < $(lanes)) {
        for (size_t token = 0; token < tokens; ++token)
            for (size_t head = 0; head < heads; head += $(lanes))
                $(helper)_hash(signs, x + token * x_step + head * $(shape.width), $(shape.width),
                    heads - head < $(lanes) ? heads - head : $(lanes), code + head * $(hash.tables) * tokens + token,
                    $(hash.tables) * tokens, tokens, z);
        return;
    }
//$ end
    for (size_t head = 0; head < heads; ++head)
        $(helper)_hash_tokens(signs, x + head * $(shape.width), x_step, tokens, code + head * $(hash.tables) * tokens, tokens, z);
}
