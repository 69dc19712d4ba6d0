/* The checks of one compiled variant against the reference. */
#include "harness/verify/checks.h"

#include "gen/weights/random.h"
#include "harness/base/guard.h"
#include "harness/base/library.h"
#include "harness/base/memory.h"
#include "harness/verify/hash_tally.h"
#include "harness/verify/sample.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DETAIL_SIZE = 512,
    HEADER_BYTES = 64, /* of the blob */
    PAYLOAD_FLIPS = 8, /* bits of the blob's payload that are flipped to see whether the checksum covers them */
};

/* The functions of emitted code; `weights` is a pointer to the model's own struct <m>_weights. */
typedef int variant_bind(const void *blob, size_t bytes, void *weights);
typedef void variant_ffn(const void *weights, const float *x, float *y, size_t tokens, void *scratch);
typedef void variant_project(const void *weights, const float *x, size_t tokens, uint16_t *code, float *score, void *scratch);
typedef void variant_gather(const void *weights, const uint16_t *code, const float *score, float *y, size_t tokens, void *scratch);

typedef struct {
    const verify_job *job;
    const verify_report *report;
    struct {
        variant_bind *bind;
        variant_ffn *ffn, *any_ffn, *public_ffn;
        variant_project *project;
        variant_gather *gather;
    } functions;
    guarded blob;        /* right before a forbidden page, read-only */
    const void *weights; /* what bind filled, read-only */
    sample random, special;
    float *y;                  /* [tokens][d_out]: the variant's output for the random sample */
    char overrun[DETAIL_SIZE]; /* the first write outside the buffers, "" for none */
    size_t calls;
} context;

/* What a call takes, each between forbidden pages; zeros: it does not. code, score [ceil(tokens / tile)][slots][tile] */
typedef struct {
    guarded x, y, code, score, scratch;
} buffers;

enum { X = 1, Y = 2, HASHED = 4, ONE = 8 }; /* ONE: scratch for one token only */

/* The slots of a token, one for each row that it takes: [h][neighbours]. */
static size_t slots_of(const context *c)
{
    return c->job->variant.h * c->job->variant.neighbours;
}

/* Where code and score of a token's slot lie. */
static size_t place_of(const context *c, size_t token, size_t slot)
{
    const size_t tile = c->job->variant.tile;
    return (token / tile * slots_of(c) + slot) * tile + token % tile;
}

static void __attribute__((format(printf, 4, 5))) result(const context *c, const char *name, bool ok, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(c->report->stream, "%c%s\t", ok ? '+' : '-', name);
    vfprintf(c->report->stream, format, arguments);
    fputc('\n', c->report->stream);
    fflush(c->report->stream);
    va_end(arguments);
}

static _Noreturn void give_up(const context *c, const char *message)
{
    fprintf(c->report->stream, "!%s\n", message);
    fflush(c->report->stream);
    _exit(0);
}

static void number(const context *c, const char *key, double value)
{
    fprintf(c->report->stream, "=%s %.17g\n", key, value);
}

/* Notes what is about to be called. */
static void __attribute__((format(printf, 2, 3))) stage(const context *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->report->stage->words, VERIFY_STAGE_SIZE, format, arguments);
    va_end(arguments);
    atomic_fetch_add(&c->report->stage->count, 1);
}

static void *need(const context *c, void *memory)
{
    if (!memory)
        give_up(c, "verify: not enough memory");
    return memory;
}

static void *need_bytes(const context *c, size_t count, size_t size)
{
    return need(c, calloc(count + 1, size));
}

static guarded need_guarded(const context *c, size_t bytes, size_t alignment, guard_place place)
{
    guarded memory;
    if (!guard_create(&memory, bytes, alignment, place))
        give_up(c, "verify: not enough memory");
    return memory;
}

static void need_done(const context *c, bool done)
{
    if (!done)
        give_up(c, "verify: not enough memory, or a table with a value that is not finite");
}

/* Those of `which` for a call of so many tokens, x a copy of x[tokens][d], and scratch. */
static buffers make_buffers(const context *c, int which, const float *x, size_t tokens, guard_place place)
{
    const variant_description *v = &c->job->variant;
    const guard_place aligned = place == GUARD_UNALIGNED ? GUARD_END : place;
    const size_t scratch_bytes = which & ONE ? v->scratch_bytes_one : v->scratch_bytes;
    buffers b = {.scratch = need_guarded(c, scratch_bytes, MEMORY_ALIGNMENT, aligned)};
    if (which & X) {
        b.x = need_guarded(c, tokens * v->d * sizeof *x, sizeof *x, place);
        if (tokens > 0)
            memcpy(b.x.data, x, b.x.bytes);
        guard_read_only(&b.x);
    }
    if (which & Y)
        b.y = need_guarded(c, tokens * v->d_out * sizeof *x, sizeof *x, place);
    if (which & HASHED) {
        const size_t places = round_up(tokens, v->tile) * slots_of(c);
        b.code = need_guarded(c, places * sizeof(uint16_t), MEMORY_ALIGNMENT, aligned);
        b.score = need_guarded(c, places * sizeof(float), MEMORY_ALIGNMENT, aligned);
    }
    return b;
}

