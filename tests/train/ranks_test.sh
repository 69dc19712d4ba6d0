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

# under_mpirun N COMMAND...
under_mpirun() {
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none mpirun --oversubscribe -np "$@"
}

# ranks N: trains on N ranks; the losses are in $folder/N.
ranks() {
    LOOKUPC_MPI=$module BIGRAM=$folder/$1 under_mpirun "$1" "$(dirname "$LOOKUPC")/lua_runner" . "$LOOKUPC" tests/train/ranks.lua \
        >"$folder/log" 2>&1 || fail "$1 ranks: $(cat "$folder/log")"
}

BIGRAM=$folder/one "$(dirname "$LOOKUPC")/lua_runner" . "$LOOKUPC" tests/train/ranks.lua >"$folder/log" || fail "$(cat "$folder/log")"
for count in 2 4; do
    ranks $count
    paste "$folder/one" "$folder/$count" | awk -v n=$count '
        function off(a, b) { return a > b ? a - b : b - a }
        off($1, $3) > 1e-4 || off($2, $4) > 1e-4 { print n " ranks, step " NR ": " $0; bad = 1 }
        END { exit bad || NR != 102 }' || fail "$count ranks give other losses"
    for ((rank = 1; rank < count; ++rank)); do
        cmp "$folder/$count.0" "$folder/$count.$rank" || fail "rank $rank of $count has other weights"
        cmp "$folder/$count.0.adam" "$folder/$count.$rank.adam" || fail "rank $rank of $count has other weights with Adam"
    done
done

# The command: the log of one process and those of two and four.
cat >"$folder/model.lua" <<'END'
return {
    name = "tiny_lm", d = 16, heads = 2, layers = 1, vocab = 256, positions = 16, skip = true,
    norm = { kind = "layernorm" }, attention = { context = 16 },
    ffn = { kind = "lookup", h = 4, tau = 4, projection = { kind = "bh4", block = 4 }, score = "gelu", neighbours = 2 },
    embedding = {}, output = { norm = { kind = "layernorm" }, head = {} },
    tokenizer = { kind = "bytes" }, checkpoint = "mingpt",
}
END
train=("$LOOKUPC" train "$folder/model.lua" --text README.md --steps 50 --batch 4 --isa scalar)
losses() { sed -nE 's/.*"loss":([^,]*).*/\1/p' "$1"; }
"${train[@]}" -o "$folder/alone.safetensors" >"$folder/log"
for count in 2 4; do
    under_mpirun $count "${train[@]}" -o "$folder/of$count.safetensors" >"$folder/log" 2>&1 || fail "$(<"$folder/log")"
    [[ $(grep -c '^wrote' "$folder/log") == 1 ]] || fail "$count ranks say: $(<"$folder/log")"
    paste <(losses "$folder/alone.jsonl") <(losses "$folder/of$count.jsonl") | awk '
        { off = $1 - $2; if (off > 1e-4 || off < -1e-4) bad = 1 }
        END { exit bad || NR != 50 }' || fail "the command has other losses on $count ranks"
done
under_mpirun 3 "${train[@]}" -o "$folder/three.safetensors" >"$folder/log" 2>&1 && fail "3 ranks share a batch of 4"
[[ $(grep '^lookupc' "$folder/log") == 'lookupc: --batch: 4: must be a multiple of the 3 ranks' ]] || fail "$(<"$folder/log")"

# A rank that dies ends the others; one process goes on.
under_mpirun 2 "${train[@]:0:5}" --steps 600 --batch 4 --isa scalar --evaluate 10 -o "$folder/dead.safetensors" >"$folder/log" 2>&1 &
mpirun=$!
until [[ -e $folder/dead.safetensors.resume ]]; do sleep 0.05; done
kill -9 "$(pgrep -P "$(pgrep -P $mpirun mpirun || echo $mpirun)" lookupc | head -1)"
wait $mpirun && fail "a rank died, and nobody noticed"
[[ -e $folder/dead.safetensors.resume && ! -e $folder/dead.safetensors ]] || fail "the checkpoint of two ranks is gone"
"${train[@]:0:5}" --steps 600 --batch 4 --isa scalar --evaluate 10 -o "$folder/dead.safetensors" --resume >"$folder/log" 2>&1 || fail "$(<"$folder/log")"
[[ $(tail -1 "$folder/log") == 'wrote '* ]] || fail "$(<"$folder/log")"
echo "1, 2 and 4 ranks: the same losses"
