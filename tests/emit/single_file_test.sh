#!/bin/bash
# A bundle in one C file compiles without compiler flags and without a warning, and gives the bytes of the bundle of several.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
lookupc=${LOOKUPC:-$PWD/build/lookupc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED single_file: $*"
    exit 1
}

warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wcast-align -Wcast-qual -Wfloat-equal -Werror)
compilers=(gcc clang) level=-O2
models=("tiny" "tiny --tables i8 --projection i16" "tiny_skipless --type bf16 --cache i8" "lookup_skipless --type i8" "sentence_encoder" "gpt_nano_sort" "tiny --arithmetic integer"
    "tiny --tables i8 --isa scalar,avx2,neon,dotprod,sve,i8mm" "tiny --tables i8 --projection i8 --isa scalar,avx2,avx_vnni,avx512"
    "tiny_skipless --type bf16 --activations bf16 --isa scalar,avx2,avx512,avx512_bf16")
if [[ ${LOOKUPC_EFFORT-} != full ]]; then
    compilers=(gcc) level=-O1
    models=("sentence_encoder --isa sse4,avx2 --type f16")
fi

for row in "${models[@]}"; do
    read -ra words <<<"$row"
    name=${words[0]} options=("${words[@]:1}")
    [[ $row == *--isa* ]] || options+=(--isa "scalar,sse4,avx2,avx512")
    rm -rf "$work/one"
    "$lookupc" emit "gen/models/$name.lua" "${options[@]}" --single-file -o "$work/one" >"$work/log" || fail "$row: emit"
    [[ $(cd "$work/one" && echo *) =~ ^LICENSE\ MANIFEST.json\ [a-z_]+\.c\ [a-z_]+\.h$ ]] || fail "$row: files $(ls "$work/one")"
    [[ $("$lookupc" check "$work/one") == "$work/one: fresh" ]] || fail "$row: check"
    own=("${compilers[@]}")
    if [[ $row == *neon* ]] && command -v aarch64-linux-gnu-gcc >/dev/null; then own+=(aarch64-linux-gnu-gcc); fi
    for cc in "${own[@]}"; do
        "$cc" -std=c99 "$level" -ffreestanding "${warnings[@]}" -c "$work"/one/*.c -o "$work/$name.$cc.o" || fail "$row: $cc"
        [[ -z $(nm -u "$work/$name.$cc.o") ]] || fail "$row: $cc needs $(nm -u "$work/$name.$cc.o")"
    done
    echo "ok     single_file: $row"
done

# Windows: before clang 19 immintrin.h leaves out there what no compiler flag switches on. macOS has no SVE.
while read -r target name options; do
    read -ra words <<<"$options"
    rm -rf "$work/one"
    "$lookupc" emit "gen/models/$name.lua" "${words[@]}" --single-file -o "$work/one" >"$work/log" || fail "$name $options: emit"
    for cc in clang clang-19; do
        [[ $cc == clang || $target != x86_64* || ${LOOKUPC_EFFORT-} == full ]] || continue
        [[ $cc == clang-19 || $target == x86_64* ]] || continue
        if ! command -v $cc >/dev/null; then
            echo "skipped: single_file: $cc for $target"
        elif ! $cc --target="$target" -std=c99 -ffreestanding "${warnings[@]}" -c "$work/one/$name.c" -o "$work/one/$name.o" 2>"$work/log"; then
            fail "$name $options: $cc for $target: $(grep -m1 error "$work/log")"
        fi
    done
done <<'END'
x86_64-pc-windows-msvc tiny --tables i8 --projection i8 --isa scalar,sse4,avx2,avx_vnni,avx512
x86_64-pc-windows-msvc tiny --tables f16 --isa sse4
x86_64-pc-windows-msvc tiny_skipless --type f16 --isa avx2
x86_64-pc-windows-msvc tiny_skipless --type bf16 --activations bf16 --isa avx512,avx512_bf16
arm64-apple-macos11 tiny --isa scalar,neon,sve
END
echo "ok     single_file: clang for Windows and macOS"

"$lookupc" emit gen/models/tiny.lua -o "$work/several" >"$work/log"
"$lookupc" emit gen/models/tiny.lua -o "$work/single" --single-file >"$work/log"
"$lookupc" sample gen/models/tiny.lua -o "$work/w.safetensors" >"$work/log"
"$lookupc" pack gen/models/tiny.lua --weights "$work/w.safetensors" -o "$work/tiny.bin" >"$work/log"
/usr/bin/python3 -c 'import sys, numpy as np; np.random.default_rng(1).standard_normal((7, 64)).astype("<f4").tofile(sys.argv[1])' "$work/x"
for cc in "${compilers[@]}"; do
    objects=()
    for file in "$work"/several/*.c; do
        flags=()
        [[ $file != *__avx2.c ]] || flags=(-mavx2 -mfma)
        [[ $file != *__avx512.c ]] || flags=(-mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma)
        "$cc" -std=c11 "$level" "${flags[@]}" -c "$file" -o "$file.o"
        objects+=("$file.o")
    done
    "$cc" -std=c11 "$level" -I"$work/several" tests/consumers/example.c "${objects[@]}" -o "$work/several/example"
    "$cc" -std=c11 "$level" -I"$work/single" tests/consumers/example.c "$work/single/tiny.c" -o "$work/single/example"
    (cd "$work" && several/example <x >several.y && single/example <x >single.y) || fail "$cc: example"
    [[ -s $work/single.y ]] || fail "$cc: no output"
    cmp "$work/several.y" "$work/single.y" || fail "$cc: one file gives other bytes"
    echo "ok     single_file: $cc: the bytes of several files"
done