static float *floats(const guarded *memory)
{
    return (float *)(void *)memory->data;
}

/* After a call: copies y, if it is wanted, frees all and remembers whether somebody wrote around it. */
static void release(context *c, buffers *b, float *y)
{
    const struct {
        guarded *memory;
        const char *name;
    } all[] = {{&b->x, "x"}, {&b->y, "y"}, {&b->scratch, "scratch"}, {&b->code, "code"}, {&b->score, "score"}};
    ++c->calls;
    if (y && b->y.bytes > 0)
        memcpy(y, b->y.data, b->y.bytes);
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
        if (all[i].memory->pages && !guard_intact(all[i].memory) && c->overrun[0] == '\0')
            snprintf(c->overrun, sizeof c->overrun, "bytes around %s written by %s", all[i].name, c->report->stage->words);
        guard_free(all[i].memory);
    }
}

static const char *const place_words[] = {"buffers end at a forbidden page", "buffers start at a forbidden page",
                                          "x and y aligned to 4 bytes"};

static const char *ffn_name(const context *c, variant_ffn *ffn)
{
    const variant_description *v = &c->job->variant;
    return ffn == c->functions.ffn ? v->ffn : ffn == c->functions.any_ffn ? v->any_ffn : v->public_ffn;
}

/* y[tokens][d_out] <- the variant's output for x[tokens][d], every buffer between forbidden pages, scratch full of `fill`. */
static void run_ffn(context *c, variant_ffn *ffn, const float *x, size_t tokens, guard_place place, int fill, float *y)
{
    const int scratch = tokens == 1 && ffn != c->functions.ffn ? ONE : 0;
    buffers b = make_buffers(c, X | Y | scratch, x, tokens, place);
    memset(b.scratch.data, fill, b.scratch.bytes);
    stage(c, "%s, %zu tokens, %s", ffn_name(c, ffn), tokens, place_words[place]);
    ffn(c->weights, floats(&b.x), floats(&b.y), tokens, b.scratch.data);
    release(c, &b, y);
}

/* Whether the variant's rows have a factor; else its kernels neither write nor read scores. */
static bool is_weighted(const context *c)
{
    const verify_reference *reference = c->job->reference;
    return reference_scores[reference->model.score].share || reference->weights.row_scale;
}

/* code, score[tokens][slots] <- the variant's for x[tokens][d], tokens at most chunk. */
static void run_project(context *c, const float *x, size_t tokens, guard_place place, size_t *code, float *score)
{
    const size_t slots = slots_of(c);
    buffers b = make_buffers(c, X | HASHED, x, tokens, place);
    uint16_t *codes = (uint16_t *)(void *)b.code.data;
    stage(c, "%s, %zu tokens, %s", c->job->variant.project, tokens, place_words[place]);
    c->functions.project(c->weights, floats(&b.x), tokens, codes, floats(&b.score), b.scratch.data);
    for (size_t i = 0; i < tokens * slots; ++i) {
        code[i] = codes[place_of(c, i / slots, i % slots)];
        score[i] = is_weighted(c) ? floats(&b.score)[place_of(c, i / slots, i % slots)] : 1.0f;
    }
    release(c, &b, NULL);
}

/* y[tokens][d_out] <- the variant's gather of the codes and scores of the random sample, tokens at most chunk. */
static void run_gather(context *c, size_t tokens, guard_place place, float *y)
{
    const sample *s = &c->random;
    const size_t slots = slots_of(c);
    buffers b = make_buffers(c, Y | HASHED, NULL, tokens, place);
    uint16_t *codes = (uint16_t *)(void *)b.code.data;
    /* scores: NaN where there is no token, and where kernels read none; codes there: row 0 */
    memset(codes, 0, b.code.bytes);
    for (size_t i = 0; i < tokens * slots; ++i) {
        const size_t from = i % (s->tokens * slots), to = place_of(c, i / slots, i % slots);
        codes[to] = (uint16_t)s->code[from];
        if (is_weighted(c))
            floats(&b.score)[to] = (float)(s->score[from] * s->row_scale[from]);
    }
    guard_read_only(&b.code);
    guard_read_only(&b.score);
    stage(c, "%s, %zu tokens, %s", c->job->variant.gather, tokens, place_words[place]);
    c->functions.gather(c->weights, codes, floats(&b.score), floats(&b.y), tokens, b.scratch.data);
    release(c, &b, y);
}

enum { MOST_SIZES = 10 };

