#!/bin/bash
# examples/tiny-writer: what its firmware writes on an emulated board is what `lookupc generate` writes here with the same weights and
# scalar kernels, and what its README quotes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LOOKUPC=${LOOKUPC:-$PWD/build/lookupc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for program in arm-none-eabi-gcc qemu-system-arm; do
    command -v $program >/dev/null || { echo "skipped: $program is missing"; exit 77; }
done

# compare TARGET SEED PROMPT
compare() {
    local folder=$work/$1-$2 status=0
    examples/tiny-writer/make.sh -w -m "$1" -s "$2" -p "$3" "$folder" >"$work/log" 2>&1 || status=$?
    [[ $status == 0 ]] || { echo "FAILED make.sh on $1: $(cat "$work/log")"; exit 1; }
    printf '%s' "$3" >"$work/expected"
    "$LOOKUPC" generate "$folder/tiny_writer.lua" --weights "$folder/tiny_writer.safetensors" --type i8 --cache i8 --isa scalar \
        --seed "$2" --temperature 0.8 --tokens 128 --stop $'\n\n' "$3" >>"$work/expected" 2>"$work/log"
    sed '$d' "$folder/tiny_writer-$1.txt" >"$work/written"
    (($(wc -c <"$work/written") > ${#3} + 20)) || { echo "FAILED $1: hardly a word: $(cat "$work/written")"; exit 1; }
    diff "$work/expected" "$work/written" || { echo "FAILED $1, seed $2: other text than lookupc generate's"; exit 1; }
    echo "ok     tiny-writer on $1, seed $2: $(wc -c <"$work/written") bytes"
}

# The README quotes the first seed's text, in lines of its own.
quoted() {
    local readme=examples/tiny-writer/README.md
    diff <(sed -n '0,/^\x60\x60\x60$/d;/^\x60\x60\x60$/q;p' $readme | paste -sd ' ') <(paste -sd ' ' "$work/written") ||
        { echo "FAILED $readme quotes another text"; exit 1; }
    grep -qF -- "-p 'hacker:' -s $1 " $readme || { echo "FAILED $readme has another command"; exit 1; }
}

seeds=(11) targets=(cortex-m33)
(($(lua5.4 tests/effort.lua firmware))) && seeds=(11 1 2) targets=(cortex-m33 cortex-m7)
for seed in "${seeds[@]}"; do
    for target in "${targets[@]}"; do
        compare "$target" "$seed" 'hacker:'
        [[ $seed != 11 ]] || quoted 11
    done
done
