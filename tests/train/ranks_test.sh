#!/bin/bash
# Training on 2 and 4 ranks gives the losses of one, to 1e-4 over 50 steps, and all ranks the same weights; interrupts save, and a rank
# that dies ends the others with one line.
set -euo pipefail
module=$(dirname "$LOOKUPC")/lookupc-mpi.so
if [[ ! -e $module ]] || ! command -v mpirun >/dev/null; then
    echo "skipped: built without LOOKUPC_MPI, or mpirun is missing"
    exit 77
fi
deaths=$((1 + $(lua5.4 tests/effort.lua training)))
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "FAILED $*" >&2
    exit 1
}

# under_mpirun N COMMAND...
under_mpirun() {
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none env --default-signal=INT \
        mpirun --oversubscribe -np "$@"
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
        END { exit bad || NR != 104 }' || fail "$count ranks give other losses"
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

# The first rank's clock ends a run of a time for all, at the same step.
under_mpirun 2 "${train[@]:0:5}" --time 1s --batch 4 --isa scalar -o "$folder/timed.safetensors" >"$folder/log" 2>&1 || fail "$(<"$folder/log")"
[[ $(tail -1 "$folder/timed.jsonl") == *'"share":1.0,'* ]] || fail "a run of a time: $(<"$folder/log")"

# The figures of tables are of the tokens of all ranks: where weights stay as they are, those of one process.
still=("${train[@]}" --rate 1e-12 --table-rate 1e-12 --save-every 0.001s)
tables() { sed -nE 's/.*"tables":(\[\{.*\}\]).*/\1/p' "$1"; }
"${still[@]}" -o "$folder/still.safetensors" >"$folder/log"
[[ $(tables "$folder/still.jsonl" | wc -l) == 17 ]] || fail "validations: $(<"$folder/still.jsonl")"
under_mpirun 2 "${still[@]}" -o "$folder/still2.safetensors" >"$folder/log" 2>&1 || fail "$(<"$folder/log")"
cmp <(tables "$folder/still.jsonl") <(tables "$folder/still2.jsonl") || fail "2 ranks count other uses of rows than one process"
under_mpirun 3 "${train[@]}" -o "$folder/three.safetensors" >"$folder/log" 2>&1 && fail "3 ranks share a batch of 4"
[[ $(grep '^lookupc' "$folder/log") == 'lookupc: --batch: 4: must be a multiple of the 3 ranks' ]] || fail "$(<"$folder/log")"

# An interrupt of mpirun saves; a rank that dies ends the others with one line; the losses of what is resumed are those of an undisturbed run.
# Between its signals mpirun reads no output for a second: a rank that prints a hundred lines then would not end.
long=("${train[@]:0:5}" --steps 1000000 --batch 4 --isa scalar --evaluate 50)
resume=()

# begin NAME: two ranks start, or go on, and train for 3 more lines of the log. Their mpirun is number $mpirun.
begin() {
    local lines=0
    [[ ! -e $folder/$1.jsonl ]] || lines=$(wc -l <"$folder/$1.jsonl")
    under_mpirun 2 "${long[@]}" -o "$folder/$1.safetensors" "${resume[@]}" >"$folder/log" 2>"$folder/errors" &
    shell=$!
    until [[ -e $folder/$1.safetensors.resume && $(wc -l <"$folder/$1.jsonl") -gt $((lines + 3)) ]]; do sleep 0.02; done
    mpirun=$(pgrep -P $shell mpirun || echo $shell)
}

# ended WORDS: mpirun ends, with one line of lookupc that holds these words.
ended() {
    local said
    wait "$shell" && fail "$1: mpirun says that all went well"
    said=$(grep '^lookupc: ' "$folder/errors" | grep -v collapse) || true
    [[ $said =~ ^lookupc:\ $1$ ]] || fail "instead of $1: $(<"$folder/errors")"
    resume=(--resume)
}

begin cut
kill -INT "$mpirun"
ended 'interrupted at step [0-9]+ of 1000000; --resume goes on'
for ((rank = 0; rank < deaths; ++rank)); do
    begin cut
    kill -9 "$(pgrep -P "$mpirun" lookupc | sort -n | sed -n "$((rank + 1))p")"
    ended "rank $rank died; the last good checkpoint is of step [0-9]+0: $folder/cut.safetensors.resume; --resume goes on"
done
begin cut
kill "$mpirun"
ended 'interrupted at step [0-9]+ of 1000000; --resume goes on'
resume=()
begin whole
steps() { sed -nE 's/.*("loss":[^,]*).*("step":[0-9]*).*/\2 \1/p' "$folder/$1.jsonl"; }
until (($(steps whole | wc -l) >= $(steps cut | wc -l))); do sleep 0.05; done
kill "$mpirun"
ended 'interrupted .*'
cmp <(steps whole | head -n "$(steps cut | wc -l)") <(steps cut) || fail "a disturbed run of two ranks has other losses"
rm "$folder/log" # lines of the run before
"${long[@]}" -o "$folder/cut.safetensors" --resume >"$folder/log" 2>"$folder/errors" &
shell=$!
until grep -q '^step' "$folder/log" 2>/dev/null; do sleep 0.02; done
kill "$shell"
ended 'interrupted .*'
echo "1, 2 and 4 ranks: the same losses"
