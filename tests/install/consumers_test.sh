#!/bin/bash
# Projects that use lookupc, in folders of tests/consumers: each builds from scratch, prints the right numbers, and
# after a change rebuilds what it must and nothing else, by the word of its own build tool.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD lookupc=${LOOKUPC:-$PWD/build/lookupc}
build=$(dirname "$lookupc")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED install: $*" >&2 # also from within $()
    exit 1
}

ok() { echo "ok     install: $* ($SECONDS s from the start)"; }

full() { [[ ${LOOKUPC_EFFORT-} == full ]]; }

# quietly COMMAND...: shows what it prints only if it fails.
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "$*"; }; }

# ## Install

quietly cmake --install "$build" --prefix "$work/first"
mv "$work/first" "$work/prefix" # an installed tree can be moved
prefix=$work/prefix
export PATH=$prefix/bin:$PATH LOOKUPC=
unset LOOKUPC
for file in bin/lookupc bin/lookupc-measure share/man/man1/lookupc.1 share/man/man1/lookupc-tuned-list.1 share/bash-completion/completions/lookupc \
    share/zsh/site-functions/_lookupc share/fish/vendor_completions.d/lookupc.fish share/lookupc/models/tiny.lua share/lookupc/examples/make/Makefile; do
    [[ -s $prefix/$file ]] || fail "$file is not installed"
done
for program in "$prefix"/bin/*; do
    [[ -x $program && -s $prefix/share/man/man1/${program##*/}.1 ]] || fail "$program is no program, or has no man page"
