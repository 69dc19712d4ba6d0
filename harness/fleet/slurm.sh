#!/bin/bash
# Tunes a model on many machines by Slurm: one job array, one shard of the candidates a job, one whole machine a job.
#
#   slurm.sh submit MODEL.lua FOLDER [--shards 8] [--time 5m] [--constraint FEATURE] [--partition NAME] [--at-once N] [-- OPTIONS OF lookupc tune]
#   slurm.sh status FOLDER       # every shard; exit status 0: all done, 3: some wait or run, 4: none does, but some are unfinished
#   slurm.sh merge FOLDER        # takes the logs into the store of this machine (LOOKUPC_STORE)
#
# FOLDER and lookupc (build/lookupc, or LOOKUPC) must be where all machines see them. --constraint names a feature that the cluster's
# nodes of one kind of CPU have: shards of different CPUs do not add up. `submit` again with the same arguments submits what is neither
# done nor queued; a killed shard goes on where its log ends.
set -euo pipefail
me=slurm.sh
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
lookupc=${LOOKUPC:-$here/../../build/lookupc}
# shellcheck source-path=SCRIPTDIR source=fleet.sh
source "$here/fleet.sh"

# active: "NUMBER STATE" of the shards of this folder that Slurm has in its queue.
active() {
    local queue
    queue=$(squeue --me --noheader --array --format='%F %K %T') || fail "squeue failed: does Slurm run?"
    [[ ! -e $folder/jobs ]] || awk 'NR == FNR { own[$1]; next } $1 in own { print $2, tolower($3) }' "$folder/jobs" - <<<"$queue"
}

# check_constraint TEXT: fails for a feature that no node has; Slurm would let its jobs wait for ever.
check_constraint() {
    local features
    features=$(sinfo --noheader --format=%f) || fail "sinfo failed: does Slurm run?"
    [[ ! $1 =~ ^[A-Za-z0-9_.-]+$ ]] || grep -qxF -e "$1" < <(tr , '\n' <<<"$features") || fail "--constraint: $1: no node has this feature"
}

submit() {
    local own=(constraint partition at-once) constraint='' partition='' at_once='' list job minutes arguments queued
    parse_run "$@"
    [[ -z $at_once ]] || whole --at-once "$at_once" 1 10000
    command -v sbatch >/dev/null || fail "sbatch: is not there: install slurm-wlm or Slurm's client"
    [[ -z $constraint ]] || check_constraint "$constraint"
    begin "$folder_given"
    queued=$(active | cut -d' ' -f1)
    list=$(comm -23 <(unfinished | sort) <(sort <<<"$queued") | sort -n | paste -sd,)
    if [[ -z $list ]]; then
        echo "nothing to submit: every shard is done or queued"
        return
    fi
    minutes=$((10 + 2 * $(seconds "$time") / 60)) # compiling and the last round may take longer than the time
    arguments=(--parsable --job-name="lookupc-$(basename "$model" .lua)" --array="$list${at_once:+%$at_once}" --nodes=1 --ntasks=1 --exclusive --time="$minutes"
        --requeue --open-mode=append --output="$folder/shard-%a-of-$shards.out" --chdir="$folder")
    [[ -z $constraint ]] || arguments+=(--constraint="$constraint")
    [[ -z $partition ]] || arguments+=(--partition="$partition")
    job=$(sbatch "${arguments[@]}" --wrap="exec $(printf '%q %q' "$here/shard.sh" "$folder") \$SLURM_ARRAY_TASK_ID" 2>&1) || fail "$(xargs -d "\n" <<<"$job")"
    echo "${job%%;*}" >>"$folder/jobs"
    echo "submitted shards $list as job ${job%%;*}"
}

command=${1-}
shift || usage
case $command in
submit) submit "$@" ;;
status)
    resume "${1-}"
    lines=$(active)
    show_status "$lines"
    ;;
merge)
    resume "${1-}"
    merge_logs
    ;;
*) usage ;;
esac
