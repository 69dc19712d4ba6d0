/* Writes on a microcontroller: reads the beginning of a text, a line, and goes on with it by what tiny_writer makes of it, to the end of
   the paragraph's entry or of the context. Then it says how many tokens these were, and how many clocks one took.
   Compiled with -DSEED=1 and -DTEMPERATURE=0.8f, or others, it draws the same tokens as

       lookupc generate tiny_writer.lua --weights tiny_writer.safetensors --type i8 --cache i8 --seed 1 --temperature 0.8 "the line"

   To take it to a board of your own, write the functions of board.h for it. */
#include "tests/firmware/boards/board.h"
#include "tiny_writer.h"

#ifndef SEED
#define SEED 1
#endif
#ifndef TEMPERATURE
#define TEMPERATURE 0.8f
#endif
#ifndef TOKENS
#define TOKENS TINY_WRITER_CONTEXT
#endif

enum { LINE_BYTES = 72 };

/* The tokenizer and the model work in it, one after the other. */
#define TOKENIZE_BYTES TINY_WRITER_TOKENIZE_SCRATCH(LINE_BYTES)
#define SCRATCH_BYTES (TOKENIZE_BYTES > TINY_WRITER_SCRATCH_BYTES ? TOKENIZE_BYTES : TINY_WRITER_SCRATCH_BYTES)

unsigned char board_stack[BOARD_STACK_BYTES] __attribute__((aligned(64)));
static unsigned char state[TINY_WRITER_STATE_BYTES] __attribute__((aligned(TINY_WRITER_ALIGN)));
static unsigned char scratch[SCRATCH_BYTES] __attribute__((aligned(TINY_WRITER_ALIGN)));
static float logits[TINY_WRITER_D_OUT];
static int32_t ids[LINE_BYTES];
static char line[LINE_BYTES];
static tiny_writer_weights weights;
static uint64_t random_state;

/* 31 random bits. Source: splitmix64 of Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014). */
static uint32_t random_bits(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 33);
}

/* A number from 0 up to 1: the upper bits of that which lookupc draws. */
static float random_number(void)
{
    const float number = (float)(random_bits() >> 7) * 0x1p-24f;
    (void)random_bits(); /* its lower bits */
    return number;
}

/* e^x for x <= 0, with a relative error of 2e-7: a power of two, and the series of the rest of the exponent. */
static float exponential(float x)
{
    if (x < -80.0f)
        return 0.0f;
    const int power = (int)(x * 1.44269504f - 0.5f);
    const float rest = (x - (float)power * 0.693359375f) + (float)power * 2.12194440e-4f;
    float sum = 1.0f, term = 1.0f;
    for (int i = 1; i < 8; ++i) {
        term *= rest / (float)i;
        sum += term;
    }
    const union {
        uint32_t bits;
        float value;
    } scale = {(uint32_t)(power + 127) << 23};
    return sum * scale.value;
}

/* An id, drawn from softmax(logits / temperature); logits are overwritten. */
static int32_t draw(void)
{
    float most = logits[0], all = 0.0f, sum = 0.0f;
    for (int32_t id = 1; id < TINY_WRITER_VOCAB; ++id)
        most = logits[id] > most ? logits[id] : most;
    for (int32_t id = 0; id < TINY_WRITER_VOCAB; ++id) {
        logits[id] = exponential((logits[id] - most) / TEMPERATURE);
        all += logits[id];
    }
    const float wanted = random_number() * all;
    for (int32_t id = 0; id + 1 < TINY_WRITER_VOCAB; ++id) {
        sum += logits[id];
        if (wanted < sum)
            return id;
    }
    return TINY_WRITER_VOCAB - 1;
}

/* The bytes of standard input up to the end of a line. */
static size_t read_line(void)
{
    size_t bytes = 0;
    while (bytes < LINE_BYTES && board_read(line + bytes, 1) == 1 && line[bytes] != '\n')
        ++bytes;
    return bytes;
}

static void write_bytes(const char *bytes, size_t count)
{
    char text[2] = {0, 0};
    for (size_t i = 0; i < count; ++i) {
        text[0] = bytes[i];
        board_write(text);
    }
}

static void write_number(uint32_t number)
{
    char digits[10];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    write_bytes(digits + at, sizeof digits - at);
}

/* Writes the text of an id; of an empty line, which ends an entry, nothing. Returns 0 where the entry ends. */
static int write_id(int32_t id)
{
    static int line_feeds = 0;
    size_t count = 0;
    const char *text = tiny_writer_text_of(&weights, id, &count);
    for (size_t i = 0; i < count; ++i) {
        if (text[i] == '\n') {
            if (++line_feeds == 2)
                return 0;
        } else {
            if (line_feeds == 1)
                write_bytes("\n", 1);
            line_feeds = 0;
            write_bytes(text + i, 1);
        }
    }
    return count > 0; /* an id without a text ends it, too */
}

void run(void)
{
    if (tiny_writer_bind_linked(&weights) != TINY_WRITER_OK) {
        board_write("the weights are damaged\n");
        board_exit(1);
    }
    random_state = SEED;
    const size_t bytes = read_line();
    const ptrdiff_t given = tiny_writer_tokenize(&weights, line, bytes, ids, sizeof ids / sizeof *ids, scratch, sizeof scratch);
    if (given <= 0) {
        board_write("the first line is empty\n");
        board_exit(1);
    }
    write_bytes(line, bytes);
    tiny_writer_start(state);
    int status = tiny_writer_prefill(&weights, state, ids, (size_t)given, logits, scratch);
    uint32_t tokens = 0, steps = 0;
    uint64_t clocks = 0;
    while (status == TINY_WRITER_OK && tokens++ < TOKENS) {
        const int32_t id = draw();
        if (!write_id(id) || tokens == TOKENS || tiny_writer_position(state) == TINY_WRITER_CONTEXT)
            break;
        const uint32_t start = board_clocks();
        status = tiny_writer_step(&weights, state, id, logits, scratch);
        clocks += (board_clocks() - start) & 0xffffff;
        ++steps;
    }
    board_write("\n");
    write_number(tokens);
    board_write(" tokens, ");
    write_number(steps ? (uint32_t)(clocks / steps) : 0);
    board_write(" clocks each\n");
    board_exit(status != TINY_WRITER_OK);
}
