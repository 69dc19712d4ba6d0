/* What a program that tests the words of an instruction set shares with others: inputs, comparisons, and a report by board_write.
   tests/isa/words_test.lua writes the rest of it, with the inputs. */
#include "tests/firmware/boards/board.h"

#include <stddef.h>
#include <stdint.h>

#define ALIGNED __attribute__((aligned(64)))

typedef union {
    float value;
    uint32_t bits;
} number;

unsigned char board_stack[BOARD_STACK_BYTES] ALIGNED;
static unsigned wrong_count;

static void write_hex(uint32_t bits)
{
    char text[12] = "0x";
    for (unsigned digit = 0; digit < 8; ++digit)
        text[2 + digit] = "0123456789abcdef"[bits >> (28 - 4 * digit) & 15];
    text[10] = '\0';
    board_write(text);
}

/* Prints the first mistakes: which word, where, what it should be and what it is. */
__attribute__((noinline)) static void wrong(const char *word, unsigned at, uint32_t expected, uint32_t got)
{
    if (++wrong_count > 8)
        return;
    board_write("wrong ");
    board_write(word);
    board_write(" at ");
    write_hex(at);
    board_write(": expected ");
    write_hex(expected);
    board_write(", got ");
    write_hex(got);
    board_write("\n");
}

static inline int is_nan(uint32_t bits)
{
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

/* Whether two floats are at most `ulps` apart. Zeros and subnormal numbers are all alike: some CPUs flush them. */
static inline int is_near(uint32_t a, uint32_t b, uint32_t ulps)
{
    if (is_nan(a) || is_nan(b))
        return is_nan(a) && is_nan(b);
    if ((a & 0x7fffffffu) < 0x00800000u + ulps && (b & 0x7fffffffu) < 0x00800000u + ulps)
        return 1;
    return (a > b ? a - b : b - a) <= ulps;
}

static inline void expect_float(const char *word, unsigned at, float expected, float got, uint32_t ulps)
{
    const number a = {expected}, b = {got};
    if (!is_near(a.bits, b.bits, ulps))
        wrong(word, at, a.bits, b.bits);
}

/* a b + c, rounded once or twice. */
static inline void expect_fma(const char *word, unsigned at, float a, float b, float c, float got)
{
    const float product = a * b;
    const number twice = {product + c}, once = {(float)((double)a * b + c)}, found = {got};
    if (!is_near(twice.bits, found.bits, 0) && !is_near(once.bits, found.bits, 1))
        wrong(word, at, once.bits, found.bits);
}

static inline float part_of_pair(uint32_t words, unsigned part)
{
    const number whole = {.bits = words >> 16 * part << 16};
    return whole.value;
}

/* sum + the products of both parts of a and b, in bf16: within a few roundings of the largest term. */
static inline void expect_dot(const char *word, unsigned at, float sum, uint32_t a, uint32_t b, float got)
{
    const double first = (double)part_of_pair(a, 0) * part_of_pair(b, 0), second = (double)part_of_pair(a, 1) * part_of_pair(b, 1);
    const double exact = sum + first + second, error = got - exact;
    const double terms = (sum < 0 ? -sum : sum) + (first < 0 ? -first : first) + (second < 0 ? -second : second);
    const number nearest = {(float)exact}, found = {got};
    if (is_near(nearest.bits, found.bits, 0) || (error < 0 ? -error : error) <= terms * 0x1p-22)
        return;
    wrong(word, at, nearest.bits, found.bits);
}

static inline void expect_bits(const char *word, unsigned at, uint32_t expected, uint32_t got)
{
    if (expected != got)
        wrong(word, at, expected, got);
}
