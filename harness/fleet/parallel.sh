#!/bin/bash
# Tunes a model on a few machines by GNU parallel, through ssh: one shard of the candidates a machine at a time.
#
#   parallel.sh run MODEL.lua FOLDER [--shards 8] [--time 5m] [--hosts HOST,HOST [--runner CMD]] [-- OPTIONS OF lookupc tune]
#   parallel.sh status FOLDER       # every shard; exit status 0: all done, 4: some are not
#   parallel.sh merge FOLDER        # takes the logs into the store of this machine (LOOKUPC_STORE)
#
# FOLDER and lookupc (build/lookupc, or LOOKUPC) must be where all machines see them; all machines should have one kind of CPU. Without
# --hosts all shards run here, one after the other; ":" is this machine among others. `run` again with the same arguments runs what is not
# done; a killed shard goes on where its log ends.
#
# With --runner all shards run here, as many at a time as there are hosts, and time their candidates there: "CMD HOST" is the --runner of
# lookupc tune, such as examples/runners/ssh. Then hosts need neither lookupc nor a shared folder; --cc, behind --, names their compiler.
# shellcheck disable=SC2119
set -euo pipefail
me=parallel.sh
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
lookupc=${LOOKUPC:-$here/../../build/lookupc}
# shellcheck source-path=SCRIPTDIR source=fleet.sh
source "$here/fleet.sh"

run() {
    local own=(hosts runner) hosts=: runner='' there='' list where=()
    parse_run "$@"
    command -v parallel >/dev/null || fail "parallel: is not there: install parallel"
    where=(--jobs 1 --sshlogin "$hosts")
    if [[ -n $runner ]]; then
        [[ ,$hosts, != *,:,* && ,$hosts, != *,,* ]] || fail "--runner: needs --hosts with names of other machines"
        where=(--jobs "$(tr , '\n' <<<"$hosts" | wc -l)")
        there="$(printf '%q %q' "$runner" "$hosts") {%}"
    fi
    begin "$folder_given"
    list=$(unfinished)
    if [[ -z $list ]]; then
        echo "nothing to run: every shard is done"
        return
    fi
    # shellcheck disable=SC2086
    parallel --will-cite "${where[@]}" --line-buffer --joblog "$folder/parallel.log" \
        "$(printf '%q %q' "$here/shard.sh" "$folder") {} $there >> $(printf '%q' "$folder")/shard-{}-of-$shards.out 2>&1" ::: $list || true
    show_status
}

command=${1-}
shift || usage
case $command in
run) run "$@" ;;
status)
    resume "${1-}"
    show_status
    ;;
merge)
    resume "${1-}"
    merge_logs
    ;;
*) usage ;;
esac
