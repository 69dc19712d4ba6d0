/* Calls in a process of their own, which may crash. */
#include "harness/base/child.h"
#include "harness/base/parent.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t child_start(unsigned seconds)
{
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        end_with_parent(parent);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        alarm(seconds);
    }
    return child;
}

void child_wait(pid_t child, const char *name, char *error, size_t error_size)
{
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        snprintf(error, error_size, "%s: cannot run a process", name);
    else if (WIFSIGNALED(status))
        snprintf(error, error_size, "%s: signal %d (%s)", name, WTERMSIG(status), strsignal(WTERMSIG(status)));
}
