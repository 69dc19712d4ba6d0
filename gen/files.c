/* Files as whole byte strings: reading with a limit, writing all or nothing. */
#include "gen/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(const char *path, const char *reason, char *error, size_t error_size)
{
    snprintf(error, error_size, "%s: %s", path, reason);
    return false;
}

bool files_read(const char *path, size_t max_bytes, char **bytes, size_t *size, char *error, size_t error_size)
{
    *bytes = NULL;
    *size = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail(path, strerror(errno), error, error_size);

    char *buffer = NULL;
    size_t used = 0, room = 0;
    const char *reason = NULL;
    for (;;) {
        if (used + 1 >= room) {
            room = room == 0 ? 65536 : 2 * room;
            char *larger = realloc(buffer, room);
            if (larger == NULL) {
                reason = strerror(ENOMEM);
                break;
            }
            buffer = larger;
        }
        const ssize_t got = read(file, buffer + used, room - used - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            reason = strerror(errno);
        if (got <= 0)
            break;
        used += (size_t)got;
        if (used > max_bytes)
            break;
    }
    close(file);

    if (reason == NULL && used > max_bytes) {
        free(buffer);
        snprintf(error, error_size, "%s: is larger than %zu bytes", path, max_bytes);
        return false;
    }
    if (reason != NULL) {
        free(buffer);
        return fail(path, reason, error, error_size);
    }
    buffer[used] = '\0';
    *bytes = buffer;
    *size = used;
    return true;
}

/* A file on its way: the place it goes to and the temporary file beside it. */
typedef struct {
    char *target;
    char *temporary; /* NULL when there is none (left) */
    bool exists;
    bool moved;
} staged;

static bool has_bytes(const char *path, const files_output *output)
{
    char *bytes;
    size_t size;
    char ignored[1];
    const bool same = files_read(path, output->size, &bytes, &size, ignored, sizeof ignored) && size == output->size &&
                      memcmp(bytes, output->bytes, size) == 0;
    free(bytes);
    return same;
}

static bool write_all(int file, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t put = write(file, bytes, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        bytes += put;
        size -= (size_t)put;
    }
    return true;
}

/* Writes the temporary file, unless the target has these bytes already. */
static bool stage(files_output *output, staged *file, char *error, size_t error_size)
{
    struct stat status;
    file->exists = stat(output->path, &status) == 0;
    if (!file->exists && errno != ENOENT)
        return fail(output->path, strerror(errno), error, error_size);
    if (file->exists && S_ISDIR(status.st_mode))
        return fail(output->path, strerror(EISDIR), error, error_size);
    if (file->exists && !S_ISREG(status.st_mode))
        return fail(output->path, "is not a regular file", error, error_size);

    output->changed = !file->exists || !has_bytes(output->path, output);
    if (!output->changed)
        return true;

    const mode_t mask = umask(0);
    umask(mask);
    const mode_t mode = file->exists ? status.st_mode & 0777 : 0666 & ~mask;
    file->target = file->exists ? realpath(output->path, NULL) : strdup(output->path);
    if (file->target == NULL)
        return fail(output->path, strerror(errno), error, error_size);
    const char *slash = strrchr(file->target, '/');
    const int folder = slash == NULL ? 0 : (int)(slash + 1 - file->target);
    if (asprintf(&file->temporary, "%.*s.lookupc-XXXXXX", folder, file->target) < 0) {
        file->temporary = NULL;
        return fail(output->path, strerror(ENOMEM), error, error_size);
    }
    const int handle = mkostemp(file->temporary, O_CLOEXEC);
    if (handle < 0) {
        const int reason = errno;
        free(file->temporary);
        file->temporary = NULL;
        return fail(output->path, strerror(reason), error, error_size);
    }
    bool good = fchmod(handle, mode) == 0 && write_all(handle, output->bytes, output->size) && fsync(handle) == 0;
    const int reason = errno;
    if (close(handle) != 0 && good)
        return fail(output->path, strerror(errno), error, error_size);
    return good || fail(output->path, strerror(reason), error, error_size);
}

/* Puts the temporary file in its place. The old file, if any, takes the temporary name, so that it can still be put back. */
static bool move(staged *file)
{
    if (file->exists && renameat2(AT_FDCWD, file->temporary, AT_FDCWD, file->target, RENAME_EXCHANGE) == 0) {
        file->moved = true;
        return true;
    }
    if (file->exists && errno != EINVAL && errno != ENOSYS)
        return false;
    if (rename(file->temporary, file->target) != 0)
        return false;
    file->moved = true;
    free(file->temporary);
    file->temporary = NULL;
    return true;
}

static void move_back(staged *file)
{
    if (file->moved && file->temporary != NULL)
        renameat2(AT_FDCWD, file->temporary, AT_FDCWD, file->target, RENAME_EXCHANGE);
    else if (file->moved && !file->exists)
        unlink(file->target);
}

bool files_write(files_output *outputs, size_t count, char *error, size_t error_size)
{
    staged *files = calloc(count + 1, sizeof *files);
    if (files == NULL)
        return fail(outputs[0].path, strerror(ENOMEM), error, error_size);

    /* an interrupt waits until nothing is half done */
    sigset_t interrupts, before;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigaddset(&interrupts, SIGTERM);
    sigaddset(&interrupts, SIGHUP);
    sigprocmask(SIG_BLOCK, &interrupts, &before);

    bool good = true;
    for (size_t i = 0; good && i < count; ++i)
        good = stage(&outputs[i], &files[i], error, error_size);
    for (size_t i = 0; good && i < count; ++i) {
        if (outputs[i].changed && !move(&files[i]))
            good = fail(outputs[i].path, strerror(errno), error, error_size);
    }
    for (size_t i = 0; i < count; ++i) {
        if (!good)
            move_back(&files[i]);
        if (files[i].temporary != NULL)
            unlink(files[i].temporary);
        free(files[i].temporary);
        free(files[i].target);
    }
    free(files);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return good;
}

/* Makes a directory and its parents. path is cut and mended on the way; *first is the length of the shortest
   directory that had to be made, 0 for none. */
static bool make_directories(char *path, size_t *first)
{
    const size_t length = strlen(path);
    *first = 0;
    for (size_t end = 1; end <= length; ++end) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        const char kept = path[end];
        path[end] = '\0';
        const bool made = mkdir(path, 0777) == 0;
        const int reason = errno;
        struct stat status;
        const bool there = made || (stat(path, &status) == 0 && S_ISDIR(status.st_mode));
        path[end] = kept;
        if (!there) {
            errno = reason == EEXIST ? ENOTDIR : reason;
            return false;
        }
        if (made && *first == 0)
            *first = end;
    }
    return true;
}

