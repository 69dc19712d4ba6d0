#!/bin/bash
# The one door to this project: installs what is missing, builds, tests, measures. `./build.sh help` says how.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

model=gen/models/roberta_small.lua
lookupc=build/lookupc

# Debian package | what it is for
packages='
gcc              | compiles lookupc and the emitted C
g++              | compiles the measuring process
clang            | second compiler that the emitted C is tested with
libc6-dev        | headers of the C library
cmake            | the build
make             | the build
pkg-config       | finds the libraries
lua5.4           | embeds templates and modules in the program
liblua5.4-dev    | the language of model files and of the generator
libjansson-dev   | JSON
nettle-dev       | SHA-256
libsqlite3-dev   | the store of measurements
libcmocka-dev    | tests in C
libbenchmark-dev | timing
libopenblas-dev  | the dense FFN to be beaten
libdnnl-dev      | the dense FFN to be beaten (oneDNN)
python3-numpy    | check of results that is independent of the C
slurm-wlm        | the test of harness/fleet starts a Slurm of its own
munge            | authentication of that Slurm
parallel         | harness/fleet without Slurm
'

# What tests/firmware/targets_test.lua needs beside: compilers and emulators of other CPUs.
firmware_packages='
gcc-arm-none-eabi        | firmware for Cortex-M
qemu-system-arm          | runs it
gcc-aarch64-linux-gnu    | firmware for AArch64
gcc-riscv64-unknown-elf  | firmware for RISC-V of 32 bits
clang-19                 | firmware for RISC-V with vectors and for WebAssembly
lld-19                   | links it
qemu-user-static         | runs AArch64 and RISC-V
nodejs                   | runs WebAssembly
cppcheck                 | what MISRA.md lists
python3-yaml             | reads the files for Zephyr and ESP-IDF
'

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "build.sh: $*"
    exit 1
}

# install NAME | REASON ...: makes sure that the packages of a table are there.
install() {
    local name reason missing=()
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
        fail "needs Debian's dpkg and apt-get to look for packages; elsewhere install these by hand and run cmake: $(cut -d'|' -f1 <<<"$1" | xargs)"
    while IFS='|' read -r name reason; do
        name=${name// /}
        if [[ -n $name && $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) != installed ]]; then
            say "missing  $name:${reason}"
            missing+=("$name")
        fi
    done <<<"$1"
    ((${#missing[@]})) || return 0

    if ((EUID != 0)) && ! command -v sudo >/dev/null; then
        fail "not root and no sudo: as root, run apt-get install ${missing[*]}"
    fi
    say "installing ${missing[*]}"
    mkdir -p build
    quietly build/packages.log apt update
    quietly build/packages.log apt --yes --no-install-recommends install "${missing[@]}"
}

apt() {
    local root=()
    ((EUID == 0)) || root=(sudo)
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "$@" </dev/null
}

# quietly LOG COMMAND...: shows what the command prints only if it fails.
quietly() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        fail "$* failed"
    }
}

build() {
    install "$packages"
    mkdir -p build
    quietly build/configure.log cmake -G 'Unix Makefiles' -S . -B build
    cmake --build build --parallel "$(nproc)" -- --no-print-directory --silent
}

# step COMMAND...: shows a command and runs it.
step() {
    say
    say "$*"
    "$@"
}

main_job() {
    local name=roberta_small out=build
    step $lookupc plan $model
    step $lookupc emit $model -o $out/$name
    step $lookupc sample $model --seed 1 -o $out/$name.safetensors
    step $lookupc pack $model --weights $out/$name.safetensors -o $out/$name.bin
    step $lookupc verify $model --weights $out/$name.safetensors
    step $lookupc bench $model
    step $lookupc tune $model --time 2m --resume -o $out/$name.tuned.lua
}

# The bundles in emitted/, and the golden files of the tests.
vendored() {
    local name
    for name in tiny roberta_small tiny_skipless; do
        $lookupc emit gen/models/$name.lua -o emitted/$name
    done
    $lookupc sample gen/models/kws.lua --seed 1 -o build/kws.safetensors
    $lookupc emit gen/models/kws.lua --profile firmware --target cortex-m4f --arithmetic integer --weights build/kws.safetensors -o emitted/kws
    build/lua_runner . "$PWD/$lookupc" --update tests/emit/emit_test.lua
}

usage() {
    cat <<'END'
./build.sh                    build, then plan, emit, pack, verify, time and tune roberta_small on this CPU
./build.sh build              install missing Debian packages and build
./build.sh test [ARGS]        build and run all tests; ARGS go to ctest, such as -R sandbox or -L lua
./build.sh test firmware      build and run firmware on every target, in emulation; prints a table
./build.sh bench [ARGS]       build and time roberta_small; ARGS go to lookupc bench, such as --batch 1,64
./build.sh emitted            emit the bundles in emitted/ and the golden files of the tests again
./build.sh fmt                format the C and C++ sources
./build.sh clean              remove build/
END
}

case ${1-} in
'')
    build
    main_job
    ;;
build)
    build
    ;;
test)
    build
    install "$firmware_packages"
    if [[ ${2-} == firmware ]]; then
        exec build/lua_runner . "$PWD/$lookupc" tests/firmware/targets_test.lua
    fi
    exec ctest --test-dir build --output-on-failure -j2 "${@:2}"
    ;;
emitted)
    build
    install "$firmware_packages"
    vendored
    ;;
bench)
    build
    exec $lookupc bench $model "${@:2}"
    ;;
fmt)
    install 'clang-format | formats C and C++'
    find gen harness tests -path tests/golden -prune -o -name '*.[ch]' -print -o -name '*.cc' -print -o -name '*.hh' -print | sort | xargs clang-format -i
    ;;
clean)
    rm -rf build
    ;;
help | -h | --help)
    usage
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