/* The token counts of the batches from `least` to `most`, none twice: [count] */
static size_t batch_sizes(const context *c, size_t least, size_t most, size_t sizes[MOST_SIZES])
{
    const verify_job *job = c->job;
    const size_t tile = job->variant.tile, chunk = job->variant.chunk, whole = job->variant.whole;
    const size_t more = whole > 0 ? whole + 1 : 0;
    const size_t wanted[MOST_SIZES] = {least, tile - 1, tile, tile + 1, job->tokens, 9 * tile + 1, chunk, chunk + tile + 1, whole, more};
    size_t count = 0;
    for (size_t i = 0; i < MOST_SIZES; ++i) {
        bool fresh = wanted[i] >= least && wanted[i] <= most;
        for (size_t j = 0; j < count; ++j)
            fresh = fresh && sizes[j] != wanted[i];
        if (fresh)
            sizes[count++] = wanted[i];
    }
    return count;
}

/* Multiplications of so many tokens. */
static double work_of(const context *c, size_t tokens)
{
    const reference_model *model = &c->job->reference->model;
    const double gathered = (double)(model->h * model->neighbours) * (double)model->d_out;
    return (double)tokens * ((double)reference_projection_count(model) + gathered);
}

/* Whether a call with so many tokens is worth the time. */
static bool affordable(const context *c, size_t tokens)
{
    return tokens <= c->job->tokens || work_of(c, tokens) <= c->job->work;
}

/* As many tokens as are worth the time: more than a chunk, more than gather whole rows, more than the tiles of a pass, or what the
   reference computes. */
static size_t most_tokens(const context *c)
{
    const verify_job *job = c->job;
    const size_t pass = 9 * job->variant.tile + 1, whole = job->variant.whole + 1;
    const size_t wanted[] = {job->variant.chunk + job->variant.tile + 1, whole > pass ? whole : pass, pass};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i)
        if (affordable(c, wanted[i]))
            return wanted[i];
    return job->tokens;
}

/* The sample's tokens over and over: x[tokens][d], to be freed. */
static float *repeated(const context *c, const sample *s, size_t tokens)
{
    const size_t d = s->model->d;
    float *x = need_bytes(c, tokens * d, sizeof *x);
    for (size_t token = 0; token < tokens; ++token)
        memcpy(x + token * d, s->x + token % s->tokens * d, d * sizeof *x);
    return x;
}

/* Compares code, score[tokens][slots] with the sample, which has taken the kernel's codes already. What equals `right`[tokens of the
   sample][slots], scores that were found right with the sample's codes, is right; NULL: none were. */
static void compare_hash(const context *c, const sample *s, const size_t *code, const float *score, size_t tokens, const float *right,
                         hash_tally *tally)
{
    const size_t slots = s->model->h * s->model->neighbours;
    bool *seen = need_bytes(c, (size_t)1 << s->model->tau, sizeof *seen);
    for (size_t i = 0; i < tokens; ++i, code += slots, score += slots) {
        const size_t token = i % s->tokens, at = token * slots;
        if (right && memcmp(code, s->code + at, slots * sizeof *code) == 0 && memcmp(score, right + at, slots * sizeof *score) == 0)
            tally->compared += slots;
        else
            hash_compare(s, token, code, score, seen, tally);
    }
    free(seen);
}

/* Runs project over all of the reference's sample, at most a chunk at a time, and makes *s the same with its codes. Returns its scores
   [tokens][slots], to be freed. */
static float *take_codes(context *c, const sample *reference, sample *s, hash_tally *tally)
{
    const variant_description *v = &c->job->variant;
    const size_t slots = slots_of(c);
    const size_t tokens = reference->tokens, count = tokens * slots;
    size_t *code = need_bytes(c, count, sizeof *code), *inside = need_bytes(c, count, sizeof *inside);
    float *score = need_bytes(c, count, sizeof *score);
    for (size_t first = 0; first < tokens; first += v->chunk)
        run_project(c, reference->x + first * v->d, smaller(v->chunk, tokens - first), GUARD_END, code + first * slots,
                    score + first * slots);
    /* Rows outside the tables cannot be looked up; such a code is reported as wrong. */
    for (size_t i = 0; i < count; ++i)
        inside[i] = code[i] & (((size_t)1 << v->tau) - 1);
    need_done(c, sample_with_codes(s, reference, inside));
    compare_hash(c, s, code, score, tokens, NULL, tally);
    free(code);
    free(inside);
    return score;
}

/* Codes and scores for every batch size and place of the buffers. */
static void check_project(context *c)
{
    const size_t slots = slots_of(c);
    hash_tally first = {0}, all = {0};
    size_t sizes[MOST_SIZES];
    sample reference = c->job->reference->random;
    reference.tokens = c->job->tokens;
    float *scores = take_codes(c, &reference, &c->random, &first);
    const float *right = first.wrong_codes + first.wrong_scores == 0 ? scores : NULL;
    all = first;
    const size_t count = batch_sizes(c, 1, smaller(most_tokens(c), c->job->variant.chunk), sizes);
    for (size_t i = 0; i < count; ++i) {
        const size_t tokens = sizes[i];
        float *x = repeated(c, &c->random, tokens);
        size_t *code = need_bytes(c, tokens * slots, sizeof *code);
        float *score = need_bytes(c, tokens * slots, sizeof *score);
        for (guard_place place = GUARD_END; place <= GUARD_UNALIGNED; ++place) {
            run_project(c, x, tokens, place, code, score);
            compare_hash(c, &c->random, code, score, tokens, right, &all);
        }
        free(x);
        free(code);
        free(score);
    }
    free(scores);
    if (all.wrong_codes > 0)
        result(c, "codes", false, "%zu wrong of %zu, the first: %s", all.wrong_codes, all.compared + all.wrong_codes, all.first_code);
    else
        result(c, "codes", true, "%zu codes of %zu tokens: %zu tables where rounding may take another, %zu codes differ", first.compared,
               c->random.tokens, first.within, first.flips);
    if (all.wrong_scores > 0)
        result(c, "scores", false, "%zu wrong, the first: %s", all.wrong_scores, all.first_score);
    else
        result(c, "scores", true, "worst relative error %.2g", all.worst_score);
    number(c, "codes", (double)first.compared);
    number(c, "codes_within_bound", (double)first.within);
}

