/* A checkpoint: the tensors of one safetensors file, or of the several that an index lists. */
#include "gen/weights/shards.h"

#include "gen/files.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INDEX_LIMIT = 1 << 28, FILES_LIMIT = 4096 };

struct shards {
    char *path;
    size_t count;
    struct {
        char *name; /* in the index; NULL for a checkpoint of one file */
        safetensors *file;
    } files[FILES_LIMIT];
};

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* The place of the file `name` in the list, where it is added if it is new; FILES_LIMIT with a message. */
static size_t find_or_open(shards *s, const char *name, char *error, size_t error_size)
{
    for (size_t i = 0; i < s->count; ++i)
        if (strcmp(s->files[i].name, name) == 0)
            return i;
    if (strchr(name, '/') != NULL || *name == '\0' || s->count == FILES_LIMIT) {
        files_error(error, error_size, "%s: weight_map: %.100s: must be a file beside it%s", s->path, name,
                    s->count == FILES_LIMIT ? "; there are too many" : "");
        return FILES_LIMIT;
    }
    const char *slash = strrchr(s->path, '/');
    char *path;
    if (asprintf(&path, "%.*s%s", slash == NULL ? 0 : (int)(slash + 1 - s->path), s->path, name) < 0)
        return FILES_LIMIT;
    s->files[s->count].file = safetensors_open(path, error, error_size);
    free(path);
    if (s->files[s->count].file == NULL)
        return FILES_LIMIT;
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
        if (at == FILES_LIMIT)
            return false;
        if (safetensors_find(s->files[at].file, name) == NULL)
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
    if (!files_read(s->path, INDEX_LIMIT, &text, &size, error, error_size))
        return false;
    json_t *index = json_loadb(text, size, JSON_REJECT_DUPLICATES, &reason);
    free(text);
    const bool good = index != NULL ? check_index(s, json_object_get(index, "weight_map"), error, error_size)
                                    : files_error(error, error_size, "%s:%d: %s", s->path, reason.line, reason.text);
    json_decref(index);
    return good;
}

/* The path of the checkpoint in a folder, or a copy of the path of a file. */
static char *resolve(const char *path)
{
    struct stat status;
    char *inside = NULL;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return strdup(path);
    if (asprintf(&inside, "%s/model.safetensors.index.json", path) < 0)
        return NULL;
    if (stat(inside, &status) == 0)
        return inside;
    free(inside);
    return asprintf(&inside, "%s/model.safetensors", path) < 0 ? NULL : inside;
}

shards *shards_open(const char *path, char *error, size_t error_size)
{
    shards *s = calloc(1, sizeof *s);
    if (s == NULL || (s->path = resolve(path)) == NULL) {
        files_error(error, error_size, "%s: out of memory", path);
    } else if (ends_with(s->path, ".json")) {
        if (open_index(s, error, error_size))
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

size_t shards_count(const shards *s)
{
    return s->count;
}

const safetensors *shards_at(const shards *s, size_t index)
{
    return s->files[index].file;
}

const safetensors_tensor *shards_expect(const shards *s, const char *name, const int64_t *shape, int rank, const safetensors **file,
                                        char *error, size_t error_size)
{
    for (size_t i = 0; i < s->count; ++i) {
        *file = s->files[i].file;
        if (s->count == 1 || safetensors_find(*file, name) != NULL)
            return safetensors_expect(*file, "", name, shape, rank, error, error_size);
    }
    files_error(error, error_size, "%s: tensor %s is missing", s->path, name);
    return NULL;
}
