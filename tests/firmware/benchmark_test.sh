#!/bin/bash
# The benchmark of a firmware bundle: without a warning, it counts and prints a line for each call, by DWT or SysTick in emulation, by mcycle
# or by functions of its user; damaged weights are said.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD lookupc=${LOOKUPC:-$PWD/build/lookupc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED firmware: $*"
    exit 1
}

ok() { echo "ok     firmware: $*"; }

full() { [[ ${LOOKUPC_EFFORT-} == full ]]; }

warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Wundef -Wcast-qual -Wvla -Wfloat-conversion
    -Wfloat-equal -Wunused-macros -Wswitch-default -Wstrict-prototypes -Wmissing-prototypes -Werror)

# bundle TARGET MODEL [OPTIONS]: emits into $work/bundle, and checks that it is fresh; `flags` are those of the target.
bundle() {
    rm -rf "$work/bundle"
    [[ -e $work/$2.safetensors ]] || "$lookupc" sample "gen/models/$2.lua" -o "$work/$2.safetensors" >"$work/log"
    "$lookupc" emit "gen/models/$2.lua" --profile firmware --target "$1" --weights "$work/$2.safetensors" --without-misra --benchmark --quiet \
        -o "$work/bundle" "${@:3}"
    [[ $("$lookupc" check "$work/bundle") == "$work/bundle: fresh" ]] || fail "$*: check"
    read -ra flags < <(/usr/bin/python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["measured"]["flags"])' "$work/bundle/MANIFEST.json")
}