done
[[ ! -e $build/lookupc-mpi.so ]] || grep -q '"mpi": true' < <(lookupc doctor --json) || fail "lookupc-mpi.so is not found where it is installed"
[[ $(type -P lookupc) == "$prefix/bin/lookupc" ]] || fail "another lookupc is found"
executable=$(PKG_CONFIG_PATH=$prefix/share/pkgconfig pkg-config --variable=executable lookupc)
[[ $("$executable" -V) == "lookupc $(PKG_CONFIG_PATH=$prefix/share/pkgconfig pkg-config --modversion lookupc)" ]] || fail "lookupc.pc"
find "$prefix/share" -name '*.md' >"$work/pages"
(($(wc -l <"$work/pages") > 20)) || fail "pages are missing"
xargs grep -oP '\]\(\K[^)#:]+(?=[)#])' <"$work/pages" >"$work/links"
while IFS=: read -r page path; do
    [[ -e ${page%/*}/$path ]] || fail "${page#"$prefix/"}: $path is not installed"
done <"$work/links"
ok "everything is in place, and found where it was moved to; links of pages lead to what is installed"

# Folders of their own for programs and the rest, by absolute paths; what was built needs no building again.
absolute=$work/absolute
quietly cmake -S . -B "$absolute/b" -DCMAKE_INSTALL_PREFIX="$absolute" -DCMAKE_INSTALL_BINDIR="$absolute/programs/bin" -DCMAKE_INSTALL_LIBDIR="$absolute/lib" \
    -DCMAKE_INSTALL_DATADIR="$absolute/share" -DCMAKE_INSTALL_MANDIR="$absolute/share/man" -DCMAKE_INSTALL_DOCDIR="$absolute/doc"
cp -r "$build/lookupc" "$build/pages" "$absolute/b"
quietly cmake --install "$absolute/b"
executable=$(PKG_CONFIG_PATH=$absolute/share/pkgconfig pkg-config --variable=executable lookupc)
[[ $executable -ef $absolute/programs/bin/lookupc ]] || fail "lookupc.pc: $executable"
[[ -s $(PKG_CONFIG_PATH=$absolute/share/pkgconfig pkg-config --variable=models lookupc)/tiny.lua ]] || fail "lookupc.pc: models"
grep -qF '"../../lib/lookupc' "$absolute/b/compile_commands.json" || fail "lookupc looks for libraries elsewhere than in the folder of libraries"
ok "folders of installation may be absolute"

# What completion offers for a command line, its last word unfinished.
complete_line() {
    bash -c 'source "$0"; COMP_WORDS=(lookupc "$@"); COMP_CWORD=$#; _lookupc; echo "${COMPREPLY[*]}"' \
        "$prefix/share/bash-completion/completions/lookupc" "$@"
}
[[ $(complete_line pl) == plan ]] || fail "completion of a command"
[[ $(complete_line tuned m) == merge ]] || fail "completion of a second word"
[[ $(complete_line emit tiny.lua --is) == --isa ]] || fail "completion of an option"
[[ $(complete_line emit --isa av) == avx2\ *avx512* ]] || fail "completion of a value"
[[ $(complete_line completion f) == fish ]] || fail "completion of an argument"
grep -q -- '--fixed-names' < <(man -l "$prefix/share/man/man1/lookupc-emit.1" 2>"$work/log") || ! type -P man >"$work/log" || fail "man page of emit"
ok "bash completes commands, options and values"

# ## Consumers

lookupc sample gen/models/tiny.lua --seed 5 -o "$work/tiny.safetensors" >"$work/log"
lookupc sample gen/models/tiny.lua --seed 6 -o "$work/other.safetensors" >"$work/log"
/usr/bin/python3 -c 'import sys, numpy as np
x = np.zeros((1, 64), "<f4"); x[0, :2] = 1, -1
np.save(sys.argv[1], x)' "$work/x.npy"
for weights in tiny other; do
    lookupc run gen/models/tiny.lua --weights "$work/$weights.safetensors" --input "$work/x.npy" --output "$work/$weights.npy" >"$work/log"
done

# prints FOLDER WEIGHTS [TOLERANCE]: the consumer there prints what lookupc run makes of these weights.
prints() {
    (cd "$1" && ./consumer) >"$work/y.txt" || fail "$1: exit status $?"
    /usr/bin/python3 -c 'import sys, numpy as np
y, expected = np.loadtxt(sys.argv[1]), np.load(sys.argv[2])[0]
sys.exit(not np.linalg.norm(y - expected) <= float(sys.argv[3]) * np.linalg.norm(expected))' "$work/y.txt" "$work/$2.npy" "${3:-1e-4}" ||
        fail "$1: prints other numbers than lookupc run"
}

# consumer NAME: a fresh copy of that folder with model, weights and tuned file in $here.
consumer() {
    here=$work/$1
    rm -rf "$here"
    cp -r "tests/consumers/$1" "$here"
    cp gen/models/tiny.lua "$work/tiny.safetensors" "$here"
}

# compiled FILE: the names of the sources that a build tool says it compiles, in order.
compiled() { grep -oE 'Building C object [^ ]*|Compiling C object [^ ]*|-c (-o [^ ]* )?[^ ]*\.c' "$1" | sed -E 's|.*[/ .]_?([a-z0-9]+[a-z0-9_]*)\.[cS](\.o)?$|\1|' | sort | tr '\n' ' '; }

# and_one_apart: the consumer in $here also has a library in a folder of its own that the build must make, whose blob is a file and copied.
and_one_apart() {
    mkdir "$here/plain"
    cat >"$here/plain/CMakeLists.txt" <<'END'
lookupc_add_library(plain MODEL ../tiny.lua ISA scalar WEIGHTS ../tiny.safetensors)
get_target_property(blob plain LOOKUPC_BLOB)
add_custom_command(OUTPUT copied.bin COMMAND ${CMAKE_COMMAND} -E copy ${blob} copied.bin DEPENDS ${blob})
add_custom_target(copied ALL DEPENDS copied.bin)
END
    echo 'add_subdirectory(plain)' >>"$here/CMakeLists.txt"
}

# steps TOOL...: what it builds now, as compiled; then there must be nothing left to do.
steps() {
    "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$*"; }
    compiled "$work/log" >"$work/compiled"
    "$@" -n >"$work/dry" 2>&1
    [[ -z $(compiled "$work/dry") ]] || fail "$*: still to be compiled: $(compiled "$work/dry")"
    cat "$work/compiled"
}

# rebuilds WHAT EXPECTED TOOL...: the tool compiles these sources, and then nothing.
rebuilds() {
    local got
    got=$(steps "${@:3}")
    [[ "$got" == "$2" ]] || fail "${here##*/}, ${*:3}: $1 compiles \"$got\" instead of \"$2\""
}

# The changes of a consumer in $here, built by TOOL in the folder OUT; KERNELS are its files of kernels.
changes() {
    local out=$1 kernels=$2 linked=$3
    shift 3
    rebuilds "nothing" "" "$@"
    touch "$here/main.c"
    rebuilds "main.c" "main " "$@"
    echo '-- the same model' >>"$here/tiny.lua"
    touch "$here/tiny.lua"
    rebuilds "a comment in the model" "" "$@"
    cp "$work/other.safetensors" "$here/tiny.safetensors"
    touch "$here/tiny.safetensors"
    rebuilds "new weights" "$linked" "$@"
    prints "$out" other "$tolerance"
    sed -i 's/budget = 1e-2/budget = 2e-2/; s/"gelu"/"softmax"/' "$here/tiny.lua"
    touch "$here/tiny.lua"
    rebuilds "another score, whose header has another name for the linker" "main tiny ${kernels}${linked}" "$@"
}

tolerance=1e-4
kernels="tiny__avx2 tiny__avx512 tiny__scalar "
consumer cmake
if ! full; then
    kernels="tiny__scalar "
    sed -i 's/EMBED/EMBED ISA scalar/' "$here/CMakeLists.txt"
fi
quietly cmake -G Ninja -S "$here" -B "$here/b" -DCMAKE_PREFIX_PATH="$prefix"
rebuilds "everything" "main tiny ${kernels}tiny_linked " ninja -C "$here/b"
prints "$here/b" tiny
if full; then
    TINY_ISA=scalar prints "$here/b" tiny
    ! TINY_ISA=mmx "$here/b/consumer" >"$work/log" || fail "TINY_ISA=mmx is taken"
fi
changes "$here/b" "$kernels" "tiny_linked " ninja -C "$here/b"
lines=$(sed '1,/^$/d' tests/consumers/cmake/CMakeLists.txt | wc -l)
((lines <= 3)) || fail "the CMake consumer takes $lines lines"
ok "CMake with the installed package, Ninja: three lines, the right numbers, no needless step"

consumer cmake
full || sed -i 's/EMBED/EMBED ISA scalar/' "$here/CMakeLists.txt"
and_one_apart
sed -i 's/for (int i/int i;\n    for (i/' "$here/main.c"
sed 's/tiny/other/g; s/TINY/OTHER/g' "$here/main.c" >"$here/other.c"
lookupc emit gen/models/tiny.lua --rename other --cmake --make --linked --isa scalar --quiet -o "$here/vendored"
lookupc pack gen/models/tiny.lua --weights "$work/other.safetensors" --quiet -o "$here/vendored/other.bin"
cat >>"$here/CMakeLists.txt" <<'END'
add_subdirectory(vendored)
add_executable(with_bundle other.c)
target_link_libraries(with_bundle PRIVATE other)
set_target_properties(with_bundle PROPERTIES OUTPUT_NAME consumer RUNTIME_OUTPUT_DIRECTORY with_bundle)
END
cat >"$here/Makefile" <<'END'
consumer:
include vendored/other.mk
other.o: CPPFLAGS += -Ivendored
consumer: other.o ${other_objects}
	${CC} ${CFLAGS} $^ -o $@
END
quietly cmake -G 'Unix Makefiles' -S "$here" -B "$here/b" -DCMAKE_PREFIX_PATH="$absolute" -DCMAKE_C_STANDARD=90 \
    -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON
grep -q "$absolute/programs/bin/lookupc emit" "$here/b/CMakeFiles/tiny.dir/build.make" || fail "another lookupc is found than that of absolute folders"
quietly make -C "$here/b" -j 4
prints "$here/b" tiny
prints "$here/b/with_bundle" other
quietly make -C "$here" CFLAGS='-O1 -flto -std=c90'
prints "$here" other
ok "a project of C90 with link-time optimisation, by lookupc_add_library, with a vendored bundle and by its Makefile"
touch "$here/main.c"
make -C "$here/b" >"$work/log"
[[ $(compiled "$work/log") == "main " ]] || fail "CMake's Makefiles compile $(compiled "$work/log") for main.c"
touch "$here/tiny.lua"
make -C "$here/b" >"$work/log"
[[ -z $(compiled "$work/log") ]] || fail "CMake's Makefiles compile $(compiled "$work/log") for an unchanged model"
make -C "$here/b" >"$work/log"
! grep -q Emitting "$work/log" || fail "CMake's Makefiles emit again without a change"
# removed FILE EXPECTED: what is compiled again without that file of the build; then there is nothing left to do.
removed() {
    rm -r "${here:?}/b/$1"
    quietly make -C "$here/b" -j 4
    [[ -e $here/b/$1 ]] || fail "CMake's Makefiles do not make $1 again"
    [[ $(compiled "$work/log") == "$2" ]] || fail "CMake's Makefiles compile $(compiled "$work/log") without $1"
    quietly make -C "$here/b"
    ! grep -qE 'Emitting|Packing|Building' "$work/log" || fail "CMake's Makefiles have more to do without $1"
}
removed lookupc/tiny/tiny__scalar.flags "tiny__scalar "
removed tiny.bin "tiny_linked "
removed plain/tiny.bin ""
removed lookupc "main tiny ${kernels}tiny_linked " # with headers that are newer
ok "CMake with the installed package, Make: from an empty folder, no needless step, and what is removed is made again"

# README puts the build tree into PATH, where find_package looks first. Without EMBED the program reads the file of LOOKUPC_BLOB.
consumer cmake
sed -i 's/EMBED/ISA scalar/' "$here/CMakeLists.txt"
# shellcheck disable=SC2016
echo 'target_compile_definitions(consumer PRIVATE TINY_FILE="$<TARGET_PROPERTY:tiny,LOOKUPC_BLOB>")' >>"$here/CMakeLists.txt"
sed 's/"tiny.bin"/TINY_FILE/' tests/consumers/subdirectory/main.c >"$here/main.c"
and_one_apart
PATH=$build:$PATH quietly cmake -G Ninja -S "$here" -B "$here/b"
grep -q "$build/lookupc emit" "$here/b/build.ninja" || fail "another lookupc is found than that of the build tree in PATH"
rebuilds "everything" "main tiny tiny tiny__scalar tiny__scalar " ninja -C "$here/b"
rm -r "$here/b/lookupc" "$here/b/tiny.bin"*
quietly ninja -C "$here/b"
! grep -vE '^(ninja|\[[0-9]+/[0-9]+\])' "$work/log" || fail "lookupc prints in a build by Ninja"
mkdir "$here/elsewhere"
mv "$here/b/consumer" "$here/elsewhere"
prints "$here/elsewhere" tiny
quietly cmake -G Ninja -S "$here" -B "$here/d" -Dlookupc_DIR="$build"
grep -q "$build/lookupc emit" "$here/d/build.ninja" || fail "another lookupc is found than that of lookupc_DIR"
mkdir "$work/unbuilt"
sed "s|\"$lookupc\"|\"$work/unbuilt/lookupc\"|" "$build/lookupcConfig.cmake" >"$work/unbuilt/lookupcConfig.cmake"
! cmake -S "$here" -B "$here/u" -Dlookupc_DIR="$work/unbuilt" >"$work/log" 2>&1 || fail "a build tree without lookupc is taken"
grep -q "$work/unbuilt/lookupc: there is no such file: build lookupc first" < <(tr -s ' \n' ' ' <"$work/log") || fail "a build tree without lookupc: $(cat "$work/log")"
ok "CMake with the build tree in PATH and in lookupc_DIR, without installation"

if full; then
    consumer cmake
    sed -i 's/EMBED/EMBED ISA scalar avx2 neon dotprod sve i8mm/' "$here/CMakeLists.txt"
    quietly cmake -G Ninja -S "$here" -B "$here/b" -DCMAKE_PREFIX_PATH="$prefix"
    rebuilds "everything for two architectures" "main tiny tiny__avx2 tiny__dotprod tiny__i8mm tiny__neon tiny__scalar tiny__sve tiny_linked " ninja -C "$here/b"
    prints "$here/b" tiny
    ok "TINY_ISA in the environment, and a bundle for x86 and AArch64"
fi

consumer cmake
# add_library ARGUMENTS: configures with these; its messages are in $work/log.
add_library() {
    sed -i "0,/^lookupc_add_library.*/s//lookupc_add_library($1)/" "$here/CMakeLists.txt"
    cmake -G Ninja -S "$here" -B "$here/b" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1
}
for wrong in "MODEL tiny.lua EMBED" "WEIGHTS tiny.safetensors" "MODEL tiny.lua PROFILE firmware" "MODEL tiny.lua BENCHMARK" "MODEL tiny.lua UNKNOWN"; do
    ! add_library "tiny $wrong" || fail "lookupc_add_library takes $wrong"
    grep -q '^  lookupc_add_library(tiny): ' "$work/log" || fail "lookupc_add_library says nothing of $wrong"
done
for wrong in "MODEL nosuch.lua" "MODEL tiny.lua WEIGHTS nosuch.safetensors" "MODEL tiny.lua TUNED nosuch.tuned.lua"; do
    ! add_library "tiny $wrong" || fail "lookupc_add_library takes $wrong"
    words=${wrong#MODEL tiny.lua }
    grep -qF "lookupc_add_library(tiny): ${words% *} $here/${words#* }: there is no such file" "$work/log" || fail "$wrong: $(cat "$work/log")"
done
cp "$here/tiny.lua" "$here/layer_v2.lua"
add_library "tiny MODEL layer_v2.lua" || fail "$(cat "$work/log")"
! ninja -C "$here/b" >"$work/log" 2>&1 || fail "a model of another name is taken"
grep -q 'name = "tiny": must be "layer_v2", as --name says (in lookupc_add_library: NAME, or else ' "$work/log" ||
    fail "nothing is said of a model of another name"
add_library "tiny MODEL tiny.lua ISA scalar,avx2" || fail "$(cat "$work/log")"
grep -q -- '--isa scalar,avx2 ' "$here/b/build.ninja" || fail "ISA with a comma"
grep -q 'tiny__avx2.c.o' "$here/b/build.ninja" || fail "ISA with a comma: the second file is missing"
ok "wrong arguments, missing files and another name of the model stop in one line"

# Files that the build makes are not missing: by commands here and in another folder, which may come later, and in the build tree.
mkdir "$here/sub"
echo "add_custom_command(OUTPUT $work/made.safetensors COMMAND true)" >"$here/sub/CMakeLists.txt"
cat >>"$here/CMakeLists.txt" <<'END'
add_custom_command(OUTPUT ${CMAKE_CURRENT_SOURCE_DIR}/made.safetensors COMMAND true)
lookupc_add_library(other MODEL tiny.lua WEIGHTS ../made.safetensors)
lookupc_add_library(third MODEL ${CMAKE_CURRENT_BINARY_DIR}/third.lua)
file(GENERATE OUTPUT third.lua CONTENT "return {}")
add_subdirectory(sub)
END
add_library "tiny MODEL tiny.lua WEIGHTS made.safetensors" || fail "files that the build makes: $(cat "$work/log")"
ok "models and weights that the build makes"

# Without ISA the CPU that is compiled for decides, and the types.
cat >>"$here/CMakeLists.txt" <<'END'
foreach(processor x86_64 AMD64 i686 aarch64 arm64 armv7l riscv64 "")
    set(CMAKE_SYSTEM_PROCESSOR "${processor}")
    lookupc_add_library(f32_${processor} MODEL tiny.lua)
    lookupc_add_library(i8_${processor} MODEL tiny.lua TABLES i8)
endforeach()
END
add_library "tiny MODEL tiny.lua WEIGHTS made.safetensors" || fail "several processors: $(cat "$work/log")"
# isa_of TARGET: the instruction sets of its bundle.
isa_of() { sed -nE "s|.* --isa ([^ ]*) .*/lookupc/$1 .*|\1|p" "$here/b/build.ninja"; }
x86=scalar,avx2,avx512/scalar,avx2,avx512,avx_vnni arm=scalar,neon,sve/scalar,neon,dotprod,i8mm none=scalar/scalar
for row in x86_64=$x86 AMD64=$x86 i686=$x86 aarch64=$arm arm64=$arm armv7l=$none riscv64=$none =$none; do
    got=$(isa_of "f32_${row%%=*}")/$(isa_of "i8_${row%%=*}")
    [[ $got == "${row#*=}" ]] || fail "bundles for ${row%%=*} are of $got"
done
# A cross build with lookupc as a folder cannot run what it would build.
consumer subdirectory
! cmake -G Ninja -S "$here" -B "$here/b" -DLOOKUPC_SOURCE="$root" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 >"$work/log" 2>&1 ||
    fail "a cross build builds lookupc for the other machine"
grep -q 'lookupc: in a cross build set LOOKUPC_EXECUTABLE to the path of a lookupc that runs' < <(tr -s ' \n' ' ' <"$work/log") ||
    fail "a cross build without LOOKUPC_EXECUTABLE: $(cat "$work/log")"
ok "the processor decides the instruction sets; a cross build names LOOKUPC_EXECUTABLE"

# What other projects may be like, in one: an old CMake's policies, C++ alone, one program with strict warnings, spaces in paths, a model in a folder with a file that
# it includes, two targets of one model, unity builds.
here="$work/a project"
mkdir -p "$here/models/shared"
sed 's/static _Alignas(TINY_ALIGN)/alignas(TINY_ALIGN) static/; s/(double)y\[i\]/double(y[i])/' tests/consumers/cmake/main.c >"$here/main.cc"
sed 's/^return/local shared = include "shared\/width.lua"\nreturn/; s/d = 64/d = shared.d/' gen/models/tiny.lua >"$here/models/tiny.lua"
echo 'return { d = 64 }' >"$here/models/shared/width.lua"
cp "$work/tiny.safetensors" "$here/models"
ln -s "$prefix" "$work/the prefix"
cat >"$here/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.2)
project(consumer CXX)
find_package(lookupc REQUIRED)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(kind_of_i8 SHARED)
set(CMAKE_C_FLAGS "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wmissing-prototypes -Wredundant-decls -Werror")
set(CMAKE_CXX_FLAGS "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wold-style-cast -Werror")
foreach(tables f32 i8)
    lookupc_add_library(tiny_${tables} MODEL models/tiny.lua WEIGHTS models/tiny.safetensors EMBED ISA scalar TABLES ${tables} ${kind_of_${tables}} ${KIND})
    add_executable(consumer_${tables} main.cc)
    target_link_libraries(consumer_${tables} PRIVATE tiny_${tables})
    set_target_properties(consumer_${tables} PROPERTIES OUTPUT_NAME consumer RUNTIME_OUTPUT_DIRECTORY ${tables})
endforeach()
lookupc_add_library(same MODEL models/tiny.lua WEIGHTS models/other.safetensors EMBED ISA scalar STATIC)
lookupc_add_library(renamed MODEL models/tiny.lua WEIGHTS models/other.safetensors EMBED ISA scalar STATIC RENAME renamed)
foreach(part tiny_f32 same renamed)
    add_library(part_${part} STATIC plugin_${part}.c)
    target_link_libraries(part_${part} PRIVATE ${part})
    target_compile_definitions(part_${part} PRIVATE PLUGIN=part_${part})
endforeach()
foreach(other same renamed)
    add_executable(with_${other} EXCLUDE_FROM_ALL both.cc)
    target_compile_definitions(with_${other} PRIVATE OTHER=part_${other})
    target_link_libraries(with_${other} PRIVATE part_tiny_f32 part_${other})
endforeach()
END
# Its own benchmark, by find_package(benchmark), of the library and of a vendored bundle.
timed=no
if echo '#include <benchmark/benchmark.h>' | g++ -x c++ -fsyntax-only - 2>"$work/log"; then
    timed=yes
    lookupc emit gen/models/tiny.lua --rename vendored --benchmark --batch 1 --cmake --isa scalar --quiet -o "$here/vendored"
    cat >>"$here/CMakeLists.txt" <<'END'
lookupc_add_library(timed MODEL models/tiny.lua WEIGHTS models/tiny.safetensors ISA scalar STATIC RENAME timed BENCHMARK OPTIONS --batch 1)
add_subdirectory(vendored)
END
else
    echo "skipped: install: BENCHMARK needs libbenchmark-dev"
fi
cp "$work/other.safetensors" "$here/models"
for part in tiny_f32 same; do cp tests/consumers/plugin.c "$here/plugin_$part.c"; done
sed 's/tiny/renamed/g; s/TINY/RENAMED/g' tests/consumers/plugin.c >"$here/plugin_renamed.c"
cat >"$here/both.cc" <<'END'
#include <cstdio>
extern "C" double part_tiny_f32();
extern "C" double OTHER();
int main() { std::printf("%.4f %.4f\n", part_tiny_f32(), OTHER()); }
END
# other_project FOLDER OPTIONS...: builds it in that folder.
other_project() {
    (cd "$here" && quietly cmake -S . -B "$@" -DCMAKE_PREFIX_PATH="$work/the prefix")
    quietly cmake --build "$here/$1" --parallel 2
}
other_project "out of tree" -G Ninja -DCMAKE_UNITY_BUILD=ON
prints "$here/out of tree/f32" tiny
prints "$here/out of tree/i8" tiny 1e-2
rebuilds "nothing" "" ninja -C "$here/out of tree"
if [[ $timed == yes ]]; then
    quietly "$here/out of tree/timed_benchmark" "$here/out of tree/timed.bin" --benchmark_min_time=0.001
    grep -q '^timed_ffn/scalar/1 ' "$work/log" || fail "timed_benchmark: $(cat "$work/log")"
    quietly "$here/out of tree/vendored/vendored_benchmark" --benchmark_min_time=0.001
    grep -q '^vendored_ffn/scalar/1 ' "$work/log" || fail "vendored_benchmark: $(cat "$work/log")"
    ok "lookupc_add_library(… BENCHMARK) and a vendored bundle of --cmake --benchmark"
fi
quietly ninja -C "$here/out of tree" with_renamed
/usr/bin/python3 -c 'import sys, numpy as np
values = [float(word) for word in sys.argv[1].split()]
sys.exit(not np.allclose(values, [np.load(path)[0][0] for path in sys.argv[2:]], atol=2e-4))' "$("$here/out of tree/with_renamed")" "$work/tiny.npy" "$work/other.npy" ||
    fail "RENAME: other numbers than those of both weights"
! ninja -C "$here/out of tree" with_same >"$work/log" 2>&1 || fail "two targets of one name link"
grep -q "multiple definition of .tiny_bind_linked'" "$work/log" || fail "two targets of one name: $(cat "$work/log")"
ok "two targets of one model with other weights: under one name they do not link, with RENAME each has its own"

touch "$here/models/shared/width.lua"
rebuilds "an included file without a change" "" ninja -C "$here/out of tree"
touch -d 1999-01-01 "$here/models/shared/width.lua"
echo 'return { d = 65 }' >"$here/models/shared/width.lua"
! ninja -C "$here/out of tree" >"$work/log" 2>&1 || fail "a change of an included file is not seen"
ok "a project of C++ alone with spaces in paths, an included file, two targets of one model, unity builds"

full || exit 0

# The installed examples, by the commands of their page, from a copy; another word than sh is the program that these commands need.
cp -r "$prefix/share/lookupc/examples" "$work/examples"
for block in sh meson python3 cargo; do
    case $block in
    python3) /usr/bin/python3 -c 'import build.__main__, wheel, setuptools' 2>"$work/log" ;;
    *) [[ -x /usr/bin/$block ]] ;;
    esac || { echo "skipped: install: examples that need $block"; continue; }
    sed -n "/^\`\`\`$block\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" "$work/examples/README.md" >"$work/commands"
    [[ -s $work/commands ]] || fail "the page of the examples has no commands for $block"
    (cd "$work/examples" && quietly env PATH="$prefix/bin:/usr/bin:/bin" CARGO_HOME="$work/cargo" bash -e "$work/commands")
