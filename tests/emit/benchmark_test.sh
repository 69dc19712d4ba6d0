#!/bin/bash
# A bundle's own benchmark: it compiles without a warning, times each instruction set that this CPU runs, finds kernels that are wrong, and
# says in one line what it cannot read.
set -euo pipefail
unset LOOKUPC_CPU # emitted code reads none
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD lookupc=${LOOKUPC:-$PWD/build/lookupc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED benchmark: $*"
    exit 1
}

ok() { echo "ok     benchmark: $* ($SECONDS s from the start)"; }

full() { [[ ${LOOKUPC_EFFORT-} == full ]]; }

# refuses LINE OPTIONS...: emit prints that line, and exits with 2.
refuses() {
    local status=0
    "$lookupc" emit "${@:2}" >"$work/log" 2>&1 || status=$?
    [[ $status == 2 && $(<"$work/log") == "lookupc: $1" ]] || fail "emit ${*:2}: $status, $(<"$work/log")"
}

refuses '--batch: 1: needs --benchmark' gen/models/tiny.lua -o "$work/none" --batch 1
refuses '--batch: "x": must be integers from 1 on, separated by commas' gen/models/tiny.lua -o "$work/none" --benchmark --batch 1,x
refuses '--batch: 300: must be at most 256, of tiny_skipless' gen/models/tiny_skipless.lua -o "$work/none" --benchmark --batch 1,300
refuses '--python: cannot be given beside --benchmark' gen/models/tiny.lua --python "$work/none" --benchmark
refuses '--web: cannot be given beside --benchmark' gen/models/tiny.lua --web "$work/none" --benchmark
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' look '##up' >"$work/vocab.txt"
echo "return { name = 'words', tokenizer = { file = 'vocab.txt', lower = true } }" >"$work/words.lua"
refuses '--benchmark: words: is for a LookupFFN, a transformer or a whole model, not for a tokenizer' "$work/words.lua" -o "$work/none" --benchmark
[[ ! -e $work/none ]] || fail "a refused emit writes"
ok "options that do not go together are refused"

warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Wundef -Wcast-align -Wcast-qual -Wvla -Wold-style-cast
    -Wfloat-conversion -Wfloat-equal -Wunused-macros -Wswitch-default -Werror)
if ! echo '#include <benchmark/benchmark.h>' | g++ -x c++ -fsyntax-only - 2>"$work/log"; then
    echo "skipped: benchmark: all that is compiled needs libbenchmark-dev"
    exit 77
fi
compilers=(g++)
full && compilers=(clang++ g++)

