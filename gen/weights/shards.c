/* Checkpoints: the tensors of one safetensors file, or of the several that an index lists, read and written. */
#include "gen/weights/shards.h"

#include "gen/host/files.h"

#include <dirent.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INDEX_LIMIT = 1 << 28 };

struct shards {
    char *path;
    size_t count;
    struct {
        char *name; /* in the index; NULL for a checkpoint of one file */
        safetensors *file;
    } files[SHARDS_MOST];
};

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* The place of the file `name` in the list, where it is added if it is new; SHARDS_MOST with a message. */
static size_t find_or_open(shards *s, const char *name, char *error, size_t error_size)
{
    for (size_t i = 0; i < s->count; ++i)
        if (strcmp(s->files[i].name, name) == 0)
            return i;
    if (strchr(name, '/') != NULL || *name == '\0' || s->count == SHARDS_MOST) {
        files_error(error, error_size, "%s: weight_map: %.100s: must be a file beside it%s", s->path, name,
                    s->count == SHARDS_MOST ? "; there are too many" : "");
        return SHARDS_MOST;
    }
    if (strlen(name) > NAME_MAX) {
        files_error(error, error_size, "%s: weight_map: %.100s...: must be a name of at most %d bytes", s->path, name, NAME_MAX);
        return SHARDS_MOST;
    }
    const char *slash = strrchr(s->path, '/');
    char *path;
    if (asprintf(&path, "%.*s%s", slash == NULL ? 0 : (int)(slash + 1 - s->path), s->path, name) < 0)
        return SHARDS_MOST;
    s->files[s->count].file = safetensors_open(path, error, error_size);
    free(path);
    if (s->files[s->count].file == NULL)
        return SHARDS_MOST;
    s->files[s->count].name = strdup(name);
    return s->count++;
}

static bool check_index(shards *s, json_t *map, char *error, size_t error_size)
{
    const char *name;
    json_t *value;
    if (!json_is_object(map))
        return files_error(error, error_size, "%s: weight_map: must be an object", s->path);
    json_object_foreach (map, name, value) {
        if (!json_is_string(value))
            return files_error(error, error_size, "%s: weight_map: %.200s: must be the name of a file", s->path, name);
        const size_t at = find_or_open(s, json_string_value(value), error, error_size);
        if (at == SHARDS_MOST)
            return false;
        if (safetensors_find(s->files[at].file, name) == NULL && !safetensors_has_scales(s->files[at].file, name))
            return files_error(error, error_size, "%s: weight_map: %.200s: is not in %s", s->path, name, s->files[at].name);
    }
    for (size_t i = 0; i < s->count; ++i) {
        for (size_t k = 0; k < safetensors_count(s->files[i].file); ++k) {
            name = safetensors_at(s->files[i].file, k)->name;
            const char *listed = json_string_value(json_object_get(map, name));
            if (listed == NULL || strcmp(listed, s->files[i].name) != 0)
                return files_error(error, error_size, "%s: weight_map: tensor %.200s of %s is %s", s->path, name, s->files[i].name,
                                   listed == NULL ? "missing" : "said to be in another file");
        }
    }
    return s->count > 0 || files_error(error, error_size, "%s: weight_map: is empty", s->path);
}

static bool open_index(shards *s, char *error, size_t error_size)
{
    char *text;
    size_t size;
    json_error_t reason;
    if (!files_read_regular(s->path, INDEX_LIMIT, &text, &size, error, error_size))
        return false;
    const size_t mark = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* some editors put it there */
    json_t *index = json_loadb(text + mark, size - mark, JSON_REJECT_DUPLICATES, &reason);
    free(text);
    const bool good = index != NULL ? check_index(s, json_object_get(index, "weight_map"), error, error_size)
                                    : files_error(error, error_size, "%s:%d: %s", s->path, reason.line, reason.text);
    json_decref(index);
    return good;
}

static const char index_name[] = "model.safetensors.index.json", single_name[] = "model.safetensors";

/* Of the files in a folder whose names end in one of `endings`, ended by NULL, the first in the order of names, from malloc; NULL for
   none. *count: how many there are. */
static char *first_file(const char *path, const char *const *endings, size_t *count)
{
    char *first = NULL;
    *count = 0;
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        for (size_t i = 0; endings[i] != NULL; ++i) {
            if (!ends_with(entry->d_name, endings[i]))
                continue;
            ++*count;
            if (first == NULL || strcmp(entry->d_name, first) < 0) {
                free(first);
                first = strdup(entry->d_name);
            }
        }
    }
    if (folder != NULL)
        closedir(folder);
    return first;
}

/* One line about a folder that holds no checkpoint, and what it holds instead. */
static void report_folder(const char *path, char *error, size_t error_size)
{
    size_t tensors, others;
    char *file = first_file(path, (const char *const[]){".safetensors", NULL}, &tensors);
    char *other = first_file(path, (const char *const[]){".bin", ".ckpt", ".pt", ".pth", NULL}, &others);
    char help[640] = "";
    if (tensors == 1 && file != NULL)
        snprintf(help, sizeof help, "; it has %.255s: give the path of that file", file);
    else if (file != NULL)
        snprintf(help, sizeof help, "; of its %zu files such as %.255s an index must say which tensors are where", tensors, file);
    else if (other != NULL)
        snprintf(help, sizeof help, "; its %.255s is in another format: give its path to be told how to convert it", other);
    files_error(error, error_size, "%s: is a folder without %s and %s%s", path, single_name, index_name, help);
    free(file);
    free(other);
}

