/* The progress of a long job: a bar on a terminal, and whether somebody wants it to end. */
#include "gen/host/progress.h"

#include "gen/host/host.h"

#include <signal.h>
#include <stdio.h>

enum { BAR_WIDTH = 40 };

progress progress_start(double total)
{
    return (progress){.total = total, .label = "", .percent = -1};
}

bool progress_interrupted(void)
{
    static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t waiting;
    if (sigpending(&waiting) != 0)
        return false;
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; ++i) {
        struct sigaction action;
        if (sigismember(&waiting, interrupts[i]) == 1 && sigaction(interrupts[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            return true;
    }
    return false;
}

static void show(progress *p)
{
    const double share = p->total > 0.0 && p->done < p->total ? p->done / p->total : 1.0;
    const int percent = (int)(100.0 * share);
    if (percent == p->percent)
        return;
    p->percent = percent;
    char bar[BAR_WIDTH + 1], text[BAR_WIDTH + 64];
    for (int i = 0; i < BAR_WIDTH; ++i)
        bar[i] = (double)i < share * BAR_WIDTH ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    snprintf(text, sizeof text, "[%s] %3d %%  %.40s", bar, percent, p->label);
    host_show_status(text);
}

bool progress_add(progress *p, double work)
{
    if (p == NULL)
        return true;
    p->done += work;
    show(p);
    return !progress_interrupted();
}

void progress_end(progress *p)
{
    host_show_status("");
    p->percent = -1;
}