# bundle NAME MODEL OPTIONS...: emits it into $work/NAME, compiles its sources and its benchmark, and links that.
bundle() {
    local folder=$work/$1 name=${2##*/} compiler standard=14
    name=${name%.lua}
    "$lookupc" emit "$2" --benchmark "${@:3}" -o "$folder" --quiet || fail "emit $*"
    [[ $("$lookupc" check "$folder") == "$folder: fresh" ]] || fail "$1: check"
    # shellcheck disable=SC2016 # make expands it
    printf 'all:\ninclude %s/%s.mk\nall: ${%s_objects}\n' "$folder" "$name" "$name" >"$work/Makefile"
    if [[ ! -e $folder/$name.mk ]]; then fail "$1: is emitted without --make"; fi
    make -s -j 2 -f "$work/Makefile" CC="${cc:-gcc}" CFLAGS="${cflags:--O1}" >"$work/log" 2>&1 || fail "$1: $(<"$work/log")"
    for compiler in "${compilers[@]}"; do
        "$compiler" -std=c++$standard "${cxxflags:--O0}" "${warnings[@]}" -c "$folder/${name}_benchmark.cc" -o "$folder/benchmark.o" || fail "$1: $compiler"
        standard=17
    done
    link "$1" "$name"
}

# link NAME MODEL
link() { g++ "${cxxflags:--O0}" "$work/$1"/*.o -lbenchmark -pthread -o "$work/$1/${2}_benchmark" || fail "$1: link"; }

# times FOLDER PROGRAM ARGUMENTS...: runs it for a moment; what it prints is in $work/out and $work/errors. Returns its status.
times() { "$work/$1/$2" "${@:3}" --benchmark_min_time=0.001 --benchmark_format=json >"$work/out" 2>"$work/errors"; }

# ## A LookupFFN, with random weights and with a blob

mapfile -t sets < <(lua5.4 tests/support/isa.lua "$lookupc" | tr ' ' '\n' | grep -xE 'scalar|avx2|avx512|neon')
isa=$(IFS=,; echo "${sets[*]}")
bundle tiny gen/models/tiny.lua --make --batch 1,33 --isa "$isa"
times tiny tiny_benchmark || fail "status $? with random weights: $(cat "$work/errors" "$work/out")"
# What compare.py of Google Benchmark reads, and that rates and times agree.
cat >"$work/read.py" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))["benchmarks"]
wanted = [f"tiny_ffn/{isa}/{n}" for n in (1, 33) for isa in sys.argv[2].split(",")]
assert [row["name"] for row in rows] == wanted, [row["name"] for row in rows]
for row in rows:
    assert row["run_type"] == "iteration" and row["time_unit"] == "us" and row["real_time"] > 0 < row["cpu_time"], row
    tokens = int(row["name"].split("/")[2])
    assert abs(row["tokens"] * row["cpu_time"] / 1e6 / tokens - 1) < 1e-3, row
    assert row["bytes"] > row["tokens"] * 64 * 4, row
END
/usr/bin/python3 "$work/read.py" "$work/out" "$isa" || fail "JSON: $(<"$work/out")"
"$lookupc" sample gen/models/tiny.lua -o "$work/tiny.safetensors" >"$work/log"
"$lookupc" pack gen/models/tiny.lua --weights "$work/tiny.safetensors" --quiet -o "$work/tiny.bin"
times tiny tiny_benchmark "$work/tiny.bin" --benchmark_filter=/33$ || fail "status $? with a blob: $(<"$work/errors")"
grep -q "\"weights\": \"$work/tiny.bin\"" "$work/out" || fail "the context does not name the blob"
ok "tiny by $isa: rows, rates and times"

# says LINE ARGUMENTS...: the program exits with 1 or 2, and prints this line alone.
says() {
    ! times tiny tiny_benchmark "${@:2}" || fail "${*:2}: is taken"
    [[ $(<"$work/errors") == "tiny_benchmark: $1" && ! -s $work/out ]] || fail "${*:2}: $(cat "$work/errors" "$work/out")"
}
head -c 1000 "$work/tiny.bin" >"$work/short.bin"
cat "$work/tiny.bin" "$work/short.bin" >"$work/long.bin"
sed 's/LOOKUPC/LOOKUPD/' "$work/tiny.bin" >"$work/magic.bin"
says "$work/nosuch.bin: cannot be read" "$work/nosuch.bin"
says "$work: cannot be read" "$work"
size="not as many bytes as this model's blob has: run lookupc pack again"
says "$work/short.bin: $size" "$work/short.bin"
says "$work/long.bin: $size" "$work/long.bin"
says "$work/magic.bin: not a blob of lookupc" "$work/magic.bin"
says "more: not understood: tiny_benchmark [BLOB] [--benchmark_...]" "$work/tiny.bin" more
says "--nosuch: not understood: tiny_benchmark [BLOB] [--benchmark_...]" --nosuch
ok "what cannot be read is said in one line"

# ## Wrong kernels

# A kernel of the fastest instruction set that forgets the bias of y, or gives NaN; the others are timed.
last=${sets[-1]} flags=$(sed -nE "s/^.*${sets[-1]}\.o: private override CFLAGS \+= (-m.*)$/\1/p" "$work/tiny/tiny.mk")
if ((${#sets[@]} > 1)); then
    cp "$work/tiny/tiny__$last.c" "$work/kept.c"
    # planted WHAT SED ERROR
    planted() {
        sed -E "$2" "$work/kept.c" >"$work/tiny/tiny__$last.c"
        ! cmp -s "$work/kept.c" "$work/tiny/tiny__$last.c" || fail "nothing is planted: $1"
        # shellcheck disable=SC2086
        gcc -std=gnu99 -O1 $flags -I"$work/tiny" -c "$work/tiny/tiny__$last.c" -o "$work/tiny/tiny__$last.o" || fail "$1: compile"
        link tiny tiny
        ! times tiny tiny_benchmark || fail "$1: status 0"
        [[ $(grep -c '"error_occurred": true' "$work/out") == 2 && $(grep -cE "\"error_message\": \"$3" "$work/out") == 2 ]] || fail "$1: $(<"$work/out")"
        [[ $(grep -c '"real_time"' "$work/out") == $((2 * ${#sets[@]})) ]] || fail "$1: other rows are missing"
    }
    planted "no bias of y" 's/weights->bias\b/weights->projection_bias/g' "differs from ${sets[0]}: (1 of 1|33 of 33) rows, by up to "
    planted "codes without their last bit" 's/(weights->projection_bias)\b/(weights->projection_bias + 1)/g' "differs from ${sets[0]}: "
    cp "$work/kept.c" "$work/tiny/tiny__$last.c"
    ok "wrong kernels of $last are found, and all others timed"
else
    echo "skipped: benchmark: this CPU runs one instruction set: nothing to compare with"
fi

# ## Other calls and types

# right NAME OPTIONS...: all rows of that model's benchmark are right, and they are of CALLS.
right() {
    rm -rf "$work/one"
    bundle one "gen/models/$1.lua" --make "${@:2}"
    times one "${1}_benchmark" || fail "$*: status $?: $(cat "$work/errors" "$work/out")"
    [[ $(sed -nE 's|^ *"name": "([a-z_0-9]+)/.*|\1|p' "$work/out" | uniq | tr '\n' ' ') == "$calls" ]] || fail "$*: $(<"$work/out")"
}
calls='tiny_skipless_prefill tiny_skipless_decode ' cflags=-O0
right tiny_skipless --type bf16 --activations bf16 --batch 4
calls='gpt_nano_sort_prefill gpt_nano_sort_prefill_all gpt_nano_sort_step '
right gpt_nano_sort --type q8,embedding=q8 --isa scalar
if full; then
    cflags=-O1
    right gpt_nano_sort
    for options in "--type i8 --activations i8 --cache i8" "--type u4" "--type f16 --cache f16"; do
        calls='tiny_skipless_prefill tiny_skipless_decode '
        # shellcheck disable=SC2086
        right tiny_skipless $options
        calls='sentence_encoder_encode sentence_encoder_encode_batch '
        # shellcheck disable=SC2086
        right sentence_encoder ${options/--cache i8/}
    done
    calls='tiny_ffn '
    for options in "--tables i8 --projection i8" "--tables i4 --projection i16" "--tables e4m3 --projection bf16" "--tables f16 --projection i7"; do
        # shellcheck disable=SC2086
        right tiny $options
    done
    # Integers that nothing overflows with.
    cc="gcc -fsanitize=undefined -fno-sanitize-recover=all" cxxflags=-fsanitize=undefined
    right tiny --arithmetic integer
    right tiny --arithmetic integer --tables i4 --projection i8
    cc=gcc cxxflags=-O0
fi
ok "blocks and whole models"

# Weights that are multiplied out follow from others.
"$lookupc" emit gen/models/tiny.lua --multiply-out --projection i8 --isa scalar --benchmark -o "$work/multiplied" --quiet
grep -q 'a BLOB is missing: weights that are multiplied out cannot be random' "$work/multiplied/tiny_benchmark.cc" || fail "--multiply-out without a blob"

# ## AArch64, emulated

full || exit 0
libraries=$root/build/aarch64/root/usr/lib/aarch64-linux-gnu
if [[ -e $libraries/libbenchmark.so ]] && type -P aarch64-linux-gnu-g++ qemu-aarch64-static >"$work/log"; then
    "$lookupc" emit gen/models/tiny.lua --tables i8 --isa scalar,avx2,neon,dotprod,sve,i8mm --benchmark --batch 1,33 -o "$work/arm" --quiet
    cd "$work/arm"
    for file in tiny.c tiny__*.c; do
        case $file in *dotprod*) arch=dotprod ;; *sve*) arch=sve ;; *i8mm*) arch=i8mm ;; *) arch=simd ;; esac
        aarch64-linux-gnu-gcc -O1 -march=armv8.2-a+$arch -c "$file"
    done
    aarch64-linux-gnu-g++ -std=c++14 -O1 "${warnings[@]}" -isystem "$libraries/../../include" -c tiny_benchmark.cc
    aarch64-linux-gnu-g++ ./*.o "$libraries/libbenchmark.so" -Wl,-rpath,"$libraries" -pthread -o tiny_benchmark
    qemu-aarch64-static -L /usr/aarch64-linux-gnu -cpu max,sve256=on ./tiny_benchmark --benchmark_min_time=0.001 >"$work/out" 2>"$work/errors" || fail "AArch64: $(<"$work/out")"
    [[ $(grep -cE '^tiny_ffn/(scalar|neon|dotprod|sve|i8mm)/(1|33) ' "$work/out") == 10 ]] || fail "AArch64: $(<"$work/out")"
    ok "AArch64 in emulation"
else
    echo "skipped: benchmark: AArch64 needs g++-aarch64-linux-gnu, qemu-user-static and Google Benchmark in build/aarch64/root (./build.sh test isa)"
fi
