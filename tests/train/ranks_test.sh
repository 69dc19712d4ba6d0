#!/bin/bash
# Training on 2 and 4 ranks gives the losses of one, to 1e-4 over 50 steps, and all ranks the same weights; a rank that dies ends the others.
set -euo pipefail
module=$(dirname "$LOOKUPC")/lookupc-mpi.so
if [[ ! -e $module ]] || ! command -v mpirun >/dev/null; then
    echo "skipped: built without LOOKUPC_MPI, or mpirun is missing"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "FAILED $*" >&2
    exit 1
}

# ranks N: trains on N ranks; the losses are in $folder/N.
ranks() {
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none LOOKUPC_MPI=$module BIGRAM=$folder/$1 \
        mpirun --oversubscribe -np "$1" "$(dirname "$LOOKUPC")/lua_runner" . "$LOOKUPC" tests/train/ranks.lua >"$folder/log" 2>&1 ||
        fail "$1 ranks: $(cat "$folder/log")"
}

BIGRAM=$folder/one "$(dirname "$LOOKUPC")/lua_runner" . "$LOOKUPC" tests/train/ranks.lua >"$folder/log" || fail "$(cat "$folder/log")"
for count in 1 2 4; do
    ranks $count
    paste "$folder/one" "$folder/$count" | awk -v n=$count '
        function off(a, b) { return a > b ? a - b : b - a }
        off($1, $3) > 1e-4 || off($2, $4) > 1e-4 { print n " ranks, step " NR ": " $0; bad = 1 }
        END { exit bad || NR != 51 }' || fail "$count ranks give other losses"
    for ((rank = 1; rank < count; ++rank)); do
        cmp "$folder/$count.0" "$folder/$count.$rank" || fail "rank $rank of $count has other weights"
    done
done
cmp "$folder/one.0" "$folder/1.0" || fail "one rank is not a process alone"
echo "1, 2 and 4 ranks: the same losses"
