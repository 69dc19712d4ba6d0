/* Files: read or mapped whole, written all or nothing, and one line for what went wrong. */
#include "gen/host/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool files_error(char *error, size_t error_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, error_size, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < error_size && error[i] != '\0'; ++i)
        if ((unsigned char)error[i] < ' ' || error[i] == 0x7f)
            error[i] = '?';
    return false;
}

/* The line of a system call that failed. */
static bool fail(const char *path, int reason, char *error, size_t error_size)
{
    return files_error(error, error_size, "%s: %s", path, strerror(reason));
}

static bool read_bytes(const char *path, size_t max_bytes, char **bytes, size_t *size, char *error, size_t error_size)
{
    *bytes = NULL;
    *size = 0;
    const int file = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return fail(path, errno, error, error_size);

    char *buffer = NULL;
    size_t used = 0, room = 0;
    int reason = 0;
    for (;;) {
        if (used + 1 >= room) {
            room = room == 0 ? 65536 : 2 * room;
            char *larger = realloc(buffer, room);
            if (larger == NULL) {
                reason = ENOMEM;
                break;
            }
            buffer = larger;
        }
        const ssize_t got = read(file, buffer + used, room - used - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            reason = errno;
        if (got <= 0)
            break;
        used += (size_t)got;
        if (used > max_bytes)
            break;
    }
    close(file);

    if (reason != 0 || used > max_bytes) {
        free(buffer);
        return reason != 0 ? fail(path, reason, error, error_size)
                           : files_error(error, error_size, "%s: is larger than %zu bytes", path, max_bytes);
    }
    buffer[used] = '\0';
    *bytes = buffer;
    *size = used;
    return true;
}

bool files_read(const char *path, size_t max_bytes, char **bytes, size_t *size, char *error, size_t error_size)
{
    /* Standard input comes once; a command may read its model several times. */
    static char *kept;
    static size_t kept_size;
    if (strcmp(path, "-") != 0)
        return read_bytes(path, max_bytes, bytes, size, error, error_size);
    if (kept == NULL && !read_bytes(path, max_bytes, &kept, &kept_size, error, error_size)) {
        *bytes = NULL;
        return false;
    }
    *size = kept_size;
    *bytes = malloc(kept_size + 1);
    if (*bytes == NULL)
        return fail(path, ENOMEM, error, error_size);
    memcpy(*bytes, kept, kept_size + 1);
    return true;
}

/* Allows as many open files as the system lets the user allow; a checkpoint may have more files than most programs open. Returns whether
   that is more than before. */
static bool allow_more_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

bool files_open(const char *path, files_source *source, char *error, size_t error_size)
{
    *source = (files_source){.path = path, .descriptor = -1};
    do /* O_NONBLOCK: a pipe without a writer is refused, not waited for */
        source->descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    while (source->descriptor < 0 && errno == EMFILE && allow_more_files());
    if (source->descriptor < 0)
        return fail(path, errno, error, error_size);
    struct stat status;
    bool good = true;
    if (fstat(source->descriptor, &status) != 0)
        good = fail(path, errno, error, error_size);
    else if (!S_ISREG(status.st_mode))
        good = files_error(error, error_size, "%s: is not a regular file", path);
    else
        source->bytes = (size_t)status.st_size;
    if (!good)
        files_close(source);
    return good;
}

bool files_pread(const files_source *source, size_t at, void *out, size_t bytes, char *error, size_t error_size)
{
    char *to = out;
    while (bytes > 0) {
        const ssize_t got = pread(source->descriptor, to, bytes, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(source->path, errno, error, error_size);
        if (got == 0)
            return files_error(error, error_size, "%s: was cut off while it was read: it ends before byte %zu", source->path, at + bytes);
        to += got;
        at += (size_t)got;
        bytes -= (size_t)got;
    }
    return true;
}

bool files_read_regular(const char *path, size_t max_bytes, char **bytes, size_t *size, char *error, size_t error_size)
{
    files_source source;
    struct stat status;
    *bytes = NULL;
    *size = 0;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return fail(path, EISDIR, error, error_size);
    if (!files_open(path, &source, error, error_size))
        return false;
    char *buffer = NULL;
    bool good = source.bytes <= max_bytes || files_error(error, error_size, "%s: is larger than %zu bytes", path, max_bytes);
    if (good) {
        buffer = malloc(source.bytes + 1);
        good = buffer != NULL ? files_pread(&source, 0, buffer, source.bytes, error, error_size) : fail(path, ENOMEM, error, error_size);
    }
    if (good) {
        buffer[source.bytes] = '\0';
        *bytes = buffer;
        *size = source.bytes;
    } else {
        free(buffer);
    }
    files_close(&source);
    return good;
}

void files_close(files_source *source)
{
    if (source->descriptor >= 0)
        close(source->descriptor);
    source->descriptor = -1;
}

bool files_map(const char *path, files_mapping *mapping, char *error, size_t error_size)
{
    *mapping = (files_mapping){NULL, 0};
    files_source source;
    if (!files_open(path, &source, error, error_size))
        return false;
    bool good = true;
    if (source.bytes > 0) {
        void *data = mmap(NULL, source.bytes, PROT_READ, MAP_PRIVATE, source.descriptor, 0);
        if (data == MAP_FAILED)
            good = fail(path, errno, error, error_size);
        else
            *mapping = (files_mapping){data, source.bytes};
    }
    files_close(&source);
    return good;
}

void files_unmap(files_mapping *mapping)
{
    if (mapping->data != NULL)
        munmap((void *)(uintptr_t)mapping->data, mapping->bytes);
    *mapping = (files_mapping){NULL, 0};
}

/* ---- temporary files of killed processes ---- */

/* Who writes into a folder holds a shared lock on it (flock, which ends with the process). Who gets an exclusive one is alone: every
   temporary file there was left by a process that was killed. */

#define TEMPORARY ".lookupc-"
enum { TEMPORARY_LETTERS = 6, MOST_FOLDERS = 16 };

/* The folders that this process writes into. */
static struct {
    dev_t device;
    ino_t number;
    int descriptor; /* holds the lock */
    size_t writers; /* 0: the place is free */
} folders[MOST_FOLDERS];

static void remove_temporaries(int folder)
{
    const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (list == NULL) {
        if (copy >= 0)
            close(copy);
        return;
    }
    const size_t start = sizeof TEMPORARY - 1;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        struct stat status;
        if (strncmp(entry->d_name, TEMPORARY, start) == 0 && strlen(entry->d_name) == start + TEMPORARY_LETTERS &&
            fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid())
            unlinkat(folder, entry->d_name, 0);
    }
    closedir(list);
}

/* Locks a folder. False: it cannot be locked, or another program locks it for itself. */
static bool lock_folder(int folder)
{
    if (flock(folder, LOCK_EX | LOCK_NB) == 0)
        remove_temporaries(folder);
    /* another process may be alone here now: for as long as it takes to read the folder */
    for (int attempt = 0; attempt < 100; ++attempt) {
        if (flock(folder, LOCK_SH | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

/* Begins to write into the folder at path[length], "" for this one. Its place, or 0: then nobody removes temporary files of others. */
static size_t enter_folder(const char *path, size_t length)
{
    char *name = length == 0 ? strdup(".") : strndup(path, length);
    const int descriptor = name == NULL ? -1 : open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(name);
    struct stat status;
    size_t place = 0, vacant = MOST_FOLDERS;
    if (descriptor < 0)
        return 0;
    if (fstat(descriptor, &status) == 0) {
        for (; place < MOST_FOLDERS; ++place) {
            if (folders[place].writers == 0)
                vacant = place;
            else if (folders[place].device == status.st_dev && folders[place].number == status.st_ino)
                break;
        }
        if (place < MOST_FOLDERS) {
            close(descriptor);
            ++folders[place].writers;
            return place + 1;
        }
        if (vacant < MOST_FOLDERS && lock_folder(descriptor)) {
            folders[vacant].device = status.st_dev;
            folders[vacant].number = status.st_ino;
            folders[vacant].descriptor = descriptor;
            folders[vacant].writers = 1;
            return vacant + 1;
        }
    }
    close(descriptor);
    return 0;
}

static void leave_folder(size_t place)
{
    if (place > 0 && --folders[place - 1].writers == 0)
        close(folders[place - 1].descriptor);
}

/* ---- files to be read ---- */

typedef struct {
    dev_t device;
    ino_t number;
    char *path;
} input_file;

static struct {
    input_file *files;
    size_t count, room;
} inputs;

void files_note_input(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return;
    for (size_t i = 0; i < inputs.count; ++i)
        if (inputs.files[i].device == status.st_dev && inputs.files[i].number == status.st_ino)
            return;
    if (inputs.count == inputs.room) {
        const size_t room = 2 * inputs.room + 16;
        input_file *files = realloc(inputs.files, room * sizeof *files);
        if (files == NULL)
            abort(); /* rather than lose what the user gave */
        inputs.files = files;
        inputs.room = room;
    }
    char *copy = strdup(path);
    if (copy == NULL)
        abort();
    inputs.files[inputs.count++] = (input_file){.device = status.st_dev, .number = status.st_ino, .path = copy};
}

/* Whether the file `path`, of that status, is none of them. */
static bool is_no_input(const char *path, const struct stat *status, char *error, size_t error_size)
{
    for (size_t i = 0; i < inputs.count; ++i)
        if (inputs.files[i].device == status->st_dev && inputs.files[i].number == status->st_ino)
            return files_error(error, error_size, "%s: is the input %s: choose another file", path, inputs.files[i].path);
    return true;
}

/* ---- one file ---- */

bool files_leads_somewhere(const char *path, char *error, size_t error_size)
{
    struct stat status;
    if (stat(path, &status) == 0 || lstat(path, &status) != 0 || !S_ISLNK(status.st_mode))
        return true;
    return files_error(error, error_size, "%s: is a symbolic link to nothing", path);
}

/* Opens the temporary file; on failure errno says why. */
static bool open_temporary(files_writer *file, mode_t mode)
{
    file->target = file->exists ? realpath(file->path, NULL) : strdup(file->path);
    if (file->target == NULL)
        return false;
    const char *slash = strrchr(file->target, '/');
    const int folder = slash == NULL ? 0 : (int)(slash + 1 - file->target);
    char *temporary;
    if (asprintf(&temporary, "%.*s" TEMPORARY "XXXXXX", folder, file->target) < 0)
        return false;
    file->folder = enter_folder(file->target, (size_t)folder);
    const int descriptor = mkostemp(temporary, O_CLOEXEC);
    if (descriptor < 0) {
        const int reason = errno;
        free(temporary);
        errno = reason;
        return false;
    }
    file->temporary = temporary;
    if (fchmod(descriptor, mode) == 0 && (file->stream = fdopen(descriptor, "wb")) != NULL)
        return true;
    const int reason = errno;
    close(descriptor);
    errno = reason;
    return false;
}

bool files_create(files_writer *file, const char *path, char *error, size_t error_size)
{
    *file = (files_writer){.path = NULL};
    struct stat status;
    const bool exists = stat(path, &status) == 0;
    if (!exists && errno != ENOENT)
        return fail(path, errno, error, error_size);
    if (!files_leads_somewhere(path, error, error_size))
        return false;
    if (exists && !S_ISREG(status.st_mode))
        return files_error(error, error_size, "%s: is not a regular file", path);
    if (exists && !is_no_input(path, &status, error, error_size))
        return false;
    const mode_t mask = umask(0);
    umask(mask);
    *file = (files_writer){.path = strdup(path), .exists = exists};
    if (file->path == NULL)
        return fail(path, errno, error, error_size);

    /* an interrupt waits until nothing is half done */
    sigset_t interrupts;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigaddset(&interrupts, SIGTERM);
    sigaddset(&interrupts, SIGHUP);
    sigprocmask(SIG_BLOCK, &interrupts, &file->signals);

    if (open_temporary(file, exists ? status.st_mode & 0777 : 0666 & ~mask))
        return true;
    fail(path, errno, error, error_size);
    files_discard(file);
    return false;
}

bool files_append(files_writer *file, const void *data, size_t bytes, char *error, size_t error_size)
{
    return bytes == 0 || fwrite(data, 1, bytes, file->stream) == bytes || fail(file->path, errno, error, error_size);
}

/* Writes everything, brings it to the disk if that is wanted and closes the temporary file. */
static bool seal(files_writer *file, bool to_disk, char *error, size_t error_size)
{
    if (fflush(file->stream) != 0 || (to_disk && fsync(fileno(file->stream)) != 0))
        return fail(file->path, errno, error, error_size);
    FILE *stream = file->stream;
    file->stream = NULL;
    return fclose(stream) == 0 || fail(file->path, errno, error, error_size);
}

/* Gives the temporary file its name; on failure errno says why. */
static bool take_place(files_writer *file)
{
    if (rename(file->temporary, file->target) != 0)
        return false;
    free(file->temporary);
    file->temporary = NULL;
    return true;
}

bool files_finish(files_writer *file, char *error, size_t error_size)
{
    const bool good = seal(file, true, error, error_size) && (take_place(file) || fail(file->path, errno, error, error_size));
    files_discard(file);
    return good;
}

void files_discard(files_writer *file)
{
    if (file->path == NULL)
        return;
    if (file->stream != NULL)
        fclose(file->stream);
    if (file->temporary != NULL)
        unlink(file->temporary);
    leave_folder(file->folder);
    free(file->path);
    free(file->target);
    free(file->temporary);
    const sigset_t signals = file->signals;
    *file = (files_writer){.path = NULL};
    sigprocmask(SIG_SETMASK, &signals, NULL);
}

/* ---- one line ---- */

/* Brings the entry of a new file to the disk. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash + 1 - path));
    const int descriptor = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
    free(folder);
}

/* Appends bytes to a locked file with one write; on failure errno says why and the file has its old length. */
static bool append_whole(int descriptor, off_t length, const char *bytes, size_t size)
{
    const ssize_t wrote = write(descriptor, bytes, size);
    if (wrote == (ssize_t)size && fsync(descriptor) == 0)
        return true;
    const int reason = wrote >= 0 && wrote < (ssize_t)size ? ENOSPC : errno;
    if (ftruncate(descriptor, length) != 0)
        return false;
    errno = reason;
    return false;
}

bool files_append_line(const char *path, const char *line, size_t bytes, char *error, size_t error_size)
{
    if (!files_leads_somewhere(path, error, error_size))
        return false;
    const int descriptor = open(path, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return fail(path, errno, error, error_size);
    struct stat status;
    char *text = malloc(bytes + 2);
    bool good;
    if (text == NULL || flock(descriptor, LOCK_EX) != 0 || fstat(descriptor, &status) != 0) {
        good = fail(path, text == NULL ? ENOMEM : errno, error, error_size);
    } else if (!S_ISREG(status.st_mode)) {
        good = files_error(error, error_size, "%s: is not a regular file", path);
    } else if (!is_no_input(path, &status, error, error_size)) {
        good = false;
    } else {
        char last = '\n';
        size_t size = 0;
        if (status.st_size > 0 && pread(descriptor, &last, 1, status.st_size - 1) == 1 && last != '\n')
            text[size++] = '\n';
        memcpy(text + size, line, bytes);
        size += bytes;
        text[size++] = '\n';
        good = append_whole(descriptor, status.st_size, text, size) || fail(path, errno, error, error_size);
        if (good && status.st_size == 0)
            sync_folder(path);
    }
    free(text);
    close(descriptor);
    return good;
}

/* ---- several files ---- */

typedef struct {
    files_writer writer; /* all zeros when there is nothing to write */
    bool moved;
} staged;

/* Compares in pieces: weights may be as large as the memory that is left. */
static bool has_bytes(const char *path, const files_output *output)
{
    enum { PIECE = 1 << 16 };
    char *const piece = malloc(PIECE), ignored[1];
    files_source source;
    if (piece == NULL || !files_open(path, &source, ignored, sizeof ignored)) {
        free(piece);
        return false;
    }
    bool same = source.bytes == output->size;
    for (size_t at = 0; same && at < output->size; at += PIECE) {
        const size_t bytes = output->size - at < PIECE ? output->size - at : PIECE;
        same = files_pread(&source, at, piece, bytes, ignored, sizeof ignored) && memcmp(piece, output->bytes + at, bytes) == 0;
    }
    files_close(&source);
    free(piece);
    return same;
}

/* Writes the temporary file, unless the target has these bytes already. */
static bool stage(files_output *output, files_writer *file, char *error, size_t error_size)
{
    struct stat status;
    const bool exists = stat(output->path, &status) == 0;
    if (exists && S_ISDIR(status.st_mode))
        return fail(output->path, EISDIR, error, error_size);
    output->changed = !exists || !S_ISREG(status.st_mode) || !has_bytes(output->path, output);
    return !output->changed ||
           (files_create(file, output->path, error, error_size) && files_append(file, output->bytes, output->size, error, error_size) &&
            seal(file, !output->temporary, error, error_size));
}

/* Puts the temporary file in its place. The old file, if any, takes the temporary name, so that it can still be put back. */
static bool move(staged *file)
{
    const files_writer *writer = &file->writer;
    if (writer->exists && renameat2(AT_FDCWD, writer->temporary, AT_FDCWD, writer->target, RENAME_EXCHANGE) == 0)
        file->moved = true;
    else if (!writer->exists || errno == EINVAL || errno == ENOSYS)
        file->moved = take_place(&file->writer);
    return file->moved;
}

static void move_back(const staged *file)
{
    const files_writer *writer = &file->writer;
    if (file->moved && writer->temporary != NULL)
        renameat2(AT_FDCWD, writer->temporary, AT_FDCWD, writer->target, RENAME_EXCHANGE);
    else if (file->moved && !writer->exists)
        unlink(writer->target);
}

bool files_write(files_output *outputs, size_t count, char *error, size_t error_size)
{
    staged *files = calloc(count + 1, sizeof *files);
    if (files == NULL)
        return fail(outputs[0].path, ENOMEM, error, error_size);
    bool good = true;
    for (size_t i = 0; good && i < count; ++i)
        good = stage(&outputs[i], &files[i].writer, error, error_size);
    for (size_t i = 0; good && i < count; ++i)
        good = !outputs[i].changed || move(&files[i]) || fail(outputs[i].path, errno, error, error_size);
    for (size_t i = count; i-- > 0;) {
        if (!good)
            move_back(&files[i]);
        files_discard(&files[i].writer);
    }
    free(files);
    return good;
}

/* Makes the folder of the file `path`, with its parents. path is cut and mended on the way; *first is the length of the shortest folder
   that had to be made, 0 for none. */
static bool make_directories(char *path, size_t *first)
{
    *first = 0;
    for (size_t end = 1; path[end] != '\0'; ++end) {
        if (path[end] != '/')
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

/* Removes those again, as far as they are empty. */
static void remove_directories(char *path, size_t first)
{
    for (size_t end = strlen(path); first > 0 && end >= first; --end) {
        if (path[end] != '/')
            continue;
        path[end] = '\0';
        rmdir(path);
        path[end] = '/';
    }
}

bool files_write_directory(const char *directory, files_output *outputs, size_t count, char *error, size_t error_size)
{
    files_output *inside = calloc(count + 1, sizeof *inside);
    char **path = calloc(count + 1, sizeof *path);    /* of every file, and of one without a name: the directory itself */
    size_t *first = calloc(count + 1, sizeof *first); /* what make_directories made for each */
    bool good = inside != NULL && path != NULL && first != NULL;
    for (size_t i = 0; good && i <= count; ++i) {
        good = asprintf(&path[i], "%s/%s", directory, i < count ? outputs[i].path : "") >= 0;
        if (!good)
            path[i] = NULL;
        else if (i < count)
            inside[i] =
                (files_output){.path = path[i], .bytes = outputs[i].bytes, .size = outputs[i].size, .temporary = outputs[i].temporary};
    }
    if (!good)
        fail(directory, ENOMEM, error, error_size);
    for (size_t i = 0; good && i <= count; ++i) {
        good = make_directories(path[i], &first[i]);
        const int reason = errno;
        if (!good && files_leads_somewhere(directory, error, error_size))
            fail(directory, reason, error, error_size);
    }
    good = good && files_write(inside, count, error, error_size);
    for (size_t i = count + 1; i-- > 0;) {
        if (!good && path != NULL && path[i] != NULL && first != NULL)
            remove_directories(path[i], first[i]);
        if (inside != NULL && i < count)
            outputs[i].changed = inside[i].changed;
        if (path != NULL)
            free(path[i]);
    }
    free(first);
    free(path);
    free(inside);
    return good;
}