static void report_tally(const context *c, const char *name, const sample_tally *tally)
{
    if (tally->wrong > 0)
        result(c, name, false, "%zu of %zu tokens wrong, the first: token %zu with relative error %.3g", tally->wrong, tally->compared,
               tally->first_wrong, tally->first_error);
    else if ((double)tally->moved > sample_moved_share(c->random.weights) * (double)tally->compared + 4.0)
        result(c, name, false, "%zu of %zu tokens off by more than %g of what rounding inputs explains, which is for those half-way",
               tally->moved, tally->compared, SAMPLE_SAME_ROUNDING);
    else
        result(c, name, true, "%zu tokens, worst relative error %.2g, %zu over %g but within rounding", tally->compared, tally->worst,
               tally->excused, SAMPLE_TOLERANCE);
}

static void check_gather(context *c)
{
    sample_tally tally = {0};
    size_t sizes[MOST_SIZES];
    const size_t count = batch_sizes(c, 1, smaller(most_tokens(c), c->job->variant.chunk), sizes);
    for (size_t i = 0; i < count; ++i) {
        float *y = need_bytes(c, sizes[i] * c->job->reference->model.d_out, sizeof *y);
        for (guard_place place = GUARD_END; place <= GUARD_UNALIGNED; ++place) {
            run_gather(c, sizes[i], place, y);
            need_done(c, sample_compare(&c->random, y, sizes[i], true, &tally));
        }
        free(y);
    }
    report_tally(c, "gather", &tally);
}

/* The whole, for every batch size from `least` to `most`, its buffers at `place`. */
static sample_tally compare_ffn(context *c, variant_ffn *ffn, size_t least, size_t most, guard_place place)
{
    sample_tally tally = {0};
    size_t sizes[MOST_SIZES];
    const size_t count = batch_sizes(c, least, most, sizes);
    for (size_t i = 0; i < count; ++i) {
        float *x = repeated(c, &c->random, sizes[i]), *y = need_bytes(c, sizes[i] * c->job->reference->model.d_out, sizeof *y);
        run_ffn(c, ffn, x, sizes[i], place, 0xFF, y);
        need_done(c, sample_compare(&c->random, y, sizes[i], false, &tally));
        free(x);
        free(y);
    }
    return tally;
}

/* What rounding the weights costs: codes and y against the reference with the checkpoint's own. Nothing is right or wrong here; the model's
   budget decides. */
static void measure_error(context *c)
{
    const sample *s = &c->random;
    const size_t m = s->model->neighbours, slots = s->model->h * m;
    sample exact = *verify_reference_exact(c->job->reference);
    sample_tally tally = {0};
    size_t flips = 0;
    bool *best = need_bytes(c, (size_t)1 << s->model->tau, sizeof *best);
    exact.tokens = s->tokens;
    for (size_t at = 0; at < s->tokens * slots; at += m) {
        for (size_t n = 0; n < m; ++n)
            best[exact.code[at + n]] = true;
        for (size_t n = 0; n < m; ++n)
            flips += best[s->code[at + n]] ? 0 : 1;
        for (size_t n = 0; n < m; ++n)
            best[exact.code[at + n]] = false;
    }
    free(best);
    need_done(c, sample_compare(&exact, c->y, s->tokens, false, &tally));
    number(c, "rel_err", tally.worst);
    number(c, "max_abs_err", tally.worst_absolute);
    number(c, "code_flips", (double)flips);
}

static void check_ffn(context *c)
{
    const size_t most = most_tokens(c), few = smaller(most, 9 * c->job->variant.tile + 1);
    const sample_tally tally = compare_ffn(c, c->functions.ffn, 1, most, GUARD_END);
    report_tally(c, "ffn", &tally);
    number(c, "kernel_rel_err", tally.worst);
    const sample_tally at_start = compare_ffn(c, c->functions.ffn, 1, few, GUARD_START);
    report_tally(c, "buffers at the start of a page", &at_start);
    const sample_tally unaligned = compare_ffn(c, c->functions.ffn, 1, few, GUARD_UNALIGNED);
    report_tally(c, "x and y aligned to 4 bytes", &unaligned);
    const verify_job *job = c->job;
    if (job->most == 0)
        return;
    const size_t last = smaller(job->most, few > job->least ? few : job->least);
    const sample_tally public = compare_ffn(c, c->functions.public_ffn, job->least, last, GUARD_END);
    report_tally(c, "public ffn", &public);
}

