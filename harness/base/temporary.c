/* The folder that holds the temporary ones of this program. */
#include "gen/host/files.h"
#include "harness/base/library.h"
#include "harness/base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The folder of a running process holds a file that it keeps locked (flock, which ends with the process, killed or not). A folder whose
   file can be locked is nobody's. */

#define FOLDER "lookupc-"
#define LOCK ".lookupc-lock"
enum { FOLDER_LETTERS = 6, MOST_ATTEMPTS = 100 };

void temporary_remove(const char *path)
{
    const pid_t remover = _Fork();
    if (remover == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere >= 0)
            dup2(nowhere, STDERR_FILENO);
        execl("/bin/rm", "rm", "-rf", "--", path, (char *)NULL);
        _exit(127);
    }
    if (remover > 0)
        waitpid(remover, NULL, 0);
}

/* Opens and locks the file `LOCK` of a folder. Returns its descriptor, or -1; errno says why: ENOENT for a file that is gone meanwhile,
   EWOULDBLOCK if somebody holds the lock. */
static int lock_folder(const char *folder, int flags)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" LOCK, folder) >= (int)sizeof path)
        return -1;
    const int descriptor = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
    if (descriptor < 0)
        return -1;
    struct stat opened, there;
    int reason = 0;
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 || fstat(descriptor, &opened) != 0 || lstat(path, &there) != 0)
        reason = errno;
    else if (opened.st_ino != there.st_ino || opened.st_uid != geteuid())
        reason = ENOENT;
    if (reason == 0)
        return descriptor;
    close(descriptor);
    errno = reason;
    return -1;
}

/* Gives a folder that is still there a file that nobody has locked: a program of the killed process may have written into it while it was
   being removed, and the next one that looks must find it. */
static void leave_lock(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/" LOCK, folder) >= (int)sizeof path)
        return;
    const int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor >= 0)
        close(descriptor);
}

/* Removes the folders in `base` that killed processes of this user left behind. */
static void remove_abandoned(const char *base)
{
    DIR *list = opendir(base);
    if (list == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char path[PATH_MAX];
        struct stat status;
        if (strncmp(entry->d_name, FOLDER, strlen(FOLDER)) != 0 || strlen(entry->d_name) != strlen(FOLDER) + FOLDER_LETTERS ||
            snprintf(path, sizeof path, "%s/%s", base, entry->d_name) >= (int)sizeof path || lstat(path, &status) != 0 ||
            !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
            continue;
        const int lock = lock_folder(path, 0);
        if (lock < 0)
            continue;
        temporary_remove(path);
        leave_lock(path);
        close(lock);
    }
    closedir(list);
}

static const char *set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value == '/' ? value : NULL;
}

bool temporary_kept(char folder[PATH_MAX])
{
    const char *cache = set("XDG_CACHE_HOME"), *home = set("HOME");
    if (!cache && !home)
        return false;
    return snprintf(folder, PATH_MAX, "%s%s/lookupc", cache ? cache : home, cache ? "" : "/.cache") < PATH_MAX;
}

const char *temporary_base(char kept[PATH_MAX])
{
    char error[512];
    const char *given = getenv("TMPDIR"), *base = given == NULL || *given == '\0' ? "/tmp" : given;
    const bool stays = library_loads_from(base) || !temporary_kept(kept) || !files_write_directory(kept, NULL, 0, error, sizeof error);
    return stays || !library_loads_from(kept) ? base : kept;
}

char *temporary_make(const char *base)
{
    char *absolute = realpath(base, NULL);
    if (absolute == NULL)
        return NULL;
    remove_abandoned(absolute);
    char *folder = NULL;
    int reason = 0;
    for (int attempt = 0; folder == NULL && reason == 0 && attempt < MOST_ATTEMPTS; ++attempt) {
        if (asprintf(&folder, "%s/" FOLDER "XXXXXX", strcmp(absolute, "/") == 0 ? "" : absolute) < 0) {
            folder = NULL;
            reason = ENOMEM;
        } else if (mkdtemp(folder) == NULL) {
            reason = errno;
        } else if (lock_folder(folder, O_CREAT) < 0 && (errno == ENOENT || errno == EWOULDBLOCK)) {
            /* another process found the folder before it was locked, and removes it */
            temporary_remove(folder);
            free(folder);
            folder = NULL;
        } /* locked until this process ends; where locks do not work nobody removes what others left */
        if (reason != 0) {
            free(folder);
            folder = NULL;
        }
    }
    free(absolute);
    errno = reason != 0 ? reason : EAGAIN;
    return folder;
}