done
if type -P arm-none-eabi-gcc qemu-system-arm >"$work/log"; then
    writer=$prefix/share/doc/lookupc/examples/tiny-writer/make.sh
    (cd "$work" && quietly env PATH="$prefix/bin:/usr/bin:/bin" "$writer" -m cortex-m33 -w "$work/writer")
    grep -q '^hacker:' "$work/log" || fail "the installed tiny-writer writes nothing"
fi
ok "installed examples run as their page says"

echo 'return { d = 64 }' >"$here/models/shared/width.lua"
(cd "$here" && find . -path './out*' -prune -o -type f -print | sort) >"$work/before"
other_project "../make" -G 'Unix Makefiles' -DKIND=SHARED -DCMAKE_BUILD_TYPE=Release -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON -DCMAKE_POLICY_DEFAULT_CMP0069=NEW
prints "$work/make/f32" tiny
other_project "../configs" -G 'Ninja Multi-Config'
prints "$work/configs/i8/Debug" tiny 1e-2
quietly cmake --build "$work/configs" --config Release
prints "$work/configs/f32/Release" tiny
(cd "$here" && find . -path './out*' -prune -o -type f -print | sort) | cmp "$work/before" - || fail "a build beside the sources writes into their folder"
ok "the same: parallel make with link-time optimisation, several configurations"

