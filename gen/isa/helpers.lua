-- C functions that words of instruction sets call, by name: <model>_runtime.h has each that a bundle calls, once.
--
--   name       a word calls it as $name, which becomes <model>_name
--   includes   headers that its text needs, nil: none
--   guard      preprocessor condition for its instructions, nil: portable C
--   text       C lines
-- In the order of a file: after those that it calls. Here stands portable C; what only one instruction set can compile
-- is the field `helpers` of its file.
local helpers = {}

-- What keeps compilers from making library calls of loops.
local function hidden(name, type)
    return {
        name = name,
        text = ([[
/* The value, which compilers no longer know: a loop that stores it or computes with it does not become a call of
   memset, memcpy or memmove. */
static inline TYPE $NAME(TYPE value)
{
#if defined(__GNUC__)
    __asm__("" : "+m"(value));
#endif
    return value;
}]]):gsub("%u%u%u%u", { TYPE = type, NAME = name }),
    }
end

local portable = {
    hidden("hidden", "float"),
    hidden("hidden_integer", "int32_t"),
    {
        name = "float_bits",
        text = [[
typedef union { float value; uint32_t bits; } $float_bits;]],
    },
    {
        name = "minus_infinity",
        text = [[
/* The score of what a query does not see: no other is below it. */
static inline float $minus_infinity(void)
{
    $float_bits score;
    score.bits = 0xff800000u;
    return score.value;
}]],
    },
    -- Newton's iteration from the bit pattern of the exponent halved; three steps are exact to 2.2 ulp.
    {
        name = "reciprocal_root",
        text = [[
/* 1/sqrt(v) for a normal v > 0, within 2.2 ulp: Newton's iteration from a halved exponent. NaN for NaN and infinity. */
static inline float $reciprocal_root(float v)
{
    $float_bits start;
    start.value = v;
    start.bits = 0x5f375a86u - (start.bits >> 1);
    float root = start.value;
    for (int step = 0; step < 3; ++step)
        root = root * (1.5f - 0.5f * v * root * root);
    return root + 0.0f * v;
}]],
    },
    {
        name = "round_negative",
        text = [[
/* The integer nearest to v, -126 <= v <= 0. NaN stays NaN; a larger v gives 0, infinity NaN. */
static inline float $round_negative(float v)
{
    return v <= 0.0f ? (float) (int32_t) (v - 0.5f) : 0.0f * v;
}]],
    },
    {
        name = "power_of_two",
        text = [[
/* 2^n for an integer n from -126 to 0; 1 for NaN. */
static inline float $power_of_two(float n)
{
    $float_bits power;
    power.bits = (uint32_t) (127 + (n <= 0.0f ? (int32_t) n : 0)) << 23;
    return power.value;
}]],
    },
    {
        name = "from_bf16",
        text = [[
/* The float whose upper half is `half`. */
static inline float $from_bf16(uint16_t half)
{
    $float_bits whole;
    whole.bits = (uint32_t) half << 16;
    return whole.value;
}]],
    },
    {
        name = "to_bf16",
        text = [[
/* The upper half of the nearest float that has no lower one, ties to even. NaN stays NaN. */
static inline uint32_t $to_bf16(float v)
{
    $float_bits whole;
    whole.value = v;
    return (whole.bits & 0x7fffffffu) <= 0x7f800000u ? (whole.bits + 0x7fffu + (whole.bits >> 16 & 1u)) >> 16 : 0x7fc0u;
}]],
    },
    {
        name = "from_f16",
        text = [[
/* IEEE half precision, finite: sign, 5 bits of exponent, 10 of fraction. Exact. */
static inline float $from_f16(uint16_t half)
{
    const uint32_t magnitude = half & 0x7fffu;
    $float_bits whole;
    if (magnitude < 0x0400u) /* 0 and subnormal: units of 2^-24 */
        whole.value = (float) magnitude * 5.9604644775390625e-8f;
    else
        whole.bits = (magnitude << 13) + (112u << 23);
    whole.bits |= (uint32_t) (half & 0x8000u) << 16;
    return whole.value;
}]],
    },
    {
        name = "from_e4m3",
        text = [[
/* 1/256 of an fp8 number, finite: sign, 4 bits of exponent with a bias of 7, 3 of fraction. Exact: half precision has
   one bit more of exponent, a bias of 15, and these three bits first in its fraction. */
static inline float $from_e4m3(uint8_t byte)
{
    return $from_f16((uint16_t) ((byte & 0x80u) << 8 | (byte & 0x7fu) << 7));
}]],
    },
    {
        name = "from_i4",
        text = [[
/* Element `element` of integers from -8 to 7, two to a byte, the first one in the low bits. */
static inline float $from_i4(const uint8_t *from, size_t element)
{
    return (float) ((int) ((from[element / 2] >> element % 2 * 4 & 15u) ^ 8u) - 8);
}]],
    },
    {
        name = "to_f16",
        text = [[
/* IEEE half precision of a finite number up to 65504, the nearest, ties to even. NaN stays NaN. */
static inline uint16_t $to_f16(float v)
{
    $float_bits whole;
    whole.value = v;
    const uint32_t sign = whole.bits >> 16 & 0x8000u, magnitude = whole.bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0x7e00u;
    whole.bits = magnitude;
    if (magnitude >= 0x38800000u) /* normal: a carry from the fraction ends in the exponent */
        return (uint16_t) (sign | (((magnitude + 0x0fffu + (magnitude >> 13 & 1u)) >> 13) - (112u << 10)));
    whole.value += 0.5f; /* 0 and subnormal: beside 0.5 units of 2^-24 are left */
    return (uint16_t) (sign | (whole.bits - 0x3f000000u));
}]],
    },
    {
        name = "to_i8",
        text = [[
/* The integer nearest to v, halves away from 0. 0 for NaN and for what int8_t cannot hold. */
static inline int8_t $to_i8(float v)
{
    return (int8_t) (v > -127.5f && v < 127.5f ? v + (v < 0.0f ? -0.5f : 0.5f) : 0.0f);
}]],
    },
    {
        name = "pair",
        text = [[
/* Two floats as 16-bit integers in one word, each the nearest: 1.5 2^23 leaves no place for fractions. Any word for
   NaN. */
static inline uint32_t $pair(float low, float high)
{
    $float_bits first, second;
    first.value = low + 12582912.0f;
    second.value = high + 12582912.0f;
    return (first.bits & 0xffffu) | second.bits << 16;
}]],
    },
    {
        name = "add_pairs",
        text = [[
/* sum + the products of both 16-bit integers of a and b, as two's complement. */
static inline uint32_t $add_pairs(uint32_t sum, uint32_t a, uint32_t b)
{
    const int32_t low = (int32_t) (int16_t) (uint16_t) a * (int16_t) (uint16_t) b;
    const int32_t high = (int32_t) (int16_t) (uint16_t) (a >> 16) * (int16_t) (uint16_t) (b >> 16);
    return sum + (uint32_t) low + (uint32_t) high;
}]],
    },
    {
        name = "quad",
        text = [[
/* Four floats as 8-bit integers in one word, the first in the low bits, each the nearest: 1.5 2^23 leaves no place for
   fractions. Any word for NaN. */
static inline uint32_t $quad(float v0, float v1, float v2, float v3)
{
    $float_bits first, second, third, fourth;
    first.value = v0 + 12582912.0f;
    second.value = v1 + 12582912.0f;
    third.value = v2 + 12582912.0f;
    fourth.value = v3 + 12582912.0f;
    return (first.bits & 0xffu) | (second.bits & 0xffu) << 8 | (third.bits & 0xffu) << 16 | fourth.bits << 24;
}]],
    },
    {
        name = "add_quads",
        text = [[
/* sum + the products of the four bytes of a, 0 to 255, and of b, as two's complement. */
static inline uint32_t $add_quads(uint32_t sum, uint32_t a, uint32_t b)
{
    for (unsigned shift = 0; shift < 32; shift += 8)
        sum += (uint32_t) ((int32_t) (a >> shift & 0xffu) * (int8_t) (uint8_t) (b >> shift));
    return sum;
}]],
    },
}

