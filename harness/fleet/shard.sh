#!/bin/bash
# Runs one shard of a run: `shard.sh FOLDER I`, on the machine that measures. A shard that was killed goes on where its log ends, one that is
# done is left alone.
set -euo pipefail
me=shard.sh
source "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/fleet.sh"

resume "${1-}"
whole shard "${2-}" 1 "$shards"
stem=$(stem "$2")
exec 9>"$stem.lock"
flock -n 9 || fail "shard $2 of $folder is being run by another job"
[[ ! -e $stem.done ]] || exit 0
echo "shard $2 of $shards on ${SLURMD_NODENAME:-$(uname -n)}"
"$lookupc" tune "$model" --shard "$2/$shards" --out "$stem.jsonl" --time "$time" "${options[@]}" 9>&- ||
    (($? == 3)) # finished, but nothing was decided
: >"$stem.done"
