#!/bin/bash
# Runs one shard of a run: `shard.sh FOLDER I`, on the machine that measures, or `shard.sh FOLDER I RUNNER HOSTS K`, for the K-th of the hosts.
# A shard that was killed goes on where its log ends, one that is done is left alone.
set -euo pipefail
me=shard.sh
source "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/fleet.sh"

resume "${1-}"
whole shard "${2-}" 1 "$shards"
stem=$(stem "$2")
exec 9>"$stem.lock"
flock -n 9 || fail "shard $2 of $folder is being run by another job"
[[ ! -e $stem.done ]] || exit 0
host=${SLURMD_NODENAME:-$(uname -n)}
if [[ -n ${3-} ]]; then
    host=$(cut -d, -f"$5" <<<"$4")
    options+=(--runner "$3 $host")
fi
echo "shard $2 of $shards on $host"
"$lookupc" tune "$model" --shard "$2/$shards" --out "$stem.jsonl" --time "$time" "${options[@]}" 9>&- ||
    (($? == 3)) # finished, but nothing was decided
: >"$stem.done"
