/* The processes that train together, and signals that wait for the end of a step. */
#include "harness/train/run_state.h"

#include "gen/host/host.h"
#include "gen/host/progress.h"

#include <lauxlib.h>

#include <signal.h>

static const ranks *all_ranks;

const ranks *train_ranks(void)
{
    return all_ranks;
}

/* train.join(path) -> number of this rank, number of ranks | nil, message: joins the processes that mpirun started, by the module at path.
   train.together(number) -> the sum over all ranks. train.words(text): what is said last if another rank dies. train.leave(): waits for
   them, and ends what was joined. */
int train_join(lua_State *L)
{
    char error[ERROR_SIZE];
    loaded_library module;
    ranks_join *join;
    if (!library_open(&module, luaL_checkstring(L, 1), LIBRARY_SHOWN, error, sizeof error) || /* MPI's own modules look for it */
        !library_find(&module, RANKS_JOIN, &join, error, sizeof error))
        return host_fail(L, error);
    all_ranks = join();
    lua_pushinteger(L, (lua_Integer)all_ranks->number);
    lua_pushinteger(L, (lua_Integer)all_ranks->count);
    return 2;
}

int train_together(lua_State *L)
{
    double value = luaL_checknumber(L, 1);
    if (all_ranks)
        all_ranks->sum_doubles(&value, 1);
    lua_pushnumber(L, value);
    return 1;
}

int train_words(lua_State *L)
{
    const char *words = luaL_checkstring(L, 1);
    if (all_ranks)
        all_ranks->words(words);
    return 0;
}

int train_leave(lua_State *L)
{
    (void)L;
    if (all_ranks)
        all_ranks->leave();
    all_ranks = NULL;
    return 0;
}

static sigset_t held, before;

int train_hold(lua_State *L)
{
    (void)L;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &held, &before);
    return 0;
}

int train_interrupted(lua_State *L)
{
    lua_pushboolean(L, progress_interrupted());
    return 1;
}

int train_release(lua_State *L)
{
    (void)L;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return 0;
}

int train_end(lua_State *L)
{
    if (all_ranks)
        all_ranks->part();
    train_release(L);
    raise(SIGTERM); /* it was another rank that was interrupted */
    return 0;
}
