/* Calls an emitted tokenizer, compiled with -DNAME=…: with random bytes, with too little room, with long words. The memory that it is given
   ends where it says, so that sanitizers see every byte beyond. driver BLOB SEED ROUNDS | driver BLOB FILE (prints MB/s) */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)
#define FUNCTION(word) JOIN(NAME, word)

#include HEADER

static uint64_t state;

static unsigned next(unsigned below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static void require(int good, const char *what)
{
    if (good)
        return;
    printf("wrong: %s\n", what);
    exit(1);
}

/* A copy of text[bytes] that ends with its memory. */
static char *tight(const char *text, size_t bytes)
{
    char *copy = malloc(bytes ? bytes : 1);
    require(copy != NULL, "memory");
    memcpy(copy, text, bytes);
    return copy;
}

/* Tokenizes with just enough room of each kind, and with less, which must be refused. Returns the number of ids. */
static ptrdiff_t check(const FUNCTION(_weights) * weights, const char *given, size_t bytes)
{
    char *text = tight(given, bytes);
    const size_t scratch_bytes = SCRATCH(bytes), most = 20 * bytes + 64;
    void *scratch = malloc(scratch_bytes);
    int32_t *ids = malloc(most * sizeof *ids);
    require(scratch && ids, "memory");
    const ptrdiff_t count = FUNCTION(_tokenize)(weights, text, bytes, ids, most, scratch, scratch_bytes);
    require(count >= 0, "the documented scratch is not enough");

    int32_t *exact = malloc((size_t)(count ? count : 1) * sizeof *exact);
    require(FUNCTION(_tokenize)(weights, text, bytes, exact, (size_t)count, scratch, scratch_bytes) == count, "exact room");
    require(memcmp(ids, exact, (size_t)count * sizeof *ids) == 0, "the same ids");
    if (count > 0)
        require(FUNCTION(_tokenize)(weights, text, bytes, exact, (size_t)count - 1, scratch, scratch_bytes) == -ERROR_ROOM,
                "too little room");
    for (ptrdiff_t i = 0; i < count; ++i) {
        size_t size;
        require(FUNCTION(_text_of)(weights, ids[i], &size) != NULL, "every id has a text");
    }
    /* less scratch: the same ids, or refused */
    const size_t less = next((unsigned)scratch_bytes) & ~7u;
    void *small = malloc(less ? less : 1);
    const ptrdiff_t got = FUNCTION(_tokenize)(weights, text, bytes, exact, (size_t)count, small, less);
    require(got == -ERROR_SCRATCH || (got == count && memcmp(ids, exact, (size_t)count * sizeof *ids) == 0), "less scratch");
    free(small);
    free(exact);
    free(ids);
    free(scratch);
    free(text);
    return count;
}

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    require(file != NULL, path);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *data = aligned_alloc(64, (*bytes + 64) / 64 * 64);
    require(data && fread(data, 1, *bytes, file) == *bytes, path);
    fclose(file);
    return data;
}

int main(int argc, char **argv)
{
    require(argc == 3 || argc == 4, "usage");
    size_t blob_bytes;
    char *blob = read_file(argv[1], &blob_bytes);
    FUNCTION(_weights) weights;
    require(FUNCTION(_bind)(blob, blob_bytes, &weights) == 0, "bind");
    if (argc == 3) {
        size_t bytes, done = 0, ids = 0;
        char *text = read_file(argv[2], &bytes);
        const size_t most = 1 << 20, scratch_bytes = (size_t)1 << 26;
        int32_t *list = malloc(most * sizeof *list);
        void *scratch = malloc(scratch_bytes);
        const clock_t start = clock();
        while (done < bytes) {
            const char *end = memchr(text + done, '\n', bytes - done);
            const size_t size = end ? (size_t)(end - text) - done : bytes - done;
            const ptrdiff_t count = FUNCTION(_tokenize)(&weights, text + done, size, list, most, scratch, scratch_bytes);
            require(count >= 0, "a line");
            ids += (size_t)count;
            done += size + 1;
        }
        const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        printf("%zu bytes, %zu ids, %.3f s, %.1f MB/s\n", bytes, ids, seconds, (double)bytes / 1e6 / seconds);
        return 0;
    }

    size_t size;
    int32_t id;
    require(FUNCTION(_text_of)(&weights, -1, &size) == NULL && FUNCTION(_text_of)(&weights, PIECES, &size) == NULL, "no such id");
    require(FUNCTION(_tokenize)(NULL, "a", 1, &id, 1, blob, 8) == -ERROR_NULL, "null");
    require(FUNCTION(_tokenize)(&weights, "a", 1, &id, 1, blob + 1, 8) == -ERROR_ALIGNMENT, "alignment");

    state = strtoull(argv[2], NULL, 10);
    static const char *const parts[] = {" ",
                                        "  ",
                                        "a",
                                        "the",
                                        "ing",
                                        "'s",
                                        "'LL",
                                        "\n",
                                        "\r\n",
                                        "\t",
                                        "1",
                                        "2024",
                                        ".",
                                        "##",
                                        "\xe2\x96\x81",
                                        "\xcc\x81",
                                        "\xcc\xa3",
                                        "e",
                                        "\xea\xb0\x81",
                                        "\xe1\x84\x80",
                                        "\xef\xb7\xba",
                                        "\xe4\xb8\xad",
                                        "\xc4\xb0",
                                        "<s>",
                                        "[MASK]",
                                        "\xef\xbf\xbd",
                                        "\xf0\x9f\x98\x80",
                                        "\xed\xa0\x80",
                                        "\xc0\x80",
                                        "\xe2\x82"};
    char text[600];
    for (unsigned long round = strtoul(argv[3], NULL, 10); round > 0; --round) {
        const unsigned limit = next(12) ? 40 : 500, ascii = next(3);
        size_t bytes = 0;
        while (bytes < limit && next(60)) {
            if (next(2)) {
                const char *part = parts[next(sizeof parts / sizeof *parts)];
                memcpy(text + bytes, part, strlen(part));
                bytes += strlen(part);
            } else {
                text[bytes++] = (char)next(ascii ? 128 : 256);
            }
        }
        check(&weights, text, bytes);
    }

    /* a word, marks and white space without end: time in proportion */
    static const char *const endless[] = {"a", "\xcc\x81\xcc\xa3", " ", "\xe2\x96\x81", "e\xcc\x81", "'", "1", "\n "};
    const size_t all = 100000;
    char *word = malloc(all + 8);
    for (size_t k = 0; k < sizeof endless / sizeof *endless; ++k) {
        const size_t each = strlen(endless[k]);
        for (size_t at = 0; at < all; at += each)
            memcpy(word + at, endless[k], each);
        check(&weights, word, all);
    }
    free(word);
    free(blob);
    puts("good");
    return 0;
}
