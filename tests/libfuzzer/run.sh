#!/bin/bash
# Runs one fuzz target, which ./build.sh fuzz has built, and says in one line what came of it:
#
#     run.sh TARGET LIMIT    LIMIT is libFuzzer's, such as -max_total_time=60 or -runs=1000
#
# Starts from the seeds in tests/libfuzzer/corpus/TARGET and from the inputs that earlier runs have kept in
# build/fuzz/TARGET/corpus. Findings go to build/fuzz/TARGET/findings. FUZZ_WORK in the environment takes the place of
# build/fuzz. Exit status 1: there is a finding.
set -euo pipefail

target=$1 limit=$2
program=build/fuzz/targets/${target}_target
work=${FUZZ_WORK:-build/fuzz}/$target
[[ -x $program ]] || {
    echo "$program: is not built" >&2
    exit 2
}
mkdir -p "$work/corpus" "$work/findings"

place=/dev/shm
[[ -w $place ]] || place=${TMPDIR:-/tmp}
scratch=$(mktemp -d "$place/lookupc-fuzz-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap : INT TERM # libFuzzer ends at these by itself and says how far it came

# Lua's own memory would make it look for leaks after every input; they are looked for at the end.
status=0
FUZZ_SCRATCH=$scratch ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
    "$program" "$limit" -timeout=20 -rss_limit_mb=4096 -detect_leaks=0 -error_exitcode=1 -print_final_stats=1 \
    "-artifact_prefix=$work/findings/" "${@:3}" "$work/corpus" "tests/libfuzzer/corpus/$target" >"$work/log" 2>&1 || status=$?

number() { sed -nE "s/.*$1 ?([0-9]+).*/\1/p" "$work/log" | tail -1; }
printf '%-12s %9d executions, %5d edges, %6d features: ' "$target" "$(number stat::number_of_executed_units:)" \
    "$(number cov:)" "$(number ft:)"
if ((status == 0)); then
    echo 'no finding'
elif ((status == 72)); then
    echo 'no finding, interrupted'
else
    echo "FINDING, see $work/log:"
    grep -m3 -E '^FINDING|^SUMMARY|runtime error|^==[0-9]+== *ERROR|Test unit written' "$work/log" || tail -5 "$work/log"
    exit 1
fi
