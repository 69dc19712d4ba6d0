#!/bin/bash
# Firmware bundles as another project uses them: no warning in C or C++, weights placed by the linker, every flipped bit found, limits kept,
# the same bytes again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
lookupc=${LOOKUPC:-$PWD/build/lookupc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

stride=9973 # of bits of weights that are flipped
[[ $(lua5.4 tests/effort.lua damage) == 0 ]] || stride=997
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Wundef -Wcast-qual -Wvla -Wfloat-conversion
    -Wfloat-equal -Wunused-macros -Wswitch-default -Werror)
c_warnings=("${warnings[@]}" -Wstrict-prototypes -Wmissing-prototypes)

fail() {
    echo "FAILED firmware: $*"
    exit 1
}

ok() { echo "ok     firmware: $*"; }

# bundle NAME MODEL [OPTIONS]: emits into $work/NAME for this machine.
bundle() {
    local model=gen/models/$2.lua
    [[ -e $model ]] || model=tests/firmware/$2.lua
    "$lookupc" emit "$model" --profile firmware --target generic --weights "$work/$2.safetensors" -o "$work/$1" "${@:3}" >"$work/log" 2>&1 ||
        fail "emit $1: $(cat "$work/log")"
}

for model in gen/models/{tiny,kws}.lua tests/firmware/{lookups,sentences}.lua; do
    "$lookupc" sample "$model" -o "$work/$(basename "$model" .lua).safetensors" >"$work/log"
done
without=(--without-misra)
(($(lua5.4 tests/effort.lua firmware) == 0)) || without=()
bundle tiny tiny "${without[@]}"
bundle kws kws --arithmetic integer
bundle i8 kws --tables i8 --projection bf16 --without-misra
bundle array kws --arithmetic integer --weights-array --without-misra
bundle lookups lookups --without-misra
bundle sentences sentences --type i8 --cache i8

# ## Compiling

