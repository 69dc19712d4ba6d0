#!/bin/bash
# Whole models under valgrind, from a text to vectors and logits: nothing is read before it was written, or beside it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
lookupc=${LOOKUPC:-$PWD/build/lookupc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

command -v valgrind >/dev/null || { echo "skipped: valgrind is missing"; exit 77; }

cat >"$work/writer.lua" <<'END'
return {
    name = "writer", d = 32, heads = 2, layers = 2, vocab = 256, skip = true, norm = { kind = "rmsnorm" },
    attention = { context = 40, rope = {} },
    ffn = { kind = "lookup", h = 6, tau = 4, neighbours = 2, score = "gelu", projection = { kind = "bh4", block = 16 } },
    embedding = {}, output = { norm = { kind = "rmsnorm" }, head = {} }, tokenizer = { kind = "bytes" },
}
END
cp tests/firmware/sentences.lua tests/firmware/pieces.json "$work"

# model, what else the compiler gets, options of lookupc; valgrind knows no AVX-512
cases=("sentences -DENCODER" "writer -UENCODER --type i8 --projection i8" "writer -UENCODER --type bf16 --cache f16" "sentences -DENCODER --type i8 --activations i8")
sets=(scalar sse4 avx2)
read -ra here < <(lua5.4 tests/support/isa.lua "$lookupc")
all=$(lua5.4 tests/effort.lua transformers)
for number in "${!cases[@]}"; do
    ((all || number == 1)) || continue
    read -r model macro options <<<"${cases[number]}"
    read -ra options <<<"$options"
    isa=${sets[number % 3]}
    [[ " ${here[*]} " == *" $isa "* ]] || isa=scalar
    bundle=$work/$number
    "$lookupc" emit "$work/$model.lua" "${options[@]}" --isa "$isa" --single-file -o "$bundle" >"$work/log"
    "$lookupc" sample "$work/$model.lua" -o "$bundle.safetensors" >>"$work/log"
    pack=("${options[@]}")
    [[ " ${options[*]} " != *' --cache '* ]] || pack=("${options[@]:0:2}") # what is cached is nothing to pack
    "$lookupc" pack "$work/$model.lua" "${pack[@]}" --weights "$bundle.safetensors" -o "$bundle.bin" >>"$work/log"
    gcc -std=c11 -O1 -g "$macro" -I"$bundle" tests/model/memory.c "$bundle"/*.c -o "$bundle/program" 2>>"$work/log"
    # Attention reads tiles of 32 positions whole, and drops those that are not there yet. Where it converts or multiplies them before, valgrind
    # cannot see that: then memory starts as zeros, and other bytes must not change the results.
    fill=()
    [[ "${options[*]}" != *' f16' && "${options[*]}" != *'--activations i8' ]] || fill=(0)
    valgrind -q --error-exitcode=9 "$bundle/program" "$bundle.bin" "${fill[@]}" 2>"$work/errors" >"$work/results" || {
        echo "FAILED valgrind: $model ${options[*]}, $isa: exit status $?: $(head -40 "$work/errors")"
        exit 1
    }
    [[ -s $work/results && ! -s $work/errors ]] || { echo "FAILED valgrind: $model: $(cat "$work/errors")"; exit 1; }
    for byte in 0 85 127 255; do
        "$bundle/program" "$bundle.bin" $byte | cmp - "$work/results" || { echo "FAILED $model ${options[*]}, $isa: memory of $byte"; exit 1; }
    done
    echo "ok     valgrind: $model ${options[*]}, $isa"
done
