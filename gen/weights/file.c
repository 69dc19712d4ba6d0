/* Files as the weights need them: mapped for reading, written so that they appear whole or not at all, and one line for what went wrong. */
#include "gen/weights/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_error(char *error, size_t error_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, error_size, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < error_size && error[i] != '\0'; ++i) {
        if ((unsigned char)error[i] < ' ' || error[i] == 0x7f) {
            error[i] = '?';
        }
    }
    return false;
}

bool file_map(const char *path, mapped_file *file, char *error, size_t error_size)
{
    *file = (mapped_file){NULL, 0};
    /* O_NONBLOCK: a pipe without a writer is refused, not waited for */
    const int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) {
        return file_error(error, error_size, "%s: %s", path, strerror(errno));
    }
    struct stat status;
    bool ok = true;
    if (fstat(descriptor, &status) != 0) {
        ok = file_error(error, error_size, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        ok = file_error(error, error_size, "%s: is not a regular file", path);
    } else if (status.st_size > 0) {
        const size_t bytes = (size_t)status.st_size;
        void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (data == MAP_FAILED) {
            ok = file_error(error, error_size, "%s: %s", path, strerror(errno));
        } else {
            *file = (mapped_file){data, bytes};
        }
    }
    close(descriptor);
    return ok;
}

void file_unmap(mapped_file *file)
{
    if (file->data != NULL) {
        munmap((void *)(uintptr_t)file->data, file->bytes);
    }
    *file = (mapped_file){NULL, 0};
}

/* The name of a temporary file in the folder of path, ending in the XXXXXX that mkostemp wants; NULL without memory. */
static char *temporary_name(const char *path)
{
    static const char name[] = ".lookupc-XXXXXX";
    const char *slash = strrchr(path, '/');
    const size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    char *temporary = malloc(folder + sizeof name);
    if (temporary != NULL) {
        memcpy(temporary, path, folder);
        memcpy(temporary + folder, name, sizeof name);
    }
    return temporary;
}

/* Frees the names and lets interrupts through again. */
static void release(output_file *file)
{
    free(file->path);
    free(file->target);
    free(file->temporary);
    sigprocmask(SIG_SETMASK, &file->signals, NULL);
}

bool output_file_create(output_file *file, const char *path, char *error, size_t error_size)
{
    struct stat status;
    const bool exists = stat(path, &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
        return file_error(error, error_size, "%s: is not a regular file", path);
    }
    sigset_t interrupts;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigaddset(&interrupts, SIGTERM);
    sigaddset(&interrupts, SIGHUP);
    *file = (output_file){.path = strdup(path), .target = exists ? realpath(path, NULL) : strdup(path)};
    sigprocmask(SIG_BLOCK, &interrupts, &file->signals);
    file->temporary = file->target == NULL ? NULL : temporary_name(file->target);
    const int descriptor = file->path == NULL || file->temporary == NULL ? -1 : mkostemp(file->temporary, O_CLOEXEC);
    if (descriptor < 0) {
        file_error(error, error_size, "%s: %s", path, strerror(errno));
        release(file);
        return false;
    }
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(descriptor, exists ? status.st_mode & 0777 : 0666 & ~mask) != 0 || (file->stream = fdopen(descriptor, "wb")) == NULL) {
        file_error(error, error_size, "%s: %s", path, strerror(errno));
        close(descriptor);
        output_file_discard(file);
        return false;
    }
    return true;
}

bool output_file_write(output_file *file, const void *data, size_t bytes, char *error, size_t error_size)
{
    if (bytes > 0 && fwrite(data, 1, bytes, file->stream) != bytes) {
        return file_error(error, error_size, "%s: %s", file->path, strerror(errno));
    }
    return true;
}

bool output_file_finish(output_file *file, char *error, size_t error_size)
{
    if (fflush(file->stream) != 0 || fsync(fileno(file->stream)) != 0 || rename(file->temporary, file->target) != 0) {
        file_error(error, error_size, "%s: %s", file->path, strerror(errno));
        output_file_discard(file);
        return false;
    }
    fclose(file->stream); /* all bytes are on the disk already */
    release(file);
    return true;
}

void output_file_discard(output_file *file)
{
    unlink(file->temporary);
    if (file->stream != NULL) {
        fclose(file->stream);
    }
    release(file);
}