consumer make
rebuilds "everything" "main tiny ${kernels}tiny_linked " make -C "$here"
prints "$here" tiny
changes "$here" "$kernels" "tiny_linked " make -C "$here"
make -C "$here" clean >"$work/log"
! grep -q 'lookupc' "$work/log" || fail "make clean runs lookupc: $(cat "$work/log")"
left=$(ls "$here")
[[ ${left//$'\n'/ } == "Makefile main.c tiny.lua tiny.safetensors" ]] || fail "make clean leaves $left"
sed -i 's/^model := .*/model := other/' "$here/Makefile"
! make -C "$here" -n >"$work/log" 2>&1 || fail "make finds a model that is not there"
! grep tiny "$work/log" || fail "the Makefile names the model more than once"
ok "a Makefile: likewise, and clean"

# The Makefile of the docs, whose program reads the blob.
consumer subdirectory
# shellcheck disable=SC2016
sed -n '/^```make Makefile/,/^```$/{/^```/d; s/weights\.safetensors/tiny.safetensors/; s/program/consumer/; p}' docs/install.md >"$here/Makefile"
rebuilds "everything" "main tiny ${kernels}" make -C "$here"
prints "$here" tiny
changes "$here" "$kernels" "" make -C "$here"
ok "the Makefile of docs/install.md: likewise"

consumer cmake
sed -i 's/tiny_linked.h/tiny.h/' "$here/main.c"
sed -i 's/EMBED/PROFILE firmware TARGET generic FLASH 512K OPTIONS --without-misra/' "$here/CMakeLists.txt"
quietly cmake -G Ninja -S "$here" -B "$here/b" -DCMAKE_PREFIX_PATH="$prefix"
rebuilds "everything" "main tiny tiny__kernels tiny_weights " ninja -C "$here/b"
prints "$here/b" tiny
rebuilds "nothing" "" ninja -C "$here/b"
echo '-- the same model' >>"$here/tiny.lua"
rebuilds "a comment in the model" "" ninja -C "$here/b"
cp "$work/other.safetensors" "$here/tiny.safetensors"
touch "$here/tiny.safetensors"
rebuilds "new weights and their checksum" "tiny tiny_weights " ninja -C "$here/b"
prints "$here/b" other
sed -i 's/FLASH 512K/FLASH 1K/' "$here/CMakeLists.txt"
! ninja -C "$here/b" >"$work/log" 2>&1 || fail "firmware that is too large for FLASH is taken"
grep -q 'flash' "$work/log" || fail "nothing is said of firmware that is too large: $(cat "$work/log")"
ok "CMake: firmware, with limits"

tolerance=1e-2 # tables of i8
consumer subdirectory
quietly cmake -G Ninja -S "$here" -B "$here/b" -DLOOKUPC_SOURCE="$root"
quietly ninja -C "$here/b"
prints "$here/b" tiny $tolerance
changes "$here/b" "tiny__avx2 tiny__scalar " "" ninja -C "$here/b"
consumer subdirectory
quietly cmake -G Ninja -S "$here" -B "$here/b" -DLOOKUPC_SOURCE="$root" -DLOOKUPC_EXECUTABLE="$prefix/bin/lookupc"
quietly ninja -C "$here/b"
[[ ! -e $here/b/_deps/lookupc-build/lookupc ]] || fail "LOOKUPC_EXECUTABLE does not take the place of a build"
prints "$here/b" tiny $tolerance
ok "FetchContent of a folder, and the same with a lookupc that is built"

if type -P aarch64-linux-gnu-gcc >"$work/log"; then
    consumer cmake
    quietly cmake -G Ninja -S "$here" -B "$here/b" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
        -DCMAKE_C_FLAGS=-ffreestanding -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY -Dlookupc_DIR="$prefix/share/cmake/lookupc"
    quietly ninja -C "$here/b" tiny
    readelf -h "$here/b/libtiny.a" >"$work/elf"
    (($(grep -c AArch64 "$work/elf") == 5)) || fail "a cross build gives $(grep Machine "$work/elf")"
    ok "a cross build for AArch64 runs the lookupc of this machine"
else
    echo "skipped: install: a cross build: no compiler for AArch64"
fi

if type -P meson >"$work/log"; then
    tolerance=1e-4
    consumer meson
    quietly meson setup "$here/b" "$here"
    quietly ninja -C "$here/b"
    prints "$here/b" tiny
    changes "$here/b" "tiny__avx2 tiny__scalar " "" ninja -C "$here/b"
    ok "meson"
else
    echo "skipped: install: meson is missing"
fi

if [[ -d /usr/share/bazel/rules/java ]] && type -P bazel >"$work/log"; then
    consumer bazel
    # Debian's rules_cc is for a later Bazel than Debian's, and nothing can be fetched: what Bazel itself has will do.
    mkdir -p "$work/rules_cc/cc"
    echo 'workspace(name = "rules_cc")' >"$work/rules_cc/WORKSPACE"
    : >"$work/rules_cc/cc/BUILD"
    for rule in cc_binary cc_import cc_library cc_proto_library cc_test cc_toolchain cc_toolchain_suite fdo_prefetch_hints fdo_profile objc_library; do
        echo "$rule = native.$rule"
    done >"$work/rules_cc/cc/defs.bzl"
    # bazel COMMAND...: with the folder of its server in $work.
    bazel() { (cd "$here" && command bazel --output_user_root="$work/bazel" --max_idle_secs=120 "$@"); }
    # bazel_builds WHAT EXPECTED: these sources.
    bazel_builds() {
        quietly bazel build --subcommands --override_repository=rules_cc="$work/rules_cc" --override_repository=rules_java=/usr/share/bazel/rules/java //:consumer
        local got
        got=$(grep -oE 'Compiling [a-z]+' "$work/log" | sort -u | sed 's/Compiling //' | tr '\n' ' ') || true
        [[ $got == "$2" ]] || fail "Bazel: $1 compiles \"$got\" instead of \"$2\""
    }
    bazel_builds "everything" "main tiny "
    prints "$here/bazel-bin" tiny
    bazel_builds "nothing" ""
    echo '-- the same model' >>"$here/tiny.lua"
    bazel_builds "a comment in the model" ""
    cp "$work/other.safetensors" "$here/tiny.safetensors"
    bazel_builds "new weights" ""
    prints "$here/bazel-bin" other
    sed -i 's/"gelu"/"softmax"/' "$here/tiny.lua"
    bazel_builds "another score" "main tiny "
    quietly bazel shutdown
    chmod -R u+w "$work/bazel"
    ok "Bazel"
else
    echo "skipped: install: bazel-bootstrap or bazel-rules-java is missing"
fi

# Bundles that were emitted by hand, with the build files that emit adds.
here=$work/vendored
mkdir "$here"
cp tests/consumers/meson/main.c "$here"
lookupc emit gen/models/tiny.lua --cmake --meson --make -o "$here/tiny" >"$work/log"
lookupc pack gen/models/tiny.lua --weights "$work/tiny.safetensors" -o "$here/tiny.bin" >"$work/log"
printf 'cmake_minimum_required(VERSION 3.21)\nproject(c C)\nadd_subdirectory(tiny)\nadd_executable(consumer main.c)\ntarget_link_libraries(consumer tiny)\n' >"$here/CMakeLists.txt"
quietly cmake -G Ninja -S "$here" -B "$here/b"
quietly ninja -C "$here/b"
cp "$here/tiny.bin" "$here/b"
prints "$here/b" tiny
grep -q -- '-O2 .*tiny__scalar' "$here/b/build.ninja" || grep -q 'FLAGS = .*-O2' "$here/b/build.ninja" || fail "a build of no type does not optimise kernels"
sed -i 's/project(c C)/project(c CXX)/; s/main\.c)/main.cc)/' "$here/CMakeLists.txt"
sed 's/static _Alignas(\([A-Z_]*\))/alignas(\1) static/' "$here/main.c" >"$here/main.cc"
quietly cmake -G Ninja -S "$here" -B "$here/cxx" -DCMAKE_UNITY_BUILD=ON
quietly ninja -C "$here/cxx"
cp "$here/tiny.bin" "$here/cxx"
prints "$here/cxx" tiny
# shellcheck disable=SC2016
printf 'CFLAGS = -O2\nconsumer:\ninclude tiny/tiny.mk\nmain.o: CFLAGS += -I${tiny_folder}\nconsumer: main.o ${tiny_objects}\n\t${CC} $^ -o $@\n' >"$here/Makefile"
quietly make -C "$here"
prints "$here" tiny
if type -P meson >"$work/log"; then
    lookupc emit gen/models/tiny.lua --rename linked --meson --linked -o "$here/linked" >"$work/log"
    lookupc pack gen/models/tiny.lua --weights "$work/other.safetensors" -o "$here/linked/linked.bin" >"$work/log"
    sed 's/tiny/linked/g; s/TINY/LINKED/g' tests/consumers/cmake/main.c >"$here/linked.c"
    cat >"$here/meson.build" <<'END'
project('c', 'c', default_options: ['c_std=c89', 'b_lto=true'])
subdir('tiny/meson')
subdir('linked/meson')
executable('consumer', 'main.c', dependencies: tiny_dep, override_options: ['c_std=c11'])
executable('consumer_linked', 'linked.c', dependencies: linked_dep, override_options: ['c_std=c11'])
END
    quietly meson setup "$here/m" "$here"
    quietly ninja -C "$here/m"
    cp "$here/tiny.bin" "$here/m"
    prints "$here/m" tiny
    mv "$here/m/consumer_linked" "$here/m/consumer"
    prints "$here/m" other
    mkdir -p "$here/s/subprojects"
    cp -r "$here/tiny" "$here/s/subprojects"
    cp "$here/main.c" "$here/tiny.bin" "$here/s"
    printf "project('c', 'c')\nexecutable('consumer', 'main.c', dependencies: dependency('tiny'))\n" >"$here/s/meson.build"
    quietly meson setup "$here/s/b" "$here/s"
    quietly ninja -C "$here/s/b"
    cp "$here/tiny.bin" "$here/s/b"
    prints "$here/s/b" tiny
fi
[[ $(lookupc check "$here/tiny" --ignore '*.o') == "$here/tiny: fresh" ]] || fail "check of a bundle with build files"
ok "vendored bundles with CMakeLists.txt, tiny.mk, meson.build"
