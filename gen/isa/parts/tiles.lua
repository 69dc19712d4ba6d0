-- The words of a matrix engine, AMX: eight tiles of 16 rows of 64 bytes, in registers that C has no names for.
--
-- Inline assembly, as compilers' own functions miss what it reads and writes: gcc 12 names 8 bytes of a configuration's
-- 64, and no memory of a load. CPUs without a matrix engine run the same words in portable C where LOOKUPC_TILES_IN_C
-- is defined, as the storage class of the arrays in their place, such as `static __thread`: products of bytes are the
-- same to the bit, those in bf16 nearly, as the engine takes subnormal numbers for 0 and adds in another order.

local expression = require "gen.isa.expression"

local at, call = expression.sum, expression.call

local text = [[
/* Tiles: eight arrays of 16 rows of 64 bytes, which a matrix engine multiplies, but 5 and 7, of products of fewer
   words: 16 rows of `words` words, and `words` rows. They are configured in each call and released at its end; no
   function that is called in between may use them. */
#if defined(LOOKUPC_TILES_IN_C)
#define $TILES LOOKUPC_TILES_IN_C
#elif !defined(__x86_64__)
#define $TILES static /* compiled, and chosen by nobody: no such CPU has them */
#endif
#if defined($TILES)
typedef union {
    uint8_t bytes[16][64];
    uint16_t halves[16][32];
    uint32_t integers[16][16];
    float floats[16][16];
} $tile;

typedef struct {
    $tile tile[8];
    size_t words;
} $tile_arrays;

static inline $tile_arrays *$tiles(void)
{
    $TILES $tile_arrays arrays;
    return &arrays;
}

/* Volatile: compilers would make library calls of these loops. */
static inline void $tile_zero(int tile)
{
    volatile uint8_t *to = $tiles()->tile[tile].bytes[0];
    for (size_t n = 0; n < 1024; ++n)
        to[n] = 0;
}

static inline void $tile_load(int tile, const volatile uint8_t *from, size_t step)
{
    const size_t words = $tiles()->words, rows = tile == 7 ? words : 16, bytes = tile == 5 ? 4 * words : 64;
    $tile_zero(tile);
    for (size_t row = 0; row < rows; ++row)
        for (size_t n = 0; n < bytes; ++n)
            $tiles()->tile[tile].bytes[row][n] = from[row * step + n];
}

static inline void $tile_store(int tile, volatile uint8_t *to, size_t step)
{
    for (size_t row = 0; row < 16; ++row)
        for (size_t n = 0; n < 64; ++n)
            to[row * step + n] = $tiles()->tile[tile].bytes[row][n];
}

static inline float $tile_bf16(uint16_t half)
{
    union { uint32_t bits; float value; } whole;
    whole.bits = (uint32_t) half << 16;
    return whole.value;
}

static inline int32_t $tile_byte(uint8_t byte, int is_signed)
{
    return is_signed ? (int8_t) byte : byte;
}

/* sums += a b: rows of a times columns of b, words of four bytes, those of a or of b signed, or of two numbers in
   bf16. */
static inline void $tile_dot(char kind, int sums, int a, int b)
{
    $tile *tile = $tiles()->tile;
    for (size_t row = 0; row < 16; ++row)
        for (size_t n = 0; n < 16; ++n) {
            for (size_t k = 0; k < 32 && kind == 'f'; ++k)
                tile[sums].floats[row][n] +=
                    $tile_bf16(tile[a].halves[row][k]) * $tile_bf16(tile[b].halves[k / 2][2 * n + k % 2]);
            for (size_t k = 0; k < 64 && kind != 'f'; ++k)
                tile[sums].integers[row][n] += (uint32_t) ($tile_byte(tile[a].bytes[row][k], kind == 'a')
                    * $tile_byte(tile[b].bytes[k / 4][4 * n + k % 4], kind == 'b'));
        }
}

#define $TILE_ZERO(tile) $tile_zero(tile)
#define $TILE_LOAD(tile, from, step) $tile_load(tile, (const volatile uint8_t *) (from), step)
#define $TILE_STORE(tile, to, step) $tile_store(tile, (volatile uint8_t *) (to), step)
#define $TILE_DOT_I8(sums, a, b) $tile_dot('a', sums, a, b)
#define $TILE_DOT_U8(sums, a, b) $tile_dot('b', sums, a, b)
#define $TILE_DOT_BF16(sums, a, b) $tile_dot('f', sums, a, b)
#else
/* In both dialects of assemblers: {that of AT&T|that of Intel}, which compilers have with -masm=intel. */
#define $TILE_ZERO(tile) __asm__ volatile("tilezero {%%tmm" #tile "|tmm" #tile "}" : : : "memory")
/* Rows of 64 bytes, `step` bytes apart. */
#define $TILE_LOAD(tile, from, step) \
    __asm__ volatile("tileloadd {(%0,%1,1), %%tmm" #tile "|tmm" #tile ", [%0+%1]}" \
                     : : "r"(from), "r"((size_t) (step)) : "memory")
#define $TILE_STORE(tile, to, step) \
    __asm__ volatile("tilestored {%%tmm" #tile ", (%0,%1,1)|[%0+%1], tmm" #tile "}" \
                     : : "r"(to), "r"((size_t) (step)) : "memory")
/* sums += a b: rows of a times columns of b, words of four bytes, those of a or of b signed, or of two numbers in
   bf16. */
#define $TILE_DOT(word, sums, a, b) \
    __asm__ volatile(word " {%%tmm" #b ", %%tmm" #a ", %%tmm" #sums "|tmm" #sums ", tmm" #a ", tmm" #b "}" \
                     : : : "memory")
#define $TILE_DOT_I8(sums, a, b) $TILE_DOT("tdpbsud", sums, a, b)
#define $TILE_DOT_U8(sums, a, b) $TILE_DOT("tdpbusd", sums, a, b)
#define $TILE_DOT_BF16(sums, a, b) $TILE_DOT("tdpbf16ps", sums, a, b)
#endif

static inline void $tile_configure(unsigned words)
{
#if defined($TILES)
    $tiles()->words = words;
#else
    const struct {
        uint8_t palette, start_row, zeros[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } all = { 1, 0, { 0 }, { 64, 64, 64, 64, 64, (uint16_t) (4 * words), 64, 64 },
        { 16, 16, 16, 16, 16, 16, 16, (uint8_t) words } };
    __asm__ volatile("ldtilecfg %0" : : "m"(all) : "memory");
#endif
}

static inline void $tile_release(void)
{
#if !defined($TILES)
    __asm__ volatile("tilerelease" : : : "memory");
#endif
}]]

-- Products of 16-bit numbers are four of their bytes, of which the upper ones have signs.
local of_halves = [[
/* sums += a b: rows of a times columns of b, words of four bytes, all of them $kind. */
#if defined($TILES)
static inline void $tile_dot_$kind(int sums, int a, int b)
{
    $tile *tile = $tiles()->tile;
    for (size_t row = 0; row < 16; ++row)
        for (size_t n = 0; n < 16; ++n)
            for (size_t k = 0; k < 64; ++k)
                tile[sums].integers[row][n] += (uint32_t) ($tile_byte(tile[a].bytes[row][k], $is_signed)
                    * $tile_byte(tile[b].bytes[k / 4][4 * n + k % 4], $is_signed));
}
#else
#define $tile_dot_$kind(sums, a, b) $TILE_DOT("$instruction", sums, a, b)
#endif]]

-- The instruction set `name`: `vectors`, one of x86-64, with what AMX needs of CPUs, compilers and programs, and the
-- words of tiles: of bytes, and where it serves the word tile_dot_bf16 also of such.
return function(name, vectors, word)
    local set, bf16 = {}, word == "tile_dot_bf16"
    for key, value in pairs(vectors) do
        set[key] = value
    end
    set.name, set.serves = name, { word }
    set.flags = { table.unpack(set.flags) }
    for _, extension in ipairs(bf16 and { "int8", "bf16" } or { "int8" }) do -- with what both need, -mamx-tile
        set.flags[#set.flags + 1] = "-mamx-" .. extension
    end
    local last = bf16 and "BF16" or "INT8" -- clang spelt it without a line before 15
    local guard = ("(defined(__AMX_%s__) || defined(__AMX%s__) || defined(LOOKUPC_TILES_IN_C))"):format(last, last)
    set.guard, set.condition = set.guard .. " && " .. guard, "defined(__x86_64__)"
    local cpu = { leaf7_edx = 1 << 24 | 1 << 25 | (bf16 and 1 << 22 or 0) }
    for key, bits in pairs(set.cpu) do
        cpu[key] = key == "xcr0" and bits | 1 << 17 | 1 << 18 or bits
    end
    set.cpu, set.always = cpu, { leaf7_ecx = 1 << 11 } -- VNNI
    set.l2_bytes = 2 << 20
    set.helpers = { table.unpack(set.helpers) }
    table.insert(set.helpers, { name = "tile_configure", guard = guard, text = text })

    for i, instruction in ipairs { "tdpbuud", "tdpbssd" } do
        local kind = i == 1 and "unsigned" or "signed"
        local values, dot = { kind = kind, instruction = instruction, is_signed = i - 1 }, "tile_dot_" .. kind
        local own = of_halves:gsub("%$([%l_]+)", values)
        set.helpers[#set.helpers + 1] = { name = dot, guard = guard, text = own }
        set[dot] = function(sums, a, b) return call("$" .. dot, sums, a, b) end
    end
    function set.tile_configure(words) return call("$tile_configure", words or 16) end
    function set.tile_release() return call "$tile_release" end
    function set.tile_zero(tile) return call("$TILE_ZERO", tile) end
    function set.tile_load(tile, base, offset, step) return call("$TILE_LOAD", tile, at(base, offset), step) end
    function set.tile_store(tile, base, offset, step) return call("$TILE_STORE", tile, at(base, offset), step) end
    function set.tile_dot_i8(sums, a, b) return call("$TILE_DOT_I8", sums, a, b) end
    function set.tile_dot_u8(sums, a, b) return call("$TILE_DOT_U8", sums, a, b) end
    local function both(a, b) return call("_mm512_or_si512", a, b) end
    local function masked(v, mask) return call("_mm512_and_si512", v, call("_mm512_set1_epi32", mask)) end
    function set.upper_bytes(a, b)
        return both(call("_mm512_srli_epi16", a, 8), masked(b, "(int) 0xff00ff00u"))
    end
    function set.lower_bytes(a, b)
        return both(masked(a, "0x00ff00ff"), call("_mm512_slli_epi16", b, 8))
    end
    function set.sum_of_bytes(upper, middle, lower)
        local function raised(v) return call("_mm512_slli_epi32", v, 8) end
        return set.index_add(raised(set.index_add(raised(upper), middle)), lower)
    end
    if bf16 then
        function set.tile_dot_bf16(sums, a, b) return call("$TILE_DOT_BF16", sums, a, b) end
    end
    return set
end