/* 0 tokens: nothing is read, nothing written; x and y are forbidden pages. */
static void check_nothing(context *c)
{
    float nothing = 0.0f;
    size_t code = 0;
    run_ffn(c, c->functions.ffn, NULL, 0, GUARD_END, 0xFF, &nothing);
    run_ffn(c, c->functions.public_ffn, NULL, 0, GUARD_END, 0xFF, &nothing);
    run_project(c, NULL, 0, GUARD_END, &code, &nothing);
    run_gather(c, 0, GUARD_END, &nothing);
    result(c, "0 tokens", true, "touch nothing");
}

static size_t output_bytes(const context *c, size_t tokens)
{
    return tokens * c->job->reference->model.d_out * sizeof(float);
}

static void check_repeatable(context *c)
{
    const size_t tokens = c->random.tokens, bytes = output_bytes(c, tokens);
    float *y = need_bytes(c, bytes, 1);
    run_ffn(c, c->functions.ffn, c->random.x, tokens, GUARD_END, 0xFF, y);
    result(c, "repeatable", memcmp(y, c->y, bytes) == 0, "%zu tokens again, byte for byte", tokens);
    run_ffn(c, c->functions.ffn, c->random.x, tokens, GUARD_END, 0x00, y);
    result(c, "scratch content", memcmp(y, c->y, bytes) == 0, "zeros or NaN in scratch give the same bytes");
    free(y);
}

/* How many of up to `most` calls with so many tokens are worth the time that one is. */
static size_t affordable_calls(const context *c, size_t tokens, size_t least, size_t most)
{
    const double calls = c->job->work / work_of(c, tokens);
    return calls >= (double)most ? most : calls > (double)least ? (size_t)calls : smaller(least, most);
}

/* A token alone, or in a batch turned round, gives the y that it gives in the batch. */
static void check_independent(context *c)
{
    const reference_model *model = &c->job->reference->model;
    const size_t tokens = c->random.tokens, d = model->d, d_out = model->d_out;
    float *x = need_bytes(c, tokens * d, sizeof *x), *turned = need_bytes(c, tokens * d_out, sizeof *turned);
    float *alone = need_bytes(c, d_out, sizeof *alone);
    for (size_t token = 0; token < tokens; ++token)
        memcpy(x + (tokens - 1 - token) * d, c->random.x + token * d, d * sizeof *x);
    run_ffn(c, c->functions.ffn, x, tokens, GUARD_END, 0xFF, turned);
    const size_t step = (tokens - 1) / affordable_calls(c, c->job->variant.tile, 8, tokens) + 1; /* a call costs a tile */
    size_t differ = 0, wrong = 0, first = 0;
    for (size_t token = 0; token < tokens; ++token) {
        const float *y = c->y + token * d_out, *others[2] = {turned + (tokens - 1 - token) * d_out, alone};
        const size_t count = token % step == 0 ? 2 : 1;
        if (count == 2)
            run_ffn(c, c->functions.ffn, c->random.x + token * d, 1, GUARD_END, 0xFF, alone);
        for (size_t i = 0; i < count; ++i) {
            double error = 0.0, power = 0.0;
            bool near = false;
            for (size_t o = 0; o < d_out; ++o) {
                error += ((double)others[i][o] - (double)y[o]) * ((double)others[i][o] - (double)y[o]);
                power += (double)y[o] * (double)y[o];
            }
            for (size_t k = 0; k < model->h; ++k)
                near = near || c->random.near[token * model->h + k];
            differ += memcmp(y, others[i], d_out * sizeof *y) != 0 ? 1 : 0;
            if (!(sqrt(error) <= 1e-6 * sqrt(power)) && !near && wrong++ == 0)
                first = token;
        }
    }
    if (wrong > 0)
        result(c, "independent", false, "%zu differences over 1e-6 from the same token in another batch, the first: token %zu", wrong,
               first);
    else
        result(c, "independent", true, "%zu tokens alone and %zu in another order: %zu not byte for byte the same", (tokens - 1) / step + 1,
               tokens, differ);
    free(x);
    free(turned);
    free(alone);
}

static void check_special(context *c)
{
    sample *s = &c->special;
    hash_tally hash = {0};
    sample_tally tally = {0};
    float *y = need_bytes(c, SAMPLE_SPECIAL * c->job->variant.d_out, sizeof *y);
    free(take_codes(c, &c->job->reference->special, s, &hash));
    run_ffn(c, c->functions.ffn, s->x, s->tokens, GUARD_END, 0xFF, y);
    need_done(c, sample_compare(s, y, s->tokens, false, &tally));
    if (hash.wrong_codes > 0)
        result(c, "ties and special inputs", false, "%zu codes wrong, the first: %s", hash.wrong_codes, hash.first_code);
    else if (hash.wrong_scores > 0)
        result(c, "ties and special inputs", false, "%zu scores wrong, the first: %s", hash.wrong_scores, hash.first_score);
    else if (tally.wrong > 0)
        result(c, "ties and special inputs", false, "wrong for %s, relative error %.3g", sample_special_name(tally.first_wrong),
               tally.first_error);
    else
        result(c, "ties and special inputs", true, "%zu codes, %zu within rounding differ", hash.compared, hash.flips);
    free(y);
}

