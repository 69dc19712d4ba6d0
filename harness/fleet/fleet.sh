# shellcheck shell=bash disable=SC2154,SC2119
# What slurm.sh and parallel.sh share: the folder of a run with its settings, and the state of every shard. Sourced, not run.
#
#   FOLDER/run                  model, program, number of shards, time and options; the same for as long as the folder lives
#   FOLDER/shard-I-of-N.jsonl   the log of shard I: what lookupc tuned merge takes
#   FOLDER/shard-I-of-N.out     what its runs have printed
#   FOLDER/shard-I-of-N.done    there once the shard is finished
#   FOLDER/jobs                 the job arrays that were submitted (slurm.sh)
#
# To measure a shard anew remove its files.

fail() {
    echo "$me: $*" >&2
    exit 1
}

# usage: what the head of the script that was called says of its words.
usage() {
    sed -n '4,6s/^# *//p' "$0" >&2
    exit 2
}

# whole NAME VALUE FIRST LAST: fails unless VALUE is an integer in this range.
whole() {
    if [[ ! $2 =~ ^[1-9][0-9]{0,8}$ ]] || (($2 < $3 || $2 > $4)); then fail "$1: $2: must be an integer from $3 to $4"; fi
}

# seconds TIME: 90, 90s, 1.5m or 2h in whole seconds, rounded up.
seconds() {
    [[ $1 =~ ^[0-9]+(\.[0-9]*)?[smh]?$ ]] || fail "--time: $1: must be a number of seconds, or one with s, m or h"
    awk -v "t=$1" 'BEGIN { u = substr(t, length(t)); s = t * (u == "h" ? 3600 : u == "m" ? 60 : 1); print int(s) + (s > int(s)) }'
}

# begin FOLDER: makes the folder for the settings model, lookupc, shards, time and options, or makes sure that it is of the same.
begin() {
    local wanted
    [[ -f $model ]] || fail "$model: there is no such model file"
    [[ -x $lookupc ]] || fail "$lookupc: is no program: build lookupc first, or name it in LOOKUPC"
    [[ $1 != *[%\\]* ]] || fail "$1: a folder's name may hold no % or \\"
    model=$(realpath "$(dirname "$model")")/$(basename "$model") # a link keeps its folder, from which its tokenizer is named
    lookupc=$(realpath "$lookupc")
    wanted=$(
        printf '%s=%q\n' model "$model" lookupc "$lookupc" shards "$shards" time "$time" digest "$(cat "$model" "$lookupc" | sha256sum | cut -c-16)"
        printf 'options=(%s)\n' "${options[*]@Q}"
    )
    mkdir -p "$1" || fail "$1: cannot be made"
    if [[ -e $1/run ]]; then
        [[ $(cat "$1/run") == "$wanted" ]] || fail "$1: was begun with another model, program or options: give these again, or another folder"
    else
        printf '%s\n' "$wanted" >"$1/run.new"
        mv "$1/run.new" "$1/run"
    fi
    folder=$(realpath "$1")
}

# resume FOLDER: the settings of a folder that `begin` made.
resume() {
    [[ -f ${1-}/run ]] || fail "${1-}: is no folder of a run"
    # shellcheck disable=SC1091
    source "$1/run"
    folder=$(realpath "$1")
}

stem() { echo "$folder/shard-$1-of-$shards"; }

# unfinished: the numbers of the shards that are not done.
unfinished() {
    local i
    for ((i = 1; i <= shards; ++i)); do [[ -e $(stem $i).done ]] || echo $i; done
}

# show_status [LINES]: the state of every shard, and what its races decided or its job said last; LINES are "NUMBER STATE" of those that wait or run somewhere. Exit status 0: all are done,
# 3: some wait or run, 4: nothing runs, but some are unfinished.
show_status() {
    local i state log records last done=0 active=0
    declare -A at=()
    while read -r i state; do [[ -z $i ]] || at[$i]=$state; done <<<"${1-}"
    for ((i = 1; i <= shards; ++i)); do
        log=$(stem $i).jsonl records=0 last=
        [[ ! -e $log ]] || records=$(wc -l <"$log")
        if [[ -e $(stem $i).done ]]; then
            state='done'
            done=$((done + 1))
            last=$(sed -n 's/.*"decided":"\([^"]*\)".*"regime":"\([^"]*\)".*/\2 \1/p' "$log" | paste -sd, | sed 's/,/, /g')
        elif [[ -n ${at[$i]-} ]]; then
            state=${at[$i]}
            active=$((active + 1))
        elif [[ -e $(stem $i).out ]]; then
            state=unfinished
            last=$(tail -n 1 "$(stem $i).out")
        else
            state="not started"
        fi
        printf 'shard %3d  %-12s %6d records  %s\n' $i "$state" "$records" "$last"
    done
    echo "$done of $shards shards done, $active queued or running"
    ((done == shards)) && return 0
    ((active == 0)) && return 4
    return 3
}

# merge_logs: takes the logs of all shards, finished or not, into the store of measurements.
merge_logs() {
    local logs=() open i kinds
    for ((i = 1; i <= shards; ++i)); do [[ ! -e $(stem $i).jsonl ]] || logs+=("$(stem $i).jsonl"); done
    ((${#logs[@]})) || fail "$folder: no shard has written a log yet"
    open=$(unfinished | xargs)
    [[ -z $open ]] || echo "$me: unfinished shards: $open" >&2
    kinds=$(grep -aho '"cpu_family":.*"cpu_vendor":"[^"]*"' "${logs[@]}" | sort -u | wc -l)
    ((kinds < 2)) || echo "$me: the shards ran on $kinds kinds of CPU, each of which has but a part of them" >&2
    "$lookupc" tuned merge "${logs[@]}"
}

# parse_run ARGUMENTS: MODEL.lua FOLDER [OPTIONS] [-- OPTIONS OF lookupc tune] into model, folder_given, shards, time, options and, for the
# options that the array own names, their variables.
parse_run() {
    model=${1-} folder_given=${2-} shards=8 time=5m options=()
    [[ -n $model && -n $folder_given ]] || usage
    shift 2
    while (($#)); do
        case $1 in
        --)
            options=("${@:2}")
            break
            ;;
        --shards | --time) ;;
        --*) [[ " ${own[*]} " == *" ${1#--} "* ]] || fail "$1: is no option" ;;
        *) fail "$1: is no option; those of lookupc tune come after --" ;;
        esac
        (($# > 1)) || fail "$1: needs a value"
        printf -v "$(tr - _ <<<"${1#--}")" %s "$2"
        shift 2
    done
    whole --shards "$shards" 2 10000
    seconds "$time" >/dev/null
}