-- The lines of those of `set` that the C text `text` calls, and of those that these call, for where its instructions
-- are switched on: without guard.
function helpers.own_lines(text, set)
    local lines, rows = {}, set.helpers or {}
    for i = #rows, 1, -1 do
        if text:find("%$" .. rows[i].name .. "%f[^%w_]") then
            table.insert(lines, 1, "\n" .. rows[i].text .. "\n")
            text = text .. rows[i].text
        end
    end
    return table.concat(lines)
end

-- The lines of the helpers that the C texts in the list call, and of those that these call, for the instruction sets
-- `isas`; an empty line before each. Some headers cannot even be included where the helper's instructions are missing.
function helpers.lines(texts, isas)
    local rows, seen = { table.unpack(portable) }, {}
    for _, set in ipairs(isas) do
        for _, row in ipairs(set.helpers or {}) do -- some sets share theirs
            if not seen[row.name] then rows[#rows + 1] = row end
            seen[row.name] = true
        end
    end
    local called, includes, lines = {}, {}, {}
    local function look(text)
        for name in text:gmatch("%$(%l[%w_]*)") do
            called[name] = true
        end
    end
    for _, text in ipairs(texts) do
        look(text)
    end
    for i = #rows, 1, -1 do
        if called[rows[i].name] then look(rows[i].text) end
    end
    -- Adds a list of { text, guard, gap }, neighbours of one guard in one #if; an empty line before the first and those
    -- with a gap.
    local function add_guarded(list)
        local guard
        for i, item in ipairs(list) do
            if item.guard ~= guard and guard then lines[#lines + 1] = "#endif" end
            if i == 1 or item.gap then lines[#lines + 1] = "" end
            if item.guard ~= guard and item.guard then lines[#lines + 1] = "#if " .. item.guard end
            guard = item.guard
            for line in (item.text .. "\n"):gmatch "([^\n]*)\n" do
                lines[#lines + 1] = line
            end
        end
        if guard then lines[#lines + 1] = "#endif" end
    end
    local list = {} -- { text, guard }, then the helpers behind them
    for _, row in ipairs(rows) do
        for _, header in ipairs(called[row.name] and row.includes or {}) do
            local known, implied = includes[header], false
            if not known then
                known = { text = "#include " .. header, guards = {} }
                list[#list + 1], includes[header] = known, known
            end
            for _, guard in ipairs(known.guards) do
                implied = implied or (row.guard or ""):find(guard, 1, true) == 1
            end
            if not row.guard then known.always = true end
            if not implied then known.guards[#known.guards + 1] = row.guard end
        end
    end
    for _, header in ipairs(list) do
        local guards = header.always and {} or header.guards
        header.guard = guards[2] and "(" .. table.concat(guards, ") || (") .. ")" or guards[1]
    end
    local printed = {} -- one instruction set may have another one's
    for _, row in ipairs(rows) do
        if called[row.name] and not printed[row.name] then
            printed[row.name], list[#list + 1] = true, { text = row.text, guard = row.guard, gap = true }
        end
    end
    add_guarded(list)
    return lines
end

return helpers