static void remove_directories(char *path, size_t first)
{
    for (size_t end = strlen(path); first > 0 && end >= first; --end) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        path[end] = '\0';
        rmdir(path);
    }
}

bool files_write_directory(const char *directory, files_output *outputs, size_t count, char *error, size_t error_size)
{
    char *path = strdup(directory);
    files_output *inside = calloc(count + 1, sizeof *inside);
    bool good = path != NULL && inside != NULL;
    for (size_t i = 0; good && i < count; ++i) {
        char *joined;
        good = asprintf(&joined, "%s/%s", directory, outputs[i].path) >= 0;
        if (good)
            inside[i] = (files_output){.path = joined, .bytes = outputs[i].bytes, .size = outputs[i].size};
    }
    size_t first = 0;
    if (!good) {
        fail(directory, strerror(ENOMEM), error, error_size);
    } else if (!make_directories(path, &first)) {
        good = fail(directory, strerror(errno), error, error_size);
    } else {
        good = files_write(inside, count, error, error_size);
    }
    if (!good && path != NULL)
        remove_directories(path, first);
    for (size_t i = 0; inside != NULL && i < count; ++i) {
        outputs[i].changed = inside[i].changed;
        free((char *)(uintptr_t)inside[i].path);
    }
    free(inside);
    free(path);
    return good;
}
