/* For a "did you mean": the name that is most like a missing one. */
#include "gen/weights/nearest.h"

#include "gen/host/files.h"

#include <stdbool.h>
#include <string.h>

enum {
    LONGEST_COMPARED = 255, /* letters of a part */
    MOST_LETTERS = 3,
    MOST_PARTS = 2,              /* that are left out */
    FEWEST_PARTS = 3,            /* that both names have */
    OTHER_NUMBER = MOST_LETTERS, /* added where numbers differ, as of layers */
    FAR = MOST_PARTS + MOST_LETTERS + OTHER_NUMBER + 1,
};

/* Whether one name is the other behind a prefix that ends in a dot. */
static bool differ_by_prefix(const char *a, size_t a_length, const char *b, size_t b_length)
{
    if (a_length < b_length) {
        return differ_by_prefix(b, b_length, a, a_length);
    }
    const char *tail = a + (a_length - b_length);
    return a_length > b_length && tail[-1] == '.' && strcmp(tail, b) == 0;
}

/* Insertions, deletions and substitutions that turn a into b; the lengths are at most LONGEST_COMPARED. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[LONGEST_COMPARED + 1]; /* row[j]: distance of the first i letters of a from the first j of b */
    for (size_t j = 0; j <= b_length; ++j) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a_length; ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; ++j) {
            const size_t above = row[j];
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            best = above + 1 < best ? above + 1 : best;
            row[j] = best;
            diagonal = above;
        }
    }
    return row[b_length];
}

/* How many parts `shorter` leaves out of `longer`, at most MOST_PARTS; FAR if that is not all that differs, or if the last two parts, such
   as query.weight, are not the same. */
static size_t parts_left_out(const char *longer, const char *shorter)
{
    size_t left_out = 0, common = 0, run = 0; /* run: parts in common since the last that is left out */
    for (;;) {
        const size_t a = strcspn(longer, "."), b = strcspn(shorter, ".");
        if (a == b && memcmp(longer, shorter, a) == 0) {
            ++common;
            ++run;
            if (longer[a] == '\0' || shorter[b] == '\0') {
                return longer[a] == shorter[b] && run >= 2 && common >= FEWEST_PARTS ? left_out : FAR;
            }
            shorter += b + 1;
        } else {
            run = 0;
            if (++left_out > MOST_PARTS || longer[a] == '\0')
                return FAR;
        }
        longer += a + 1;
    }
}

/* Whether the numbers in both names are the same. */
static bool same_numbers(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    for (;;) {
        a += strcspn(a, digits);
        b += strcspn(b, digits);
        const size_t a_length = strspn(a, digits), b_length = strspn(b, digits);
        if (a_length != b_length || memcmp(a, b, a_length) != 0) {
            return false;
        }
        if (a_length == 0) {
            return true;
        }
        a += a_length;
        b += b_length;
    }
}

/* Letters by which names of as many parts differ; FAR if there are more than MOST_LETTERS, or more than a third of a part, or the first of
   one that is no number: q_proj is not k_proj. */
static size_t letters_between(const char *wanted, const char *name)
{
    size_t letters = 0;
    for (;;) {
        const size_t a = strcspn(wanted, "."), b = strcspn(name, ".");
        if (a > LONGEST_COMPARED || b > LONGEST_COMPARED) {
            return FAR;
        }
        const size_t differ = edit_distance(wanted, a, name, b);
        letters += differ;
        const bool other_word = wanted[0] != name[0] && (wanted[0] < '0' || wanted[0] > '9');
        if (letters > MOST_LETTERS || (differ > 0 && (differ > (a < 3 ? 1 : a / 3) || other_word))) {
            return FAR;
        }
        if (wanted[a] == '\0' || name[b] == '\0') {
            return wanted[a] == name[b] ? letters : FAR;
        }
        wanted += a + 1;
        name += b + 1;
    }
}

static size_t distance_of(const char *wanted, const char *name)
{
    const size_t length = strlen(wanted), other = strlen(name);
    if (differ_by_prefix(wanted, length, name, other)) {
        return 0;
    }
    const size_t parts = length > other ? parts_left_out(wanted, name) : parts_left_out(name, wanted);
    if (parts < FAR) {
        return parts;
    }
    const size_t letters = letters_between(wanted, name);
    if (letters == FAR || letters > length / 3) {
        return FAR;
    }
    return MOST_PARTS + letters + (same_numbers(wanted, name) ? 0 : OTHER_NUMBER);
}

void nearest_offer(nearest *search, const char *name)
{
    const size_t distance = distance_of(search->wanted, name);
    if (distance < (search->name == NULL ? (size_t)FAR : search->distance)) {
        search->name = name;
        search->distance = distance;
    }
}

void nearest_missing(const nearest *search, const char *path, char *error, size_t error_size)
{
    files_error(error, error_size, "%s: tensor %s is missing%s%s%s", path, search->wanted, search->name != NULL ? "; did you mean " : "",
                search->name != NULL ? search->name : "", search->name != NULL ? "?" : "");
}