/* Puts `value` into one token; returns "" or what went wrong. y: room for the batch. */
static const char *poison(context *c, size_t victim, float value, float *y)
{
    const variant_description *v = &c->job->variant;
    const sample *s = &c->random;
    float *element = &s->x[victim * v->d + v->d / 2];
    const float before = *element;
    const size_t row = v->d_out * sizeof *y, first = victim / v->chunk * v->chunk;
    const size_t tokens = smaller(v->chunk, s->tokens - first), slots = slots_of(c);
    size_t *code = need_bytes(c, tokens * slots, sizeof *code);
    float *score = need_bytes(c, tokens * slots, sizeof *score);
    const char *wrong = "";
    *element = value;
    run_project(c, s->x + first * v->d, tokens, GUARD_END, code, score);
    run_ffn(c, c->functions.ffn, s->x, s->tokens, GUARD_END, 0xFF, y);
    *element = before;
    for (size_t slot = 0; slot < slots; ++slot) {
        const size_t found = code[(victim - first) * slots + slot];
        if (found >> v->tau != 0)
            wrong = "its code is not below 2^tau";
        else if (isnan(value) && v->neighbours == 1 && found != 0)
            wrong = "a NaN gives a bit";
    }
    for (size_t o = 0; isnan(value) && o < v->d_out; ++o)
        if (!isnan(y[victim * v->d_out + o]) && reference_scores[s->model->score].share)
            wrong = "y of a token with a NaN is not all NaN";
    for (size_t token = 0; token < s->tokens; ++token)
        if (token != victim && memcmp(y + token * v->d_out, c->y + token * v->d_out, row) != 0)
            wrong = "another token's y changes";
    free(code);
    free(score);
    return wrong;
}

static void check_not_finite(context *c)
{
    const struct {
        const char *name;
        float value;
    } poisons[] = {{"NaN", NAN}, {"+Inf", INFINITY}, {"-Inf", -INFINITY}, {"the largest float", FLT_MAX}};
    const size_t tokens = c->random.tokens, victims[2] = {c->job->variant.tile / 2, tokens - 1};
    float *y = need_bytes(c, output_bytes(c, tokens), 1);
    for (size_t i = 0; i < sizeof poisons / sizeof *poisons; ++i) {
        const char *wrong = "";
        for (size_t j = 0; j < 2 && wrong[0] == '\0'; ++j)
            wrong = poison(c, victims[j], poisons[i].value, y);
        result(c, poisons[i].name, wrong[0] == '\0', "%s", wrong[0] ? wrong : "stays in its token");
    }
    free(y);
}

static bool in_place_allowed(const context *c)
{
    return c->job->reference->model.d == c->job->reference->model.d_out;
}

/* Whether y = x, where the model allows it, gives the bytes expected[tokens][d_out]. */
static bool same_in_place(context *c, variant_ffn *ffn, const float *x, size_t tokens, const float *expected)
{
    buffers b = make_buffers(c, Y, NULL, tokens, GUARD_END);
    float *y = floats(&b.y);
    memcpy(y, x, b.y.bytes);
    stage(c, "%s, %zu tokens, in place", ffn_name(c, ffn), tokens);
    ffn(c->weights, y, y, tokens, b.scratch.data);
    const bool same = memcmp(y, expected, b.y.bytes) == 0;
    release(c, &b, NULL);
    return same;
}

static void check_in_place(context *c)
{
    if (in_place_allowed(c))
        result(c, "in place", same_in_place(c, c->functions.ffn, c->random.x, c->random.tokens, c->y), "y = x gives the same bytes");
}

/* The ffn for any number of tokens, which may split them over threads, gives the bytes of the kernels that it takes. */
static void check_any(context *c)
{
    const verify_job *job = c->job;
    size_t calls = 0, wrong = 0;
    for (size_t i = 0; i < job->count && wrong == 0; ++i) {
        const size_t tokens = job->counts[i], bytes = output_bytes(c, tokens);
        if (!affordable(c, tokens))
            continue;
        float *x = repeated(c, &c->random, tokens), *expected = need_bytes(c, bytes, 1), *y = need_bytes(c, bytes, 1);
        run_ffn(c, c->functions.ffn, x, tokens, GUARD_END, 0xFF, expected);
        run_ffn(c, c->functions.any_ffn, x, tokens, GUARD_END, 0xFF, y);
        bool same = memcmp(y, expected, bytes) == 0;
        if (in_place_allowed(c))
            same = same_in_place(c, c->functions.any_ffn, x, tokens, expected) && same;
        wrong = same ? 0 : tokens;
        ++calls;
        free(x);
        free(expected);
        free(y);
    }
    if (wrong > 0)
        result(c, "any number of tokens", false, "%s, %zu tokens: not the bytes of %s", job->variant.any_ffn, wrong, job->variant.ffn);
    else
        result(c, "any number of tokens", true, "%zu numbers of tokens give the bytes of %s", calls, job->variant.ffn);
}