/* The path of the checkpoint in a folder, or a copy of the path of a file; NULL with one line. *both: the folder has an index, which is
   the path, and model.safetensors. */
static char *resolve(const char *path, bool *both, char *error, size_t error_size)
{
    struct stat status;
    char *found = NULL;
    *both = false;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        if ((found = strdup(path)) == NULL)
            files_error(error, error_size, "%s: out of memory", path);
        return found;
    }
    const char *const names[] = {index_name, single_name};
    for (size_t i = 0; i < 2; ++i) {
        char *one;
        if (asprintf(&one, "%s/%s", path, names[i]) < 0) {
            files_error(error, error_size, "%s: out of memory", path);
            free(found);
            return NULL;
        }
        if (lstat(one, &status) != 0) {
            free(one);
        } else if (found == NULL) {
            found = one;
        } else {
            *both = true;
            free(one);
        }
    }
    if (found == NULL)
        report_folder(path, error, error_size);
    return found;
}

/* Whether the index names model.safetensors. */
static bool has_single(const shards *s)
{
    for (size_t i = 0; i < s->count; ++i)
        if (strcmp(s->files[i].name, single_name) == 0)
            return true;
    return false;
}

shards *shards_open(const char *path, char *error, size_t error_size)
{
    bool both;
    shards *s = calloc(1, sizeof *s);
    if (s == NULL) {
        files_error(error, error_size, "%s: out of memory", path);
    } else if ((s->path = resolve(path, &both, error, error_size)) == NULL) {
        /* said by resolve */
    } else if (ends_with(s->path, ".json")) {
        if (open_index(s, error, error_size) &&
            (!both || has_single(s) ||
             files_error(error, error_size, "%s: has both %s and %s, which the index does not name: give the path of one", path, index_name,
                         single_name)))
            return s;
    } else if ((s->files[0].file = safetensors_open(s->path, error, error_size)) != NULL) {
        s->count = 1;
        return s;
    }
    shards_close(s);
    return NULL;
}

void shards_close(shards *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->count; ++i) {
        safetensors_close(s->files[i].file);
        free(s->files[i].name);
    }
    free(s->path);
    free(s);
}

const char *shards_path(const shards *s)
{
    return s->count > 1 ? s->path : safetensors_path(s->files[0].file);
}

size_t shards_count(const shards *s)
{
    return s->count;
}

const safetensors *shards_at(const shards *s, size_t index)
{
    return s->files[index].file;
}

/* The file that holds a tensor, or NULL. */
static const safetensors *holder(const shards *s, const char *name)
{
    for (size_t i = 0; i < s->count; ++i) {
        if (safetensors_find(s->files[i].file, name) != NULL)
            return s->files[i].file;
    }
    return NULL;
}

bool shards_have(const shards *s, const char *name)
{
    return holder(s, name) != NULL;
}

const safetensors_tensor *shards_expect(const shards *s, shards_wanted wanted, const safetensors **file, char *error, size_t error_size)
{
    const char *const prefix = wanted.prefix != NULL ? wanted.prefix : "", *const name = wanted.name;
    char full[1024];
    const bool fits = (size_t)snprintf(full, sizeof full, "%s%s", prefix, name) < sizeof full;
    *file = s->count > 1 && fits ? holder(s, full) : s->files[0].file; /* one file says itself what is wrong, and with long names any */
    if (*file != NULL)
        return safetensors_expect(*file, prefix, name, wanted.shape, wanted.rank, error, error_size);
    nearest search = {.wanted = full};
    for (size_t i = 0; i < s->count; ++i)
        safetensors_offer(s->files[i].file, &search);
    nearest_missing(&search, s->path, error, error_size);
    return NULL;
}

/* ---- writing ---- */

struct shards_writer {
    files_writer index; /* all zeros for none; started first, so that it ends last */
    safetensors_writer *files[SHARDS_MOST];
    size_t count, at; /* files, and the one that is being written */
};

shards_writer *shards_create(const char *index, const char *text, char *error, size_t error_size)
{
    shards_writer *w = calloc(1, sizeof *w);
    if (w == NULL) {
        files_error(error, error_size, "%s: out of memory", index == NULL ? "checkpoint" : index);
    } else if (index == NULL ||
               (files_create(&w->index, index, error, error_size) && files_append(&w->index, text, strlen(text), error, error_size))) {
        return w;
    }
    shards_abandon(w);
    return NULL;
}

bool shards_add(shards_writer *w, const char *path, const safetensors_description *tensors, size_t count, char *error, size_t error_size)
{
    if (w->count == SHARDS_MOST)
        return files_error(error, error_size, "%s: more than %d files", path, SHARDS_MOST);
    w->files[w->count] = safetensors_create(path, tensors, count, error, error_size);
    return w->files[w->count] != NULL && ++w->count > 0;
}

bool shards_append(shards_writer *w, const void *data, size_t bytes, char *error, size_t error_size)
{
    while (w->at + 1 < w->count && safetensors_missing(w->files[w->at]) == 0)
        ++w->at;
    return safetensors_append(w->files[w->at], data, bytes, error, error_size);
}

bool shards_finish(shards_writer *w, char *error, size_t error_size)
{
    bool good = true;
    while (good && w->count > 0)
        good = safetensors_finish(w->files[--w->count], error, error_size);
    if (good && w->index.path != NULL)
        good = files_finish(&w->index, error, error_size);
    shards_abandon(w);
    return good;
}

void shards_abandon(shards_writer *w)
{
    if (w == NULL)
        return;
    while (w->count > 0)
        safetensors_abandon(w->files[--w->count]);
    files_discard(&w->index);
    free(w);
}
