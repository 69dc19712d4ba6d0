/* The progress of a long job: a bar on a terminal, and whether somebody wants it to end. */
#include "gen/progress.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { BAR_WIDTH = 40 };

progress progress_start(double total)
{
    return (progress){.total = total, .label = "", .shown = isatty(STDERR_FILENO), .percent = -1};
}

static bool interrupted(void)
{
    sigset_t waiting;
    return sigpending(&waiting) == 0 &&
           (sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1 || sigismember(&waiting, SIGHUP) == 1);
}

static void show(progress *p)
{
    const double share = p->total > 0.0 && p->done < p->total ? p->done / p->total : 1.0;
    const int percent = (int)(100.0 * share);
    if (percent == p->percent)
        return;
    p->percent = percent;
    char bar[BAR_WIDTH + 1];
    for (int i = 0; i < BAR_WIDTH; ++i)
        bar[i] = (double)i < share * BAR_WIDTH ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %3d %%  %s\033[K", bar, percent, p->label);
    fflush(stderr);
}

bool progress_add(progress *p, double work)
{
    if (p == NULL)
        return true;
    p->done += work;
    if (p->shown)
        show(p);
    return !interrupted();
}

void progress_end(progress *p)
{
    if (p->shown && p->percent >= 0)
        fputs("\r\033[K", stderr);
    p->percent = -1;
}