enum { THREAD_CALLS = 8 };

typedef struct {
    const context *context;
    void *scratch; /* its own */
    float *y;      /* its own */
    size_t calls;
    bool same;
} thread_work;

static void *call_in_thread(void *argument)
{
    thread_work *work = argument;
    const context *c = work->context;
    const size_t tokens = c->random.tokens;
    work->same = true;
    for (size_t i = 0; i < work->calls; ++i) {
        c->functions.ffn(c->weights, c->random.x, work->y, tokens, work->scratch);
        work->same = work->same && memcmp(work->y, c->y, output_bytes(c, tokens)) == 0;
    }
    return NULL;
}

static void check_threads(context *c)
{
    thread_work work[2];
    pthread_t threads[2];
    size_t started = 0;
    const size_t calls = affordable_calls(c, 2 * c->random.tokens, 2, THREAD_CALLS);
    stage(c, "%s in two threads", c->job->variant.ffn);
    for (size_t i = 0; i < 2; ++i) {
        work[i] = (thread_work){.context = c, .calls = calls, .scratch = need(c, aligned_memory(c->job->variant.scratch_bytes))};
        work[i].y = need_bytes(c, output_bytes(c, c->random.tokens), 1);
    }
    while (started < 2 && pthread_create(&threads[started], NULL, call_in_thread, &work[started]) == 0)
        ++started;
    for (size_t i = 0; i < started; ++i)
        pthread_join(threads[i], NULL);
    if (started < 2)
        give_up(c, "verify: cannot start a thread");
    c->calls += 2 * calls;
    result(c, "reentrant", work[0].same && work[1].same, "two threads with their own scratch give the same bytes");
    for (size_t i = 0; i < 2; ++i) {
        free(work[i].scratch);
        free(work[i].y);
    }
}

typedef struct {
    void *weights; /* room for the struct */
    size_t tried;
    char accepted[DETAIL_SIZE / 2]; /* the first damage that bind did not refuse */
} bind_trial;

static void __attribute__((format(printf, 5, 6)))
try_bind(context *c, bind_trial *trial, const void *blob, size_t bytes, const char *format, ...)
{
    char what[DETAIL_SIZE / 4];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    stage(c, "%s, %s", c->job->variant.bind, what);
    ++trial->tried;
    if (c->functions.bind(blob, bytes, trial->weights) == 0 && trial->accepted[0] == '\0')
        snprintf(trial->accepted, sizeof trial->accepted, "%s", what);
}

/* Blobs of fewer bytes, the shortest right before a forbidden page. */
static void try_truncated(context *c, bind_trial *trial, const unsigned char *blob, size_t bytes)
{
    const size_t sizes[] = {0, 1, 4, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 1, 2 * HEADER_BYTES};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] < bytes; ++i) {
        guarded part = need_guarded(c, sizes[i], MEMORY_ALIGNMENT, GUARD_END);
        if (sizes[i] > 0)
            memcpy(part.data, blob, sizes[i]);
        try_bind(c, trial, part.data, sizes[i], "the first %zu bytes of the blob", sizes[i]);
        guard_free(&part);
    }
    if (bytes > HEADER_BYTES) {
        try_bind(c, trial, blob, bytes / 2, "half of the blob");
        try_bind(c, trial, blob, bytes - HEADER_BYTES, "the blob without its last 64 bytes");
        try_bind(c, trial, blob, bytes - 1, "the blob without its last byte");
        try_bind(c, trial, blob, bytes + HEADER_BYTES, "a blob 64 bytes longer than it is");
    }
}

static void check_bind(context *c)
{
    const files_mapping *file = &c->job->reference->blob;
    const size_t bytes = file->bytes;
    bind_trial trial = {.weights = need(c, aligned_memory(c->job->variant.weights_struct_bytes))};
    random_state random = random_seed(c->job->reference->seed);
    unsigned char *memory = need(c, aligned_memory(bytes + 4));
    void *room = trial.weights;
    try_bind(c, &trial, NULL, bytes, "a null pointer");
    trial.weights = NULL;
    try_bind(c, &trial, c->blob.data, bytes, "a null pointer for its struct");
    trial.weights = room;
    try_truncated(c, &trial, c->blob.data, bytes);
    if (bytes > 0) {
        memcpy(memory + 4, file->data, bytes);
        try_bind(c, &trial, memory + 4, bytes, "a blob 4 bytes off its alignment");
        memmove(memory, memory + 4, bytes);
    }
    for (size_t i = 0; i < HEADER_BYTES + PAYLOAD_FLIPS && i < bytes; ++i) {
        const bool header = i < HEADER_BYTES;
        const size_t at = header ? i : HEADER_BYTES + random_bits(&random) % (bytes - HEADER_BYTES);
        const unsigned bit = random_bits(&random) % 8;
        memory[at] = (unsigned char)(memory[at] ^ 1u << bit);
        try_bind(c, &trial, memory, bytes, "bit %u of byte %zu of the blob flipped", bit, at);
        memory[at] = (unsigned char)(memory[at] ^ 1u << bit);
    }
    if (trial.accepted[0])
        result(c, "bind refuses", false, "%s accepts %s", c->job->variant.bind, trial.accepted);
    else
        result(c, "bind refuses", true, "%zu damaged blobs", trial.tried);
    free(memory);
    free(trial.weights);
}