# lines CALL...: what was printed is a title and a line for each "call tokens", with two numbers of which the first is the smaller one.
lines() {
    local call
    [[ $(head -1 "$work/out") =~ ^call\ tokens\ least\ most,\ in\ (cycles|ticks|counts)$ ]] || fail "title: $(<"$work/out")"
    [[ $(wc -l <"$work/out") == $(($# + 1)) ]] || fail "lines: $(<"$work/out")"
    for call in "$@"; do
        awk -v call="$call" '$1 " " $2 == call && NF == 4 && $3 <= $4 && $4 > 0 { found = 1 } END { exit !found }' "$work/out" || fail "$call: $(<"$work/out")"
    done
}

# ## This machine: ticks of clock(), for models of both kinds

bundle generic kws --arithmetic integer
cd "$work/bundle"
for compiler in gcc clang; do
    "$compiler" "${flags[@]}" "${warnings[@]}" -Iinc -c kws_benchmark.c -o "$work/$compiler.o" || fail "$compiler"
done
gcc "${flags[@]}" -Isrc -Iinc "$work/gcc.o" src/*.[cS] -o "$work/program"
"$work/program" >"$work/out" || fail "status $?"
lines "kws_ffn 1"
printf 'X' | dd of=src/kws_weights.bin bs=1 seek=700 conv=notrunc status=none
gcc "${flags[@]}" -Isrc -Iinc "$work/gcc.o" src/*.[cS] -o "$work/program"
! "$work/program" >"$work/out" || fail "damaged weights: status 0"
[[ $(<"$work/out") == "kws_benchmark: the weights are damaged" ]] || fail "damaged weights: $(<"$work/out")"
cd "$root"
bundle generic gpt_nano_sort
cd "$work/bundle"
gcc "${flags[@]}" "${warnings[@]}" -Isrc -Iinc -fsanitize=address,undefined -fno-sanitize-recover=all gpt_nano_sort_benchmark.c src/*.[cS] -o "$work/program"
"$work/program" >"$work/out" || fail "gpt_nano_sort: status $?"
lines "gpt_nano_sort_prefill 1" "gpt_nano_sort_prefill 8" "gpt_nano_sort_step 1" "gpt_nano_sort_step 8"
cd "$root"
ok "a LookupFFN in integers and a whole model here; damaged weights are said"

# ## Cortex-M in emulation: printed by a function of the board; the emulator has no DWT, so that SysTick counts

cat >"$work/start.c" <<'END'
#include "tests/firmware/boards/board.h"
int benchmark_main(void);
unsigned char board_stack[BOARD_STACK_BYTES] __attribute__((aligned(64)));
void run(void) { board_exit(benchmark_main()); }
END
targets=(cortex-m0plus=mps2-an385)
full && targets+=(cortex-m4f=mps2-an386)
for row in "${targets[@]}"; do
    target=${row%=*}
    if ! type -P arm-none-eabi-gcc qemu-system-arm >"$work/log"; then
        echo "skipped: firmware: $target needs gcc-arm-none-eabi and qemu-system-arm"
        continue
    fi
    bundle "$target" kws --arithmetic integer
    arm-none-eabi-gcc "${flags[@]}" "${warnings[@]}" -Wno-missing-prototypes -Dmain=benchmark_main -DKWS_BENCHMARK_PRINT=board_write -I"$work/bundle/inc" \
        -c "$work/bundle/kws_benchmark.c" -o "$work/benchmark.o" || fail "$target: compile"
    arm-none-eabi-gcc "${flags[@]}" -nostartfiles -I. -I"$work/bundle/inc" -I"$work/bundle/src" -T tests/firmware/boards/cortex_m.ld "$work/start.c" \
        "$work/benchmark.o" "$work"/bundle/src/*.[cS] tests/firmware/boards/start_cortex_m.c -o "$work/program.elf" || fail "$target: link"
    timeout 60 qemu-system-arm -machine "${row#*=}" -semihosting-config enable=on,target=native -nographic -monitor none -serial none \
        -kernel "$work/program.elf" >"$work/out" 2>"$work/log" || fail "$target: status $?"
    # semihosting prints on standard error
    cat "$work/log" >>"$work/out"
    lines "kws_ffn 1"
    # Where there is a DWT its counter is tried; ARMv6-M has none.
    found=$(arm-none-eabi-gcc "${flags[@]}" -I"$work/bundle/inc" -DKWS_BENCHMARK_PRINT=board_write -E "$work/bundle/kws_benchmark.c" | grep -c 0xe000edfcu || true)
    [[ $target == cortex-m0plus ]] && wanted=0 || wanted=1
    [[ $found == "$wanted" ]] || fail "$target: DWT: $found"
    ok "$target counts in emulation"
done

# ## RISC-V: mcycle, which programs of Linux may not read; there functions of the user

full || exit 0
if type -P riscv64-unknown-elf-gcc qemu-riscv32-static >"$work/log"; then
    bundle rv32imc kws --arithmetic integer
    riscv64-unknown-elf-gcc "${flags[@]}" "${warnings[@]}" -DKWS_BENCHMARK_PRINT=board_write -I"$work/bundle/inc" -S "$work/bundle/kws_benchmark.c" \
        -o "$work/benchmark.s" || fail "rv32imc: compile"
    grep -q 'csrr.*mcycle' "$work/benchmark.s" || fail "rv32imc: mcycle is not read"
    cat >>"$work/start.c" <<'END'
#include <stdint.h>
void own_start(void);
uint32_t own_read(void);
static uint32_t begin;
static uint32_t cycles(void)
{
    uint32_t now;
    __asm__ volatile("rdcycle %0" : "=r"(now));
    return now;
}
void own_start(void) { begin = cycles(); }
uint32_t own_read(void) { return cycles() - begin; }
END
    riscv64-unknown-elf-gcc "${flags[@]}" "${warnings[@]}" -Wno-missing-prototypes -Dmain=benchmark_main -DKWS_BENCHMARK_PRINT=board_write -DKWS_BENCHMARK_START=own_start \
        -DKWS_BENCHMARK_READ=own_read -I"$work/bundle/inc" -c "$work/bundle/kws_benchmark.c" -o "$work/benchmark.o" || fail "rv32imc: own functions"
    riscv64-unknown-elf-gcc "${flags[@]}" -static -nostdlib -I. -I"$work/bundle/inc" -I"$work/bundle/src" "$work/start.c" "$work/benchmark.o" \
        "$work"/bundle/src/*.[cS] tests/firmware/boards/start_linux.c -lgcc -o "$work/program.elf" || fail "rv32imc: link"
    qemu-riscv32-static "$work/program.elf" >"$work/out" || fail "rv32imc: status $?"
    lines "kws_ffn 1"
    ok "rv32imc reads mcycle, or what its user has"
else
    echo "skipped: firmware: rv32imc needs gcc-riscv64-unknown-elf and qemu-user-static"
fi