# Each bundle by all compilers and levels; with effort quick by one, which alternates.
all=$(lua5.4 tests/effort.lua compilers)
turn=1
for name in tiny kws i8 array lookups sentences; do
    turn=$((turn + 1))
    one=gcc-O2
    ((turn % 2)) && one=clang-Os
    include=(-I"$work/$name/inc" -I"$work/$name/src" -I"$work/$name/test")
    for cc in gcc clang; do
        align=-Wcast-align
        [[ $cc == gcc ]] && align=-Wcast-align=strict
        for optimise in -O2 -Os; do
            ((all)) || [[ $cc$optimise == "$one" ]] || continue
            for file in "$work/$name"/{src,test}/*.[cS] "$work/$name/example_main.c"; do
                [[ -e $file ]] || continue
                object=$work/$name/$(basename "$file").$cc$optimise.o
                if [[ $file == *.S ]]; then
                    $cc "${include[@]}" -c "$file" -o "$object"
                else
                    $cc -std=c99 $optimise -ffreestanding "${c_warnings[@]}" $align "${include[@]}" -c "$file" -o "$object" || fail "$name: $cc $optimise: $file"
                fi
            done
            cxx=g++
            [[ $cc == clang ]] && cxx=clang++
            for file in "$work/$name"/test/*.c "$work/$name/example_main.c"; do
                $cxx -std=c++17 $optimise -x c++ "${warnings[@]}" $align "${include[@]}" -fsyntax-only "$file" || fail "$name: $cxx: $file"
            done
            $cc "$work/$name"/*.$cc$optimise.o -o "$work/$name/example"
            "$work/$name/example" || fail "$name: $cc $optimise: example_main exits with $?"
            nm -u "$work/$name"/src*.$cc$optimise.o "$work/$name"/*__*.$cc$optimise.o 2>/dev/null | grep -E ' U ' | grep -v " U ${name/i8/kws}_" |
                grep -v -E ' U (kws|tiny)_' && fail "$name: $cc $optimise needs these symbols"
        done
    done
done
ok "sources, self-test and example: C99 and C++17, gcc and clang, -O2 and -Os, without a warning; the example's self-test passes"

# ## Weights

flip() {
    local name=$1 model=$2
    gcc -std=c99 -O2 "${@:3}" -DFLIP_STRIDE="$stride" "-DMODEL_HEADER=\"$model.h\"" "-DMODEL(word)=${model}_##word" "-DMACRO(word)=${model^^}_##word" -I"$work/$name/inc" -I"$work/$name/src" \
        "$work/$name"/src/*.[cS] tests/firmware/boards/flip.c -o "$work/flip"
    "$work/flip" "$work/kws/src/kws_weights.bin" || fail "flip of $name with ${*:3}: $?"
}
flip kws kws
flip array kws
flip kws kws -DKWS_CHECK=KWS_CHECK_SHA256
ok "bind finds every flipped bit by CRC-32 and by SHA-256, with weights by .incbin and as an array"

# One bit of the linked weights at a time, in the header, the projection, the tables and the last byte: the example's self-test then fails.
cp -r "$work/kws" "$work/damaged"
weights=$work/damaged/src/kws_weights.bin
include=(-I"$work/damaged/inc" -I"$work/damaged/src" -I"$work/damaged/test")
mkdir "$work/damaged/objects"
(cd "$work/damaged/objects" && gcc -std=c99 -O2 "${include[@]}" -c ../{src,test}/*.c ../example_main.c) # all but the weights
size=$(stat -c %s "$weights")
for at in 0 70 9000 40000 $((size - 1)); do
    cp "$work/kws/src/kws_weights.bin" "$weights"
    byte=$(od -An -tu1 -j "$at" -N 1 "$weights")
    printf '%b' "\\x$(printf %02x $((byte ^ 4)))" | dd of="$weights" bs=1 seek="$at" conv=notrunc status=none
    gcc "${include[@]}" "$work"/damaged/src/*.S "$work"/damaged/objects/*.o -o "$work/damaged/example" 2>"$work/log" ||
        fail "damaged bundle: $(cat "$work/log")"
    status=0
    "$work/damaged/example" || status=$?
    [[ $status == 1 ]] || fail "self-test with a flipped bit in byte $at of the weights: exit status $status"
done
ok "the self-test fails with a flipped bit in the weights that are linked in"

for name in kws array; do
    for macro in TABLE WEIGHTS; do
        gcc -std=c99 "-DKWS_${macro}_SECTION=\".external.$macro\"" -I"$work/$name/inc" -I"$work/$name/src" -c "$work/$name"/src/kws_weights.[cS] -o "$work/placed.o"
        grep -q "\.external\.$macro" < <(objdump -t "$work/placed.o") || fail "$name: $macro cannot be placed"
        [[ $(objdump -t "$work/placed.o" | grep -c "\.rodata\.kws") -gt 0 ]] || fail "$name: the other parts are not in .rodata"
    done
done
ok "tables and other weights have sections that a project names"

# ## Limits

# refused TEXTS OPTIONS...: emit fails, says each line of TEXTS, and writes nothing.
refused() {
    local texts text
    mapfile -t texts <<<"$1"
    shift
    if PATH=${path:-$PATH} "$lookupc" emit "${of:-gen/models/tiny.lua}" -o "$work/none" "$@" >"$work/log" 2>&1; then fail "accepted: $*"; fi
    for text in "${texts[@]}"; do grep -q -e "$text" "$work/log" || fail "$*: $(cat "$work/log")"; done
    [[ ! -e $work/none ]] || fail "$*: wrote something"
}
given=(--profile firmware --target generic --weights "$work/tiny.safetensors" --without-misra)
fast=(--target-flags -O0) # what would fit is measured many times
refused $'tables i8  \nh = [0-9]*, trained anew' "${given[@]}" "${fast[@]}" --flash 64K
refused '^lookupc: --flash, --ram: tiny does not fit' "${given[@]}" --flash 1K --ram 100
refused '^lookupc: --stack: tiny does not fit' "${given[@]}" "${fast[@]}" --stack 10
refused 'must be a number of bytes' "${given[@]}" --stack 10X
refused 'must be one of cortex-m0plus' --profile firmware --target cortex --weights "$work/tiny.safetensors"
refused 'must be one of firmware' --profile soft --target generic
refused '--weights: is missing' --profile firmware --target generic
refused 'is for --profile firmware' --target generic
refused 'is what --target decides' "${given[@]}" --isa avx2
mkdir "$work/path" && ln -s /bin/sh "$work/path/sh" # no compiler is there
path=$work/path refused 'needs gcc to measure' "${given[@]}"
"$lookupc" emit gen/models/tiny.lua -o "$work/fits" "${given[@]}" --flash 1M --ram 4K --stack 4K >"$work/log" 2>&1 || fail "what fits is refused: $(cat "$work/log")"
given=(--profile firmware --target generic --weights "$work/lookups.safetensors" --without-misra)
of=tests/firmware/lookups.lua refused 'type i8 --cache i8  ' "${given[@]}" "${fast[@]}" --ram 34K
of=tests/firmware/lookups.lua refused 'must be a flag such as' "${given[@]}" --target-flags 'x; y'
refused 'is for --profile firmware' --target-flags -O1
"$lookupc" emit tests/firmware/lookups.lua -o "$work/flags" "${given[@]}" --target-flags '-O1 -fno-inline' >"$work/log" 2>&1 || fail "--target-flags: $(cat "$work/log")"
grep -q -e '-O1 -fno-inline$' "$work/flags/REPORT.txt" || fail "--target-flags: $(head -5 "$work/flags/REPORT.txt")"
"$lookupc" check "$work/flags" >"$work/log" 2>&1 || fail "check of --target-flags: $(cat "$work/log")"
! cmp -s "$work/flags/inc/lookups.h" "$work/lookups/inc/lookups.h" || fail "--target-flags change nothing"
ok "limits, with what would fit; wrong options; nothing is written"

# ## Build systems

bundle wrapped kws --arithmetic integer --without-misra --wrap zephyr,esp-idf,platformio,arduino,cmsis-pack
/usr/bin/python3 - "$work/wrapped" <<'END' || fail "files of build systems"
import json, os, re, sys, xml.etree.ElementTree as tree, yaml
folder = sys.argv[1]
def lines(path): return open(os.path.join(folder, path)).read().splitlines()
package = tree.parse(os.path.join(folder, "lookupc.kws.pdsc")).getroot()
assert package.tag == "package" and package.find("vendor").text + "." + package.find("name").text + ".pdsc" == "lookupc.kws.pdsc"
named = [file.get("name") for file in package.iter("file")]
assert all(os.path.exists(os.path.join(folder, name)) for name in named), named
sources = sorted("src/" + name for name in os.listdir(folder + "/src") if name.endswith((".c", ".S")))
assert sorted(name for name in named if name.startswith("src/") and len(name) > 4) == sources
library = json.load(open(folder + "/library.json"))
assert re.fullmatch(r"\d+\.\d+\.\d+", library["version"]) and os.path.exists(folder + "/inc/" + library["headers"])
properties = dict(line.split("=", 1) for line in lines("library.properties"))
assert {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"} <= set(properties)
module = yaml.safe_load(open(folder + "/zephyr/module.yml"))
assert set(module) <= {"name", "build"} and set(module["build"]) == {"cmake", "kconfig"}, module # of Zephyr's schema of a module
assert os.path.exists(os.path.join(folder, module["build"]["cmake"], "CMakeLists.txt")) and os.path.exists(os.path.join(folder, module["build"]["kconfig"]))
component = yaml.safe_load(open(folder + "/idf_component.yml"))
assert re.fullmatch(r"\d+\.\d+\.\d+", component["version"]) and all(isinstance(value, (str, list, dict)) for value in component.values()), component
END
mkdir "$work/cmake"
cat >"$work/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(wrapped C ASM)
set(CONFIG_KWS_LAYER y)
set(CONFIG_KWS_LAYER_SELFTEST y)
function(zephyr_library_named name)
  add_library(zephyr_${name} STATIC)
endfunction()
function(zephyr_include_directories)
  target_include_directories(zephyr_kws PUBLIC ${ARGN})
endfunction()
function(zephyr_library_include_directories)
  target_include_directories(zephyr_kws PRIVATE ${ARGN})
endfunction()
function(zephyr_library_sources)
  target_sources(zephyr_kws PRIVATE ${ARGN})
endfunction()
function(zephyr_library_sources_ifdef condition)
  target_sources(zephyr_kws PRIVATE ${ARGN})
endfunction()
function(idf_component_register)
  cmake_parse_arguments(PARSE_ARGV 0 component "" "" "SRCS;INCLUDE_DIRS;PRIV_INCLUDE_DIRS")
  add_library(idf_kws STATIC ${component_SRCS})
  target_include_directories(idf_kws PUBLIC ${component_INCLUDE_DIRS} PRIVATE ${component_PRIV_INCLUDE_DIRS})
endfunction()
add_subdirectory(${WRAPPED}/zephyr zephyr)
add_subdirectory(${WRAPPED} idf)
foreach(system zephyr idf)
  add_executable(${system}_example ${WRAPPED}/example_main.c)
  target_link_libraries(${system}_example ${system}_kws)
endforeach()
END
{ cmake -S "$work/cmake" -B "$work/cmake/build" -DWRAPPED="$work/wrapped" && cmake --build "$work/cmake/build"; } >"$work/log" 2>&1 || fail "cmake: $(tail -5 "$work/log")"
for system in zephyr idf; do "$work/cmake/build/${system}_example" || fail "the example wrapped for $system exits with $?"; done
for file in "$work"/wrapped/src/*.[cS]; do # as the Arduino builder does: headers are looked for in src/ only
    gcc -I"$work/wrapped/src" -c "$file" -o "$work/arduino.o" 2>"$work/log" || fail "Arduino: $file: $(cat "$work/log")"
done
"$lookupc" check "$work/wrapped" >"$work/log" || fail "check of a wrapped bundle: $(cat "$work/log")"
refused '--wrap: "make"' "${given[@]}" --wrap make
ok "zephyr, esp-idf, platformio, arduino and cmsis-pack take a bundle"

# ## The bundle that is checked in

"$lookupc" check emitted/kws >"$work/log" 2>&1 || fail "emitted/kws: $(cat "$work/log")"
make --silent -f tests/consumers/firmware.mk CC=gcc AR=ar CFLAGS=-O2 BUILD="$work/make" >"$work/log" 2>&1 || fail "firmware.mk: $(cat "$work/log")"
gcc -Iemitted/kws/inc -Iemitted/kws/test emitted/kws/example_main.c "$work/make/libkws.a" -o "$work/example"
"$work/example" || fail "emitted/kws: example_main exits with $?"
ok "emitted/kws is fresh, and the makefile of docs/firmware.md builds it"

# ## The makefile of README.md

mkdir "$work/readme"
cp -r "$work/kws" "$work/readme/kws"
rm -f "$work"/readme/kws/*.o "$work"/readme/kws/example
{
    # shellcheck disable=SC2016 # backquotes of Markdown, a variable of make
    sed -n '/^```make$/,/^```$/p' "$work/readme/kws/README.md" | grep -v '^```'
    # shellcheck disable=SC2016
    echo 'all: $(OBJECTS)'
} >"$work/readme/makefile"
make --silent -C "$work/readme" CC=gcc all >"$work/log" 2>&1 || fail "the makefile of README.md: $(cat "$work/log")"
built=("$work"/readme/build/kws/*.o) sources=("$work"/readme/kws/src/*.[cS])
((${#built[@]} == ${#sources[@]})) || fail "the makefile of README.md: $(ls -R "$work/readme/build")"
"$lookupc" check "$work/readme/kws" >"$work/log" 2>&1 || fail "check of what the makefile of README.md has built: $(cat "$work/log")"
touch "$work/readme/kws/src/extra.c"
if "$lookupc" check "$work/readme/kws" >"$work/log" 2>&1; then fail "check does not see a source that the makefile compiles"; fi
grep -q '/src/extra.c: unknown' "$work/log" || fail "check: $(cat "$work/log")"
ok "the makefile of README.md builds a bundle and leaves it as it is; check sees another source"

# ## Again

cp -r "$work/i8" "$work/again"
rm -f "$work"/again/*.o "$work"/again/example
bundle again kws --tables i8 --projection bf16 --without-misra
! grep -q '^EMIT' "$work/log" || fail "emitted again: other bytes: $(grep '^EMIT' "$work/log")"
"$lookupc" check "$work/again" >"$work/log" || fail "check: $(cat "$work/log")"
printf '\n' >>"$work/again/src/kws.c"
if "$lookupc" check "$work/again" >"$work/log" 2>&1; then fail "check does not see an edit"; fi
if grep -ril 'compliant\|compliance' "$work/tiny" "$work/kws" --include='*.md' --include='*.txt'; then fail "a claim that nobody made"; fi
papers=("$work"/*/MISRA.md)
[[ -s $work/sentences/MISRA.md ]] || fail "MISRA.md of a whole model is missing"
grep -q '^| 10.4 ' "$work/kws/MISRA.md" || fail "MISRA.md lists nothing"
! grep -q 'not examined' "${papers[@]}" || fail "MISRA.md: a kind of report without a reason"
ok "the same bytes again, check, papers"