/* Binds a copy of the blob that ends at a forbidden page, or in a quick job the blob itself; false when the kernel refuses it. */
static bool bind(context *c)
{
    const files_mapping *file = &c->job->reference->blob;
    if (!c->job->quick) {
        c->blob = need_guarded(c, file->bytes, MEMORY_ALIGNMENT, GUARD_END);
        if (file->bytes > 0)
            memcpy(c->blob.data, file->data, file->bytes);
        guard_read_only(&c->blob);
    }
    static guarded weights;
    weights = need_guarded(c, c->job->variant.weights_struct_bytes, MEMORY_ALIGNMENT, GUARD_END);
    stage(c, "%s", c->job->variant.bind);
    const int code = c->functions.bind(c->job->quick ? file->data : c->blob.data, file->bytes, weights.data);
    const bool intact = guard_intact(&weights);
    result(c, "bind", code == 0 && intact, code != 0 ? "code %d" : intact ? "accepts the blob" : "writes beyond its struct", code);
    guard_read_only(&weights);
    c->weights = weights.data;
    return code == 0;
}

/* Codes, scores and outputs of all tokens together and of the first one alone. */
static void check_quickly(context *c)
{
    const size_t sizes[2] = {c->job->tokens, 1};
    sample reference = c->job->reference->random;
    reference.tokens = c->job->tokens;
    hash_tally hash = {0};
    sample_tally tally = {0};
    free(take_codes(c, &reference, &c->random, &hash));
    result(c, "codes", hash.wrong_codes == 0, "%zu wrong %s", hash.wrong_codes, hash.first_code);
    result(c, "scores", hash.wrong_scores == 0, "%zu wrong %s", hash.wrong_scores, hash.first_score);
    for (size_t i = 0; i < 2; ++i) {
        float *y = need_bytes(c, output_bytes(c, sizes[i]), 1);
        run_ffn(c, c->functions.ffn, c->random.x, sizes[i], GUARD_END, 0xFF, y);
        need_done(c, sample_compare(&c->random, y, sizes[i], false, &tally));
        free(y);
    }
    report_tally(c, "ffn", &tally);
    result(c, "stays in its buffers", c->overrun[0] == '\0', "%s", c->overrun);
}

/* Finds the functions of the variant. False with one line. */
static bool find_functions(context *c, char *error, size_t error_size)
{
    const variant_description *v = &c->job->variant;
    const struct {
        const char *name;
        void *function;
    } all[] = {{v->bind, &c->functions.bind},       {v->ffn, &c->functions.ffn},
               {v->any_ffn, &c->functions.any_ffn}, {v->public_ffn, &c->functions.public_ffn},
               {v->project, &c->functions.project}, {v->gather, &c->functions.gather}};
    loaded_library own;
    bool good = library_open(&own, v->library, LIBRARY_STAYS, error, error_size);
    for (size_t i = 0; good && i < sizeof all / sizeof *all; ++i)
        good = library_find(&own, all[i].name, all[i].function, error, error_size);
    return good;
}

void verify_run(const verify_job *job, const verify_report *report)
{
    char error[DETAIL_SIZE];
    context c = {.job = job, .report = report};
    stage(&c, "opening %s", job->variant.library);
    if (!find_functions(&c, error, sizeof error))
        give_up(&c, error);
    const bool bound = bind(&c);
    if (bound && job->quick) {
        check_quickly(&c);
    } else if (bound) {
        check_project(&c);
        check_gather(&c);
        check_ffn(&c);
        c.y = need_bytes(&c, output_bytes(&c, c.random.tokens), 1);
        run_ffn(&c, c.functions.ffn, c.random.x, c.random.tokens, GUARD_END, 0xFF, c.y);
        measure_error(&c);
        check_nothing(&c);
        check_repeatable(&c);
        check_independent(&c);
        check_special(&c);
        check_not_finite(&c);
        check_in_place(&c);
        check_any(&c);
        check_threads(&c);
        if (!job->bind_known)
            check_bind(&c);
        result(&c, "stays in its buffers", c.overrun[0] == '\0', c.overrun[0] ? "%s" : "%s%zu calls between forbidden pages", c.overrun,
               c.calls);
        number(&c, "tokens", (double)c.random.tokens);
    }
    fputs(".\n", report->stream);
    fflush(report->stream);
}
