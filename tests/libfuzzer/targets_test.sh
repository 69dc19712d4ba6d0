#!/bin/bash
# Every fuzz target takes its seeds and what libFuzzer makes of them: a few inputs, or those of 20 seconds in full.
set -euo pipefail

if ! compgen -G 'build/fuzz/targets/*_target' >/dev/null; then
    echo 'skipped: no fuzz targets are built; they need clang with libFuzzer, and ./build.sh test or ./build.sh fuzz'
    exit 77
fi
limit=$(lua5.4 tests/effort.lua fuzz_limit)
if [[ $limit == -runs=* ]]; then # the same few inputs each time
    export FUZZ_WORK=build/fuzz/quick
    rm -rf "$FUZZ_WORK"
fi
status=0
for program in build/fuzz/targets/*_target; do
    target=$(basename "$program" _target)
    [[ -n $(find "tests/libfuzzer/corpus/$target" -type f -print -quit) ]] || {
        echo "tests/libfuzzer/corpus/$target: there are no seeds"
        status=1
    }
    tests/libfuzzer/run.sh "$target" "$limit" -seed=1 || status=1
done
exit "$status"
